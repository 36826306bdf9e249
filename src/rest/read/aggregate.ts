/** `GET /api/{table}/aggregate` (docs/reference/reading.md#aggregates): one value over the rows that match the filters, or one for each group. */

import type { View } from '../../access/rights.ts'
import { baseOf, isOrdered } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Expression, Get, Order } from '../../language/tree/ast.ts'
import { allOf, call, column, field, get, order } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import { UNRANKED } from '../../types/traits.ts'
import { buildFilter, type Condition, parseFilters } from '../parameters/filters.ts'
import { NameReader, parseNameList } from '../parameters/names.ts'
import { limitCount, parseSlice, type Slice } from '../parameters/page.ts'
import { buildOrder, parseSort, plainColumn, type SortItem } from '../parameters/sort.ts'
import { sortOut } from '../parameters/written.ts'
import { AGGREGATE_PARAMETERS, parametersIn, type WrittenRequest } from '../request.ts'
import { SELF } from '../resource.ts'
import type { Values } from '../values.ts'
import { parseSearch, type ReadLimits, type Search } from './request.ts'
import { searchCondition } from './tree.ts'

export const AGGREGATE_FUNCTIONS = ['count', 'sum', 'avg', 'min', 'max'] as const

export type AggregateFunction = (typeof AGGREGATE_FUNCTIONS)[number]

export interface AggregateTree {
  readonly kind: 'aggregate'
  readonly written: WrittenRequest
  readonly table: Table
  readonly fn: AggregateFunction
  /** Null: `count` counts rows. */
  readonly column: string | null
  /** Null: one value over all rows. */
  readonly groups: Groups | null
  readonly filter: readonly Condition[]
  readonly search: Search | null
}

interface Groups extends Slice {
  readonly columns: readonly string[]
  readonly sort: readonly SortItem[]
}

type Named = ReadonlyMap<(typeof AGGREGATE_PARAMETERS)[number], string>

export function parseAggregate(
  written: WrittenRequest,
  table: Table,
  values: Values,
  limits: ReadLimits,
): AggregateTree {
  const { named, others } = sortOut(parametersIn(written), AGGREGATE_PARAMETERS)
  const fn = parseFunction(named.get('fn'), named.get('column'))
  return {
    ...{ kind: 'aggregate', written, table, ...fn },
    groups: parseGroups(named, fn.fn, values, limits),
    filter: parseFilters(others, values, limits),
    search: parseSearch(named, values),
  }
}

function parseFunction(text: string | undefined, column: string | undefined): Pick<AggregateTree, 'fn' | 'column'> {
  const fn = AGGREGATE_FUNCTIONS.find(known => known === text)
  if (fn === undefined) {
    const given = text === undefined ? 'fn is missing' : `fn "${shorten(text)}" is no aggregate`
    throw new GatewayError('PARSE_ERROR', `${given}; give fn=${AGGREGATE_FUNCTIONS.join(', fn=')}`)
  }
  if (column === undefined && fn !== 'count') {
    throw new GatewayError('PARSE_ERROR', `fn=${fn} needs a column: fn=${fn}&column=total`)
  }
  return { fn, column: column === undefined ? null : parseColumn(column) }
}

/** A name, in double quotes or not; unlike in a list it needs none for punctuation. */
export function parseColumn(text: string): string {
  if (!text.startsWith('"')) return text
  const reader = new NameReader(text, 'column')
  const name = reader.name([])
  if (!reader.done) reader.fail('goes on after the name', 'fn takes one column')
  return name
}

function parseGroups(named: Named, fn: AggregateFunction, values: Values, limits: ReadLimits): Groups | null {
  const text = named.get('group_by')
  if (text === undefined) {
    const pointless = (['sort', 'limit', 'offset'] as const).find(name => named.has(name))
    if (pointless === undefined) return null
    throw new GatewayError(
      'PARSE_ERROR',
      `without group_by there is one row, so ${pointless} means nothing; leave it out`,
    )
  }
  const columns = parseNameList(text, 'group_by')
  if (columns.includes(fn)) {
    throw new GatewayError('PARSE_ERROR', `group_by "${fn}" and fn=${fn} would have the same name in the answer`)
  }
  const sort = parseSort(named.get('sort'), values)
  return { columns, sort, ...parseSlice(named, values, limits.maxResultRows) }
}

export function buildAggregate(request: AggregateTree, view: View): Get {
  const { table, fn, groups } = request
  assertFitting(request)
  const counted = request.column === null ? [] : [column(SELF, request.column)]
  const value = field(call(fn, counted, { star: counted.length === 0 }), fn)
  const conditions = [buildFilter(request.filter, null), searchCondition(request.search, table, view)]
  const rows = { table, alias: SELF, where: allOf(conditions) }
  if (groups === null) return get({ ...rows, fields: [value] })
  const grouped = groups.columns.map(name => column(SELF, name))
  return get({
    ...rows,
    fields: [...grouped.map(expression => field(expression)), value],
    groupBy: grouped,
    orderBy: sortedGroups(groups, fn, value.expression),
    limit: limitCount(groups.limit),
    offset: groups.offset,
  })
}

/** Numbers and spans of time add up; what has no order has no least and no greatest. PostgreSQL would speak of a function of its own. */
function assertFitting({ table, fn, column: name }: AggregateTree): void {
  const known = name === null ? undefined : table.columnByName.get(name)
  if (known === undefined || fn === 'count') return
  const base = baseOf(known.type)
  const adds = base.category === 'N' && !REFERENCES.test(base.name) && !(fn === 'avg' && base.name === 'money')
  const ranks = isOrdered(base) && !UNRANKED.has(base.name) && base.kind !== 'range' && base.kind !== 'multirange'
  if (fn === 'sum' || fn === 'avg' ? adds || base.name === 'interval' : ranks) return
  const needed =
    fn === 'sum' || fn === 'avg' ? 'a number or an interval' : 'a column whose values have a least and a greatest'
  throw new GatewayError('PARSE_ERROR', `column "${name}" is ${known.typeText}; fn=${fn} needs ${needed}`)
}

/** Object identifiers count as numbers to PostgreSQL's categories, and have no sum. */
const REFERENCES = /^(oid|reg)/

/** By the groups in the order given unless `sort` says otherwise; that may also name the aggregate. */
function sortedGroups({ columns, sort }: Groups, fn: AggregateFunction, value: Expression): readonly Order[] {
  const sorted = sort.map(item => {
    const name = plainColumn(item)
    if (name === fn) return order(value, item)
    if (name !== null && columns.includes(name)) return buildOrder(item, SELF)
    throw new GatewayError('PARSE_ERROR', `groups are sorted by a column of group_by, or by ${fn}`)
  })
  const named = new Set(sort.map(plainColumn))
  return [...sorted, ...columns.filter(name => !named.has(name)).map(name => order(column(SELF, name)))]
}
