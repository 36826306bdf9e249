/**
 * A write request, parsed: query string and headers, without the body (specification 4.1, 4.5; decisions 4). As with reads, what gives the
 * statement its form goes into the shape.
 */
import { isUtf8 } from 'node:buffer'
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../http/types.ts'
import type { Expression, Field, Parameter } from '../language/ast.ts'
import { star } from '../language/build.ts'
import { nearest } from '../nearest.ts'
import { shorten } from '../shorten.ts'
import { type FilterLimits, parseFilters } from './filters.ts'
import { parseNameList } from './names.ts'
import { parseCount } from './page.ts'
import { preferencesOf } from './prefer.ts'
import type { QueryParameter } from './query-string.ts'
import { parseSelect } from './select.ts'
import type { Shape } from './shape.ts'

/** What a write is asked to answer. */
export interface Wanted {
  /** The text of `returning`; undefined when nothing was said. */
  readonly returning: string | undefined
  readonly returned: 'minimal' | 'representation' | null
}

export interface Upsert {
  readonly target: readonly string[]
  /** `ignore`: existing rows stay as they are. */
  readonly existing: 'update' | 'ignore'
}

/** `Prefer: return=minimal` and `returning` contradict each other; the list of columns is the more exact wish. */
export function parseWanted(parameters: readonly QueryParameter[], headers: Incoming['headers']): Wanted {
  const given = parameters.filter(({ name }) => name === 'returning')
  if (given.length > 1) throw twice('returning')
  return { returning: given[0]?.value, returned: preferencesOf(headers).returned }
}

/** The fields to return; none where nothing is to be answered. `fallback`: what a request that says nothing gets. */
export function parseReturning(wanted: Wanted, fallback: 'rows' | 'nothing', shape: Shape): readonly Field[] {
  if (wanted.returning !== undefined) return parseSelect(wanted.returning, shape, 'returning')
  const rows = wanted.returned === null ? fallback === 'rows' : wanted.returned === 'representation'
  shape.add(rows ? 'returning *' : 'returning nothing')
  return rows ? [star()] : []
}

/** Requests about one row, and creations, take nothing else. */
export function refuseOthers(parameters: readonly QueryParameter[], what: string): void {
  const other = parameters.find(({ name }) => name !== 'returning')
  if (other === undefined) return
  const near = nearest(other.name, ['returning'])
  const hint = near === null ? `${what} takes only returning` : `did you mean "${near}"?`
  throw new GatewayError('PARSE_ERROR', `${what} takes no parameter "${shorten(other.name)}"; ${hint}`)
}

// ---- upsert ------------------------------------------------------------------------------------------------

/** Null: a plain creation. */
export function parseUpsert(headers: Incoming['headers'], table: Table): Upsert | null {
  const mode = one(headers, 'x-upsert')?.trim().toLowerCase()
  const target = one(headers, 'x-on-conflict')
  if (mode === undefined || mode === 'false') {
    if (target === undefined) return null
    throw new GatewayError('PARSE_ERROR', 'X-On-Conflict says on what an upsert looks; send X-Upsert: true with it')
  }
  if (mode !== 'true' && mode !== 'ignore') {
    throw new GatewayError('PARSE_ERROR', `X-Upsert "${shorten(mode)}" is none of true, ignore, false`)
  }
  const names = target === undefined ? table.primaryKey : parseNameList(target, 'X-On-Conflict')
  if (names.length === 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `table "${table.resource}" has no primary key to upsert by; name the columns of a unique key in X-On-Conflict`,
    )
  }
  return { target: names, existing: mode === 'ignore' ? 'ignore' : 'update' }
}

// ---- bulk --------------------------------------------------------------------------------------------------

/** Rows that one filtered write may change unless `X-Max-Affected` says otherwise. */
const MAX_AFFECTED = 1_000

/** Parameters of lists that a bulk write has no use for: silently left out, they would widen it. */
const LIST_ONLY: ReadonlySet<string> = new Set([
  'sort',
  'limit',
  'offset',
  'cursor',
  'select',
  'distinct',
  'expand',
  'stream',
  'search',
  'search_columns',
])

export interface Bulk {
  readonly filter: Expression
  readonly rowsMax: Parameter
}

export function parseBulk(
  parameters: readonly QueryParameter[],
  headers: Incoming['headers'],
  shape: Shape,
  table: Table,
  limits: FilterLimits,
): Bulk {
  const filters = parameters.filter(({ name }) => name !== 'returning')
  const misplaced = filters.find(({ name }) => LIST_ONLY.has(name) && !table.columnByName.has(name))
  if (misplaced !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `a filtered write takes filters and returning, no "${misplaced.name}"; it changes every row that the filters match`,
    )
  }
  const filter = parseFilters(filters, shape, limits)
  if (filter === null) {
    throw new GatewayError(
      'PARSE_ERROR',
      `a write to all rows of "${table.resource}" is not possible; give at least one filter, or the id of a row in the path`,
    )
  }
  return { filter, rowsMax: shape.value(String(parseRowsMax(headers))) }
}

/** How many rows a write may change that picks them by a condition. */
export function parseRowsMax(headers: Incoming['headers']): number {
  return parseCount(one(headers, 'x-max-affected'), 'X-Max-Affected') ?? MAX_AFFECTED
}

/** Node reads header bytes as latin1; names that are sent in UTF-8 are names all the same. */
function one(headers: Incoming['headers'], name: string): string | undefined {
  const header = headers[name]
  if (header === undefined) return undefined
  const text = Array.isArray(header) ? header.join(',') : header
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : text
}

function twice(name: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `parameter "${name}" is given twice; join its items with a comma`)
}
