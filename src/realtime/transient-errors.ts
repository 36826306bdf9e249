/** Transient errors, which do not depend on what was requested: a later attempt may succeed. */
import { GatewayError } from '../errors.ts'

/** Whether the database was unavailable, so that nothing was executed. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'UNAVAILABLE'
}

/** Whether the database did not respond in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'TIMEOUT'
}

/** Whether the database was unavailable or did not respond in time. */
export function isTransient(error: unknown): boolean {
  return isUnavailable(error) || isTimeout(error)
}
