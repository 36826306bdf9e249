/**
 * The state of one run of the printer: the numbering of parameters, and the functions that call each other.
 */

import type { Expression, Get, Literal, Parameter, Statement, TypeName } from '../tree/ast.ts'
import { RepetitionError } from '../tree/error.ts'
import type { NameScope } from '../tree/scope.ts'
import { assertStorable } from './quote.ts'

/**
 * `keep`: literals stay in the text. `all`: they become parameters, so that the text depends only on the
 * query's shape. Positions (`order by 2`) and rows that are the value of a column stay constant in both
 * modes.
 */
export type ParameterMode = 'keep' | 'all'

/** The value of `$n`, at index n-1 of the list of parameters. */
export type SqlParameter =
  | { readonly kind: 'literal'; readonly value: string; readonly type: Literal['type'] }
  | { readonly kind: 'position'; readonly n: number }
  | { readonly kind: 'name'; readonly name: string }

/** A statement for PostgreSQL. */
export interface Sql {
  readonly text: string
  readonly parameters: readonly SqlParameter[]
}

/**
 * What PostgreSQL can infer about the type of a lifted literal from its context.
 *
 * - `known`: the other operand or the target has a type.
 * - `open`: a text resolves as a quoted literal does; a number needs a cast.
 * - `none`: the literal needs a cast.
 * - `constant`: it cannot become a parameter, since only a constant takes the type of the column.
 */
export type Inference = 'known' | 'open' | 'none' | 'constant'

/**
 * SQL with the precedence of its outermost operator, which decides whether parentheses are needed around it.
 */
export interface PrintedExpression {
  readonly text: string
  readonly level: number
}

/**
 * Shared expressions, by kind and then by structure; null until first printed. Most expressions differ by
 * kind already.
 */
export type Shared = ReadonlyMap<Expression['kind'], Map<string, SharedText | null>>

/** The first printed text of a shared expression. */
export interface SharedText {
  readonly printed: PrintedExpression
  /** The repetitions inside the expression. Printing it again repeats that again. */
  readonly repeated: Repeated
}

/** The number of repetitions, and their length in characters of the source. */
export interface Repeated {
  readonly times: number
  readonly characters: number
}

/**
 * Default maximum of repetitions in a statement. An alias in `having` is replaced by its expression, and a
 * select list with aggregates is repeated in `group by`. Repeated subqueries may contain further repetitions,
 * and a page of text could grow to gigabytes of SQL, so each repetition in the statement counts.
 */
export const REPETITIONS_MAX = 64

/**
 * Default maximum of repeated source characters in a statement. A single alias may stand for thousands of
 * arguments.
 */
export const REPEATED_CHARACTERS_MAX = 65_536

/** The state of one run of the printer. */
export interface Printer {
  readonly mode: ParameterMode
  readonly parameters: SqlParameter[]
  /** Numbers of the query's named and numbered parameters. Each has the same `$n` wherever it is used. */
  readonly numbers: Map<string, number>
  /**
   * Expressions that PostgreSQL compares with each other, such as those of `group by` and the select list;
   * they must use the same parameters. Null if absent, or if literals are kept, which are equal
   * anyway.
   */
  shared: Shared | null
  /** Repetitions so far. */
  repeated: Repeated
  readonly repeatedCharactersMax: number
  readonly repetitionsMax: number
  /** The whole statement. */
  readonly statement: object
  /** See `PrintOptions`. */
  readonly nestedBytesMax: number
  /** Limit on the bytes of each array of nested rows at this level; null until the first one is printed. */
  arrayBytesMax: number | null
  /**
   * In a definition, which cannot have parameters, the name of the statement for the error message; otherwise
   * null.
   */
  readonly definition: string | null
  expression(expression: Expression, scope: NameScope, floor: number, inference?: Inference): string
  /** Prints a query inside another statement, without parentheses. */
  query(get: Get, scope: NameScope): string
  /** Prints the statement of a common table. */
  commonTable(statement: Statement, scope: NameScope): string
  type(type: TypeName): string
}

/** The `$n` of a parameter of the query. */
export function placeholder(parameter: Parameter, printer: Printer): string {
  const entry: SqlParameter =
    parameter.kind === 'position' ? { kind: 'position', n: parameter.n } : { kind: 'name', name: parameter.name }
  const identity = parameter.kind === 'position' ? `$${parameter.n}` : `:${parameter.name}`
  const number = printer.numbers.get(identity) ?? printer.parameters.push(entry)
  printer.numbers.set(identity, number)
  return `$${number}`
}

/**
 * The `$n` of a lifted literal. Each literal has a separate number, even if values are equal, so that the
 * text does not depend on values.
 */
export function lifted(value: string, type: Literal['type'], printer: Printer): string {
  assertStorable(value, 'the text')
  return `$${printer.parameters.push({ kind: 'literal', value, type })}`
}

/** One more repetition of an expression. */
export function onceMore({ span }: Expression): Repeated {
  return { times: 1, characters: span.end - span.start }
}

/**
 * Adds to the number and length of repetitions.
 *
 * @throws RepetitionError at the expression's span if a limit is exceeded.
 */
export function countRepetitions(printer: Printer, more: Repeated, { span }: Expression): void {
  const times = printer.repeated.times + more.times
  const characters = printer.repeated.characters + more.characters
  printer.repeated = { times, characters }
  const { repeatedCharactersMax, repetitionsMax } = printer
  const isOften = repetitionsMax > 0 && times > repetitionsMax
  if (!isOften && (characters <= repeatedCharactersMax || repeatedCharactersMax === 0)) return
  const limit = isOften ? `${repetitionsMax} times` : `${repeatedCharactersMax} characters`
  const message =
    `the SQL of this query would repeat parts of it more than ${limit}: ` +
    'an alias in "having" is replaced by its expression, ' +
    'and a query with aggregates is grouped by its other fields; read from (get …) as name instead'
  throw new RepetitionError(message, span, isOften ? 'times' : 'characters')
}
