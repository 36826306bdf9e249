/**
 * The builder: queries from TypeScript, which make the tree that a text makes.
 *
 *     get('users').fields('id', 'email').where(and(eq('active', true), gt('age',
 * 18))).orderBy(desc('created_at')).limit(10)
 *
 * Every step answers a new builder. `builder<Schema>()` answers the same functions with names and values
 * checked by the compiler. There is no way to pass SQL: what is not a name is a value.
 */

import { type GetBuilder, readOf } from './builder-read.ts'
import { Aliased, type RowOf, type SchemaType, type SourceOf, type TableOf, type Untyped } from './builder-types.ts'
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
export type { SchemaType, TableType } from './builder-types.ts'
export type { Value } from './builder-value.ts'
export type { AddBuilder, DelBuilder, SetBuilder } from './builder-write.ts'

type TargetTable<Target> = Target extends Aliased<infer T> ? T : Target

/** What a query can begin with. */
export interface Builder<S> {
  get<const F extends SourceOf<S>>(source: F): GetBuilder<S, RowOf<S, F>>
  /** How many rows there are: one row, column `count`. */
  count<const F extends SourceOf<S>>(source: F): GetBuilder<S, RowOf<S, F>>
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

/** The builder for a schema: only its tables, columns and types of values compile. */
export function builder<S extends SchemaType<S>>(): Builder<S> {
  // The schema exists for the compiler alone.
  return FUNCTIONS as unknown as Builder<S>
}

/** A table or query under another name: `get(aliased('users', 'u'))`. */
export function aliased<const T, const A extends string>(of: T, alias: A): Aliased<T, A> {
  return new Aliased(of, alias)
}

export const get: Builder<Untyped>['get'] = FUNCTIONS.get
export const count: Builder<Untyped>['count'] = FUNCTIONS.count
export const add: Builder<Untyped>['add'] = FUNCTIONS.add
export const set: Builder<Untyped>['set'] = FUNCTIONS.set
export const del: Builder<Untyped>['del'] = FUNCTIONS.del
