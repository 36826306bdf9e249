/**
 * What a subscription reads: the tree of a list request with these filters and this selection, joined with the keys that changed. It is checked and printed
 * as every other read, so policies hold for each of its columns.
 */
import { type CheckContext, checkPast, checkRead } from '../access/check.ts'
import type { Approvals } from '../access/list/approvals.ts'
import type { QueryShape } from '../access/list/pattern.ts'
import { assertAllowed } from '../access/refusals.ts'
import type { View } from '../access/rights.ts'
import { toTypeName } from '../access/types.ts'
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Expression, Field, Get, Parameter, RecordColumn, Source, TypeName } from '../language/ast.ts'
import { NOWHERE } from '../language/ast.ts'
import {
  and,
  call,
  column,
  compare,
  field,
  get,
  getFrom,
  integer,
  isNull,
  literal,
  order,
  recordColumn,
  recordSource,
  star,
  text,
} from '../language/build.ts'
import { bindValues } from '../rest/bind.ts'
import { type FilterLimits, parseFilters } from '../rest/filters.ts'
import { ofSource } from '../rest/of-source.ts'
import { parseQueryString } from '../rest/query-string.ts'
import { LIST_PARAMETERS, refuseMisspelt } from '../rest/read/request.ts'
import { shapeOfRequest } from '../rest/request-shape.ts'
import { SELF, tableNamed } from '../rest/resource.ts'
import { parseSelect } from '../rest/select.ts'
import { Shape } from '../rest/shape.ts'
import { sortOut } from '../rest/sort-out.ts'
import { type BoundStatement, printRead, printValues } from '../run/statement.ts'

export interface WatchRequest {
  /** Resource name. */
  readonly table: string
  /** The query string of a list. */
  readonly filter: string
  /** Columns as the list's `select` takes them; undefined: all that the caller may read. */
  readonly select: string | undefined
}

export interface Watch {
  readonly table: Table
  /** Equal for watches that read the same. */
  readonly name: string
  /** The columns that the filter looks at, and a route policy's. */
  readonly filtered: ReadonlySet<string>
  /** The settings of the caller that a route policy's filter reads: callers who differ in them see different rows. */
  readonly settings: readonly string[]
  /** For each of the keys, JSON objects, in their order: the row as JSON, the key's place, the key as JSON, and whether the row is to be seen. */
  rowsOf(keys: readonly string[]): BoundStatement
  /** Whether each of `rows`, a JSON array of rows as they were, meets the filter: `true`, `false` or `null`. Null: there is no filter. */
  readonly matches: ((rows: string) => BoundStatement) | null
}

export interface WatchParts {
  readonly view: View
  readonly searchLanguage: string
  readonly limits: FilterLimits
  /** Null: everything may be asked. */
  readonly approvals: Approvals | null
}

/** The keys that changed. */
const KEYS = 'k'

const INTEGER: TypeName = { kind: 'type', schema: null, name: 'int4', modifiers: [], dimensions: 0, span: NOWHERE }

export function planWatch(request: WatchRequest, { view, searchLanguage, limits, approvals }: WatchParts): Watch {
  approvals?.approve(request, shapeOfList(request))
  const context: CheckContext = { ...view, searchLanguage }
  const table = tableNamed(view, request.table)
  assertAllowed('read', table, view.rights)
  if (table.primaryKey.length === 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${table.resource}" has no primary key, so its changes cannot say which row they are about; use live_query`,
    )
  }
  if (table.kind === 'view' || table.kind === 'materialized view') {
    throw new GatewayError(
      'PARSE_ERROR',
      `"${table.resource}" is a ${table.kind}; subscribe to its tables, or use live_query`,
    )
  }
  const shape = new Shape(`watch ${table.resource}`)
  const parameters = parseQueryString(request.filter)
  const { named, others } = sortOut(parameters, LIST_PARAMETERS)
  const [misplaced] = named.keys()
  if (misplaced !== undefined && !table.columnByName.has(misplaced)) {
    throw new GatewayError('PARSE_ERROR', `a subscription's filter takes filters alone, no "${misplaced}"`)
  }
  refuseMisspelt(others, table, view, [])
  const filter = parseFilters(others, shape, limits)
  const fields = parseSelect(request.select, shape).map(ofSelf)
  const list = shape.value('[]')
  const condition = filter === null ? null : ofSource(SELF, filter)
  checkRead(plainTree(table, fields, condition), context)
  const place = placeName(table)
  const rows = printRead(checkRead(rowsTree(table, list, place, fields, condition), context), 'with keys')
  const free = view.rights.of(table).rows.read
  const past =
    condition === null && free === null ? null : matchTree(table, list, condition ?? literal('boolean', 'true'))
  const matches = past === null ? null : printValues(checkPast(past, table, context))
  approvals?.answered(request)
  // The list comes last.
  const values = (json: string) => [...shape.values.slice(0, -1), json]
  return {
    table,
    name: JSON.stringify([rows.text, shape.values.map(String)]),
    filtered: new Set([filter, free].flatMap(part => (part === null ? [] : [...columnsIn(part)]))),
    settings: free === null ? [] : settingsIn(rows.text),
    rowsOf: keys => bindValues(rows, values(placed(keys, place))),
    matches: matches === null ? null : json => bindValues(matches, values(json)),
  }
}

/** To the allow-list, a subscription is the list of its rows. */
function shapeOfList({ table, filter, select }: WatchRequest): QueryShape {
  const selected = select === undefined ? [] : [`select=${encodeURIComponent(select)}`]
  const query = [...(filter === '' ? [] : [filter]), ...selected].join('&')
  return shapeOfRequest({ method: 'GET', query, headers: {} }, { kind: 'list', table })
}

function ofSelf(item: Field): Field {
  return item.kind === 'star' ? star(SELF) : { ...item, expression: ofSource(SELF, item.expression) }
}

/** A name that no column of the key has. */
function placeName({ primaryKey }: Table): string {
  let name = '#'
  while (primaryKey.includes(name)) name += '#'
  return name
}

/** What is answered is told apart by its place: the same key has another text where the session prints it, and a number has several that are equal. */
function placed(keys: readonly string[], place: string): string {
  return `[${keys.map((key, index) => `${key.slice(0, key.lastIndexOf('}'))},${JSON.stringify(place)}:${index}}`).join(',')}]`
}

/** A row of the table for each key. Each key is looked up on its own: a join might read the whole table for a handful of keys. */
function rowsTree(
  table: Table,
  keys: Parameter,
  place: string,
  fields: readonly Field[],
  where: Expression | null,
): Get {
  const isKey = table.primaryKey.map(name => compare('=', column(SELF, name), column(KEYS, name)))
  const row = get({
    ...{ table, alias: SELF, fields: neededIn(fields, table) },
    where: and(...isKey, ...(where === null ? [] : [where])),
    limit: integer('1'),
  })
  const key = call(
    'jsonb_build_object',
    table.primaryKey.flatMap(name => [text(name), column(KEYS, name)]),
  )
  const isThere = isNull(column(SELF, table.primaryKey[0] ?? ''), 'negated')
  const { span } = keys
  const source: Source = { kind: 'query source', query: row, alias: SELF, span }
  const columns = [...recordColumns(table, table.primaryKey), recordColumn(place, INTEGER)]
  return getFrom(recordSource(keys, KEYS, columns, 'many'), {
    joins: [{ kind: 'join', type: 'left', lateral: true, source, on: null, span }],
    fields: fields.length === 0 ? [star(SELF)] : fields,
    orderBy: [order(column(KEYS, place)), order(key), order(isThere)],
  })
}

/** The columns that the fields are made of, and the key; of others the role of the database may have no right to read. */
function neededIn(fields: readonly Field[], table: Table): readonly Field[] {
  const mentioned = new Set(table.primaryKey)
  for (const item of fields) {
    if (item.kind === 'star') return []
    for (const name of columnsIn(item.expression)) if (table.columnByName.has(name)) mentioned.add(name)
  }
  return fields.length === 0 ? [] : [...mentioned].map(name => field(column(SELF, name)))
}

/** The same columns of the same table without the way that they are read: for what is refused, in the words of any other read. */
function plainTree(table: Table, fields: readonly Field[], where: Expression | null): Get {
  const named = fields.length === 0 ? [star(SELF)] : fields
  const keys = table.primaryKey.map((name, index) => field(column(SELF, name), `key ${index}`))
  return get({ table, alias: SELF, fields: [...named, ...keys], where })
}

/** The condition over rows that are no longer in the table. */
function matchTree(table: Table, rows: Parameter, condition: Expression): Get {
  const names = table.columns.map(({ name }) => name)
  return getFrom(recordSource(rows, SELF, recordColumns(table, names), 'many'), {
    fields: [field(condition, 'matches')],
  })
}

function recordColumns(table: Table, names: readonly string[]): readonly RecordColumn[] {
  return names.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [recordColumn(name, toTypeName(known.type))]
  })
}

const SETTING = /current_setting\('([^']*)'/g

/** Out of the text that runs, which has every one of them by name. */
function settingsIn(text: string): readonly string[] {
  return [...text.matchAll(SETTING)].map(([, name = '']) => name)
}

/** Every name in a filter that is not checked yet, where a column's may be behind a table's. */
function columnsIn(filter: Expression): ReadonlySet<string> {
  const names = new Set<string>()
  const open: object[] = [filter]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { kind, path } = next as { kind?: unknown; path?: readonly string[] }
    if (kind === 'column') for (const name of path ?? []) names.add(name)
    for (const part of Object.values(next)) if (typeof part === 'object' && part !== null) open.push(part)
  }
  return names
}
