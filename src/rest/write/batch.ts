/** The rows of a body that is an array, grouped by the columns that they give. */
import { GatewayError } from '../../errors.ts'
import { bytesOf, type JsonArray, type JsonItem } from '../../json/json-body.ts'
import { LIMIT_NAMES } from '../../statement-limits.ts'
import { describeType } from './writing.ts'

/** The rows of one key set. */
export interface Batch {
  /** Sorted. */
  readonly columns: readonly string[]
  /** A JSON array of these rows. */
  readonly bytes: Buffer
  /** Where each of them stands in the body, counted from 0. */
  readonly positions: readonly number[]
}

/**
 * Groups the rows by key set, in the order in which the sets appear. A missing key takes the column's default, and only a statement that does not name the
 * column can make it do so: each set becomes one statement (decision 0009).
 */
export function batches(body: JsonArray, keySetsMax: number): readonly Batch[] {
  const { items } = body
  const groups = new Map<string, Group>()
  let last: { readonly keys: readonly string[]; readonly group: Group } | null = null
  for (const [position, { type, keys }] of items.entries()) {
    if (type !== 'object') {
      throw new GatewayError(
        'PARSE_ERROR',
        `item ${position + 1} of the array is ${describeType(type)}; ` +
          'every item must be an object with the columns of a row',
      )
    }
    // Neighbours with the same keys in the same order share one list.
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
  // No key has a NUL in it (json-scanner).
  const name = columns.join('\0')
  const known = groups.get(name)
  if (known !== undefined) return known
  if (groups.size === keySetsMax) {
    throw new GatewayError(
      'PAYLOAD_TOO_LARGE',
      `the batch has more than ${keySetsMax} different sets of columns (${LIMIT_NAMES.maxBatchKeySets}); ` +
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
    parts.push(bytesOf(body, body.items[position] as JsonItem))
  }
  parts.push(CLOSE)
  return Buffer.concat(parts)
}

/**
 * Puts what was answered for each batch into the order of the body. A batch that answers fewer rows than it has left some of them out: `places` says which
 * of its rows an answered one is, and where it does not, they count as the first ones.
 */
export function inOrder<T>(
  found: readonly Batch[],
  answered: readonly (readonly T[])[],
  places: (batch: Batch, rows: readonly T[]) => readonly number[] | null,
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

/** Leaves out the rows whose key an earlier row of the body has. `keys`: by position in the body. */
export function withoutRepeated(
  found: readonly Batch[],
  keys: readonly (string | undefined)[],
  body: JsonArray,
): readonly Batch[] {
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
 * The columns of the target that the rows give. What they leave out is the same default for all; where only some of them leave it out, nobody can tell from
 * the body which rows have the same key.
 */
export function givenOf(target: readonly string[], found: readonly Batch[]): readonly string[] {
  const givenBy = ({ columns }: Batch) => target.filter(name => columns.includes(name))
  const sets = found.map(givenBy).filter(given => given.length > 0)
  const [first = []] = sets
  if (sets.every(given => isSame(given, first))) return first
  throw new GatewayError(
    'PARSE_ERROR',
    `the rows give different columns of the key ${target.join(',')}; in one upsert give the same of them in every row`,
  )
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index])
}
