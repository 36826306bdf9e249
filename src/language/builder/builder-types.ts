/** What the compiler knows of a schema, and which columns a clause can see. */

import type { Get } from '../tree/ast.ts'
import type { Built, Output, Takes, Term } from './builder-term.ts'

/**
 * A table as the builder knows it: its columns and what may be written into them (`number | bigint`, `string
 * | null`, `string[]`).
 */
export interface TableType {
  readonly columns: object
}

/**
 * A schema: its tables by name (`users`, `sales.orders`). `interface Schema { users: { columns: { id: number;
 * email: string } } }` is one.
 */
export type SchemaType<S> = { readonly [T in keyof S]: TableType }

declare const untyped: unique symbol
/** Without a schema every name is possible. */
export interface Untyped {
  readonly [untyped]: true
}

export type TableOf<S> = S extends Untyped ? string : keyof S & string

/** What `values` writes into: the columns of a table. */
export type ColumnsOf<S, T> = T extends keyof S ? (S[T] extends { readonly columns: infer C } ? C : never) : never

/** A table or query under another name. */
export class Aliased<out T = unknown, out A extends string = string> {
  readonly of: T
  readonly alias: A

  constructor(of: T, alias: A) {
    this.of = of
    this.alias = alias
  }
}

/** A table by its name, under another name, or a query under a name. */
export type SourceOf<S> = TableOf<S> | Aliased<TableOf<S> | Built<Get>>

/**
 * The columns that a source brings, bare and with its name: what they take. `never` fits every part, and
 * stands for columns that nothing is known about: it makes the whole query unchecked.
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

type Named<C, A extends string> = { readonly [N in keyof C]: Takes<C[N]> } & {
  readonly [N in keyof C & string as `${A}.${N}`]: Takes<C[N]>
}

export type NameOf<Row> = keyof Row & string

/** What `fields` and `returning` take: a column, all of them, an expression, an expression with a name. */
export type FieldOf<Row> = NameOf<Row> | '*' | `${string}.*` | Term<Row> | Output<Row>

/** The names that these fields add to the answer, for `order by` and `having`. */
export type Answered<F extends readonly unknown[]> = {
  readonly [A in F[number] extends infer Item
    ? Item extends Output<never, infer Alias>
      ? Alias
      : never
    : never]: Takes<unknown>
}

/** A row to write. */
export type RowToWrite<S, T, Row> = S extends Untyped
  ? { readonly [column: string]: unknown }
  : { readonly [N in keyof ColumnsOf<S, T>]?: ColumnsOf<S, T>[N] | Term<Row> }
