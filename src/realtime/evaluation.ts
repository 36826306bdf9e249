/**
 * Builds the statements that evaluate subscriptions to one table with the same columns: the tree of a list
 * request, joined with the changed keys, plus one column for each filter. They are checked and printed like
 * every other read, so policies apply to each of their columns. Filter values are rows of the statement as
 * well, so its text depends only on the form of the filters.
 */
import type { ParameterKey } from '../access/parameters.ts'
import { hidesRows, type View } from '../access/rights.ts'
import { toTypeName } from '../access/types.ts'
import type { Table } from '../catalog/model.ts'
import { type Context, compile } from '../compile/compile.ts'
import type { BoundStatement, CompiledStatement, PagedStatement, ReadStatement } from '../compile/statement.ts'
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
  array,
  call,
  cast,
  column,
  compare,
  field,
  get,
  getFrom,
  integer,
  isNull,
  order,
  recordColumn,
  recordSource,
  star,
  subquery,
  text,
} from '../language/tree/build.ts'
import { bindValues } from '../rest/bind.ts'
import { TABLE_ALIAS } from '../rest/resource.ts'
import { Values } from '../rest/values.ts'

/**
 * Limit on the filters of different form that one statement evaluates. Planning time grows with them, as does
 * the number of relations in the statement.
 */
export const FILTERS_MAX = 16

/** The values of a filter. */
export interface Variant {
  /** Equal for equal values. */
  readonly name: string
  /** Members of a JSON object. */
  readonly members: string
}

/** One of the filters that a statement evaluates. */
export interface EvaluatedFilter {
  /** Adds its values and builds its condition on the table; null for no condition. */
  build(values: Values): Expression | null
  /** Which of its values are read from rows of the statement, counted from 1. */
  readonly varying: readonly number[]
}

/**
 * The statements for a set of filters. `variants` are the values of each filter; a filter without a condition
 * has one variant, which matches every row.
 */
export interface Evaluation {
  /**
   * For each of `keys` (JSON objects, in this order): the row as JSON, the key's position, the key as JSON,
   * whether the row is visible, and for each filter the positions of the variants that match the row,
   * separated by commas.
   */
  rowsOf(keys: readonly string[], variants: readonly (readonly Variant[])[]): BoundStatement<PagedStatement>
  /**
   * For each of `rows` (old rows as JSON objects): a JSON array with the positions of the matching variants
   * for each filter, and then the values of `oldColumns`, or null where a policy hides the row. Null if the
   * result is known without it.
   */
  readonly matches:
    | ((rows: readonly string[], variants: readonly (readonly Variant[])[]) => BoundStatement<ReadStatement>)
    | null
  /** The columns of an old row that `matches` returns; none in the form `json`. */
  readonly oldColumns: readonly string[]
  /** The text of `rowsOf`. */
  readonly text: string
  /** Values that belong to the statement and not to a variant. */
  readonly fixed: readonly (string | null)[]
}

/** The columns of the rows that an evaluation returns. */
export type EvaluatedColumns =
  /** As JSON. `build` returns no fields for all columns that the caller can read. */
  | { readonly form: 'json'; build(values: Values): readonly Field[] }
  /** As PostgreSQL's texts; the key and the old row as well. */
  | { readonly form: 'texts'; readonly names: readonly string[] }

/** The inputs of an evaluation. */
export interface EvaluationParts {
  readonly table: Table
  readonly columns: EvaluatedColumns
  readonly view: View
  readonly searchLanguage: string
}

/** The aliases of the changed keys and of each filter's values. */
const KEYS = 'k'
const variantsOf = (index: number): string => `v#${index}`

const INTEGER: TypeName = { kind: 'type', schema: null, name: 'int4', modifiers: [], dimensions: 0, span: NOWHERE }
const TEXT: TypeName = { ...INTEGER, name: 'text' }

/**
 * Builds an evaluation.
 * @throws GatewayError if the filters together exceed a statement limit.
 */
export function planEvaluation(filters: readonly EvaluatedFilter[], parts: EvaluationParts): Evaluation {
  const { table, columns: selected, view } = parts
  const context = contextOf(parts)
  const given = new Values()
  const place = placeName(table)
  const columns: ReadonlyMap<ParameterKey, string>[] = []
  const conditions = filters.map(({ build, varying }) => {
    const before = given.all.length
    const condition = build(given)
    columns.push(new Map(varying.map((value, index) => [before + value, columnOf(index)])))
    return condition
  })
  const lifted = new Set(columns.flatMap(of => [...of.keys()]))
  const fixed = given.all.filter((_, index) => !lifted.has(index + 1))
  const fields = evaluatedFields(selected, given)
  const own = given.all.length
  const list = given.add('[]')
  const values = columns.map((of, index) => {
    const ofVariants = [...[...of.values()].map(name => recordColumn(name, TEXT)), recordColumn(place, INTEGER)]
    return recordSource(given.add('[]'), variantsOf(index), ofVariants, 'many')
  })
  const oldColumns = selected.form === 'texts' ? selected.names : []
  const tree: TreeParts = { table, list, place, fields, values, conditions, form: selected.form, oldColumns }
  const varying = columns.map((of, index) => ({ source: variantsOf(index), columns: of }))
  const rows = compile(rowsTree(tree), context, { kind: 'paged many', varying })
  const isPlain =
    selected.form === 'json' && conditions.every(condition => condition === null) && !hidesRows(table, view.rights)
  const matches = isPlain ? null : compile(matchesTree(tree), context, { kind: 'past many', table, varying })
  const bind = <S extends CompiledStatement>(
    statement: S,
    items: readonly string[],
    of: readonly (readonly Variant[])[],
  ) => {
    const ofVariants = of.map(some => some.map(({ members }) => `{${members}}`))
    return bindValues(statement, [
      ...given.all.slice(0, own),
      ...[items, ...ofVariants].map(each => placed(each, place)),
    ])
  }
  return {
    rowsOf: (keys, of) => bind(rows, keys, of),
    matches: matches === null ? null : (before, of) => bind(matches, before, of),
    oldColumns,
    text: rows.text,
    fixed: fixed.map(value => value?.toString() ?? null),
  }
}

/** How the statements of a subscription are checked. In the form `texts`, its author wrote the condition. */
export function contextOf({
  view,
  searchLanguage,
  columns: { form },
}: Pick<EvaluationParts, 'view' | 'searchLanguage' | 'columns'>): Context {
  const isSql = form === 'texts'
  return { ...view, searchLanguage, ...(isSql ? { rowsFirst: true, parameterType: () => 'text' } : {}) }
}

/** The fields of a selection; none for all columns that the caller can read. */
export function evaluatedFields(columns: EvaluatedColumns, values: Values): readonly Field[] {
  return columns.form === 'json'
    ? columns.build(values)
    : columns.names.map(name => field(asText(column(TABLE_ALIAS, name)), name))
}

function asText(value: Expression): Expression {
  return cast(value, 'text')
}

/** The name of the column that holds this value of a variant. */
export function columnOf(index: number): string {
  return `p${index}`
}

/** A name that no column of the table has. */
function placeName({ columnByName }: Table): string {
  let name = '#'
  while (columnByName.has(name)) name += '#'
  return name
}

/**
 * Numbers the items, so that results are matched by position: a session may print the same key differently,
 * and equal numbers can have several texts.
 */
function placed(items: readonly string[], place: string): string {
  const name = JSON.stringify(place)
  const members = items.map((item, index) => {
    const rest = item.slice(0, item.lastIndexOf('}'))
    return `${rest}${rest.trim() === '{' ? '' : ','}${name}:${index}}`
  })
  return `[${members.join(',')}]`
}

/** The parts of the tree. */
interface TreeParts {
  readonly table: Table
  /** The parameter with the keys or rows. */
  readonly list: Parameter
  /** The column that numbers them and the variants. */
  readonly place: string
  readonly fields: readonly Field[]
  /** The variants of each filter. */
  readonly values: readonly RecordSource[]
  readonly conditions: readonly (Expression | null)[]
  readonly form: EvaluatedColumns['form']
  readonly oldColumns: readonly string[]
}

/**
 * Reads a row of the table for each key. Each key is looked up separately, because a join might scan the
 * whole table for a few keys. Filters are evaluated on the row found, once for each of their variants.
 */
function rowsTree(parts: TreeParts): Get {
  const { table, list, place, fields, conditions, form } = parts
  const isKey = table.primaryKey.map(name => compare('=', column(TABLE_ALIAS, name), column(KEYS, name)))
  const needed = columnsNeeded(fields, conditions, table)
  const row = get({ table, alias: TABLE_ALIAS, fields: needed, where: and(...isKey), limit: integer('1') })
  const key = call(
    'jsonb_build_object',
    table.primaryKey.flatMap(name => [text(name), form === 'texts' ? asText(column(KEYS, name)) : column(KEYS, name)]),
  )
  const exists = isNull(column(TABLE_ALIAS, table.primaryKey[0] ?? ''), 'negated')
  const { span } = list
  const source: Source = { kind: 'query source', query: row, alias: TABLE_ALIAS, span }
  const columns = [...recordColumns(table, table.primaryKey), recordColumn(place, INTEGER)]
  return getFrom(recordSource(list, KEYS, columns, 'many'), {
    joins: [{ kind: 'join', type: 'left', lateral: true, source, on: null, span }],
    fields: fields.length === 0 ? [star(TABLE_ALIAS)] : fields,
    orderBy: [column(KEYS, place), key, exists, ...matching(parts)].map(item => order(item)),
  })
}

/** For each filter, the positions of the variants that match the row. */
function matching({ values, place, conditions }: TreeParts): readonly Expression[] {
  return conditions.map((condition, index) => {
    const source = values[index]
    if (condition === null || source === undefined) return cast(text('0'), 'text')
    const places = call('string_agg', [cast(column(variantsOf(index), place), 'text'), text(',')])
    return subquery(getFrom(source, { fields: [field(places, 'places')], where: condition }))
  })
}

/**
 * The columns used by the fields and filters, and the key. The database role may lack the right to read
 * others.
 */
function columnsNeeded(
  fields: readonly Field[],
  conditions: readonly (Expression | null)[],
  table: Table,
): readonly Field[] {
  const filtered = conditions
    .flatMap(condition => (condition === null ? [] : [...columnsIn(condition)]))
    .filter(name => table.columnByName.has(name))
  const mentioned = new Set([...table.primaryKey, ...filtered])
  for (const item of fields) {
    if (item.kind === 'star') return []
    for (const name of columnsIn(item.expression)) if (table.columnByName.has(name)) mentioned.add(name)
  }
  return fields.length === 0 ? [] : [...mentioned].map(name => field(column(TABLE_ALIAS, name)))
}

/** Evaluates the conditions on rows that are no longer in the table. */
function matchesTree(parts: TreeParts): Get {
  const { table, list, place, oldColumns } = parts
  const old = oldColumns.map(name => asText(column(TABLE_ALIAS, name)))
  const names = table.columns.map(({ name }) => name)
  return getFrom(
    recordSource(list, TABLE_ALIAS, [...recordColumns(table, names), recordColumn(place, INTEGER)], 'many'),
    {
      fields: [field(array([...matching(parts), ...old]), 'matches')],
      orderBy: [order(column(TABLE_ALIAS, place))],
    },
  )
}

function recordColumns(table: Table, names: readonly string[]): readonly RecordColumn[] {
  return names.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [recordColumn(name, toTypeName(known.type))]
  })
}

/** All names in a filter that has not been checked yet; a column's name may be qualified by a table's. */
export function columnsIn(filter: Expression): ReadonlySet<string> {
  const names = new Set<string>()
  const open: object[] = [filter]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { kind, path } = next as { kind?: unknown; path?: readonly string[] }
    if (kind === 'column') for (const name of path ?? []) names.add(name)
    for (const part of Object.values(next)) if (typeof part === 'object' && part !== null) open.push(part)
  }
  return names
}
