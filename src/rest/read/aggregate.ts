/**
 * `GET /api/{table}/aggregate` (docs/reference/reading.md#aggregates): one value over the rows that match the
 * filters, or one value for each group.
 */

import type { View } from '../../access/rights.ts'
import { baseOf, isOrdered } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Expression, Get, Order } from '../../language/tree/ast.ts'
import { allOf, call, column, field, get, order } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import { UNRANKED } from '../../types/traits.ts'
import { buildFilter, type Condition, parseFilters } from '../parameters/filters.ts'
import { NameReader, parseNameList } from '../parameters/name-reader.ts'
import { limitCount, parseSlice, type Slice } from '../parameters/page.ts'
import { partitionParameters } from '../parameters/request-parameters.ts'
import { buildOrder, parseSort, plainColumn, type SortItem } from '../parameters/sort.ts'
import { AGGREGATE_PARAMETERS, parametersIn, type WrittenRequest } from '../request.ts'
import { TABLE_ALIAS } from '../resource.ts'
import type { Values } from '../values.ts'
import { parseSearch, type ReadLimits, type Search } from './request.ts'
import { searchCondition } from './tree.ts'

/** The aggregate functions of the REST API. */
export const AGGREGATE_FUNCTIONS = ['count', 'sum', 'avg', 'min', 'max'] as const

/** The name of an aggregate function. */
export type AggregateFunction = (typeof AGGREGATE_FUNCTIONS)[number]

/** A parsed aggregate request. */
export interface AggregateTree {
  readonly kind: 'aggregate'
  readonly written: WrittenRequest
  readonly table: Table
  readonly fn: AggregateFunction
  /** The aggregated column, or null if `count` counts rows. */
  readonly column: string | null
  /** The groups, or null for one value over all rows. */
  readonly groups: Groups | null
  readonly filter: readonly Condition[]
  readonly search: Search | null
}

interface Groups extends Slice {
  readonly columns: readonly string[]
  readonly sort: readonly SortItem[]
}

type Named = ReadonlyMap<(typeof AGGREGATE_PARAMETERS)[number], string>

/**
 * Parses an aggregate request and adds its values to `values`.
 * @throws {GatewayError} `PARSE_ERROR` for an invalid parameter or an exceeded limit.
 */
export function parseAggregate(
  written: WrittenRequest,
  table: Table,
  values: Values,
  limits: ReadLimits,
): AggregateTree {
  const { named, others } = partitionParameters(parametersIn(written), AGGREGATE_PARAMETERS)
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
    const given = text === undefined ? 'fn is missing' : `fn "${shorten(text)}" is not an aggregate function`
    throw new GatewayError('PARSE_ERROR', `${given}; use fn=${AGGREGATE_FUNCTIONS.join(', fn=')}`)
  }
  if (column === undefined && fn !== 'count') {
    throw new GatewayError('PARSE_ERROR', `fn=${fn} needs a column: fn=${fn}&column=total`)
  }
  return { fn, column: column === undefined ? null : parseColumn(column) }
}

/**
 * Parses one column name, quoted or unquoted. Unlike in a list, punctuation needs no quotes.
 * @throws {GatewayError} `PARSE_ERROR` for text after a quoted name.
 */
export function parseColumn(text: string): string {
  if (!text.startsWith('"')) return text
  const reader = new NameReader(text, 'column')
  const name = reader.name([])
  if (!reader.done) reader.fail('has text after the name', 'fn takes one column')
  return name
}

function parseGroups(named: Named, fn: AggregateFunction, values: Values, limits: ReadLimits): Groups | null {
  const text = named.get('group_by')
  if (text === undefined) {
    const pointless = (['sort', 'limit', 'offset'] as const).find(name => named.has(name))
    if (pointless === undefined) return null
    throw new GatewayError(
      'PARSE_ERROR',
      `${pointless} has no effect without group_by, because the result is one row; leave it out`,
    )
  }
  const columns = parseNameList(text, 'group_by')
  if (columns.includes(fn)) {
    throw new GatewayError('PARSE_ERROR', `group_by "${fn}" and fn=${fn} would have the same name in the response`)
  }
  const sort = parseSort(named.get('sort'), values)
  return { columns, sort, ...parseSlice(named, values, limits.maxResultRows) }
}

/**
 * Builds the tree of an aggregate request.
 * @throws {GatewayError} `PARSE_ERROR` for a column whose type the function does not accept.
 */
export function buildAggregate(request: AggregateTree, view: View): Get {
  const { table, fn, groups } = request
  assertFitting(request)
  const counted = request.column === null ? [] : [column(TABLE_ALIAS, request.column)]
  const value = field(call(fn, counted, { star: counted.length === 0 }), fn)
  const conditions = [buildFilter(request.filter, null), searchCondition(request.search, table, view)]
  const rows = { table, alias: TABLE_ALIAS, where: allOf(conditions) }
  if (groups === null) return get({ ...rows, fields: [value] })
  const grouped = groups.columns.map(name => column(TABLE_ALIAS, name))
  return get({
    ...rows,
    fields: [...grouped.map(expression => field(expression)), value],
    groupBy: grouped,
    orderBy: sortedGroups(groups, fn, value.expression),
    limit: limitCount(groups.limit),
    offset: groups.offset,
  })
}

/**
 * Checks the type of the column. `sum` and `avg` need numbers or intervals, `min` and `max` an ordered type.
 * PostgreSQL would report a missing function instead.
 */
function assertFitting({ table, fn, column: name }: AggregateTree): void {
  const known = name === null ? undefined : table.columnByName.get(name)
  if (known === undefined || fn === 'count') return
  const base = baseOf(known.type)
  const adds = base.category === 'N' && !REFERENCES.test(base.name) && !(fn === 'avg' && base.name === 'money')
  const ranks = isOrdered(base) && !UNRANKED.has(base.name) && base.kind !== 'range' && base.kind !== 'multirange'
  if (fn === 'sum' || fn === 'avg' ? adds || base.name === 'interval' : ranks) return
  const needed = fn === 'sum' || fn === 'avg' ? 'a number or an interval' : 'a column of an ordered type'
  throw new GatewayError('PARSE_ERROR', `column "${name}" is ${known.typeText}; fn=${fn} needs ${needed}`)
}

/** Object identifier types are in PostgreSQL's numeric category but have no sum. */
const REFERENCES = /^(oid|reg)/

/** The sort order: `sort`, which can also name the aggregate, followed by the remaining group columns. */
function sortedGroups({ columns, sort }: Groups, fn: AggregateFunction, value: Expression): readonly Order[] {
  const sorted = sort.map(item => {
    const name = plainColumn(item)
    if (name === fn) return order(value, item)
    if (name !== null && columns.includes(name)) return buildOrder(item, TABLE_ALIAS)
    throw new GatewayError('PARSE_ERROR', `groups can be sorted only by a column of group_by or by ${fn}`)
  })
  const named = new Set(sort.map(plainColumn))
  return [...sorted, ...columns.filter(name => !named.has(name)).map(name => order(column(TABLE_ALIAS, name)))]
}
