/** `sort=-created_at,name:asc.nullsfirst,meta->>theme:desc` (docs/reference/reading.md#order-and-pages). */
import type { Order } from '../../language/tree/ast.ts'
import { order } from '../../language/tree/build.ts'
import type { Values } from '../values.ts'
import { buildPath, type Path, readColumnPath, toPath } from './column-path.ts'
import { NameReader } from './names.ts'

/** More columns than this cannot be what anybody wants to sort by. */
const SORT_ITEMS_MAX = 32

export interface SortItem {
  readonly path: Path
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | null
}

/** item = [ "-" ] column [ ":" ( "asc" | "desc" ) [ "." ( "nullsfirst" | "nullslast" ) ] ] */
export function parseSort(text: string | undefined, values: Values): readonly SortItem[] {
  if (text === undefined || text === '') return []
  const reader = new NameReader(text, 'sort')
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
  if (!reader.done) reader.fail('goes on after a column', 'separate columns with a comma')
  return items
}

/** `alias`: of the table whose columns are sorted by; null where no other name can be meant. */
export function buildOrder({ path, descending, nulls }: SortItem, alias: string | null): Order {
  return order(buildPath(path, alias), { descending, nulls })
}

/** The name of a column that is sorted by as it is; null for a path into JSON. */
export function plainColumn({ path }: SortItem): string | null {
  return path.steps.length === 0 ? path.column : null
}

interface Direction {
  readonly written: boolean
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | null
}

const NULLS = { nullsfirst: 'first', nullslast: 'last' } as const

/** After the colon; `-column:nullslast` may name just the place of the NULLs. */
function parseDirection(reader: NameReader): Direction {
  const words = reader.name([',']).split('.')
  const written = words[0] === 'asc' || words[0] === 'desc'
  const rest = written ? words.slice(1) : words
  const nulls = rest[0] === 'nullsfirst' || rest[0] === 'nullslast' ? NULLS[rest[0]] : null
  if (rest.length > (nulls === null ? 0 : 1)) {
    reader.fail(
      `has the direction "${words.join('.')}"`,
      'expected asc or desc, then .nullsfirst or .nullslast if need be',
    )
  }
  return { written, descending: words[0] === 'desc', nulls }
}
