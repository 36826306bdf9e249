/**
 * The tree: what a REST request, a query-language text and a live query all become.
 *
 * Readonly plain data, ordered like the grammar (docs/reference/language.md#grammar). Every node has a `kind` and the
 * `span` of text it came from; a tree survives `JSON.stringify`. Conditions are expressions.
 */

/** Half-open range of offsets in the source text, in UTF-16 units. Trees that no text stands behind use `NOWHERE`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** The span of a node that was built, not parsed. */
export const NOWHERE: Span = Object.freeze({ start: 0, end: 0 })

export type Statement = Get | Add | Set | Del | Merge | Make | Index | Call | Transaction | Explain

/** What a read is for: its rows, one row with their number, or a stream of them. */
export type Purpose = 'rows' | 'count' | 'export'

// ---- reads -------------------------------------------------------------------------------------------------

/** `get …`, `count …`, `export …`, and compounds of several gets. */
export interface Get {
  readonly kind: 'get'
  readonly purpose: Purpose
  readonly with: With | null
  readonly distinct: Distinct | null
  readonly source: Source
  readonly joins: readonly Join[]
  readonly nests: readonly Nest[]
  /** Empty means every column of the sources (`*`) and every nest. */
  readonly fields: readonly Field[]
  readonly where: Expression | null
  readonly groupBy: readonly Expression[]
  readonly having: Expression | null
  readonly windows: readonly NamedWindow[]
  /** Further gets of a compound, in order; `orderBy`, `limit` and `offset` then belong to the whole. */
  readonly compounds: readonly Compound[]
  readonly orderBy: readonly Order[]
  readonly limit: Count | null
  readonly offset: Count | null
  readonly lock: Lock | null
  readonly span: Span
}

export interface Compound {
  readonly kind: 'compound'
  readonly operator: 'union' | 'intersect' | 'except'
  readonly all: boolean
  readonly query: Get
  readonly span: Span
}

export interface With {
  readonly kind: 'with'
  readonly recursive: boolean
  readonly tables: readonly CommonTable[]
  readonly span: Span
}

export interface CommonTable {
  readonly kind: 'cte'
  readonly name: Name
  readonly columns: readonly Name[]
  readonly statement: Statement
  readonly span: Span
}

/** `distinct` when `on` is empty, else `distinct on (…)`. */
export interface Distinct {
  readonly kind: 'distinct'
  readonly on: readonly Expression[]
  readonly span: Span
}

/** A name as the author wrote it, without its quotes. */
export interface Name {
  readonly kind: 'name'
  readonly text: string
  readonly span: Span
}

/** `table` or `schema.table`. */
export interface TableName {
  readonly kind: 'table'
  readonly schema: string | null
  readonly name: string
  readonly span: Span
}

export type Source = TableSource | QuerySource | RecordSource | FunctionSource

/** `t`, `t as a`, `t[condition]`; the condition is part of the statement's where. */
export interface TableSource {
  readonly kind: 'table source'
  readonly table: TableName
  readonly alias: string | null
  readonly condition: Expression | null
  readonly span: Span
}

export interface QuerySource {
  readonly kind: 'query source'
  readonly query: Get
  readonly alias: string
  readonly span: Span
}

/**
 * The fields of a JSON object as the columns of one row, or of each object of a JSON array as the columns of a row each: how a body reaches a
 * write, and how arguments reach a function. Has no text form.
 */
export interface RecordSource {
  readonly kind: 'record source'
  readonly value: Expression
  readonly many: boolean
  readonly columns: readonly RecordColumn[]
  readonly alias: string
  readonly span: Span
}

export interface RecordColumn {
  readonly kind: 'record column'
  readonly name: string
  readonly type: TypeName
  readonly span: Span
}

/** The rows that a function answers; it sees the sources to its left. Has no text form. */
export interface FunctionSource {
  readonly kind: 'function source'
  readonly function: TableName
  /** Which overload is meant, as `pg_get_function_identity_arguments` writes it: for the check, not for the text. */
  readonly identity: string
  readonly arguments: readonly Argument[]
  readonly alias: string
  /** Names for the columns, in order; empty: those of the function. A single value is otherwise called like the alias. */
  readonly columns: readonly string[]
  readonly span: Span
}

export interface Argument {
  readonly kind: 'argument'
  /** Null: by position. */
  readonly name: string | null
  readonly value: Expression
  /** The value is the array of all remaining arguments. */
  readonly variadic: boolean
  readonly span: Span
}

export type JoinType = 'left' | 'right' | 'full' | 'inner' | 'cross'

export interface Join {
  readonly kind: 'join'
  readonly type: JoinType
  readonly lateral: boolean
  readonly source: Source
  /** Null: the foreign key decides. */
  readonly on: Expression | null
  readonly span: Span
}

/** A related row as an object, or rows as an array, in a column named by the alias (or the table). */
export interface Nest {
  readonly kind: 'nest'
  readonly many: boolean
  readonly table: TableName
  readonly alias: string | null
  /**
   * The output column where it differs from the alias. Has no text form (a parser leaves it null): set where two
   * levels would share an alias, as in a self-reference.
   */
  readonly name: string | null
  /** Null: the foreign key decides. */
  readonly on: Expression | null
  readonly fields: readonly Field[]
  readonly nests: readonly Nest[]
  readonly where: Expression | null
  readonly orderBy: readonly Order[]
  readonly limit: Count | null
  readonly offset: Count | null
  readonly span: Span
}

export type Field = Star | ExpressionField

/** `*`, or `alias.*`. */
export interface Star {
  readonly kind: 'star'
  readonly of: string | null
  readonly span: Span
}

export interface ExpressionField {
  readonly kind: 'field'
  readonly expression: Expression
  readonly alias: string | null
  readonly span: Span
}

export interface Order {
  readonly kind: 'order'
  readonly expression: Expression
  readonly descending: boolean
  /** Null: as PostgreSQL sorts them (last ascending, first descending). */
  readonly nulls: 'first' | 'last' | null
  readonly span: Span
}

/** What `limit` and `offset` take. */
export type Count = Literal | Parameter

export interface Lock {
  readonly kind: 'lock'
  readonly strength: 'update' | 'share'
  readonly wait: 'skip locked' | 'nowait' | null
  readonly span: Span
}

export interface NamedWindow {
  readonly kind: 'named window'
  readonly name: Name
  readonly body: WindowBody
  readonly span: Span
}

export interface WindowBody {
  readonly kind: 'window'
  /** The named window this one starts from. */
  readonly base: string | null
  readonly partitionBy: readonly Expression[]
  readonly orderBy: readonly Order[]
  readonly frame: Frame | null
  readonly span: Span
}

export interface Frame {
  readonly kind: 'frame'
  readonly unit: 'rows' | 'range' | 'groups'
  readonly start: FrameBound
  readonly end: FrameBound | null
  readonly span: Span
}

export type FrameBound =
  | { readonly kind: 'unbounded preceding' | 'current row' | 'unbounded following'; readonly span: Span }
  | { readonly kind: 'preceding' | 'following'; readonly offset: Expression; readonly span: Span }

// ---- writes ------------------------------------------------------------------------------------------------

export interface Add {
  readonly kind: 'add'
  readonly with: With | null
  readonly table: TableName
  readonly columns: readonly Name[]
  readonly rows: AddValues | AddFrom | AddDefaults
  readonly conflict: Conflict | null
  /** Null: not written; `add` then prints `returning *`. */
  readonly returning: readonly Field[] | null
  readonly span: Span
}

export interface AddValues {
  readonly kind: 'values'
  readonly rows: readonly (readonly Expression[])[]
  readonly span: Span
}
export interface AddFrom {
  readonly kind: 'from'
  readonly query: Get
  readonly span: Span
}
export interface AddDefaults {
  readonly kind: 'defaults'
  /** A JSON array: a row of defaults for each of its items. One row where it is absent. Has no text form. */
  readonly items?: Expression
  readonly span: Span
}

export interface Conflict {
  readonly kind: 'conflict'
  readonly target: readonly Name[]
  /** Null: leave the existing row alone. */
  readonly update: { readonly assignments: readonly Assignment[]; readonly where: Expression | null } | null
  readonly span: Span
}

export interface Assignment {
  readonly kind: 'assignment'
  readonly column: Name
  readonly value: Expression
  readonly span: Span
}

export interface Set {
  readonly kind: 'set'
  readonly with: With | null
  readonly table: TableName
  readonly alias: string | null
  readonly joins: readonly Join[]
  readonly assignments: readonly Assignment[]
  /** `'all'` when `where all` was written. */
  readonly where: Expression | 'all'
  readonly returning: readonly Field[] | null
  readonly span: Span
}

export interface Del {
  readonly kind: 'del'
  readonly with: With | null
  readonly table: TableName
  readonly alias: string | null
  readonly joins: readonly Join[]
  readonly where: Expression | 'all'
  readonly returning: readonly Field[] | null
  readonly span: Span
}

export interface Merge {
  readonly kind: 'merge'
  readonly with: With | null
  readonly table: TableName
  readonly alias: string | null
  readonly using: Source
  readonly on: Expression
  readonly whens: readonly MergeWhen[]
  readonly span: Span
}

export interface MergeWhen {
  readonly kind: 'when'
  readonly match: 'matched' | 'not matched' | 'not matched by source' | 'not matched by target'
  readonly and: Expression | null
  readonly action: MergeAction
  readonly span: Span
}

export type MergeAction =
  | { readonly kind: 'merge update'; readonly assignments: readonly Assignment[]; readonly span: Span }
  | {
      readonly kind: 'merge insert'
      readonly columns: readonly Name[]
      readonly values: readonly Expression[]
      readonly span: Span
    }
  | { readonly kind: 'merge delete' | 'merge nothing'; readonly span: Span }

// ---- definitions and the rest ------------------------------------------------------------------------------

export interface Make {
  readonly kind: 'make'
  readonly table: TableName
  readonly columns: readonly ColumnDefinition[]
  readonly constraints: readonly TableConstraint[]
  readonly span: Span
}

export interface ColumnDefinition {
  readonly kind: 'column definition'
  readonly name: Name
  readonly type: TypeName
  readonly primaryKey: boolean
  readonly unique: boolean
  readonly nullable: boolean
  readonly default: Expression | null
  readonly check: Expression | null
  readonly references: { readonly table: TableName; readonly column: string } | null
  readonly span: Span
}

export interface TableConstraint {
  readonly kind: 'primary key' | 'unique'
  readonly columns: readonly Name[]
  readonly span: Span
}

export interface Index {
  readonly kind: 'index'
  readonly name: Name
  readonly table: TableName
  readonly columns: readonly Name[]
  readonly unique: boolean
  readonly where: Expression | null
  readonly span: Span
}

export interface Call {
  readonly kind: 'call'
  readonly function: TableName
  readonly arguments: readonly Expression[]
  readonly span: Span
}

export interface Transaction {
  readonly kind: 'begin' | 'commit' | 'rollback'
  readonly span: Span
}

export interface Explain {
  readonly kind: 'explain'
  readonly statement: Statement
  readonly span: Span
}

// ---- expressions -------------------------------------------------------------------------------------------

export type Expression =
  | Logic
  | Not
  | Comparison
  | PatternMatch
  | Is
  | DistinctFrom
  | Between
  | In
  | Exists
  | JsonTest
  | Arithmetic
  | Negate
  | JsonStep
  | Cast
  | Literal
  | Parameter
  | ColumnReference
  | FunctionCall
  | Case
  | SubQuery
  | ArrayConstructor
  | Row

/** `a and b and c`: flat, at least two operands. */
export interface Logic {
  readonly kind: 'and' | 'or'
  readonly operands: readonly Expression[]
  readonly span: Span
}

export interface Not {
  readonly kind: 'not'
  readonly operand: Expression
  readonly span: Span
}

/** Each operator has one spelling in the tree: `<>` also for `!=`. */
export type ComparisonOperator =
  | '='
  | '<>'
  | '<'
  | '<='
  | '>'
  | '>='
  | '@>'
  | '<@'
  | '&&'
  | '?'
  | '?|'
  | '?&'
  | '@@'
  /** regular expression, case sensitive and not (`~` and `~*` in SQL) */
  | 'regex'
  | '~*'
  /** contains, any case: `x ilike '%v%'` */
  | '~'
  /** a tsvector matches a tsquery, printed as it is: has no text form; made for columns that are a tsvector already */
  | 'matches'

export interface Comparison {
  readonly kind: 'comparison'
  readonly operator: ComparisonOperator
  readonly left: Expression
  readonly right: Expression
  readonly span: Span
}

export interface PatternMatch {
  readonly kind: 'pattern'
  readonly operator: 'like' | 'ilike' | 'similar to'
  readonly negated: boolean
  readonly operand: Expression
  readonly pattern: Expression
  readonly span: Span
}

/** `is [not] null | true | false`. */
export interface Is {
  readonly kind: 'is'
  readonly what: 'null' | 'true' | 'false'
  readonly negated: boolean
  readonly operand: Expression
  readonly span: Span
}

export interface DistinctFrom {
  readonly kind: 'distinct from'
  readonly negated: boolean
  readonly left: Expression
  readonly right: Expression
  readonly span: Span
}

export interface Between {
  readonly kind: 'between'
  readonly negated: boolean
  readonly operand: Expression
  readonly low: Expression
  readonly high: Expression
  readonly span: Span
}

/** `in (values)`, `in (get …)`, or `in :ids` – then the parameter (or a cast of it, made by the check) is one array. */
export interface In {
  readonly kind: 'in'
  readonly negated: boolean
  readonly operand: Expression
  readonly set: InValues | SubQuery | Parameter | Cast
  readonly span: Span
}

/** At least one value. */
export interface InValues {
  readonly kind: 'in values'
  readonly values: readonly Expression[]
  readonly span: Span
}

export interface Exists {
  readonly kind: 'exists'
  readonly negated: boolean
  readonly query: Get
  readonly span: Span
}

export interface JsonTest {
  readonly kind: 'json test'
  readonly test: 'json_exists' | 'json_query' | 'json_value'
  readonly operand: Expression
  readonly path: string
  readonly span: Span
}

export interface Arithmetic {
  readonly kind: 'arithmetic'
  readonly operator: '||' | '+' | '-' | '*' | '/' | '%'
  readonly left: Expression
  readonly right: Expression
  readonly span: Span
}

export interface Negate {
  readonly kind: 'negate'
  readonly operand: Expression
  readonly span: Span
}

export interface JsonStep {
  readonly kind: 'json step'
  readonly operator: '->' | '->>' | '#>' | '#>>'
  readonly operand: Expression
  readonly step: Expression
  readonly span: Span
}

export interface Cast {
  readonly kind: 'cast'
  readonly operand: Expression
  readonly type: TypeName
  readonly span: Span
}

/** A type as PostgreSQL names it (`int4`, `timestamptz`); `modifiers` as in `numeric(10, 2)`. */
export interface TypeName {
  readonly kind: 'type'
  readonly schema: string | null
  readonly name: string
  readonly modifiers: readonly number[]
  /** How many `[]` follow. */
  readonly dimensions: number
  readonly span: Span
}

/** Numbers keep their digits: `value` is text for all of them. */
export interface Literal {
  readonly kind: 'literal'
  readonly type: 'integer' | 'decimal' | 'text' | 'boolean' | 'null' | 'json' | 'duration'
  /** integer, decimal: digits. text: the text. boolean: `true` or `false`. null: empty. json: its text. duration: `24h`. */
  readonly value: string
  readonly span: Span
}

export type Parameter =
  | { readonly kind: 'position'; readonly n: number; readonly span: Span }
  | { readonly kind: 'named'; readonly name: string; readonly span: Span }

/** The name of the parameter that `?` is in the pattern of a query: any value. No parameter of a query can have it. */
export const PLACEHOLDER = '?'

/** `column`, `alias.column`, `column.path.into.json`: at least one part. */
export interface ColumnReference {
  readonly kind: 'column'
  readonly path: readonly string[]
  /**
   * Nobody asked for it: the key of the row that a path names, or that puts rows in a total order. So it needs no right to the column. No text
   * becomes one.
   */
  readonly implied?: true
  readonly span: Span
}

export interface FunctionCall {
  readonly kind: 'function'
  readonly schema: string | null
  readonly name: string
  readonly distinct: boolean
  /** `count(*)`. */
  readonly star: boolean
  readonly arguments: readonly Expression[]
  readonly orderBy: readonly Order[]
  readonly filter: Expression | null
  readonly over: string | WindowBody | null
  readonly span: Span
}

export interface Case {
  readonly kind: 'case'
  readonly operand: Expression | null
  readonly whens: readonly { readonly when: Expression; readonly then: Expression }[]
  readonly else: Expression | null
  readonly span: Span
}

export interface SubQuery {
  readonly kind: 'subquery'
  readonly query: Get
  readonly span: Span
}

export interface ArrayConstructor {
  readonly kind: 'array'
  readonly items: readonly Expression[]
  readonly span: Span
}

export interface Row {
  readonly kind: 'row'
  readonly items: readonly Expression[]
  readonly span: Span
}
