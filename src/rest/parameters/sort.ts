/** `sort=-created_at,name:asc.nullsfirst,meta->>theme:desc` (docs/reference/reading.md#order-and-pages). */
import type { Order } from '../../language/tree/ast.ts'
import { order } from '../../language/tree/build.ts'
import type { Values } from '../values.ts'
import { type BoundPath, buildPath, readColumnPath, toPath } from './column-path.ts'
import { NameReader } from './name-reader.ts'

/** Limit on the columns of one `sort`. */
const SORT_ITEMS_MAX = 32

/** One column of `sort`. */
export interface SortItem {
  readonly path: BoundPath
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | null
}

/**
 * Parses `item { "," item }`, item = [ "-" ] column [ ":" ( "asc" | "desc" ) [ "." ( "nullsfirst" |
 * "nullslast" ) ] ]. `parameter` is the parameter's name for errors.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed item.
 */
export function parseSort(text: string | undefined, values: Values, parameter = 'sort'): readonly SortItem[] {
  if (text === undefined || text === '') return []
  const reader = new NameReader(text, parameter)
  const items: SortItem[] = []
  do {
    if (items.length === SORT_ITEMS_MAX) reader.fail(`has more than ${SORT_ITEMS_MAX} columns`)
    const minus = reader.take('-')
    const path = readColumnPath(reader, [',', ':'])
    const direction = reader.take(':') ? parseDirection(reader) : null
    if (minus && direction?.written) reader.fail('has both - and a direction', 'write -column or column:desc')
    const descending = minus || (direction?.descending ?? false)
    items.push({ path: toPath(path, values), descending, nulls: direction?.nulls ?? null })
  } while (reader.take(','))
  if (!reader.done) reader.fail('has text after a column', 'separate columns with a comma')
  return items
}

/** Builds an item of ORDER BY. `alias` is the alias of the table, or null if names are unambiguous. */
export function buildOrder({ path, descending, nulls }: SortItem, alias: string | null): Order {
  return order(buildPath(path, alias), { descending, nulls })
}

/** The name of the column, or null if the item is a path into JSON. */
export function plainColumn({ path }: SortItem): string | null {
  return path.steps.length === 0 ? path.column : null
}

interface Direction {
  readonly written: boolean
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | null
}

const NULLS = { nullsfirst: 'first', nullslast: 'last' } as const

/** Parses the part after the colon. `-column:nullslast` gives only the position of NULLs. */
function parseDirection(reader: NameReader): Direction {
  const words = reader.name([',']).split('.')
  const written = words[0] === 'asc' || words[0] === 'desc'
  const rest = written ? words.slice(1) : words
  const nulls = rest[0] === 'nullsfirst' || rest[0] === 'nullslast' ? NULLS[rest[0]] : null
  if (rest.length > (nulls === null ? 0 : 1)) {
    reader.fail(
      `has the direction "${words.join('.')}"`,
      'expected asc or desc, optionally followed by .nullsfirst or .nullslast',
    )
  }
  return { written, descending: words[0] === 'desc', nulls }
}
