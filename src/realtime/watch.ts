/**
 * What a subscription reads: the tree of a list request with these filters and this selection, joined with the keys that changed. It is checked and printed
 * as every other read, so policies hold for each of its columns. The values of a filter are rows of the statement as well, so that one statement evaluates
 * all filters that differ in their values alone.
 */
import type { Approvals } from '../access/list/approvals.ts'
import type { QueryShape } from '../access/list/pattern.ts'
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import { assertAllowed } from '../access/refusals.ts'
import type { View } from '../access/rights.ts'
import { toTypeName } from '../access/types.ts'
import type { Table } from '../catalog/model.ts'
import { compile } from '../compile/compile.ts'
import type { BoundStatement, PagedStatement, ReadStatement, Statement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type {
  Expression,
  Field,
  Get,
  Parameter,
  RecordColumn,
  RecordSource,
  Source,
  TypeName,
} from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import {
  and,
  call,
  cast,
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
  subquery,
  text,
} from '../language/tree/build.ts'
import { shapeOfRequest } from '../rest/allow-list/request-shape.ts'
import { bindValues, textOf } from '../rest/bind.ts'
import { ofSource } from '../rest/of-source.ts'
import { type FilterLimits, parseFilters } from '../rest/parameters/filters.ts'
import { parseQueryString } from '../rest/parameters/query-string.ts'
import { parseSelect } from '../rest/parameters/select.ts'
import { sortOut } from '../rest/parameters/sort-out.ts'
import { LIST_PARAMETERS, refuseMisspelt } from '../rest/read/request.ts'
import { SELF, tableNamed } from '../rest/resource.ts'
import { Shape } from '../rest/shape.ts'

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
  /** Equal for watches that read the same but for the values of their filters. */
  readonly name: string
  readonly variant: Variant
  /** The columns that the filter looks at, and a route policy's. */
  readonly filtered: ReadonlySet<string>
  /** The settings of the caller that a route policy's filter reads: callers who differ in them see different rows. */
  readonly settings: readonly string[]
  /** Fails as the reads of this watch would. */
  readonly trial: BoundStatement<ReadStatement>
  /**
   * For each of the keys, JSON objects, in their order: the row as JSON, the key's place, the key as JSON, whether the row is visible, and the places of the
   * variants that it matches, with commas between them. Without a filter there is one variant, which every row matches.
   */
  rowsOf(keys: readonly string[], variants: readonly Variant[]): BoundStatement<PagedStatement>
  /** For each of `rows`, JSON objects, and for each variant: whether the row as it was meets the filter – `true`, `false` or `null`. Null: there is no filter. */
  readonly matches: ((rows: readonly string[], variants: readonly Variant[]) => BoundStatement<ReadStatement>) | null
}

/** The values of a filter. */
export interface Variant {
  /** Equal for equal values. */
  readonly name: string
  /** Members of a JSON object. */
  readonly members: string
}

export interface WatchParts {
  readonly view: View
  readonly searchLanguage: string
  readonly limits: FilterLimits
  /** Null: everything may be asked. */
  readonly approvals: Approvals | null
}

/** The keys that changed, and the values of filters. */
const KEYS = 'k'
const VARIANTS = 'v'

const INTEGER: TypeName = { kind: 'type', schema: null, name: 'int4', modifiers: [], dimensions: 0, span: NOWHERE }
const TEXT: TypeName = { ...INTEGER, name: 'text' }

export function planWatch(request: WatchRequest, { view, searchLanguage, limits, approvals }: WatchParts): Watch {
  approvals?.approve(request, shapeOfList(request))
  const context = { ...view, searchLanguage }
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
  const filterValues = shape.values.length
  const fields = parseSelect(request.select, shape).map(ofSelf)
  const condition = filter === null ? null : ofSource(SELF, filter)
  const plain = compile(plainTree(table, fields, condition), context, { kind: 'read', form: 'rows' })
  const uses = usesIn(plain)
  const columns = varyingOf(uses, filterValues)
  const varying = { source: VARIANTS, columns }
  const fixed = shape.values.filter((_, index) => !columns.has(index + 1))
  const [list, variants] = [shape.value('[]'), shape.value('[]')]
  const place = placeName(table)
  const ofVariants = [...[...columns.values()].map(name => recordColumn(name, TEXT)), recordColumn(place, INTEGER)]
  const values = recordSource(variants, VARIANTS, ofVariants, 'many')
  const parts = { table, list, place, fields, values, condition }
  const rows = compile(rowsTree(parts), context, { kind: 'paged many', varying })
  const free = view.rights.of(table).rows.read
  const past =
    condition === null && free === null
      ? null
      : matchTree({ ...parts, condition: condition ?? literal('boolean', 'true') })
  const matches = past === null ? null : compile(past, context, { kind: 'past many', table, varying })
  approvals?.answered(request)
  const bind = <S extends Statement>(statement: S, items: readonly string[], of: readonly Variant[]) =>
    // The two lists come last.
    bindValues(statement, [
      ...shape.values.slice(0, -2),
      placed(items, place),
      placed(
        of.map(({ members }) => `{${members}}`),
        place,
      ),
    ])
  return {
    ...{ table, trial: bindValues(plain, shape.values) },
    name: JSON.stringify([rows.text, fixed.map(String)]),
    variant: variantOf(columns, uses, shape),
    filtered: new Set([filter, free].flatMap(part => (part === null ? [] : [...columnsIn(part)]))),
    settings: free === null ? [] : settingsIn(rows.text),
    rowsOf: (keys, of) => bind(rows, keys, of),
    matches: matches === null ? null : (before, of) => bind(matches, before, of),
  }
}

/** What each parameter of the statement is, by its key. */
function usesIn({ parameters }: Statement): ReadonlyMap<ParameterKey, ParameterUse> {
  return new Map(parameters.flatMap(parameter => ('key' in parameter ? [[parameter.key, parameter.use] as const] : [])))
}

/** The parameters of the filter that can be read from a column of texts, and the names of their columns. */
function varyingOf(
  parameters: ReadonlyMap<ParameterKey, ParameterUse>,
  filterValues: number,
): ReadonlyMap<ParameterKey, string> {
  const names = new Map<ParameterKey, string>()
  for (const [key, { type, typeName, list }] of parameters) {
    // A list of nobody knows what has no type to be cast to.
    const isTyped = !list || type !== null || typeName !== 'any type'
    if (Number(key) <= filterValues && isTyped) names.set(key, `p${key}`)
  }
  return names
}

function variantOf(
  columns: ReadonlyMap<ParameterKey, string>,
  parameters: ReadonlyMap<ParameterKey, ParameterUse>,
  { values }: Shape,
): Variant {
  const members = [...columns].map(([key, name]) => {
    const value = values[Number(key) - 1] ?? null
    const use = parameters.get(key)
    return `${JSON.stringify(name)}:${JSON.stringify(String(use === undefined ? value : textOf(value, use)))}`
  })
  const text = members.join()
  return { name: text, members: text }
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

/** A name that no column has. */
function placeName({ columnByName }: Table): string {
  let name = '#'
  while (columnByName.has(name)) name += '#'
  return name
}

/** What is answered is told apart by its place: the same key has another text where the session prints it, and a number has several that are equal. */
function placed(items: readonly string[], place: string): string {
  const name = JSON.stringify(place)
  const members = items.map((item, index) => {
    const rest = item.slice(0, item.lastIndexOf('}'))
    return `${rest}${rest.trim() === '{' ? '' : ','}${name}:${index}}`
  })
  return `[${members.join(',')}]`
}

interface TreeParts {
  readonly table: Table
  /** Of keys, or of rows. */
  readonly list: Parameter
  /** The column that numbers them, and the variants. */
  readonly place: string
  readonly fields: readonly Field[]
  readonly values: RecordSource
  readonly condition: Expression | null
}

/**
 * A row of the table for each key. Each key is looked up on its own: a join might read the whole table for a handful of keys. The filter is evaluated over the
 * row that was found, once for each variant.
 */
function rowsTree({ table, list, place, fields, values, condition }: TreeParts): Get {
  const isKey = table.primaryKey.map(name => compare('=', column(SELF, name), column(KEYS, name)))
  const needed = neededIn(fields, condition, table)
  const row = get({ table, alias: SELF, fields: needed, where: and(...isKey), limit: integer('1') })
  const key = call(
    'jsonb_build_object',
    table.primaryKey.flatMap(name => [text(name), column(KEYS, name)]),
  )
  const isThere = isNull(column(SELF, table.primaryKey[0] ?? ''), 'negated')
  const { span } = list
  const source: Source = { kind: 'query source', query: row, alias: SELF, span }
  const columns = [...recordColumns(table, table.primaryKey), recordColumn(place, INTEGER)]
  return getFrom(recordSource(list, KEYS, columns, 'many'), {
    joins: [{ kind: 'join', type: 'left', lateral: true, source, on: null, span }],
    fields: fields.length === 0 ? [star(SELF)] : fields,
    orderBy: [column(KEYS, place), key, isThere, matching(values, place, condition)].map(item => order(item)),
  })
}

/** The places of the variants that the row matches. */
function matching(values: RecordSource, place: string, condition: Expression | null): Expression {
  if (condition === null) return cast(text('0'), 'text')
  const places = call('string_agg', [cast(column(VARIANTS, place), 'text'), text(',')])
  return subquery(getFrom(values, { fields: [field(places, 'places')], where: condition }))
}

/** The columns that the fields are made of, and the key; of others the role of the database may have no right to read. */
function neededIn(fields: readonly Field[], condition: Expression | null, table: Table): readonly Field[] {
  const filtered = condition === null ? [] : [...columnsIn(condition)].filter(name => table.columnByName.has(name))
  const mentioned = new Set([...table.primaryKey, ...filtered])
  for (const item of fields) {
    if (item.kind === 'star') return []
    for (const name of columnsIn(item.expression)) if (table.columnByName.has(name)) mentioned.add(name)
  }
  return fields.length === 0 ? [] : [...mentioned].map(name => field(column(SELF, name)))
}

/** The same columns of the same table without the way that they are read: for what is refused, in the words of any other read. It answers no rows. */
function plainTree(table: Table, fields: readonly Field[], where: Expression | null): Get {
  const named = fields.length === 0 ? [star(SELF)] : fields
  const keys = table.primaryKey.map((name, index) => field(column(SELF, name), `key ${index}`))
  return get({ table, alias: SELF, fields: [...named, ...keys], where, limit: integer('0') })
}

/** The condition over rows that are no longer in the table, for each variant. */
function matchTree({ table, list, place, values, condition }: TreeParts): Get {
  const names = table.columns.map(({ name }) => name)
  const { span } = list
  return getFrom(recordSource(list, SELF, [...recordColumns(table, names), recordColumn(place, INTEGER)], 'many'), {
    joins: [{ kind: 'join', type: 'cross', lateral: false, source: values, on: null, span }],
    fields: condition === null ? [] : [field(condition, 'matches')],
    orderBy: [order(column(SELF, place)), order(column(VARIANTS, place))],
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
