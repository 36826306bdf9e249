/**
 * The builder: queries in TypeScript, which create the same tree as the text.
 *
 *     get('users').fields('id', 'email').where(and(eq('active', true), gt('age', 18)))
 *       .orderBy(desc('created_at')).limit(10)
 *
 * Every step returns a new builder. `builder<Schema>()` returns the same functions with names and values
 * checked by the compiler. SQL cannot be passed: everything that is not a name is a value.
 */

import { type GetBuilder, readOf } from './builder-read.ts'
import {
  Aliased,
  type BuilderSchema,
  type JsonOf,
  type RowOf,
  type SourceOf,
  type TableOf,
  type Untyped,
} from './builder-types.ts'
import { type AddBuilder, addOf, type DelBuilder, delOf, type SetBuilder, setOf } from './builder-write.ts'

export type { GetBuilder, NestBuilder } from './builder-read.ts'
export {
  and,
  as,
  asc,
  type Built,
  between,
  cast,
  col,
  compare,
  compute,
  contains,
  countAll,
  desc,
  eq,
  excluded,
  exists,
  fn,
  gt,
  gte,
  isDistinct,
  isIn,
  isNotNull,
  isNull,
  json,
  like,
  lt,
  lte,
  ne,
  not,
  type Ordering,
  type Output,
  or,
  param,
  subquery,
  type Term,
  unchecked,
  value,
} from './builder-term.ts'
export type { BuilderSchema, TableType } from './builder-types.ts'
export type { Value } from './builder-value.ts'
export type { AddBuilder, DelBuilder, SetBuilder } from './builder-write.ts'

type TargetTable<Target> = Target extends Aliased<infer T> ? T : Target

/** The functions that start a statement. */
export interface Builder<S> {
  get<const F extends SourceOf<S>>(source: F): GetBuilder<S, RowOf<S, F>, unknown, JsonOf<S, F>>
  /** Counts the rows: one row with the column `count`. */
  count<const F extends SourceOf<S>>(source: F): GetBuilder<S, RowOf<S, F>, unknown, JsonOf<S, F>, { count: number }>
  add<const T extends TableOf<S>>(table: T): AddBuilder<S, T>
  set<const F extends TableOf<S> | Aliased<TableOf<S>>>(target: F): SetBuilder<S, TargetTable<F>, RowOf<S, F>>
  del<const F extends TableOf<S> | Aliased<TableOf<S>>>(target: F): DelBuilder<S, TargetTable<F>, RowOf<S, F>>
}

const FUNCTIONS: Builder<Untyped> = {
  get: source => readOf(source, 'rows'),
  count: source => readOf(source, 'count'),
  add: table => addOf(table),
  set: target => setOf(target),
  del: target => delOf(target),
}

/**
 * The functions for a schema: the compiler accepts only its tables, its columns and values of their types.
 */
export function builder<S extends BuilderSchema<S>>(): Builder<S> {
  // The schema exists only at compile time.
  return FUNCTIONS as unknown as Builder<S>
}

/** A table or query with an alias: `get(aliased('users', 'u'))`. */
export function aliased<const T, const A extends string>(of: T, alias: A): Aliased<T, A> {
  return new Aliased(of, alias)
}

/** Starts a read; every name compiles. */
export const get: Builder<Untyped>['get'] = FUNCTIONS.get
/** Starts a count; every name compiles. */
export const count: Builder<Untyped>['count'] = FUNCTIONS.count
/** Starts an insert; every name compiles. */
export const add: Builder<Untyped>['add'] = FUNCTIONS.add
/** Starts an update; every name compiles. */
export const set: Builder<Untyped>['set'] = FUNCTIONS.set
/** Starts a delete; every name compiles. */
export const del: Builder<Untyped>['del'] = FUNCTIONS.del
