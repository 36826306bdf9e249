/**
 * The parts of which the builder's clauses are made. A part carries in its type which columns it needs and
 * what it compares them with; a clause takes it when its tables have such columns.
 *
 * A string on the left of an operator, and as an argument of a function, is a column (`'id'`, `'users.id'`);
 * every other plain value, and everything on the right, is a value. `col` and `value` say otherwise.
 */

import { formatStatement } from '../format/format.ts'
import { type PrintOptions, printSql } from '../sql/print.ts'
import type { Sql } from '../sql/printer.ts'
import { PARAMETER_NUMBER_MAX } from '../syntax/parse-primary.ts'
import type { Arithmetic, ComparisonOperator, Expression, Get, Order, PatternMatch, Statement } from '../tree/ast.ts'
import { PLACEHOLDER } from '../tree/ast.ts'
import * as build from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { jsonOf, literalOf, type Value } from './builder-value.ts'

/** What a column accepts; a column that accepts more fits better. */
export type Takes<T> = (value: T) => void

/**
 * An expression that needs the columns of `Row`. A class, so that no object from outside is ever taken for
 * one.
 */
export class Term<in Row = never> {
  readonly expression: Expression
  /** Only in the type. */
  declare protected readonly needs?: (row: Row) => void

  constructor(expression: Expression) {
    this.expression = expression
  }
}

/** A column with its direction in `order by`. */
export class Ordering<in Row = never> {
  readonly order: Order
  declare protected readonly needs?: (row: Row) => void

  constructor(order: Order) {
    this.order = order
  }
}

/** An expression with its name in the answer. */
export class Output<in Row = never, out Alias extends string = string> {
  readonly expression: Expression
  readonly alias: Alias
  declare protected readonly needs?: (row: Row) => void

  constructor(expression: Expression, alias: Alias) {
    this.expression = expression
    this.alias = alias
  }
}

/** A statement as far as it is built. Never changed: each step answers a new one. */
export abstract class Built<out T extends Statement = Statement> {
  /** The tree; an unfinished statement is refused here. */
  abstract toTree(): T

  /** The text in canonical form. */
  toText(): string {
    return formatStatement(this.toTree())
  }

  /** SQL for PostgreSQL; values are parameters unless `{parameters: 'keep'}` says otherwise. */
  toSql(options: PrintOptions = { parameters: 'all' }): Sql {
    return printSql(this.toTree(), options)
  }
}

type Left = string | Term
type Right = Value | Term
type Has<Name extends string, T = never> = { readonly [N in Name]: Takes<T> }
/** A list is inferred as a tuple that cannot be written to; columns of arrays say `string[]`. */
type Given<T> = T extends readonly unknown[] ? T[number][] : T
type Needs<L> = L extends Term<infer Row> ? Row : L extends string ? Has<L> : unknown
type Compared<L, R> = R extends Term<infer Row> ? Needs<L> & Row : L extends string ? Has<L, Given<R>> : Needs<L>
/** What all of them need together. */
export type NeedsAll<L> = (L extends unknown ? (row: Needs<L>) => void : never) extends (row: infer Row) => void
  ? Row
  : never

/** `users.id` → the path of a column; a part that holds a dot itself is given to `col` alone. */
export function pathOf(name: string): readonly [string, ...string[]] {
  return name.split('.') as [string, ...string[]]
}

export function leftOf(left: Left): Expression {
  return left instanceof Term
    ? left.expression
    : typeof left === 'string'
      ? build.column(...pathOf(left))
      : literalOf(left)
}

export function rightOf(right: unknown): Expression {
  return right instanceof Term ? right.expression : literalOf(right)
}

// ---- columns, values, parameters --------------------------------------------------------------------------

/**
 * A column where a value would be read, or a path into one: `col('meta', 'theme')`. One part alone is split
 * at its dots.
 */
export function col<const N extends string>(name: N, ...steps: readonly string[]): Term<Has<N>> {
  return new Term(steps.length > 0 ? build.column(name, ...steps) : build.column(...pathOf(name)))
}

/**
 * A column that the compiler cannot see: of the query around this one, of a common table, of a query in
 * `from`.
 */
export function unchecked(name: string): Term<unknown> {
  return new Term(build.column(...pathOf(name)))
}

/** The value of the row that `add` could not insert; for `conflict`. */
export function excluded<const N extends string>(name: N): Term<Has<N>> {
  return new Term(build.column('excluded', name))
}

/** `:name`, or `$1`. */
export function param(name: string | number): Term<unknown> {
  if (name === PLACEHOLDER) {
    throw new LanguageError('? is any value in the pattern of a query; a parameter of a query has a name or a number')
  }
  if (typeof name === 'string') return new Term(build.named(name))
  if (!(Number.isInteger(name) && name >= 1 && name <= PARAMETER_NUMBER_MAX)) {
    throw new LanguageError(`parameters are numbered from 1 to ${PARAMETER_NUMBER_MAX}; it got ${name}`)
  }
  return new Term(build.position(name))
}

/** A value where a column would be read. */
export function value(what: Value): Term<unknown> {
  return new Term(literalOf(what))
}

/** The value as JSON, lists too. */
export function json(what: unknown): Term<unknown> {
  return new Term(jsonOf(what))
}

/** A call; strings among the arguments are columns. */
export function fn<const A extends readonly (Left | Exclude<Value, string>)[]>(
  name: string,
  ...args: A
): Term<NeedsAll<A[number]>> {
  const path = pathOf(name)
  const last = path.at(-1) as string
  return new Term(
    build.call(
      last,
      args.map(arg => (arg instanceof Term || typeof arg === 'string' ? leftOf(arg) : literalOf(arg))),
      { schema: path.length > 1 ? path[0] : null },
    ),
  )
}

/** `count(*)`. */
export function countAll(): Term<unknown> {
  return new Term(build.call('count', [], { star: true }))
}

/** `n + 1`. */
export function compute<const L extends Left, const R extends Right>(
  left: L,
  operator: Arithmetic['operator'],
  right: R,
): Term<Compared<L, R>> {
  return new Term(build.arithmetic(operator, leftOf(left), rightOf(right)))
}

/** `left::type`. */
export function cast<const L extends Left>(left: L, type: string): Term<Needs<L>> {
  return new Term(build.cast(leftOf(left), type))
}

/** `(get …)` as a value. */
export function subquery(query: Built<Get>): Term<unknown> {
  return new Term(build.subquery(query.toTree()))
}

// ---- conditions -------------------------------------------------------------------------------------------

/** Any comparison, also those without a word of their own: `compare('tags', '&&', ['a'])`. */
export function compare<const L extends Left, const R extends Right>(
  left: L,
  operator: Exclude<ComparisonOperator, 'matches'>,
  right: R,
): Term<Compared<L, R>> {
  if (right === null) {
    throw new LanguageError(`a comparison with null is never true; write isNull, isNotNull or isDistinct`)
  }
  return new Term(build.compare(operator, leftOf(left), rightOf(right)))
}

export function eq<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '=', right)
}

export function ne<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '<>', right)
}

export function lt<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '<', right)
}

export function lte<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '<=', right)
}

export function gt<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '>', right)
}

export function gte<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '>=', right)
}

/** The text is somewhere inside, in any case. */
export function contains<const L extends Left, const R extends string | Term>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '~', right)
}

export function like<const L extends Left, const R extends string | Term>(
  left: L,
  pattern: R,
  operator: PatternMatch['operator'] = 'like',
): Term<Compared<L, R>> {
  return new Term(build.like(operator, leftOf(left), rightOf(pattern)))
}

export function isNull<const L extends Left>(left: L): Term<Needs<L>> {
  return new Term(build.isNull(leftOf(left)))
}

export function isNotNull<const L extends Left>(left: L): Term<Needs<L>> {
  return new Term(build.isNull(leftOf(left), 'negated'))
}

/** Not equal, where null is a value like any other. */
export function isDistinct<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return new Term(build.isDistinct(leftOf(left), rightOf(right)))
}

export function between<const L extends Left, const Low extends Right, const High extends Right>(
  left: L,
  low: Low,
  high: High,
): Term<Compared<L, Low> & Compared<L, High>> {
  return new Term(build.between(leftOf(left), rightOf(low), rightOf(high)))
}

/** One of the values, of the rows of a query, or of the array that a parameter is. */
export function isIn<const L extends Left, const R extends readonly Right[] | Built<Get> | Term<unknown>>(
  left: L,
  set: R,
): Term<InNeeds<L, R>> {
  const operand = leftOf(left)
  if (set instanceof Built) return new Term(build.inQuery(operand, set.toTree()))
  if (set instanceof Term) {
    const { expression } = set
    if (expression.kind !== 'position' && expression.kind !== 'named') {
      throw new LanguageError('isIn takes values, a query or a parameter')
    }
    return new Term(build.inSet(operand, expression))
  }
  if (set.length === 0) throw new LanguageError('isIn has no values; an empty list is in nothing')
  return new Term(build.inValues(operand, set.map(rightOf)))
}

type InNeeds<L, R> = R extends readonly (infer Item)[] ? Compared<L, Item> : Needs<L>

export function exists(query: Built<Get>): Term<unknown> {
  return new Term(build.exists(query.toTree()))
}

export function and<const C extends readonly [Term, ...Term[]]>(...conditions: C): Term<NeedsAll<C[number]>> {
  return new Term(build.and(...conditions.map(condition => condition.expression)))
}

export function or<const C extends readonly [Term, ...Term[]]>(...conditions: C): Term<NeedsAll<C[number]>> {
  return new Term(build.or(...conditions.map(condition => condition.expression)))
}

export function not<Row>(condition: Term<Row>): Term<Row> {
  return new Term(build.not(condition.expression))
}

// ---- what clauses take ------------------------------------------------------------------------------------

export function desc<const L extends Left>(left: L, nulls: Order['nulls'] = null): Ordering<Needs<L>> {
  return new Ordering(build.order(leftOf(left), { descending: true, nulls }))
}

export function asc<const L extends Left>(left: L, nulls: Order['nulls'] = null): Ordering<Needs<L>> {
  return new Ordering(build.order(leftOf(left), { nulls }))
}

/** `expression as alias`, for `fields` and `returning`. */
export function as<const L extends Left, const A extends string>(left: L, alias: A): Output<Needs<L>, A> {
  return new Output(leftOf(left), alias)
}
