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

/** The values of the relations of `T` in a body: `One` for a row that it refers to, `Many` for other rows. */
type RelatedValues<S extends SchemaLike, T, Form extends 'create' | 'change'> = {
  readonly [R in KnownRelation<S, T>]?: RelationsOf<S, T>[R] extends { readonly table: infer To }
    ? RelationsOf<S, T>[R] extends { readonly many: true }
      ? ManyIn<S, To>[Form]
      : OneIn<S, To>[Form]
    : never
}
/** Without types of a schema, every name could be a column. */
type KnownRelation<S extends SchemaLike, T> = string extends keyof RelationsOf<S, T> ? never : keyof RelationsOf<S, T>
interface OneIn<S extends SchemaLike, T> {
  readonly create: RelatedRow<S, T>
  readonly change:
    | { readonly create: RelatedRow<S, T>; readonly update?: never }
    | { readonly update: ChangesOf<S, T>; readonly create?: never }
}
interface ManyIn<S extends SchemaLike, T> {
  readonly create: readonly RelatedRow<S, T>[]
  readonly change: {
    readonly create?: readonly RelatedRow<S, T>[]
    /** Each with its key. */
    readonly update?: readonly (Partial<Omit<RowOf<S, T>, keyof UpdateOf<S, T>>> & ChangesOf<S, T>)[]
    readonly delete?: readonly Partial<RowOf<S, T>>[]
    readonly set?: readonly (Partial<Omit<RowOf<S, T>, keyof InsertOf<S, T>>> & RelatedRow<S, T>)[]
  }
}

/** A row within another: the columns of the foreign key between them are filled in. */
export type RelatedRow<S extends SchemaLike, T> = Partial<InsertOf<S, T>> & RelatedValues<S, T, 'create'>

/** A row to create that contains at least one relation, which may fill in columns of it. */
type WithRelated<S extends SchemaLike, T> = {
  [R in KnownRelation<S, T>]: RelatedRow<S, T> & Required<Pick<RelatedValues<S, T, 'create'>, R>>
}[KnownRelation<S, T>]

/** A row to create, alone or with related rows. */
export type NewOf<S extends SchemaLike, T> = InsertOf<S, T> | WithRelated<S, T>

/** Changes of a row, and of its related rows. */
export type ChangesOf<S extends SchemaLike, T> = UpdateOf<S, T> & RelatedValues<S, T, 'change'>

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
