/** `sort=-created_at,name:asc.nullsfirst,meta->>theme:desc` (docs/reference/reading.md#order-and-pages). */
import type { Order } from '../../language/tree/ast.ts'
import { order } from '../../language/tree/build.ts'
import type { Shape } from '../shape.ts'
import { pathExpression, readColumnPath } from './column-path.ts'
import { NameReader } from './names.ts'

/** More columns than this cannot be what anybody wants to sort by. */
const SORT_ITEMS_MAX = 32

/** item = [ "-" ] column [ ":" ( "asc" | "desc" ) [ "." ( "nullsfirst" | "nullslast" ) ] ] */
export function parseSort(text: string | undefined, shape: Shape): readonly Order[] {
  shape.add('sort')
  if (text === undefined || text === '') return []
  const reader = new NameReader(text, 'sort')
  const items: Order[] = []
  do {
    if (items.length === SORT_ITEMS_MAX) reader.fail(`has more than ${SORT_ITEMS_MAX} columns`)
    const minus = reader.take('-')
    const path = readColumnPath(reader, [',', ':'])
    const direction = reader.take(':') ? parseDirection(reader) : null
    if (minus && direction?.written) reader.fail('has both - and a direction', 'write -column or column:desc')
    const descending = minus || (direction?.descending ?? false)
    const nulls = direction?.nulls ?? null
    shape.add(`${descending ? 'desc' : 'asc'} ${nulls ?? ''}`)
    items.push(order(pathExpression(path, shape), { descending, nulls }))
  } while (reader.take(','))
  if (!reader.done) reader.fail('goes on after a column', 'separate columns with a comma')
  return items
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
