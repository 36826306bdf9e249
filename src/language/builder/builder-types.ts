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

/**
 * The columns of a source, unqualified and qualified, with the types of their JSON. `never` if they are
 * unknown; then the rows of the whole query are.
 */
export type JsonOf<S, Source> = S extends Untyped
  ? never
  : Source extends Aliased<infer T, infer A>
    ? JsonColumns<S, T, A>
    : Source extends `${string}.${infer Name}`
      ? JsonColumns<S, Source, Name>
      : JsonColumns<S, Source, Source & string>

type JsonColumns<S, T, A extends string> = S extends Generated
  ? T extends keyof S['Tables']
    ? S['Tables'][T] extends { readonly Row: infer R }
      ? R & { readonly [N in keyof R & string as `${A}.${N}`]: R[N] }
      : never
    : never
  : never

/** The columns of joined sources. Of several columns with the same name, the first keeps it. */
export type Joined<C, J> = [C] extends [never] ? never : [J] extends [never] ? never : C & Omit<J, keyof C>

/** The columns of a source that has no row for some rows of the other one. */
export type Nullable<C> = { readonly [N in keyof C]: C[N] | null }

declare const noFields: unique symbol
/** A read without fields, which returns all columns. */
export interface NoFields {
  readonly [noFields]: true
}

/** A read with further fields: those it has are `Chosen`. */
export type WithFields<C, Chosen, F extends readonly unknown[]> = FieldsOf<
  C,
  F,
  Chosen extends NoFields ? object : Chosen
>

type FieldsOf<C, F extends readonly unknown[], Chosen> = F extends readonly []
  ? Chosen
  : F extends readonly [infer First, ...infer Others]
    ? FieldsOf<C, Others, Chosen & FieldColumns<C, First, Chosen>>
    : unknown

type FieldColumns<C, F, Chosen> = F extends '*'
  ? Omit<OwnColumns<C>, keyof Chosen>
  : F extends `${infer A}.*`
    ? Omit<{ [N in keyof C as N extends `${A}.${infer Name}` ? Name : never]: C[N] }, keyof Chosen>
    : F extends keyof C
      ? { [N in OutputName<F, Chosen>]: C[F] }
      : F extends Output<never, infer Alias, infer What>
        ? { [N in Alias]: ValueOf<C, What> }
        : object

/** A second column with a name is prefixed with its source. */
type OutputName<F, Chosen> = F extends `${string}.${infer Name}` ? (Name extends keyof Chosen ? F : Name) : F & string

type ValueOf<C, What> = What extends keyof C ? C[What] : What extends Term<never, infer V> ? V : unknown

type OwnColumns<C> = { [N in keyof C as N extends `${string}.${string}` ? never : N]: C[N] }

/** The name of nested rows in their row. */
export type NestName<N> =
  N extends Aliased<unknown, infer A> ? A : N extends `${string}.${infer Name}` ? Name : N & string

/** The rows of a read: of columns `C`, the `Chosen` ones and nested rows. Unknown without a schema. */
export type ResultOf<C, Chosen, Nested> = [C] extends [never]
  ? unknown
  : unknown extends Chosen
    ? unknown
    : Flat<(Chosen extends NoFields ? OwnColumns<C> : Chosen) & Nested>

type Flat<T> = { -readonly [N in keyof T]: T[N] }

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
