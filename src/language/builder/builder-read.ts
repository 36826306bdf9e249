/** `get('users').fields('id').where(…)`: reads and nested rows. */

import type { Compound, Get, Lock, Nest } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import * as build from '../tree/build.ts'
import {
  alsoWhere,
  countOf,
  fieldNodes,
  joinOf,
  ordersOf,
  sourceNode,
  withTable,
  writeTarget,
} from './builder-clauses.ts'
import { Built, leftOf, type Ordering, type Term } from './builder-term.ts'
import type {
  Aliased,
  FieldOf,
  Joined,
  JsonOf,
  NameOf,
  NestName,
  NoFields,
  Nullable,
  OutputNames,
  ResultOf,
  RowOf,
  SourceOf,
  TableOf,
  WithFields,
} from './builder-types.ts'

const span = NOWHERE

type NestSource<S> = TableOf<S> | Aliased<TableOf<S>>
type Limit = number | bigint | Term<unknown>

/**
 * Builds a read. `Row` has the columns of its sources with what they accept, and `C` with the types of their
 * JSON. `Out` has the names in its result, `Chosen` its fields, and `Nested` its nested rows.
 */
export class GetBuilder<S, Row, Out = unknown, C = never, Chosen = NoFields, Nested = object> extends Built<
  Get,
  ResultOf<C, Chosen, Nested>
> {
  readonly #tree: Get

  constructor(tree: Get) {
    super()
    this.#tree = tree
  }

  override toTree(): Get {
    return this.#tree
  }

  #and<R = Row, O = Out, J = C, F = Chosen, N = Nested>(parts: Partial<Get>): GetBuilder<S, R, O, J, F, N> {
    return new GetBuilder({ ...this.#tree, ...parts })
  }

  /** Adds fields. A read without fields returns all columns. */
  fields<const F extends readonly FieldOf<Row>[]>(
    ...items: F
  ): GetBuilder<S, Row, Out & OutputNames<F>, C, WithFields<C, Chosen, F>, Nested> {
    return this.#and({ fields: [...this.#tree.fields, ...fieldNodes(items)] })
  }

  /** Without arguments, removes duplicate rows; with arguments, keeps the first row of each combination. */
  distinct(...on: readonly (NameOf<Row> | Term<Row>)[]): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ distinct: { kind: 'distinct', on: on.map(leftOf), span } })
  }

  /** A left join. Without a condition, the foreign key is used. */
  join<const J extends SourceOf<S>>(
    source: J,
    on?: Term<Row & RowOf<S, J>>,
  ): GetBuilder<S, Row & RowOf<S, J>, Out, Joined<C, Nullable<JsonOf<S, J>>>, Chosen, Nested> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('left', source, on)] })
  }

  innerJoin<const J extends SourceOf<S>>(
    source: J,
    on?: Term<Row & RowOf<S, J>>,
  ): GetBuilder<S, Row & RowOf<S, J>, Out, Joined<C, JsonOf<S, J>>, Chosen, Nested> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('inner', source, on)] })
  }

  rightJoin<const J extends SourceOf<S>>(
    source: J,
    on?: Term<Row & RowOf<S, J>>,
  ): GetBuilder<S, Row & RowOf<S, J>, Out, Joined<Nullable<C>, JsonOf<S, J>>, Chosen, Nested> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('right', source, on)] })
  }

  fullJoin<const J extends SourceOf<S>>(
    source: J,
    on?: Term<Row & RowOf<S, J>>,
  ): GetBuilder<S, Row & RowOf<S, J>, Out, Joined<Nullable<C>, Nullable<JsonOf<S, J>>>, Chosen, Nested> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('full', source, on)] })
  }

  crossJoin<const J extends SourceOf<S>>(
    source: J,
  ): GetBuilder<S, Row & RowOf<S, J>, Out, Joined<C, JsonOf<S, J>>, Chosen, Nested> {
    return this.#and({ joins: [...this.#tree.joins, joinOf('cross', source, undefined)] })
  }

  /** Adds the related row as an object. */
  nest<const N extends NestSource<S>, B extends NestNode = NestBuilder<S, RowOf<S, N>, Row, JsonOf<S, N>>>(
    source: N,
    shape?: Shape<S, N, Row, B>,
  ): GetBuilder<S, Row, Out, C, Chosen, Nested & NestedRow<N, B>> {
    return this.#and({ nests: [...this.#tree.nests, nestOf(source, false, shape)] })
  }

  /** Adds the related rows as an array. */
  nestMany<const N extends NestSource<S>, B extends NestNode = NestBuilder<S, RowOf<S, N>, Row, JsonOf<S, N>>>(
    source: N,
    shape?: Shape<S, N, Row, B>,
  ): GetBuilder<S, Row, Out, C, Chosen, Nested & NestedRows<N, B>> {
    return this.#and({ nests: [...this.#tree.nests, nestOf(source, true, shape)] })
  }

  /** Adds a condition; the conditions of several calls are combined with `and`. */
  where(condition: Term<Row>): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ where: alsoWhere(this.#tree.where, condition) })
  }

  groupBy(...items: readonly (NameOf<Row> | Term<Row>)[]): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ groupBy: [...this.#tree.groupBy, ...items.map(leftOf)] })
  }

  having(condition: Term<Row & Out>): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ having: alsoWhere(this.#tree.having, condition) })
  }

  orderBy(...items: readonly (NameOf<Row & Out> | Ordering<Row & Out>)[]): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ orderBy: [...this.#tree.orderBy, ...ordersOf(items)] })
  }

  limit(count: Limit): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ limit: countOf(count) })
  }

  offset(count: Limit): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ offset: countOf(count) })
  }

  forUpdate(wait: Lock['wait'] = null): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ lock: { kind: 'lock', strength: 'update', wait, span } })
  }

  forShare(wait: Lock['wait'] = null): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ lock: { kind: 'lock', strength: 'share', wait, span } })
  }

  /** Turns the read into an export, which is streamed. */
  forExport(): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ purpose: 'export' })
  }

  union(query: Built<Get>, all?: 'all'): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#compound('union', query, all)
  }

  intersect(query: Built<Get>, all?: 'all'): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#compound('intersect', query, all)
  }

  except(query: Built<Get>, all?: 'all'): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#compound('except', query, all)
  }

  #compound(
    operator: Compound['operator'],
    query: Built<Get>,
    all: 'all' | undefined,
  ): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    const compound: Compound = { kind: 'compound', operator, all: all === 'all', query: query.toTree(), span }
    return this.#and({ compounds: [...this.#tree.compounds, compound] })
  }

  /** Adds a common table: a name for the rows of a statement. */
  with(name: string, statement: Built, recursive?: 'recursive'): GetBuilder<S, Row, Out, C, Chosen, Nested> {
    return this.#and({ with: withTable(this.#tree.with, name, statement, recursive === 'recursive') })
  }
}

type Shape<S, N, Around, B> = (nest: NestBuilder<S, RowOf<S, N>, Around, JsonOf<S, N>>) => B

/** Nested rows under construction. */
abstract class NestNode<out Result = unknown> {
  declare protected readonly result?: Result

  abstract toNode(): Nest
}

type NestedRow<N, B> = { readonly [Name in NestName<N>]: B extends NestNode<infer R> ? R | null : unknown }
type NestedRows<N, B> = { readonly [Name in NestName<N>]: B extends NestNode<infer R> ? readonly R[] : unknown }

/** Builds nested rows. `Around` has the columns of the enclosing read. */
export class NestBuilder<S, Row, Around, C = never, Chosen = NoFields, Nested = object> extends NestNode<
  ResultOf<C, Chosen, Nested>
> {
  readonly #node: Nest

  constructor(node: Nest) {
    super()
    this.#node = node
  }

  override toNode(): Nest {
    return this.#node
  }

  #and<F = Chosen, N = Nested>(parts: Partial<Nest>): NestBuilder<S, Row, Around, C, F, N> {
    return new NestBuilder({ ...this.#node, ...parts })
  }

  /** Sets the condition that relates the rows. Without one, the foreign key is used. */
  on(condition: Term<Row & Around>): NestBuilder<S, Row, Around, C, Chosen, Nested> {
    return this.#and({ on: alsoWhere(this.#node.on, condition) })
  }

  fields<const F extends readonly FieldOf<Row>[]>(
    ...items: F
  ): NestBuilder<S, Row, Around, C, WithFields<C, Chosen, F>, Nested> {
    return this.#and({ fields: [...this.#node.fields, ...fieldNodes(items)] })
  }

  nest<const N extends NestSource<S>, B extends NestNode = NestBuilder<S, RowOf<S, N>, Row & Around, JsonOf<S, N>>>(
    source: N,
    shape?: Shape<S, N, Row & Around, B>,
  ): NestBuilder<S, Row, Around, C, Chosen, Nested & NestedRow<N, B>> {
    return this.#and({ nests: [...this.#node.nests, nestOf(source, false, shape)] })
  }

  nestMany<const N extends NestSource<S>, B extends NestNode = NestBuilder<S, RowOf<S, N>, Row & Around, JsonOf<S, N>>>(
    source: N,
    shape?: Shape<S, N, Row & Around, B>,
  ): NestBuilder<S, Row, Around, C, Chosen, Nested & NestedRows<N, B>> {
    return this.#and({ nests: [...this.#node.nests, nestOf(source, true, shape)] })
  }

  where(condition: Term<Row & Around>): NestBuilder<S, Row, Around, C, Chosen, Nested> {
    return this.#and({ where: alsoWhere(this.#node.where, condition) })
  }

  orderBy(...items: readonly (NameOf<Row> | Ordering<Row>)[]): NestBuilder<S, Row, Around, C, Chosen, Nested> {
    return this.#and({ orderBy: [...this.#node.orderBy, ...ordersOf(items)] })
  }

  limit(count: Limit): NestBuilder<S, Row, Around, C, Chosen, Nested> {
    return this.#and({ limit: countOf(count) })
  }

  offset(count: Limit): NestBuilder<S, Row, Around, C, Chosen, Nested> {
    return this.#and({ offset: countOf(count) })
  }
}

function nestOf<S, N, Around, B extends NestNode>(
  source: N,
  many: boolean,
  shape: Shape<S, N, Around, B> | undefined,
): Nest {
  const plain = new NestBuilder<S, RowOf<S, N>, Around, JsonOf<S, N>>(build.nest({ many, ...writeTarget(source) }))
  return (shape?.(plain) ?? plain).toNode()
}

/** A read of all columns and rows of a source. */
export function readOf<S, Row, C, Chosen>(
  source: unknown,
  purpose: Get['purpose'],
): GetBuilder<S, Row, unknown, C, Chosen> {
  return new GetBuilder({
    ...build.get({ table: { schema: null, name: '' } }),
    source: sourceNode(source),
    purpose,
  })
}
