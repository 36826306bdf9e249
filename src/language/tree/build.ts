/** Constructors for trees that have no source text, as used by REST and by tests. */
import {
  type Add,
  type Arithmetic,
  type ArrayConstructor,
  type ArraySource,
  type Assignment,
  type Between,
  type Case,
  type Cast,
  type ColumnReference,
  type Comparison,
  type ComparisonOperator,
  type Conflict,
  type Count,
  type Del,
  type DistinctFrom,
  type Exists,
  type Expression,
  type ExpressionField,
  type Field,
  type FunctionCall,
  type FunctionSource,
  type Get,
  type In,
  type Is,
  type Join,
  type JsonPatch,
  type JsonStep,
  type Literal,
  type Name,
  type Negate,
  type Nest,
  NOWHERE,
  type Not,
  type Order,
  type Parameter,
  type PatternMatch,
  type RecordColumn,
  type RecordSource,
  type Returned,
  type Row,
  type Set as SetStatement,
  type Source,
  type Star,
  type SubQuery,
  type TableName,
  type TypeName,
  type WholeRow,
} from './ast.ts'

const span = NOWHERE

/** The polarity of an operator that has a negated form (`not like`, `not in`, `is not null`). */
export type Polarity = 'plain' | 'negated'

// ---- expressions ------------------------------------------------------------------------------------------

/** `column`, or `alias.column`, or a longer path. */
export function column(...path: readonly [string, ...string[]]): ColumnReference {
  return { kind: 'column', path, span }
}

/** `$n`. */
/** A column reference that the gateway added (see `ColumnReference.implied`). */
export function impliedColumn(source: string, name: string): ColumnReference {
  return { ...column(source, name), implied: true }
}

/** `$n`, counted from 1. */
export function position(n: number): Parameter {
  return { kind: 'position', n, span }
}

/** `:name`. */
export function named(name: string): Parameter {
  return { kind: 'named', name, span }
}

/** A text literal. */
export function text(value: string): Literal {
  return literal('text', value)
}

/** An integer literal; the digits are kept as written. */
export function integer(value: string): Literal {
  return literal('integer', value)
}

/** A literal of any type; `value` has the form that `Literal` defines. */
export function literal(type: Literal['type'], value: string): Literal {
  return { kind: 'literal', type, value, span }
}

/** A conjunction. Operands that are conjunctions are flattened; a single operand is returned unchanged. */
export function and(...operands: readonly Expression[]): Expression {
  return logic('and', operands)
}

/** A disjunction. Operands that are disjunctions are flattened; a single operand is returned unchanged. */
export function or(...operands: readonly Expression[]): Expression {
  return logic('or', operands)
}

/** The conjunction of the conditions that are not null; null if absent. */
export function allOf(conditions: readonly (Expression | null)[]): Expression | null {
  const all = conditions.filter(condition => condition !== null)
  return all.length === 0 ? null : and(...all)
}

/**
 * `case when … then … else … end`. For each row, only the selected result is evaluated; a null `otherwise`
 * yields NULL.
 */
export function caseWhen(condition: Expression, then: Expression, otherwise: Expression | null): Case {
  return { kind: 'case', operand: null, whens: [{ when: condition, then }], else: otherwise, span }
}

function logic(kind: 'and' | 'or', operands: readonly Expression[]): Expression {
  const flat = operands.flatMap(operand => (operand.kind === kind ? operand.operands : [operand]))
  const [first] = flat
  if (first === undefined) throw new Error(`"${kind}" needs an operand`)
  return flat.length === 1 ? first : { kind, operands: flat, span }
}

/** `not operand`. */
export function not(operand: Expression): Not {
  return { kind: 'not', operand, span }
}

/** `left operator right`. */
export function compare(operator: ComparisonOperator, left: Expression, right: Expression): Comparison {
  return { kind: 'comparison', operator, left, right, span }
}

/** `operand like pattern`, or another pattern operator. */
export function like(
  operator: PatternMatch['operator'],
  operand: Expression,
  pattern: Expression,
  polarity: Polarity = 'plain',
): PatternMatch {
  return { kind: 'pattern', operator, negated: polarity === 'negated', operand, pattern, span }
}

/** `operand is null`. */
export function isNull(operand: Expression, polarity: Polarity = 'plain'): Is {
  return { kind: 'is', what: 'null', negated: polarity === 'negated', operand, span }
}

/** `left is distinct from right`. */
export function isDistinct(left: Expression, right: Expression): DistinctFrom {
  return { kind: 'distinct from', negated: false, left, right, span }
}

/** `operand between low and high`. */
export function between(operand: Expression, low: Expression, high: Expression, polarity: Polarity = 'plain'): Between {
  return { kind: 'between', negated: polarity === 'negated', operand, low, high, span }
}

/** `operand in (…)`. */
export function inValues(operand: Expression, values: readonly Expression[], polarity: Polarity = 'plain'): In {
  return inSet(operand, { kind: 'in values', values, span }, polarity)
}

/** `operand in (get …)`. */
export function inQuery(operand: Expression, query: Get, polarity: Polarity = 'plain'): In {
  return inSet(operand, subquery(query), polarity)
}

/** `operand in $n`, where the parameter is one array. */
export function inSet(operand: Expression, set: In['set'], polarity: Polarity = 'plain'): In {
  return { kind: 'in', negated: polarity === 'negated', operand, set, span }
}

/** `exists (get …)`. */
export function exists(query: Get): Exists {
  return { kind: 'exists', negated: false, query, span }
}

/** `(get …)` as a value. */
export function subquery(query: Get): SubQuery {
  return { kind: 'subquery', query, span }
}

/** `-operand`. */
export function negate(operand: Expression): Negate {
  return { kind: 'negate', operand, span }
}

/** `left operator right`, for arithmetic and `||`. */
export function arithmetic(operator: Arithmetic['operator'], left: Expression, right: Expression): Arithmetic {
  return { kind: 'arithmetic', operator, left, right, span }
}

/** `operand -> step`, or another JSON operator. */
export function jsonStep(operator: JsonStep['operator'], operand: Expression, step: Expression): JsonStep {
  return { kind: 'json step', operator, operand, step, span }
}

/** A changed JSON document. */
export function jsonPatch(form: JsonPatch['form'], operand: Expression, step: Expression): JsonPatch {
  return { kind: 'patch', form, operand, step, span }
}

/** `operand::type`, where `type` is the bare name of a PostgreSQL type, optionally followed by `[]`. */
export function cast(operand: Expression, type: string): Cast {
  const dimensions = type.endsWith('[]') ? 1 : 0
  const name = dimensions === 1 ? type.slice(0, -2) : type
  return { kind: 'cast', operand, type: { kind: 'type', schema: null, name, modifiers: [], dimensions, span }, span }
}

/** `[a, b]`. */
export function array(items: readonly Expression[]): ArrayConstructor {
  return { kind: 'array', items, span }
}

/** `(a, b)`. */
export function row(items: readonly Expression[]): Row {
  return { kind: 'row', items, span }
}

/** The row of a source, which is one of the table, as one value. */
export function wholeRow(of: string, table: TableLike): WholeRow {
  return { kind: 'whole row', of, table: tableName(table), span }
}

/** The optional parts of a function call. */
export interface CallOptions {
  readonly schema?: string | null
  readonly star?: boolean
  readonly distinct?: boolean
  readonly orderBy?: readonly Order[]
  readonly filter?: Expression
  readonly over?: FunctionCall['over']
  readonly represents?: true
  readonly guards?: true
}

/** A function call. */
export function call(name: string, args: readonly Expression[], options: CallOptions = {}): FunctionCall {
  return {
    kind: 'function',
    schema: options.schema ?? null,
    name,
    distinct: options.distinct ?? false,
    star: options.star ?? false,
    arguments: args,
    orderBy: options.orderBy ?? [],
    filter: options.filter ?? null,
    over: options.over ?? null,
    ...(options.represents === true ? { represents: true } : {}),
    ...(options.guards === true ? { guards: true } : {}),
    span,
  }
}

// ---- reads ------------------------------------------------------------------------------------------------

/** Anything that has a table's schema and name. */
export interface TableLike {
  readonly schema: string | null
  readonly name: string
}

/** The name of anything that has a table's schema and name. */
export function tableName({ schema, name }: TableLike): TableName {
  return { kind: 'table', schema, name, span }
}

/** `*`, or `of.*`. */
export function star(of: string | null = null): Star {
  return { kind: 'star', of, span }
}

/** A member of a select list. */
export function field(expression: Expression, alias: string | null = null): ExpressionField {
  return { kind: 'field', expression, alias, span }
}

/** The same for a member whose name other members can have. */
export function repeatableField(expression: Expression, alias: string | null): ExpressionField {
  return { ...field(expression, alias), repeats: true }
}

/** The optional parts of a member of `order by`. */
export interface OrderOptions {
  readonly descending?: boolean
  readonly nulls?: Order['nulls']
}

/** A member of `order by`, ascending unless `descending` is set. */
export function order(expression: Expression, options: OrderOptions = {}): Order {
  return { kind: 'order', expression, descending: options.descending ?? false, nulls: options.nulls ?? null, span }
}

/** The parts of a read; only the table is required. */
export interface GetParts {
  readonly table: TableLike
  readonly alias?: string | null
  readonly distinct?: boolean
  readonly joins?: readonly Join[]
  readonly nests?: readonly Nest[]
  readonly fields?: readonly Field[]
  readonly bare?: boolean
  readonly where?: Expression | null
  readonly groupBy?: readonly Expression[]
  readonly having?: Expression | null
  readonly orderBy?: readonly Order[]
  readonly limit?: Count | null
  readonly offset?: Count | null
}

/** A read of one table; omitted parts are absent. */
export function get(parts: GetParts): Get {
  const { table, alias = null, ...rest } = parts
  return getFrom({ kind: 'table source', table: tableName(table), alias, condition: null, span }, rest)
}

/** A read of any source. */
export function getFrom(source: Source, parts: Omit<GetParts, 'table' | 'alias'> = {}): Get {
  return {
    kind: 'get',
    purpose: 'rows',
    with: null,
    distinct: parts.distinct === true ? { kind: 'distinct', on: [], span } : null,
    source,
    joins: parts.joins ?? [],
    nests: parts.nests ?? [],
    fields: parts.fields ?? [],
    ...(parts.bare === true ? { bare: true } : {}),
    where: parts.where ?? null,
    groupBy: parts.groupBy ?? [],
    having: parts.having ?? null,
    windows: [],
    compounds: [],
    orderBy: parts.orderBy ?? [],
    limit: parts.limit ?? null,
    offset: parts.offset ?? null,
    lock: null,
    span,
  }
}

// ---- writes -----------------------------------------------------------------------------------------------

/** A name without source text. */
export function name(text: string): Name {
  return { kind: 'name', text, span }
}

/** `column = value`. */
export function assign(column: string, value: Expression): Assignment {
  return { kind: 'assignment', column: name(column), value, span }
}

/** The parts of an insert. */
export interface AddParts {
  readonly table: TableLike
  readonly columns: readonly string[]
  /** `defaults` inserts one row of defaults; a parameter that is a JSON array inserts one per item. */
  readonly from: Get | Parameter | 'defaults'
  readonly conflict?: Conflict | null
  readonly returning: readonly Field[]
  readonly returned?: Returned | null
}

/** An `add` of the rows of a query. */
export function add(parts: AddParts): Add {
  return {
    kind: 'add',
    with: null,
    table: tableName(parts.table),
    columns: parts.columns.map(name),
    rows: rowsOf(parts.from),
    conflict: parts.conflict ?? null,
    returning: parts.returning,
    ...(parts.returned == null ? {} : { returned: parts.returned }),
    span,
  }
}

function rowsOf(from: AddParts['from']): Add['rows'] {
  if (from === 'defaults') return { kind: 'defaults', span }
  return from.kind === 'get' ? { kind: 'from', query: from, span } : { kind: 'defaults', items: from, span }
}

/** `conflict (target) update …`; null assignments mean `nothing`. */
export function conflict(target: readonly string[], assignments: readonly Assignment[] | null): Conflict {
  const update = assignments === null ? null : { assignments, where: null }
  return { kind: 'conflict', target: target.map(name), update, span }
}

/** The parts of the returned rows of a write beyond `returning`. */
export function returned(parts: Omit<Returned, 'kind'>): Returned {
  return { kind: 'returned', ...parts }
}

/** The parts that updates and deletes have in common. */
export interface WriteParts {
  readonly table: TableLike
  readonly alias: string
  readonly where: Expression | 'all'
  readonly returning: readonly Field[]
  readonly returned?: Returned | null
}

/** A `set` that can take its values from a source it joins. */
export function set(
  parts: WriteParts & {
    readonly from: Source | null
    readonly assignments: readonly Assignment[]
    readonly defaults?: readonly string[]
  },
): SetStatement {
  const { from, assignments, defaults = [], ...common } = parts
  const more = defaults.length === 0 ? {} : { defaults: defaults.map(name) }
  return { kind: 'set', ...written(common), joins: from === null ? [] : [crossJoin(from)], assignments, ...more }
}

/** A `del` of the rows that match a condition. */
export function del(parts: WriteParts): Del {
  return { kind: 'del', ...written(parts), joins: [] }
}

function written({ table, alias, where, returning, returned }: WriteParts): Omit<Del, 'kind' | 'joins'> {
  const more = returned == null ? {} : { returned }
  return { with: null, table: tableName(table), alias, where, returning, ...more, span }
}

/** `cross join source`. */
export function crossJoin(source: Source): Join {
  return { kind: 'join', type: 'cross', lateral: false, source, on: null, span }
}

/** One row from the fields of a JSON object, or one row per object of a JSON array. */
export function recordSource(
  value: Parameter,
  alias: string,
  columns: readonly RecordColumn[],
  rows: 'one' | 'many',
): RecordSource {
  return { kind: 'record source', value, many: rows === 'many', columns, alias, span }
}

/** The rows of one array of texts for each column. */
export function arraySource(
  values: readonly Parameter[],
  alias: string,
  columns: readonly RecordColumn[],
): ArraySource {
  return { kind: 'array source', values, columns, alias, span }
}

/** A column of a record source or an array source. */
export function recordColumn(name: string, type: TypeName): RecordColumn {
  return { kind: 'record column', name, type, span }
}

/** The parts of a nest; the table and `many` are required. */
export interface NestParts {
  readonly many: boolean
  readonly table: TableLike
  readonly alias?: string | null
  readonly name?: string | null
  readonly on?: Expression | null
  readonly fields?: readonly Field[]
  readonly bare?: boolean
  readonly from?: FunctionSource | null
  readonly groupBy?: readonly Expression[]
  readonly binary?: boolean
  readonly repeats?: boolean
  readonly nests?: readonly Nest[]
  readonly where?: Expression | null
  readonly orderBy?: readonly Order[]
  readonly limit?: Count | null
  readonly offset?: Count | null
}

/** A nested read of related rows. */
export function nest(parts: NestParts): Nest {
  return {
    kind: 'nest',
    many: parts.many,
    table: tableName(parts.table),
    alias: parts.alias ?? null,
    name: parts.name ?? null,
    on: parts.on ?? null,
    fields: parts.fields ?? [],
    ...(parts.bare === true ? { bare: true } : {}),
    ...(parts.from == null ? {} : { from: parts.from }),
    ...(parts.groupBy === undefined ? {} : { groupBy: parts.groupBy }),
    ...(parts.binary === true ? { binary: true } : {}),
    ...(parts.repeats === true ? { repeats: true } : {}),
    nests: parts.nests ?? [],
    where: parts.where ?? null,
    orderBy: parts.orderBy ?? [],
    limit: parts.limit ?? null,
    offset: parts.offset ?? null,
    span,
  }
}
