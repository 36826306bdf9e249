/**
 * Checks whether the schema has the names in a request line of the allow-list. It uses the parsers of
 * requests, so it also reports what they reject.
 */
import { resultColumns } from '../../access/columns.ts'
import { unknownTableColumn } from '../../access/refusals.ts'
import { EVERYTHING, type View } from '../../access/rights.ts'
import type { DatabaseFunction, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import { parseColumnPath } from '../parameters/column-path.ts'
import { asRelation, keyOfRelation, parseExpand, type WrittenRelation } from '../parameters/expand.ts'
import type { FilterTree } from '../parameters/filter-notation.ts'
import { parseNameList } from '../parameters/name-reader.ts'
import { parseSelect, type SelectItem } from '../parameters/select.ts'
import { parseSort } from '../parameters/sort.ts'
import { AGGREGATE_FUNCTIONS, parseColumn } from '../read/aggregate.ts'
import { assertExpandDepth } from '../read/expand.ts'
import { joinQualified } from '../read/qualified.ts'
import { isRelation, otherTable, resolveRelation } from '../read/relation.ts'
import { childRelation } from '../read/tree.ts'
import type { DataRoute } from '../request.ts'
import { idParameters, requireTable } from '../resource.ts'
import { functionsNamed } from '../rpc/names.ts'
import { Values } from '../values.ts'
import { type LineParameter, ON_CONFLICT } from './line.ts'
import type { RequestLine } from './request-pattern.ts'
import type { NamedSchema } from './unmatched-lines.ts'

/**
 * Checks the names in a line.
 * @throws {GatewayError} for the first name that the schema does not have; the same error as for a request
 * with that name.
 */
export function assertNamesInRequest(line: RequestLine, schema: NamedSchema): void {
  const { catalog, qualified } = schema
  const { route, parameters } = line
  if (route.kind === 'rpc') {
    assertNamesOfCall(functionsNamed(catalog, route.function, { qualified, allowed: null }), parameters)
    return
  }
  const rows = rowsOf(route, { catalog, rights: EVERYTHING })
  for (const parameter of parameters) {
    assertColumns(columnsNamed(parameter, line), rows)
  }
  assertRelations(parameters, rows, schema)
}

/** The table whose rows are requested. */
function rowsOf(route: Exclude<DataRoute, { readonly kind: 'rpc' }>, view: View): Table {
  const table = requireTable(view, route.table)
  if (route.kind !== 'one' && route.kind !== 'children') return table
  // A table without a primary key has no rows that an id can address.
  idParameters(table, table.primaryKey.join(','), new Values())
  return route.kind === 'one' ? table : otherTable(view.catalog, childRelation(table, route.child, view))
}

/** Checks the relations of `expand`, their columns, and the columns of their filters and sorts. */
function assertRelations(
  parameters: readonly LineParameter[],
  table: Table,
  { catalog, maxExpandDepth }: NamedSchema,
): void {
  const view: View = { catalog, rights: EVERYTHING }
  const related = parameters.filter(parameter => parameter.kind === 'related')
  const follow = (expansions: readonly WrittenRelation[], from: Table, above: readonly string[]): void => {
    if (expansions.length > 0) assertExpandDepth(above.length + 1, maxExpandDepth)
    for (const expansion of joinQualified(expansions, from)) {
      const path = [...above, keyOfRelation(expansion)]
      const target = otherTable(catalog, resolveRelation(from, expansion, view))
      const items = (expansion.select ?? []).map(item => ({ item, relation: asRelation(item) }))
      const meant = items.flatMap(({ relation }) =>
        relation !== null && !target.columnByName.has(relation.relation) && isRelation(target, relation.relation)
          ? [relation]
          : [],
      )
      const columns = items.flatMap(({ item, relation }) =>
        item.kind === 'star' || meant.some(other => other.relation === relation?.relation) ? [] : [item.path.column],
      )
      const own = related.filter(parameter => parameter.path.join('\0') === path.join('\0'))
      assertColumns([...columns, ...own.flatMap(({ parameter }) => columnsNamed(parameter, null))], target)
      follow([...expansion.below, ...meant], target, path)
    }
  }
  const expand = parameters.find(parameter => isNamed(parameter, 'expand'))
  if (expand !== undefined) follow(parseExpand(expand.value, maxExpandDepth), table, [])
}

function assertColumns(names: readonly string[], table: Table): void {
  for (const name of names) if (!table.columnByName.has(name)) throw unknownTableColumn(name, table, EVERYTHING)
}

/**
 * A URL mixes arguments and result columns, so each name must be an argument or a column of at least one of
 * the overloads.
 */
function assertNamesOfCall(overloads: readonly DatabaseFunction[], parameters: readonly LineParameter[]): void {
  const [first] = overloads
  if (first === undefined) return
  const known = new Set(
    overloads.flatMap(of => [
      ...of.inputs.flatMap(({ name }) => name ?? []),
      ...resultColumns(of).map(({ name }) => name),
    ]),
  )
  for (const parameter of parameters) {
    const names = parameter.kind === 'argument' ? [parameter.name] : columnsNamed(parameter, null)
    const missing = names.find(name => !known.has(name))
    if (missing === undefined) continue
    throw new GatewayError(
      'PARSE_ERROR',
      `"${shorten(missing)}" is neither an argument nor a column of the result of function "${first.resource}"`,
    )
  }
}

/** The columns that a parameter names. `line` is null for a call. */
function columnsNamed(parameter: LineParameter, line: RequestLine | null): readonly string[] {
  if (parameter.kind === 'filter') return columnsOfFilter(parameter.filter)
  if (parameter.kind === 'argument' || parameter.kind === 'related' || !hasValue(parameter)) return []
  const { name, value } = parameter
  switch (name) {
    case 'select':
      return columnsSelected(parseSelect(value, new Values()))
    case 'returning':
      return value === '*' ? [] : columnsSelected(parseSelect(value, new Values(), 'returning'))
    case 'sort': {
      const names = parseSort(value, new Values()).map(({ path }) => path.column)
      // Groups can also be sorted by the value of the aggregate function.
      const functions: readonly string[] = line?.route.kind === 'aggregate' ? AGGREGATE_FUNCTIONS : []
      return names.filter(column => !functions.includes(column))
    }
    case 'distinct':
      return [parseColumnPath(value).column]
    case 'column':
      return [parseColumn(value)]
    case 'group_by':
    case 'search_columns':
    case ON_CONFLICT:
      return parseNameList(value, name)
    default:
      return []
  }
}

function columnsOfFilter(filter: FilterTree): readonly string[] {
  return filter.kind === 'test' ? [filter.path.column] : filter.items.flatMap(columnsOfFilter)
}

function columnsSelected(selected: readonly SelectItem[]): readonly string[] {
  return selected.flatMap(item => (item.kind === 'column' ? [item.path.column] : []))
}

function hasValue<T extends { readonly value: string | null | undefined }>(
  parameter: T,
): parameter is T & { value: string } {
  return parameter.value != null
}

function isNamed(
  parameter: LineParameter,
  name: string,
): parameter is LineParameter & { readonly kind: 'named'; readonly value: string } {
  return parameter.kind === 'named' && parameter.name === name && hasValue(parameter)
}
