/** Small constructors for trees that no text stands behind: REST builds with these, and so do tests. */
import {
  type Add,
  type Arithmetic,
  type ArrayConstructor,
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
  type Get,
  type In,
  type Is,
  type Join,
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
  type Row,
  type Set as SetStatement,
  type Source,
  type Star,
  type SubQuery,
  type TableName,
  type TypeName,
} from './ast.ts'

const span = NOWHERE

/** Negation that belongs to the operator itself (`not like`, `not in`, `is not null`). */
export type Polarity = 'plain' | 'negated'

// ---- expressions -------------------------------------------------------------------------------------------

/** `column`, or `alias.column`, or a longer path. */
export function column(...path: readonly [string, ...string[]]): ColumnReference {
  return { kind: 'column', path, span }
}

/** `$n`. */
/** The gateway's own mention of a column (see `ColumnReference.implied`). */
export function impliedColumn(source: string, name: string): ColumnReference {
  return { ...column(source, name), implied: true }
}

export function position(n: number): Parameter {
  return { kind: 'position', n, span }
}

/** `:name`. */
export function named(name: string): Parameter {
  return { kind: 'named', name, span }
}

export function text(value: string): Literal {
  return literal('text', value)
}

/** Digits are kept as they are written. */
export function integer(value: string): Literal {
  return literal('integer', value)
}

/** Any literal; the form of `value` is that of `Literal`. */
export function literal(type: Literal['type'], value: string): Literal {
  return { kind: 'literal', type, value, span }
}

/** Flat: operands that are conjunctions themselves are taken apart. One operand is itself. */
export function and(...operands: readonly Expression[]): Expression {
  return logic('and', operands)
}

export function or(...operands: readonly Expression[]): Expression {
  return logic('or', operands)
}

/** Those that there are, together; null for none. */
export function allOf(conditions: readonly (Expression | null)[]): Expression | null {
  const all = conditions.filter(condition => condition !== null)
  return all.length === 0 ? null : and(...all)
}

/** `case when … then … else … end`: of the two results only the one that is chosen is computed for a row. Without `otherwise` that is NULL. */
export function caseWhen(condition: Expression, then: Expression, otherwise: Expression | null): Case {
  return { kind: 'case', operand: null, whens: [{ when: condition, then }], else: otherwise, span }
}

function logic(kind: 'and' | 'or', operands: readonly Expression[]): Expression {
  const flat = operands.flatMap(operand => (operand.kind === kind ? operand.operands : [operand]))
  const [first] = flat
  if (first === undefined) throw new Error(`"${kind}" needs an operand`)
  return flat.length === 1 ? first : { kind, operands: flat, span }
}

export function not(operand: Expression): Not {
  return { kind: 'not', operand, span }
}

export function compare(operator: ComparisonOperator, left: Expression, right: Expression): Comparison {
  return { kind: 'comparison', operator, left, right, span }
}

export function like(
  operator: PatternMatch['operator'],
  operand: Expression,
  pattern: Expression,
  polarity: Polarity = 'plain',
): PatternMatch {
  return { kind: 'pattern', operator, negated: polarity === 'negated', operand, pattern, span }
}

export function isNull(operand: Expression, polarity: Polarity = 'plain'): Is {
  return { kind: 'is', what: 'null', negated: polarity === 'negated', operand, span }
}

/** `left is distinct from right`. */
export function isDistinct(left: Expression, right: Expression): DistinctFrom {
  return { kind: 'distinct from', negated: false, left, right, span }
}

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

export function exists(query: Get): Exists {
  return { kind: 'exists', negated: false, query, span }
}

/** `(get …)` as a value. */
export function subquery(query: Get): SubQuery {
  return { kind: 'subquery', query, span }
}

export function negate(operand: Expression): Negate {
  return { kind: 'negate', operand, span }
}

export function arithmetic(operator: Arithmetic['operator'], left: Expression, right: Expression): Arithmetic {
  return { kind: 'arithmetic', operator, left, right, span }
}

export function jsonStep(operator: JsonStep['operator'], operand: Expression, step: Expression): JsonStep {
  return { kind: 'json step', operator, operand, step, span }
}

/** `operand::type`, a type of PostgreSQL by its bare name, possibly followed by `[]`. */
export function cast(operand: Expression, type: string): Cast {
  const dimensions = type.endsWith('[]') ? 1 : 0
  const name = dimensions === 1 ? type.slice(0, -2) : type
  return { kind: 'cast', operand, type: { kind: 'type', schema: null, name, modifiers: [], dimensions, span }, span }
}

/** `[a, b]`. */
export function array(items: readonly Expression[]): ArrayConstructor {
  return { kind: 'array', items, span }
}

export function row(items: readonly Expression[]): Row {
  return { kind: 'row', items, span }
}

export interface CallOptions {
  readonly schema?: string | null
  readonly star?: boolean
  readonly distinct?: boolean
  readonly orderBy?: readonly Order[]
  readonly filter?: Expression
  readonly over?: FunctionCall['over']
}

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
    span,
  }
}

// ---- reads -------------------------------------------------------------------------------------------------

export interface TableLike {
  readonly schema: string | null
  readonly name: string
}

/** A table's name alone, of whatever else knows one. */
export function tableName({ schema, name }: TableLike): TableName {
  return { kind: 'table', schema, name, span }
}

export function star(of: string | null = null): Star {
  return { kind: 'star', of, span }
}

export function field(expression: Expression, alias: string | null = null): ExpressionField {
  return { kind: 'field', expression, alias, span }
}

export interface OrderOptions {
  readonly descending?: boolean
  readonly nulls?: Order['nulls']
}

export function order(expression: Expression, options: OrderOptions = {}): Order {
  return { kind: 'order', expression, descending: options.descending ?? false, nulls: options.nulls ?? null, span }
}

export interface GetParts {
  readonly table: TableLike
  readonly alias?: string | null
  readonly distinct?: boolean
  readonly joins?: readonly Join[]
  readonly nests?: readonly Nest[]
  readonly fields?: readonly Field[]
  readonly where?: Expression | null
  readonly groupBy?: readonly Expression[]
  readonly having?: Expression | null
  readonly orderBy?: readonly Order[]
  readonly limit?: Count | null
  readonly offset?: Count | null
}

/** A read of one table; everything left out is absent. */
export function get(parts: GetParts): Get {
  const { table, alias = null, ...rest } = parts
  return getFrom({ kind: 'table source', table: tableName(table), alias, condition: null, span }, rest)
}

/** A read of anything that has rows. */
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

// ---- writes ------------------------------------------------------------------------------------------------

export function name(text: string): Name {
  return { kind: 'name', text, span }
}

export function assign(column: string, value: Expression): Assignment {
  return { kind: 'assignment', column: name(column), value, span }
}

export interface AddParts {
  readonly table: TableLike
  readonly columns: readonly string[]
  /** `defaults`: one row of them. A parameter that is a JSON array: a row of them for each of its items. */
  readonly from: Get | Parameter | 'defaults'
  readonly conflict?: Conflict | null
  readonly returning: readonly Field[]
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
    span,
  }
}

function rowsOf(from: AddParts['from']): Add['rows'] {
  if (from === 'defaults') return { kind: 'defaults', span }
  return from.kind === 'get' ? { kind: 'from', query: from, span } : { kind: 'defaults', items: from, span }
}

/** `conflict (target) update …`; without assignments `nothing`. */
export function conflict(target: readonly string[], assignments: readonly Assignment[] | null): Conflict {
  const update = assignments === null ? null : { assignments, where: null }
  return { kind: 'conflict', target: target.map(name), update, span }
}

export interface WriteParts {
  readonly table: TableLike
  readonly alias: string
  readonly where: Expression
  readonly returning: readonly Field[]
}

/** A `set` that takes its values from what it is joined with. */
export function set(
  parts: WriteParts & { readonly from: Source; readonly assignments: readonly Assignment[] },
): SetStatement {
  const { from, assignments, ...common } = parts
  return { kind: 'set', ...written(common), joins: [crossJoin(from)], assignments }
}

export function del(parts: WriteParts): Del {
  return { kind: 'del', ...written(parts), joins: [] }
}

function written({ table, alias, where, returning }: WriteParts): Omit<Del, 'kind' | 'joins'> {
  return { with: null, table: tableName(table), alias, where, returning, span }
}

export function crossJoin(source: Source): Join {
  return { kind: 'join', type: 'cross', lateral: false, source, on: null, span }
}

/** One row of the fields of a JSON object, or one for each object of a JSON array. */
export function recordSource(
  value: Parameter,
  alias: string,
  columns: readonly RecordColumn[],
  rows: 'one' | 'many',
): RecordSource {
  return { kind: 'record source', value, many: rows === 'many', columns, alias, span }
}

export function recordColumn(name: string, type: TypeName): RecordColumn {
  return { kind: 'record column', name, type, span }
}

export interface NestParts {
  readonly many: boolean
  readonly table: TableLike
  readonly alias?: string | null
  readonly name?: string | null
  readonly on?: Expression | null
  readonly fields?: readonly Field[]
  readonly nests?: readonly Nest[]
  readonly where?: Expression | null
  readonly orderBy?: readonly Order[]
  readonly limit?: Count | null
  readonly offset?: Count | null
}

export function nest(parts: NestParts): Nest {
  return {
    kind: 'nest',
    many: parts.many,
    table: tableName(parts.table),
    alias: parts.alias ?? null,
    name: parts.name ?? null,
    on: parts.on ?? null,
    fields: parts.fields ?? [],
    nests: parts.nests ?? [],
    where: parts.where ?? null,
    orderBy: parts.orderBy ?? [],
    limit: parts.limit ?? null,
    offset: parts.offset ?? null,
    span,
  }
}
