/** Failures that say nothing about what was asked: another time it may work. */
import { GatewayError } from '../errors.ts'

/** Nothing was asked: the database is away. */
export function isAway(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'UNAVAILABLE'
}

/** The database did not get to it. */
export function isSlow(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'TIMEOUT'
}

/** The database is away, or did not get to it. */
export function isPassing(error: unknown): boolean {
  return isAway(error) || isSlow(error)
}
