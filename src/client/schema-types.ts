/** Types of rows, relations and results, derived from the `Schema` that `svc types` writes. */

/** The `Schema` of a module that `svc types` wrote. */
export interface SchemaLike {
  readonly Tables: object
  readonly Functions: object
}

/** Without a schema: every name, and values of any type. */
export interface AnySchema {
  readonly Tables: {
    readonly [table: string]: {
      readonly Row: AnyRow
      readonly Insert: AnyRow
      readonly Update: AnyRow
      readonly Relations: { readonly [relation: string]: { readonly table: string; readonly many: boolean } }
    }
  }
  // biome-ignore lint/suspicious/noExplicitAny: the application knows, without types of its schema
  readonly Functions: { readonly [name: string]: { readonly Args: object | readonly unknown[]; readonly Returns: any } }
}

export interface AnyRow {
  // biome-ignore lint/suspicious/noExplicitAny: the application knows, without types of its schema
  readonly [column: string]: any
}

export type TableName<S extends SchemaLike> = keyof S['Tables'] & string
type Part<S extends SchemaLike, T, P extends string> = T extends keyof S['Tables']
  ? S['Tables'][T] extends { readonly [K in P]: infer V }
    ? V
    : never
  : never
export type RowOf<S extends SchemaLike, T> = Part<S, T, 'Row'>
export type InsertOf<S extends SchemaLike, T> = Part<S, T, 'Insert'>
export type UpdateOf<S extends SchemaLike, T> = Part<S, T, 'Update'>
export type RelationsOf<S extends SchemaLike, T> = Part<S, T, 'Relations'>

export type FunctionName<S extends SchemaLike> = keyof S['Functions'] & string
export type ArgsOf<S extends SchemaLike, F> = F extends keyof S['Functions']
  ? S['Functions'][F] extends { readonly Args: infer A }
    ? A | readonly unknown[]
    : never
  : never
export type ReturnsOf<S extends SchemaLike, F> = F extends keyof S['Functions']
  ? S['Functions'][F] extends { readonly Returns: infer R }
    ? R
    : never
  : never

/** A column, an alias, or a path into JSON, in the notation of `select`. */
export type ColumnText<Row> =
  | (keyof Row & string)
  | '*'
  | `${string}:${keyof Row & string}`
  | `${keyof Row & string}->${string}`
  | `${string}:${keyof Row & string}->${string}`

/** A column with its direction: `-placed_at`, `number:asc.nullsfirst`. */
export type SortText<Row> = `${'' | '-'}${keyof Row & string}` | `${keyof Row & string}${':' | '->'}${string}`

/** One object type instead of an intersection. */
export type Flat<T> = { [K in keyof T]: T[K] }
type Merged<U> = (U extends unknown ? (one: U) => void : never) extends (one: infer I) => void ? Flat<I> : never

type Column<Row, C> = C extends '*'
  ? Row
  : C extends keyof Row
    ? { [K in C]: Row[C] }
    : C extends `${infer Alias}:${infer Of}`
      ? { [K in Alias]: Of extends keyof Row ? Row[Of] : unknown }
      : C extends `${string}->${infer Rest}`
        ? { [K in LastKey<Rest>]: unknown }
        : never
type LastKey<Path extends string> = Path extends `${string}->${infer Rest}`
  ? LastKey<Rest>
  : Path extends `>${infer Key}`
    ? Key
    : Path

/** The type of a row with these columns. */
export type Selected<Row, C extends string> = Merged<C extends unknown ? Column<Row, C> : never>

type Plain<Relations> = {
  [R in keyof Relations & string]: Relations[R] extends { readonly many: true } ? `nested:${R}` : R
}[keyof Relations & string]

/**
 * A relation, in the notation of `expand`: `customer`, `nested:order_items`, `approver:users!approved_by`.
 */
export type RelationText<Relations> = Plain<Relations> | `${string}:${Plain<Relations>}`

/** The name of a relation without alias and `nested:`. */
type Bare<E extends string> = E extends `${string}:${infer Rest}` ? Bare<Rest> : E
type Unhinted<E extends string> = E extends `${infer Name}!${string}` ? Name : E
/** The member that an expansion adds. */
type Member<E extends string> = E extends `nested:${infer Rest}`
  ? Unhinted<Rest>
  : E extends `${infer Alias}:${string}`
    ? Alias
    : Unhinted<E>

/** The target table of a relation. */
export type TargetOf<Relations, E extends string> =
  Bare<E> extends keyof Relations ? (Relations[Bare<E>] extends { readonly table: infer T } ? T : never) : never

/** The member of an expansion, whose rows are `Row`. */
export type Expanded<E extends string, Row> = {
  [M in Member<E>]: E extends `nested:${string}` | `${string}:nested:${string}` ? Row[] : Row | null
}
