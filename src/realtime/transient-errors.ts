/** Transient errors, which do not depend on what was requested: a later attempt may succeed. */
import { GatewayError } from '../errors.ts'

/** True if the database was unavailable, so that nothing was executed. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'UNAVAILABLE'
}

/** True if the database did not respond in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'TIMEOUT'
}

/** True if the database was unavailable or did not respond in time. */
export function isTransient(error: unknown): boolean {
  return isUnavailable(error) || isTimeout(error)
}
