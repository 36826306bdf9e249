/**
 * A write request, parsed: query string and headers, without the body. As with reads, what gives the
 * statement its form goes into the shape.
 */
import type { Columns } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import type { Expression, Field, Parameter } from '../../language/tree/ast.ts'
import { star } from '../../language/tree/build.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { headerOf } from '../header.ts'
import { type FilterLimits, parseFilters } from '../parameters/filters.ts'
import { parseNameList } from '../parameters/names.ts'
import { parseCount } from '../parameters/page.ts'
import type { QueryParameter } from '../parameters/query-string.ts'
import { parseSelect } from '../parameters/select.ts'
import { sortOut } from '../parameters/sort-out.ts'
import { preferencesOf } from '../prefer.ts'
import type { Shape } from '../shape.ts'

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
  const { named } = sortOut(parameters, ['returning'])
  return { returning: named.get('returning'), returned: preferencesOf(headers).returned }
}

/**
 * The fields to return; none where nothing is to be answered. `fallback`: what a request that says nothing gets. `answerable`: what may be answered at all,
 * which `*` means.
 */
export function parseReturning(
  wanted: Wanted,
  fallback: 'rows' | 'nothing',
  answerable: Columns,
  shape: Shape,
): readonly Field[] {
  if (wanted.returning !== undefined && wanted.returning !== '*') {
    return parseSelect(wanted.returning, shape, 'returning')
  }
  const asked = wanted.returned === null ? fallback === 'rows' : wanted.returned === 'representation'
  const rows = (asked || wanted.returning === '*') && (answerable === 'any' || answerable.size > 0)
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
  const mode = headerOf(headers, 'x-upsert')?.trim().toLowerCase()
  const target = headerOf(headers, 'x-on-conflict')
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
  return parseCount(headerOf(headers, 'x-max-affected'), 'X-Max-Affected') ?? MAX_AFFECTED
}
