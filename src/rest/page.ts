/** `limit`, `offset` and the flags of a list request (specification 4.2, decisions 3). */
import { GatewayError } from '../errors.ts'
import { shorten } from '../shorten.ts'

/** PostgreSQL's LIMIT and OFFSET are bigint; nobody pages further than this. */
const INTEGER_MAX = Number.MAX_SAFE_INTEGER

/** A whole number of at least 0; undefined when the parameter is absent. */
export function parseCount(text: string | undefined, parameter: string): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(value) || value > INTEGER_MAX) {
    throw new GatewayError(
      'PARSE_ERROR',
      `${parameter} "${shorten(text)}" is not a whole number from 0 to ${INTEGER_MAX}`,
    )
  }
  return value
}

export function parseBoolean(text: string | undefined, parameter: string): boolean {
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw new GatewayError('PARSE_ERROR', `${parameter} "${shorten(text)}" is neither true nor false`)
}

/** The limit in force: `wanted` or the default, lowered to the row cap (0: no cap). */
export function effectiveLimit(wanted: number | undefined, defaultLimit: number, maxResultRows: number): number {
  const limit = wanted ?? defaultLimit
  return maxResultRows === 0 ? limit : Math.min(limit, maxResultRows)
}

/**
 * A limit is part of the statement's text where that makes few texts (PostgreSQL then plans for it, and keeps one plan), and a
 * parameter otherwise, so that nobody can make statements without end by counting.
 */
export function isPlannedLimit(limit: number): boolean {
  return limit <= 100 || (limit % 100 === 0 && limit <= 10_000)
}
