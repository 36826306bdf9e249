/**
 * The parts that the builder's clauses consist of. The type of each part records which columns it needs and
 * the types of the values they are compared with; a clause accepts the part if its tables have such columns.
 *
 * A string to the left of an operator, or as an argument of a function, is a column (`'id'`, `'users.id'`).
 * All other plain values, and everything to the right, are values. `col` and `value` override this.
 */

import { formatStatement } from '../format/format.ts'
import { type PrintOptions, printSql } from '../sql/print.ts'
import type { Sql } from '../sql/printer.ts'
import { PARAMETER_NUMBER_MAX } from '../syntax/parse-primary.ts'
import type {
  Arithmetic,
  ComparisonOperator,
  Expression,
  Get,
  Order,
  PatternMatch,
  Statement,
  TextlessOperator,
} from '../tree/ast.ts'
import { PLACEHOLDER } from '../tree/ast.ts'
import * as build from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { jsonOf, literalOf, type Value } from './builder-value.ts'

/**
 * The type of values that a column accepts. A function type, so that a column that accepts more types is
 * assignable.
 */
export type Accepts<T> = (value: T) => void

/**
 * An expression that needs the columns of `Row`. A class, so that an object from untrusted input is never
 * taken for one.
 */
export class Term<in Row = never, out Json = unknown> {
  readonly expression: Expression
  /** Exists only in the type. */
  declare protected readonly needs?: (row: Row) => void
  /** The type of its JSON. */
  declare protected readonly json?: Json

  constructor(expression: Expression) {
    this.expression = expression
  }
}

/** A column or expression in `order by`, with its direction. */
export class Ordering<in Row = never> {
  readonly order: Order
  declare protected readonly needs?: (row: Row) => void

  constructor(order: Order) {
    this.order = order
  }
}

/** An expression with its name in the result. */
export class Output<in Row = never, out Alias extends string = string, out What = unknown> {
  readonly expression: Expression
  readonly alias: Alias
  declare protected readonly needs?: (row: Row) => void
  /** The column or expression. */
  declare protected readonly what?: What

  constructor(expression: Expression, alias: Alias) {
    this.expression = expression
    this.alias = alias
  }
}

/** A statement under construction. It is immutable: each step returns a new one. */
export abstract class Built<out T extends Statement = Statement, out Result = unknown> {
  /** The type of a row in its result. */
  declare protected readonly result?: Result

  /**
   * Returns the tree.
   *
   * @throws LanguageError if the statement is incomplete.
   */
  abstract toTree(): T

  /**
   * Returns the text in canonical form.
   *
   * @throws LanguageError if the statement is incomplete.
   */
  toText(): string {
    return formatStatement(this.toTree())
  }

  /**
   * Returns SQL for PostgreSQL. Values become parameters unless `{parameters: 'keep'}` is passed.
   *
   * @throws LanguageError if the statement is incomplete or has no SQL equivalent.
   */
  toSql(options: PrintOptions = { parameters: 'all' }): Sql {
    return printSql(this.toTree(), options)
  }
}

type Left = string | Term
type Right = Value | Term
type Has<Name extends string, T = never> = { readonly [N in Name]: Accepts<T> }
/** A list is inferred as a readonly tuple, but array columns have types such as `string[]`. */
type Given<T> = T extends readonly unknown[] ? T[number][] : T
type Needs<L> = L extends Term<infer Row> ? Row : L extends string ? Has<L> : unknown
type Compared<L, R> = R extends Term<infer Row> ? Needs<L> & Row : L extends string ? Has<L, Given<R>> : Needs<L>
/** The intersection of what all members need. */
export type NeedsAll<L> = (L extends unknown ? (row: Needs<L>) => void : never) extends (row: infer Row) => void
  ? Row
  : never

/**
 * Splits `users.id` into the path of a column. A name that contains a dot must be passed to `col` as a
 * separate part.
 */
export function columnPath(name: string): readonly [string, ...string[]] {
  return name.split('.') as [string, ...string[]]
}

/** The expression on the left of an operator: a string is a column. */
export function leftOf(left: Left): Expression {
  return left instanceof Term
    ? left.expression
    : typeof left === 'string'
      ? build.column(...columnPath(left))
      : literalOf(left)
}

/** The expression on the right of an operator: a string is a value. */
export function rightOf(right: unknown): Expression {
  return right instanceof Term ? right.expression : literalOf(right)
}

// ---- columns, values, parameters --------------------------------------------------------------------------

/**
 * A column in a position where a string is a value, or a path into one: `col('meta', 'theme')`. A single part
 * is split at its dots.
 */
export function col<const N extends string>(name: N, ...steps: readonly string[]): Term<Has<N>> {
  return new Term(steps.length > 0 ? build.column(name, ...steps) : build.column(...columnPath(name)))
}

/**
 * A column that the compiler cannot check: of an enclosing query, of a common table, or of a query in `from`.
 */
export function unchecked(name: string): Term<unknown> {
  return new Term(build.column(...columnPath(name)))
}

/** In `conflict`, the value of a column in the row that `add` could not insert. */
export function excluded<const N extends string>(name: N): Term<Has<N>> {
  return new Term(build.column('excluded', name))
}

/**
 * `:name`, or `$1`.
 *
 * @throws LanguageError for an invalid number, and for the placeholder of patterns.
 */
export function param(name: string | number): Term<unknown> {
  if (name === PLACEHOLDER) {
    throw new LanguageError('? stands for any value in a query pattern; a query parameter has a name or a number')
  }
  if (typeof name === 'string') return new Term(build.named(name))
  if (!(Number.isInteger(name) && name >= 1 && name <= PARAMETER_NUMBER_MAX)) {
    throw new LanguageError(`parameters are numbered from 1 to ${PARAMETER_NUMBER_MAX}; it got ${name}`)
  }
  return new Term(build.position(name))
}

/** A value in a position where a string is a column. */
export function value(what: Value): Term<unknown> {
  return new Term(literalOf(what))
}

/** The value as JSON; lists become JSON arrays too. */
export function json(what: unknown): Term<unknown> {
  return new Term(jsonOf(what))
}

/** A function call; strings among the arguments are columns. */
export function fn<const A extends readonly (Left | Exclude<Value, string>)[]>(
  name: string,
  ...args: A
): Term<NeedsAll<A[number]>> {
  const path = columnPath(name)
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
export function countAll(): Term<unknown, number> {
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

/**
 * Any comparison, including operators without a method: `compare('tags', '&&', ['a'])`.
 *
 * @throws LanguageError for a comparison with null.
 */
export function compare<const L extends Left, const R extends Right>(
  left: L,
  operator: Exclude<ComparisonOperator, TextlessOperator>,
  right: R,
): Term<Compared<L, R>> {
  if (right === null) {
    throw new LanguageError(`a comparison with null is never true; write isNull, isNotNull or isDistinct`)
  }
  return new Term(build.compare(operator, leftOf(left), rightOf(right)))
}

/** `left = right`. */
export function eq<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '=', right)
}

/** `left <> right`. */
export function ne<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '<>', right)
}

/** `left < right`. */
export function lt<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '<', right)
}

/** `left <= right`. */
export function lte<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '<=', right)
}

/** `left > right`. */
export function gt<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '>', right)
}

/** `left >= right`. */
export function gte<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '>=', right)
}

/** Case-insensitive substring match. */
export function contains<const L extends Left, const R extends string | Term>(left: L, right: R): Term<Compared<L, R>> {
  return compare(left, '~', right)
}

/** `left like pattern`, or another pattern operator. */
export function like<const L extends Left, const R extends string | Term>(
  left: L,
  pattern: R,
  operator: PatternMatch['operator'] = 'like',
): Term<Compared<L, R>> {
  return new Term(build.like(operator, leftOf(left), rightOf(pattern)))
}

/** `left is null`. */
export function isNull<const L extends Left>(left: L): Term<Needs<L>, boolean> {
  return new Term(build.isNull(leftOf(left)))
}

/** `left is not null`. */
export function isNotNull<const L extends Left>(left: L): Term<Needs<L>, boolean> {
  return new Term(build.isNull(leftOf(left), 'negated'))
}

/** Inequality in which null counts as an ordinary value. */
export function isDistinct<const L extends Left, const R extends Right>(left: L, right: R): Term<Compared<L, R>> {
  return new Term(build.isDistinct(leftOf(left), rightOf(right)))
}

/** `left between low and high`. */
export function between<const L extends Left, const Low extends Right, const High extends Right>(
  left: L,
  low: Low,
  high: High,
): Term<Compared<L, Low> & Compared<L, High>> {
  return new Term(build.between(leftOf(left), rightOf(low), rightOf(high)))
}

/**
 * Reports whether the left side is among values, rows of a query, or items of an array parameter.
 *
 * @throws LanguageError for an empty list.
 */
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
  if (set.length === 0) throw new LanguageError('isIn has no values; nothing is in an empty list')
  return new Term(build.inValues(operand, set.map(rightOf)))
}

type InNeeds<L, R> = R extends readonly (infer Item)[] ? Compared<L, Item> : Needs<L>

/** `exists (get …)`. */
export function exists(query: Built<Get>): Term<unknown, boolean> {
  return new Term(build.exists(query.toTree()))
}

/** All of the conditions. */
export function and<const C extends readonly [Term, ...Term[]]>(...conditions: C): Term<NeedsAll<C[number]>> {
  return new Term(build.and(...conditions.map(condition => condition.expression)))
}

/** At least one of the conditions. */
export function or<const C extends readonly [Term, ...Term[]]>(...conditions: C): Term<NeedsAll<C[number]>> {
  return new Term(build.or(...conditions.map(condition => condition.expression)))
}

/** The negated condition. */
export function not<Row>(condition: Term<Row>): Term<Row> {
  return new Term(build.not(condition.expression))
}

// ---- order and output -------------------------------------------------------------------------------------

/** Descending order. */
export function desc<const L extends Left>(left: L, nulls: Order['nulls'] = null): Ordering<Needs<L>> {
  return new Ordering(build.order(leftOf(left), { descending: true, nulls }))
}

/** Ascending order. */
export function asc<const L extends Left>(left: L, nulls: Order['nulls'] = null): Ordering<Needs<L>> {
  return new Ordering(build.order(leftOf(left), { nulls }))
}

/** `expression as alias`, for `fields` and `returning`. */
export function as<const L extends Left, const A extends string>(left: L, alias: A): Output<Needs<L>, A, L> {
  return new Output(leftOf(left), alias)
}
