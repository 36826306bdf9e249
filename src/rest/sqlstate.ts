import { GatewayError } from '../errors.ts'

/**
 * The SQLSTATE of an error as the caller receives it (PostgreSQL manual, appendix A), or null if the error
 * did not come from the database.
 */
export function sqlstateOf(error: unknown): string | null {
  if (!(error instanceof GatewayError)) return null
  const { sqlstate } = (error.details ?? {}) as { readonly sqlstate?: unknown }
  return typeof sqlstate === 'string' ? sqlstate : null
}
