/** The rows of a body that is an array, by the columns that they give. */
import { GatewayError } from '../../errors.ts'
import { bytesOf, type JsonArray } from '../json-body.ts'
import { describeType } from './writing.ts'

/** Neighbours that have the same keys. */
export interface Batch {
  /** Sorted. */
  readonly columns: readonly string[]
  /** A JSON array of these rows. */
  readonly bytes: Buffer
  readonly count: number
}

/**
 * A missing key takes the column's default, and only a statement that does not name the column can make it do so: a batch becomes as many statements
 * as its rows change their keys, in the order given, all in one transaction.
 */
export function batches(body: JsonArray): readonly Batch[] {
  const found: Batch[] = []
  const { items } = body
  let from = 0
  let columns: readonly string[] = []
  const end = (to: number) => {
    const first = items[from]
    const last = items[to - 1]
    if (first === undefined || last === undefined) return
    const whole = from === 0 && to === items.length
    const bytes = whole ? body.bytes : inBrackets(bytesOf(body, { ...first, end: last.end }))
    found.push({ columns, bytes, count: to - from })
  }
  items.forEach((item, index) => {
    if (item.type !== 'object') {
      throw new GatewayError(
        'PARSE_ERROR',
        `item ${index + 1} of the array is ${describeType(item.type)}; every item must be an object with the columns of a row`,
      )
    }
    if (index > 0 && item.keys === items[index - 1]?.keys) return
    const sorted = [...item.keys].sort()
    if (index > 0 && isSame(sorted, columns)) return
    end(index)
    from = index
    columns = sorted
  })
  end(items.length)
  return found
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')

function inBrackets(bytes: Buffer): Buffer {
  return Buffer.concat([OPEN, bytes, CLOSE])
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
