/** Types that describe a schema to the compiler, and the columns that a clause can use. */

import type { Get } from '../tree/ast.ts'
import type { Accepts, Built, Output, Term } from './builder-term.ts'

/**
 * A table: its columns with the types that can be written to them (`number | bigint`, `string | null`,
 * `string[]`).
 */
export interface TableType {
  readonly columns: object
}

/**
 * A schema: its tables by name (`users`, `sales.orders`). For example: `interface Schema { users: { columns:
 * { id: number; email: string } } }`. Or the `Schema` that `svc types` writes, with `Tables`, `Functions`
 * and `Enums`.
 */
export type BuilderSchema<S> = { readonly [T in keyof S]: T extends keyof Generated ? object : TableType }

/** A schema as `svc types` writes it. */
interface Generated {
  readonly Tables: object
  readonly Functions: object
  readonly Enums: object
}

declare const untyped: unique symbol
/** The schema type of a builder that accepts every name. */
export interface Untyped {
  readonly [untyped]: true
}

/** The names of a schema's tables. */
export type TableOf<S> = S extends Untyped ? string : keyof (S extends Generated ? S['Tables'] : S) & string

/** The columns of a table, which `values` writes to. */
export type ColumnsOf<S, T> = S extends Generated
  ? T extends keyof S['Tables']
    ? S['Tables'][T] extends { readonly Row: infer R }
      ? { [C in keyof R]: Literal<R[C]> }
      : never
    : never
  : T extends keyof S
    ? S[T] extends { readonly columns: infer C }
      ? C
      : never
    : never

/** Values that a statement can compare with a column or write to it: numbers of any size. */
type Literal<V> = V extends number ? V | bigint | string : V

/** A table or query with an alias. */
export class Aliased<out T = unknown, out A extends string = string> {
  readonly of: T
  readonly alias: A

  constructor(of: T, alias: A) {
    this.of = of
    this.alias = alias
  }
}

/** A table name, an aliased table, or an aliased query. */
export type SourceOf<S> = TableOf<S> | Aliased<TableOf<S> | Built<Get>>

/**
 * The columns of a source, unqualified and qualified, with the values they accept. `never` accepts every
 * part; it represents unknown columns and disables the checks of the whole query.
 */
export type RowOf<S, Source> = S extends Untyped
  ? never
  : Source extends Aliased<infer T, infer A>
    ? T extends string
      ? Named<ColumnsOf<S, T>, A>
      : unknown
    : Source extends `${string}.${infer Name}`
      ? Named<ColumnsOf<S, Source>, Name>
      : Source extends string
        ? Named<ColumnsOf<S, Source>, Source>
        : never

type Named<C, A extends string> = { readonly [N in keyof C]: Accepts<C[N]> } & {
  readonly [N in keyof C & string as `${A}.${N}`]: Accepts<C[N]>
}

/** The names of a row's columns. */
export type NameOf<Row> = keyof Row & string

/** A member of `fields` or `returning`: a column, `*`, an expression, or an expression with an alias. */
export type FieldOf<Row> = NameOf<Row> | '*' | `${string}.*` | Term<Row> | Output<Row>

/** The names that these fields add to the result, for `order by` and `having`. */
export type OutputNames<F extends readonly unknown[]> = {
  readonly [A in F[number] extends infer Item
    ? Item extends Output<never, infer Alias>
      ? Alias
      : never
    : never]: Accepts<unknown>
}

/** A row to be written. */
export type RowToWrite<S, T, Row> = S extends Untyped
  ? { readonly [column: string]: unknown }
  : { readonly [N in keyof ColumnsOf<S, T>]?: ColumnsOf<S, T>[N] | Term<Row> }
