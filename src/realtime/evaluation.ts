/**
 * The statements that evaluate subscriptions of one table with the same columns: a list request's tree, joined with the keys that changed, and one column for
 * each filter. They are checked and printed as every other read, so policies hold for each of their columns. The values of a filter are rows of the statement as
 * well, so that its text depends on what the filters look like alone.
 */
import type { ParameterKey } from '../access/parameters.ts'
import type { View } from '../access/rights.ts'
import { toTypeName } from '../access/types.ts'
import type { Table } from '../catalog/model.ts'
import { compile } from '../compile/compile.ts'
import type { BoundStatement, PagedStatement, ReadStatement, Statement } from '../compile/statement.ts'
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
import { buildFilter, type FilterLimits, parseFilters } from '../rest/parameters/filters.ts'
import { buildFields, parseSelect } from '../rest/parameters/select.ts'
import type { WrittenParameter } from '../rest/parameters/written.ts'
import { SELF } from '../rest/resource.ts'
import { Values } from '../rest/values.ts'

/** Filters of different shapes that one statement evaluates. Planning grows with them, and so do the relations of the statement. */
export const FILTERS_MAX = 16

/** The values of a filter. */
export interface Variant {
  /** Equal for equal values. */
  readonly name: string
  /** Members of a JSON object. */
  readonly members: string
}

/** One of the filters that a statement evaluates. */
export interface Filter {
  /** The conditions of its query string. */
  readonly conditions: readonly WrittenParameter[]
  /** Which of its values are read from rows of the statement, counted from 1. */
  readonly varying: readonly number[]
}

/** `variants`: for each filter its values; without a condition, a filter has one variant, which every row matches. */
export interface Evaluation {
  /**
   * For each of the keys, JSON objects, in their order: the row as JSON, the key's place, the key as JSON, whether the row is visible, and for each filter the
   * places of its variants that the row matches, with commas between them.
   */
  rowsOf(keys: readonly string[], variants: readonly (readonly Variant[])[]): BoundStatement<PagedStatement>
  /**
   * For each of `rows`, JSON objects: of the row as it was, a JSON array with the places of the variants for each filter, or null where a policy
   * hides the row. Null: no filter has a condition.
   */
  readonly matches:
    | ((rows: readonly string[], variants: readonly (readonly Variant[])[]) => BoundStatement<ReadStatement>)
    | null
  /** The text of `rowsOf`. */
  readonly text: string
  /** Values that are the statement's own, and no variant's. */
  readonly fixed: readonly (string | null)[]
}

export interface EvaluationParts {
  readonly table: Table
  /** As the list's `select`; undefined: all columns that the caller may read. */
  readonly select: string | undefined
  readonly view: View
  readonly searchLanguage: string
  readonly limits: FilterLimits
}

/** The keys that changed, and the values of each filter. */
const KEYS = 'k'
const variantsOf = (index: number): string => `v#${index}`

const INTEGER: TypeName = { kind: 'type', schema: null, name: 'int4', modifiers: [], dimensions: 0, span: NOWHERE }
const TEXT: TypeName = { ...INTEGER, name: 'text' }

/** Throws what the filters are refused for together, such as a limit on statements. */
export function planEvaluation(filters: readonly Filter[], parts: EvaluationParts): Evaluation {
  const { table, select, view, searchLanguage, limits } = parts
  const context = { ...view, searchLanguage }
  const given = new Values()
  const place = placeName(table)
  const columns: ReadonlyMap<ParameterKey, string>[] = []
  const conditions = filters.map(({ conditions: own, varying }) => {
    const before = given.all.length
    const condition = buildFilter(parseFilters(own, given, limits), SELF)
    columns.push(new Map(varying.map((value, index) => [before + value, columnOf(index)])))
    return condition
  })
  const lifted = new Set(columns.flatMap(of => [...of.keys()]))
  const fixed = given.all.filter((_, index) => !lifted.has(index + 1))
  const fields = buildFields(parseSelect(select, given), SELF)
  const own = given.all.length
  const list = given.add('[]')
  const values = columns.map((of, index) => {
    const ofVariants = [...[...of.values()].map(name => recordColumn(name, TEXT)), recordColumn(place, INTEGER)]
    return recordSource(given.add('[]'), variantsOf(index), ofVariants, 'many')
  })
  const tree: TreeParts = { table, list, place, fields, values, conditions }
  const varying = columns.map((of, index) => ({ source: variantsOf(index), columns: of }))
  const rows = compile(rowsTree(tree), context, { kind: 'paged many', varying })
  const isPlain = conditions.every(condition => condition === null) && view.rights.of(table).rows.read === null
  const matches = isPlain ? null : compile(matchTree(tree), context, { kind: 'past many', table, varying })
  const bind = <S extends Statement>(statement: S, items: readonly string[], of: readonly (readonly Variant[])[]) => {
    const ofVariants = of.map(some => some.map(({ members }) => `{${members}}`))
    return bindValues(statement, [
      ...given.all.slice(0, own),
      ...[items, ...ofVariants].map(each => placed(each, place)),
    ])
  }
  return {
    rowsOf: (keys, of) => bind(rows, keys, of),
    matches: matches === null ? null : (before, of) => bind(matches, before, of),
    text: rows.text,
    fixed: fixed.map(value => value?.toString() ?? null),
  }
}

/** The column of a variant's values that has this one. */
export function columnOf(index: number): string {
  return `p${index}`
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
  /** The variants of each filter. */
  readonly values: readonly RecordSource[]
  readonly conditions: readonly (Expression | null)[]
}

/**
 * A row of the table for each key. Each key is looked up on its own: a join might read the whole table for a handful of keys. Filters are evaluated over the
 * row that was found, once for each of their variants.
 */
function rowsTree(parts: TreeParts): Get {
  const { table, list, place, fields, conditions } = parts
  const isKey = table.primaryKey.map(name => compare('=', column(SELF, name), column(KEYS, name)))
  const needed = neededIn(fields, conditions, table)
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
    orderBy: [column(KEYS, place), key, isThere, ...matching(parts)].map(item => order(item)),
  })
}

/** For each filter, the places of the variants that the row matches. */
function matching({ values, place, conditions }: TreeParts): readonly Expression[] {
  return conditions.map((condition, index) => {
    const source = values[index]
    if (condition === null || source === undefined) return cast(text('0'), 'text')
    const places = call('string_agg', [cast(column(variantsOf(index), place), 'text'), text(',')])
    return subquery(getFrom(source, { fields: [field(places, 'places')], where: condition }))
  })
}

/** The columns that the fields are made of, and the key; of others the role of the database may have no right to read. */
function neededIn(
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
  return fields.length === 0 ? [] : [...mentioned].map(name => field(column(SELF, name)))
}

/** The conditions over rows that are no longer in the table. */
function matchTree(parts: TreeParts): Get {
  const { table, list, place } = parts
  const names = table.columns.map(({ name }) => name)
  return getFrom(recordSource(list, SELF, [...recordColumns(table, names), recordColumn(place, INTEGER)], 'many'), {
    fields: [field(array(matching(parts)), 'matches')],
    orderBy: [order(column(SELF, place))],
  })
}

function recordColumns(table: Table, names: readonly string[]): readonly RecordColumn[] {
  return names.flatMap(name => {
    const known = table.columnByName.get(name)
    return known === undefined ? [] : [recordColumn(name, toTypeName(known.type))]
  })
}

/** Every name in a filter that is not checked yet, where a column's may be behind a table's. */
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
