/** `limit`, `offset` (docs/reference/reading.md#order-and-pages) and flags. */
import { GatewayError } from '../../errors.ts'
import type { Count, Parameter } from '../../language/tree/ast.ts'
import { integer } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import type { Values } from '../values.ts'

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

/** What LIMIT gets: a number in the statement's text, or a parameter. */
export type Limit = number | Parameter

/**
 * A limit is part of the statement's text where that makes few texts (PostgreSQL then plans for it, and keeps one plan), and a
 * parameter otherwise, so that nobody can make statements without end by counting. `rows`: how many are read for the `limit` that is answered.
 */
export function limitOf(limit: number, rows: number, values: Values): Limit {
  const isPlanned = limit <= 100 || (limit % 100 === 0 && limit <= 10_000)
  return isPlanned ? rows : values.add(String(rows))
}

export function limitCount(limit: Limit | null): Count | null {
  return typeof limit === 'number' ? integer(String(limit)) : limit
}

/** Of rows that come without pages: there is no next one to tell of. */
export interface Slice {
  /** Null: as many as there are. */
  readonly limit: Limit | null
  readonly offset: Parameter | null
}

/** Without a limit all rows are answered, up to the cap (0: none). */
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
