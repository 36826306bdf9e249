/** Ranges of rows: `limit` and `offset`, the `Range` header, and what `Content-Range` reports. */
import { invalidRange } from './errors.ts'

/** A range of rows. */
export interface RowRange {
  readonly offset: number
  /** Null for no limit. */
  readonly limit: number | null
}

const ALL: RowRange = { offset: 0, limit: null }

/** An integer with a sign and blanks around it. */
const INTEGER = /^\s*-?\d{1,15}\s*$/

/** The range of `limit` and `offset`. A value that is not an integer is ignored; a limit can be negative. */
export function rangeOf(limit: string | null, offset: string | null): RowRange {
  return {
    offset: offset !== null && INTEGER.test(offset) ? Math.max(0, Number(offset)) : 0,
    limit: limit !== null && INTEGER.test(limit) ? Number(limit) : null,
  }
}

const NO_HEADER = { ...ALL, isEmpty: false }

const HEADER = /^(\d{1,15})-(\d{0,15})$/

/** The range of the `Range` header; all rows for a header of another form. */
function rangeOfHeader(header: string | undefined): RowRange & { readonly isEmpty: boolean } {
  const [, first, last] = (header === undefined ? null : HEADER.exec(header.trim())) ?? []
  if (first === undefined || last === undefined) return NO_HEADER
  const offset = Number(first)
  if (last === '') return { offset, limit: null, isEmpty: false }
  const limit = Number(last) - offset + 1
  return { offset, limit: Math.max(limit, 0), isEmpty: limit <= 0 }
}

/**
 * The rows that satisfy both the parameters and the header.
 * @throws {PostgrestError} `PGRST103` for a range without rows.
 */
export function topLevelRange(parameters: RowRange, header: string | undefined): RowRange {
  const { limit } = parameters
  if (header === undefined && (limit === null || limit > 0)) return parameters
  const asked = rangeOfHeader(header)
  if (asked.isEmpty) {
    throw invalidRange('The lower boundary must be lower than or equal to the upper boundary in the Range header.')
  }
  if (parameters.limit === 0) return { offset: parameters.offset, limit: 0 }
  if (parameters.limit !== null && parameters.limit < 0) throw negativeLimit()
  const offset = Math.max(parameters.offset, asked.offset)
  const end = Math.min(endOf(parameters), endOf(asked))
  if (end <= offset) throw negativeLimit()
  return { offset, limit: Number.isFinite(end) ? end - offset : null }
}

function negativeLimit(): Error {
  return invalidRange('Limit should be greater than or equal to zero.')
}

function endOf({ offset, limit }: RowRange): number {
  return limit === null ? Number.POSITIVE_INFINITY : offset + limit
}

/** The same range with at most `max` rows; 0 means no limit. */
export function restricted(range: RowRange, max: number): RowRange {
  if (max === 0 || (range.limit !== null && range.limit <= max)) return range
  return { ...range, limit: max }
}

/** The value of `Content-Range`: `0-9/42`, or an asterisk in place of a total that is not known. */
export function printContentRange(first: number, last: number, total: number | null): string {
  const rows = total === 0 || first > last ? '*' : `${first}-${last}`
  return `${rows}/${total ?? '*'}`
}

/**
 * The status and `Content-Range` of rows of a range. `total`: the number of rows without the range, or null.
 * @throws {PostgrestError} `PGRST103` for an offset behind the last row.
 */
export function describeRows(
  { offset }: RowRange,
  count: number,
  total: number | null,
): { readonly status: 200 | 206; readonly contentRange: string } {
  if (total !== null && offset > total) {
    throw invalidRange(`An offset of ${offset} was requested, but there are only ${total} rows.`, total)
  }
  return {
    status: total !== null && count < total ? 206 : 200,
    contentRange: printContentRange(offset, offset + count - 1, total),
  }
}
