/** Parses `limit`, `offset` (docs/reference/reading.md#order-and-pages) and flags. */
import { GatewayError } from '../../errors.ts'
import type { Count, Parameter } from '../../language/tree/ast.ts'
import { integer } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import type { Values } from '../values.ts'

/** Limit on `limit` and `offset`. PostgreSQL accepts bigint, but no table needs more. */
const INTEGER_MAX = Number.MAX_SAFE_INTEGER

/**
 * Parses a whole number of at least 0; undefined if the parameter is absent.
 * @throws {GatewayError} `PARSE_ERROR` for anything else.
 */
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

/**
 * Parses a flag; an absent flag is false.
 * @throws {GatewayError} `PARSE_ERROR` for anything but true and false.
 */
export function parseBoolean(text: string | undefined, parameter: string): boolean {
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw new GatewayError('PARSE_ERROR', `${parameter} "${shorten(text)}" is neither true nor false`)
}

/** The limit that applies: the requested one or the default, reduced to the row cap (0 means no cap). */
export function effectiveLimit(wanted: number | undefined, defaultLimit: number, maxResultRows: number): number {
  const limit = wanted ?? defaultLimit
  return maxResultRows === 0 ? limit : Math.min(limit, maxResultRows)
}

/** The operand of LIMIT: a number in the statement's text, or a parameter. */
export type Limit = number | Parameter

/**
 * Makes a limit part of the statement's text if it is one of a few common values, for which PostgreSQL can
 * plan, and a parameter otherwise. This bounds the number of statements that clients can create. `rows` is
 * the number of rows to read for a response with `limit` rows.
 */
export function limitOf(limit: number, rows: number, values: Values): Limit {
  const isPlanned = limit <= 100 || (limit % 100 === 0 && limit <= 10_000)
  return isPlanned ? rows : values.add(String(rows))
}

/** The operand of LIMIT as an expression, or null without a limit. */
export function limitCount(limit: Limit | null): Count | null {
  return typeof limit === 'number' ? integer(String(limit)) : limit
}

/** A part of a result that has no pages and no cursor. */
export interface Slice {
  /** Rows to return, or null for all rows. */
  readonly limit: Limit | null
  readonly offset: Parameter | null
}

/**
 * Parses `limit` and `offset`. Without a limit the row cap applies (0 means no cap).
 * @throws {GatewayError} `PARSE_ERROR` for a value that is not a whole number.
 */
export function parseSlice(
  named: Pick<ReadonlyMap<'limit' | 'offset', string>, 'get'>,
  values: Values,
  maxResultRows: number,
): Slice {
  const wanted = parseCount(named.get('limit'), 'limit')
  const offset = parseCount(named.get('offset'), 'offset')
  const limit = effectiveLimit(wanted, maxResultRows, maxResultRows)
  const isLimited = wanted !== undefined || maxResultRows > 0
  return {
    limit: isLimited ? limitOf(limit, limit, values) : null,
    offset: offset === undefined ? null : values.add(String(offset)),
  }
}
