/** Groups the rows of an array body by their columns. */
import { GatewayError } from '../../errors.ts'
import { type JsonArray, type JsonItem, partBytes } from '../../json/json-body.ts'
import { LIMIT_NAMES } from '../../statement-limits.ts'
import { describeJsonType } from './writing.ts'

/** The rows with one set of keys. */
export interface KeySetBatch {
  /** The column names, sorted. */
  readonly columns: readonly string[]
  /** A JSON array of these rows. */
  readonly bytes: Buffer
  /** The positions of the rows in the body, starting at 0. */
  readonly positions: readonly number[]
}

/**
 * Groups the rows by key set, in the order in which the sets appear. A missing key means the column's
 * default, which PostgreSQL applies only if the statement does not name the column, so each set becomes a
 * statement (decision 0009).
 * @throws {GatewayError} `PARSE_ERROR` for an item that is not an object, `PAYLOAD_TOO_LARGE` for too many
 * key sets.
 */
export function batches(body: JsonArray, keySetsMax: number): readonly KeySetBatch[] {
  const { items } = body
  const groups = new Map<string, Group>()
  let last: { readonly keys: readonly string[]; readonly group: Group } | null = null
  for (const [position, { type, keys }] of items.entries()) {
    if (type !== 'object') {
      throw new GatewayError(
        'PARSE_ERROR',
        `item ${position + 1} of the array is ${describeJsonType(type)}; ` +
          'every item must be an object with the columns of a row',
      )
    }
    // Consecutive rows with the same keys in the same order share one list.
    const group: Group = last?.keys === keys ? last.group : groupOf(keys, groups, keySetsMax)
    group.positions.push(position)
    last = { keys, group }
  }
  return Array.from(groups.values(), ({ columns, positions }) => ({
    columns,
    positions,
    bytes: positions.length === items.length ? body.bytes : bytesAt(positions, body),
  }))
}

interface Group {
  readonly columns: readonly string[]
  readonly positions: number[]
}

function groupOf(keys: readonly string[], groups: Map<string, Group>, keySetsMax: number): Group {
  const columns = [...keys].sort()
  // Keys never contain NUL (json-scanner).
  const name = columns.join('\0')
  const known = groups.get(name)
  if (known !== undefined) return known
  if (groups.size === keySetsMax) {
    throw new GatewayError(
      'PAYLOAD_TOO_LARGE',
      `the array has more than ${keySetsMax} different sets of columns (${LIMIT_NAMES.maxBatchKeySets}); ` +
        'give the same columns in every row, or send fewer rows at a time',
      { limit: LIMIT_NAMES.maxBatchKeySets },
    )
  }
  const group = { columns, positions: [] }
  groups.set(name, group)
  return group
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
const COMMA = Buffer.from(',')

function bytesAt(positions: readonly number[], body: JsonArray): Buffer {
  const parts: Buffer[] = [OPEN]
  for (const position of positions) {
    if (parts.length > 1) parts.push(COMMA)
    parts.push(partBytes(body, body.items[position] as JsonItem))
  }
  parts.push(CLOSE)
  return Buffer.concat(parts)
}

/**
 * Sorts the returned rows of all batches into the order of the body. If a batch returns fewer rows than it
 * has, `places` gives the index of each returned row in the batch. If it returns null, they are treated as
 * the first rows of the array.
 */
export function inBodyOrder<T>(
  found: readonly KeySetBatch[],
  answered: readonly (readonly T[])[],
  places: (batch: KeySetBatch, rows: readonly T[]) => readonly number[] | null,
): readonly T[] {
  if (found.length === 1) return answered[0] ?? []
  const placed: { readonly position: number; readonly row: T }[] = []
  for (const [index, batch] of found.entries()) {
    const { positions } = batch
    const rows = answered[index] ?? []
    const at = rows.length === positions.length ? null : places(batch, rows)
    for (const [n, row] of rows.entries()) placed.push({ position: positions[at?.[n] ?? n] ?? 0, row })
  }
  return placed.sort((a, b) => a.position - b.position).map(({ row }) => row)
}

/** Omits the rows whose key equals that of an earlier row. `keys` are indexed by position in the body. */
export function withoutDuplicates(
  found: readonly KeySetBatch[],
  keys: readonly (string | undefined)[],
  body: JsonArray,
): readonly KeySetBatch[] {
  const first = new Map<string, number>()
  for (const [position, key] of keys.entries()) if (key !== undefined && !first.has(key)) first.set(key, position)
  const isFirst = (position: number) => {
    const key = keys[position]
    return key === undefined || first.get(key) === position
  }
  return found.flatMap(batch => {
    const positions = batch.positions.filter(isFirst)
    if (positions.length === batch.positions.length) return [batch]
    return positions.length === 0 ? [] : [{ ...batch, positions, bytes: bytesAt(positions, body) }]
  })
}

/**
 * The columns of the conflict target that the rows contain. Columns missing from every row have the same
 * default. If only some rows omit one, the body does not show which rows have the same key.
 * @throws {GatewayError} `PARSE_ERROR` if rows contain different columns of the target.
 */
export function givenOf(target: readonly string[], found: readonly KeySetBatch[]): readonly string[] {
  const givenBy = ({ columns }: KeySetBatch) => target.filter(name => columns.includes(name))
  const sets = found.map(givenBy).filter(given => given.length > 0)
  const [first = []] = sets
  if (sets.every(given => isSame(given, first))) return first
  throw new GatewayError(
    'PARSE_ERROR',
    `the rows have different columns of the key ${target.join(',')}; ` +
      'give the same key columns in every row of an upsert',
  )
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index])
}
