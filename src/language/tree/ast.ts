/**
 * The syntax tree. REST requests, query-language texts and live queries are all converted to it.
 *
 * The tree is readonly plain data, in the order of the grammar (docs/reference/language.md#grammar). Every
 * node has a `kind` and the `span` of its source text. A tree survives a round trip through JSON. Conditions
 * are expressions.
 */

/**
 * Half-open range of offsets in the source text, in UTF-16 units. Nodes without source text have `NOWHERE`.
 */
export interface Span {
  readonly start: number
  readonly end: number
}

/** The span of a node that was built in code rather than parsed. */
export const NOWHERE: Span = Object.freeze({ start: 0, end: 0 })

/** Any statement of the language. */
export type Statement = Get | Add | Set | Del | Merge | Make | Index | Call | Transaction | Explain

/** The purpose of a read: its rows, the number of its rows, or a stream of its rows. */
export type Purpose = 'rows' | 'count' | 'export'

// ---- reads ------------------------------------------------------------------------------------------------

/** `get …`, `count …`, `export …`, and compounds of several gets. */
export interface Get {
  readonly kind: 'get'
  readonly purpose: Purpose
  readonly with: With | null
  readonly distinct: Distinct | null
  readonly source: Source
  readonly joins: readonly Join[]
  readonly nests: readonly Nest[]
  /** An empty list means all columns of the sources (`*`) and all nests. */
  readonly fields: readonly Field[]
  /** True if the rows have no columns, only nests; `fields` is then empty. Has no text form. */
  readonly bare?: boolean
  readonly where: Expression | null
  readonly groupBy: readonly Expression[]
  readonly having: Expression | null
  readonly windows: readonly NamedWindow[]
  /** The other gets of a compound, in order. `orderBy`, `limit` and `offset` then apply to the compound. */
  readonly compounds: readonly Compound[]
  readonly orderBy: readonly Order[]
  readonly limit: Count | null
  readonly offset: Count | null
  readonly lock: Lock | null
  readonly span: Span
}

/** One `union`, `intersect` or `except`, with its right operand. */
export interface Compound {
  readonly kind: 'compound'
  readonly operator: 'union' | 'intersect' | 'except'
  readonly all: boolean
  readonly query: Get
  readonly span: Span
}

/** The `with` clause of a statement. */
export interface With {
  readonly kind: 'with'
  readonly recursive: boolean
  readonly tables: readonly CommonTable[]
  readonly span: Span
}

/** One common table of a `with` clause. */
export interface CommonTable {
  readonly kind: 'cte'
  readonly name: Name
  readonly columns: readonly Name[]
  readonly statement: Statement
  readonly span: Span
}

/** `distinct` if `on` is empty, otherwise `distinct on (…)`. */
export interface Distinct {
  readonly kind: 'distinct'
  readonly on: readonly Expression[]
  readonly span: Span
}

/** A name as written in the text, without quotes. */
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

/** A source of rows for a read or a join. */
export type Source = TableSource | QuerySource | RecordSource | ArraySource | FunctionSource

/** `t`, `t as a`, `t[condition]`. The condition becomes part of the statement's `where`. */
export interface TableSource {
  readonly kind: 'table source'
  readonly table: TableName
  readonly alias: string | null
  readonly condition: Expression | null
  readonly span: Span
}

/** A derived table: `(get …) as alias`. */
export interface QuerySource {
  readonly kind: 'query source'
  readonly query: Get
  readonly alias: string
  readonly span: Span
}

/**
 * Rows from a JSON parameter: the fields of an object become one row, an array of objects becomes one row per
 * object. Request bodies reach a write this way, and arguments reach a function. Has no text form.
 */
export interface RecordSource {
  readonly kind: 'record source'
  readonly value: Expression
  readonly many: boolean
  readonly columns: readonly RecordColumn[]
  readonly alias: string
  readonly span: Span
}

/** A column of a record source or an array source, with its type. */
export interface RecordColumn {
  readonly kind: 'record column'
  readonly name: string
  readonly type: TypeName
  readonly span: Span
}

/**
 * Rows from one array of texts for each column, each a parameter. Files of any length reach a write this way,
 * a part at a time: PostgreSQL reads arrays several times faster than JSON. Has no text form.
 */
export interface ArraySource {
  readonly kind: 'array source'
  readonly values: readonly Expression[]
  readonly columns: readonly RecordColumn[]
  readonly alias: string
  readonly span: Span
}

/** The rows that a function returns. Its arguments can refer to the sources to its left. Has no text form. */
export interface FunctionSource {
  readonly kind: 'function source'
  readonly function: TableName
  /**
   * The overload, as written by `pg_get_function_identity_arguments`. Only the check uses it; it is not
   * printed.
   */
  readonly identity: string
  readonly arguments: readonly Argument[]
  readonly alias: string
  /**
   * Column names, in order; an empty list keeps the function's own. Without names, a scalar result is named
   * like the alias.
   */
  readonly columns: readonly string[]
  /**
   * True if each row is one value of the type `record`, whose columns are only known when the function runs;
   * `columns` has its name. Has no text form.
   */
  readonly selected?: boolean
  readonly span: Span
}

/** One argument of a function source. */
export interface Argument {
  readonly kind: 'argument'
  /** The parameter's name; null passes the argument by position. */
  readonly name: string | null
  readonly value: Expression
  /** True if the value is an array that holds all remaining arguments. */
  readonly variadic: boolean
  readonly span: Span
}

/** The type of a join. */
export type JoinType = 'left' | 'right' | 'full' | 'inner' | 'cross'

/** A join of a further source. */
export interface Join {
  readonly kind: 'join'
  readonly type: JoinType
  readonly lateral: boolean
  readonly source: Source
  /** The join condition; null derives it from the foreign key. */
  readonly on: Expression | null
  readonly span: Span
}

/**
 * A related row as an object, or related rows as an array, in a column named after the alias or the table.
 */
export interface Nest {
  readonly kind: 'nest'
  readonly many: boolean
  readonly table: TableName
  readonly alias: string | null
  /**
   * The output column, if its name differs from the alias. Set if two levels would have the same alias, as in
   * a self-reference. Has no text form: the parser sets it to null.
   */
  readonly name: string | null
  /** The join condition; null derives it from the foreign key. */
  readonly on: Expression | null
  readonly fields: readonly Field[]
  /** As in a read: no columns, only nests. */
  readonly bare?: boolean
  /** The function that returns the rows, which are of the type of the table's rows. Has no text form. */
  readonly from?: FunctionSource
  /** The groups of the rows, if fields are aggregates. Has no text form. */
  readonly groupBy?: readonly Expression[]
  /** True if the value is `jsonb`, which can be grouped by. Has no text form. */
  readonly binary?: boolean
  /** True if the name can be that of a column, so that a row has it twice. Has no text form. */
  readonly repeats?: boolean
  readonly nests: readonly Nest[]
  readonly where: Expression | null
  readonly orderBy: readonly Order[]
  readonly limit: Count | null
  readonly offset: Count | null
  readonly span: Span
}

/** A member of a select list or of `returning`. */
export type Field = Star | ExpressionField

/** `*`, or `alias.*`. */
export interface Star {
  readonly kind: 'star'
  readonly of: string | null
  readonly span: Span
}

/** An expression in a select list, with an optional alias. */
export interface ExpressionField {
  readonly kind: 'field'
  readonly expression: Expression
  readonly alias: string | null
  /** True if another member can have the same name, so that a row has it twice. Has no text form. */
  readonly repeats?: boolean
  readonly span: Span
}

/** A member of `order by`. */
export interface Order {
  readonly kind: 'order'
  readonly expression: Expression
  readonly descending: boolean
  /** Position of nulls; null is PostgreSQL's default (last if ascending, first if descending). */
  readonly nulls: 'first' | 'last' | null
  readonly span: Span
}

/** The operand of `limit` and `offset`. */
export type Count = Literal | Parameter

/** Row locking: `for update` or `for share`. */
export interface Lock {
  readonly kind: 'lock'
  readonly strength: 'update' | 'share'
  readonly wait: 'skip locked' | 'nowait' | null
  readonly span: Span
}

/** A window that the `window` clause defines. */
export interface NamedWindow {
  readonly kind: 'named window'
  readonly name: Name
  readonly body: WindowBody
  readonly span: Span
}

/** The definition of a window: partition, order and frame. */
export interface WindowBody {
  readonly kind: 'window'
  /** The named window that this one extends. */
  readonly base: string | null
  readonly partitionBy: readonly Expression[]
  readonly orderBy: readonly Order[]
  readonly frame: Frame | null
  readonly span: Span
}

/** The frame of a window. */
export interface Frame {
  readonly kind: 'frame'
  readonly unit: 'rows' | 'range' | 'groups'
  readonly start: FrameBound
  readonly end: FrameBound | null
  readonly span: Span
}

/** The start or the end of a window frame. */
export type FrameBound =
  | { readonly kind: 'unbounded preceding' | 'current row' | 'unbounded following'; readonly span: Span }
  | { readonly kind: 'preceding' | 'following'; readonly offset: Expression; readonly span: Span }

// ---- writes -----------------------------------------------------------------------------------------------

/** `add …`: an insert. */
export interface Add {
  readonly kind: 'add'
  readonly with: With | null
  readonly table: TableName
  readonly columns: readonly Name[]
  readonly rows: AddValues | AddFrom | AddDefaults
  readonly conflict: Conflict | null
  /** Null if `returning` is absent; `add` then prints `RETURNING *`. */
  readonly returning: readonly Field[] | null
  readonly returned?: Returned
  readonly span: Span
}

/** The rows of `add … values …`. */
export interface AddValues {
  readonly kind: 'values'
  readonly rows: readonly (readonly Expression[])[]
  readonly span: Span
}
/** The query of `add … from …`. */
export interface AddFrom {
  readonly kind: 'from'
  readonly query: Get
  readonly span: Span
}
/** The rows of `add … default values`. */
export interface AddDefaults {
  readonly kind: 'defaults'
  /** A JSON array: one row of defaults per item. If absent, one row. Has no text form. */
  readonly items?: Expression
  readonly span: Span
}

/** The parts of the returned rows of a write beyond `returning`. Has no text form. */
export interface Returned {
  readonly kind: 'returned'
  /** Rows of other tables, as they were before the write, nested in each row. */
  readonly nests: readonly Nest[]
  /** A condition whose value is returned with each row, or null. */
  readonly where: Expression | null
  /** The order of the rows; none for the order of the write. */
  readonly orderBy: readonly Order[]
}

/** The `conflict` clause of an `add`. */
export interface Conflict {
  readonly kind: 'conflict'
  readonly target: readonly Name[]
  /** The update to apply on a conflict; null keeps the existing row unchanged. */
  readonly update: { readonly assignments: readonly Assignment[]; readonly where: Expression | null } | null
  readonly span: Span
}

/** `column = value` in a write. */
export interface Assignment {
  readonly kind: 'assignment'
  readonly column: Name
  readonly value: Expression
  readonly span: Span
}

/** `set …`: an update. */
export interface Set {
  readonly kind: 'set'
  readonly with: With | null
  readonly table: TableName
  readonly alias: string | null
  readonly joins: readonly Join[]
  readonly assignments: readonly Assignment[]
  /** Columns that are set to their defaults. Has no text form. */
  readonly defaults?: readonly Name[]
  /** `'all'` if the text has `where all`. */
  readonly where: Expression | 'all'
  readonly returning: readonly Field[] | null
  readonly returned?: Returned
  readonly span: Span
}

/** `del …`: a delete. */
export interface Del {
  readonly kind: 'del'
  readonly with: With | null
  readonly table: TableName
  readonly alias: string | null
  readonly joins: readonly Join[]
  readonly where: Expression | 'all'
  readonly returning: readonly Field[] | null
  readonly returned?: Returned
  readonly span: Span
}

/** `merge …`: a merge. */
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

/** One `when` clause of a merge. */
export interface MergeWhen {
  readonly kind: 'when'
  readonly match: 'matched' | 'not matched' | 'not matched by source' | 'not matched by target'
  readonly and: Expression | null
  readonly action: MergeAction
  readonly span: Span
}

/** The action of a `when` clause. */
export type MergeAction =
  | { readonly kind: 'merge update'; readonly assignments: readonly Assignment[]; readonly span: Span }
  | {
      readonly kind: 'merge insert'
      readonly columns: readonly Name[]
      readonly values: readonly Expression[]
      readonly span: Span
    }
  | { readonly kind: 'merge delete' | 'merge nothing'; readonly span: Span }

// ---- definitions and the rest -----------------------------------------------------------------------------

/** `make …`: a table definition. */
export interface Make {
  readonly kind: 'make'
  readonly table: TableName
  readonly columns: readonly ColumnDefinition[]
  readonly constraints: readonly TableConstraint[]
  readonly span: Span
}

/** A column of a table definition. */
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

/** A constraint of a table definition. */
export interface TableConstraint {
  readonly kind: 'primary key' | 'unique'
  readonly columns: readonly Name[]
  readonly span: Span
}

/** `index …`: an index definition. */
export interface Index {
  readonly kind: 'index'
  readonly name: Name
  readonly table: TableName
  readonly columns: readonly Name[]
  readonly unique: boolean
  readonly where: Expression | null
  readonly span: Span
}

/** `call …`: a procedure call. */
export interface Call {
  readonly kind: 'call'
  readonly function: TableName
  readonly arguments: readonly Expression[]
  readonly span: Span
}

/** `begin`, `commit` or `rollback`. */
export interface Transaction {
  readonly kind: 'begin' | 'commit' | 'rollback'
  readonly span: Span
}

/** `explain …`: a description of another statement. */
export interface Explain {
  readonly kind: 'explain'
  readonly statement: Statement
  readonly span: Span
}

// ---- expressions ------------------------------------------------------------------------------------------

/** Any expression; conditions are expressions too. */
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
  | JsonPatch
  | Cast
  | Literal
  | Parameter
  | ColumnReference
  | FunctionCall
  | Case
  | SubQuery
  | ArrayConstructor
  | Row
  | WholeRow

/** `a and b and c` as one node with at least two operands. */
export interface Logic {
  readonly kind: 'and' | 'or'
  readonly operands: readonly Expression[]
  readonly span: Span
}

/** `not operand`. */
export interface Not {
  readonly kind: 'not'
  readonly operand: Expression
  readonly span: Span
}

/** Comparison operators. Each has one spelling in the tree: `<>` also represents `!=`. */
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
  /** ranges: left of, right of, not right of, not left of, adjacent. They have no text form. */
  | '<<'
  | '>>'
  | '&<'
  | '&>'
  | '-|-'
  /** regular expression match, case-sensitive and case-insensitive (`~` and `~*` in SQL) */
  | 'regex'
  | '~*'
  /** case-insensitive substring match: `x ilike '%v%'` */
  | '~'
  /** a tsvector matches a tsquery; printed unchanged. Has no text form; generated for tsvector columns. */
  | 'matches'

/** Comparison operators that the gateway generates and that no text contains. */
export type TextlessOperator = 'matches' | '<<' | '>>' | '&<' | '&>' | '-|-'

/** A comparison of two expressions. */
export interface Comparison {
  readonly kind: 'comparison'
  readonly operator: ComparisonOperator
  readonly left: Expression
  readonly right: Expression
  /** True for the condition of `search`, which mentions each column once, however many the table has. */
  readonly searches?: true
  readonly span: Span
}

/** `like`, `ilike` and `similar to`. */
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

/** `is [not] distinct from`. */
export interface DistinctFrom {
  readonly kind: 'distinct from'
  readonly negated: boolean
  readonly left: Expression
  readonly right: Expression
  readonly span: Span
}

/** `[not] between low and high`. */
export interface Between {
  readonly kind: 'between'
  readonly negated: boolean
  readonly operand: Expression
  readonly low: Expression
  readonly high: Expression
  readonly span: Span
}

/**
 * `in (values)`, `in (get …)`, or `in :ids`, where the parameter (or the check's cast of it) is one array.
 */
export interface In {
  readonly kind: 'in'
  readonly negated: boolean
  readonly operand: Expression
  readonly set: InValues | SubQuery | Parameter | Cast
  readonly span: Span
}

/** The values of an `in` list; at least one. */
export interface InValues {
  readonly kind: 'in values'
  readonly values: readonly Expression[]
  readonly span: Span
}

/** `[not] exists (get …)`. */
export interface Exists {
  readonly kind: 'exists'
  readonly negated: boolean
  readonly query: Get
  readonly span: Span
}

/** `json_exists`, `json_query` and `json_value` with a JSON path. */
export interface JsonTest {
  readonly kind: 'json test'
  readonly test: 'json_exists' | 'json_query' | 'json_value'
  readonly operand: Expression
  readonly path: string
  readonly span: Span
}

/** A binary arithmetic operator, or `||`. */
export interface Arithmetic {
  readonly kind: 'arithmetic'
  readonly operator: '||' | '+' | '-' | '*' | '/' | '%'
  readonly left: Expression
  readonly right: Expression
  /** True in the document that the condition of `search` reads. */
  readonly searches?: true
  readonly span: Span
}

/** `-operand`. */
export interface Negate {
  readonly kind: 'negate'
  readonly operand: Expression
  readonly span: Span
}

/** Access to a part of a JSON value. */
export interface JsonStep {
  readonly kind: 'json step'
  readonly operator: '->' | '->>' | '#>' | '#>>'
  readonly operand: Expression
  readonly step: Expression
  readonly span: Span
}

/**
 * A changed JSON document. Has no text form. `merge`: the patch is a JSON Merge Patch; `operations`: a list
 * of operations as in JSON Patch, with paths as lists of keys.
 */
export interface JsonPatch {
  readonly kind: 'patch'
  readonly form: 'merge' | 'operations'
  /** The document, of type jsonb. */
  readonly operand: Expression
  /** The patch, of type jsonb. */
  readonly step: Expression
  readonly span: Span
}

/** `operand::type`. */
export interface Cast {
  readonly kind: 'cast'
  readonly operand: Expression
  readonly type: TypeName
  readonly span: Span
}

/** A type by PostgreSQL's name (`int4`, `timestamptz`), with `modifiers` as in `numeric(10, 2)`. */
export interface TypeName {
  readonly kind: 'type'
  readonly schema: string | null
  readonly name: string
  readonly modifiers: readonly number[]
  /** Number of `[]` suffixes. */
  readonly dimensions: number
  readonly span: Span
}

/** A constant. `value` is always text, so numbers keep all their digits. */
export interface Literal {
  readonly kind: 'literal'
  readonly type: 'integer' | 'decimal' | 'text' | 'boolean' | 'null' | 'json' | 'duration'
  /**
   * integer, decimal: digits. text: the text. boolean: `true` or `false`. null: empty. json: its text.
   * duration: `24h`.
   */
  readonly value: string
  readonly span: Span
}

/** `$n` or `:name`. */
export type Parameter =
  | { readonly kind: 'position'; readonly n: number; readonly span: Span }
  | { readonly kind: 'named'; readonly name: string; readonly span: Span }

/**
 * The parameter name that represents `?`, any value, in the pattern of an allow-list query. No query
 * parameter can have this name.
 */
export const PLACEHOLDER = '?'

/** `column`, `alias.column`, `column.path.into.json`: at least one part. */
export interface ColumnReference {
  readonly kind: 'column'
  readonly path: readonly string[]
  /**
   * True if the gateway added the reference, not the caller: the key in the request's path, or the key that
   * makes an order total. It requires no access to the column. Parsing never sets it.
   */
  readonly implied?: true
  readonly span: Span
}

/**
 * The row of a source as one value, as the argument of a function that computes a column or related rows from
 * it. Has no text form.
 */
export interface WholeRow {
  readonly kind: 'whole row'
  /** The alias of the source. */
  readonly of: string
  /** The table whose rows these are. */
  readonly table: TableName
  readonly span: Span
}

/** A function call, with the clauses of aggregates and window functions. */
export interface FunctionCall {
  readonly kind: 'function'
  readonly schema: string | null
  readonly name: string
  readonly distinct: boolean
  /** True for `count(*)`. */
  readonly star: boolean
  readonly arguments: readonly Expression[]
  readonly orderBy: readonly Order[]
  readonly filter: Expression | null
  readonly over: string | WindowBody | null
  /** True for the function of a cast between a domain and json or text. No text form has such a call. */
  readonly represents?: true
  /** True if the value does not change the result: it only decides whether the statement fails. */
  readonly guards?: true
  readonly span: Span
}

/** `case … when … then … end`. */
export interface Case {
  readonly kind: 'case'
  readonly operand: Expression | null
  readonly whens: readonly { readonly when: Expression; readonly then: Expression }[]
  readonly else: Expression | null
  readonly span: Span
}

/** `(get …)` as a value. */
export interface SubQuery {
  readonly kind: 'subquery'
  readonly query: Get
  readonly span: Span
}

/** `[a, b]`. */
export interface ArrayConstructor {
  readonly kind: 'array'
  readonly items: readonly Expression[]
  readonly span: Span
}

/** `(a, b)` as a row value. */
export interface Row {
  readonly kind: 'row'
  readonly items: readonly Expression[]
  readonly span: Span
}
