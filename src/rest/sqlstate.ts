import { GatewayError } from '../errors.ts'

/** The SQLSTATE (PostgreSQL manual, appendix A) of an error as the caller receives it; null for an error that did not come from the database. */
export function sqlstateOf(error: unknown): string | null {
  if (!(error instanceof GatewayError)) return null
  const { sqlstate } = (error.details ?? {}) as { readonly sqlstate?: unknown }
  return typeof sqlstate === 'string' ? sqlstate : null
}
