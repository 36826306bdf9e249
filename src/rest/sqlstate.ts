import { GatewayError } from '../errors.ts'

/** What PostgreSQL called it (manual, appendix A), as the caller is told (decisions 8); null for an error that is none of the database's. */
export function sqlstateOf(error: unknown): string | null {
  if (!(error instanceof GatewayError)) return null
  const { sqlstate } = (error.details ?? {}) as { readonly sqlstate?: unknown }
  return typeof sqlstate === 'string' ? sqlstate : null
}
