/** What travels through a run of the printer: the numbering of parameters, and the parts that print each other. */

import type { Expression, Get, Literal, Parameter, Statement, TypeName } from '../tree/ast.ts'
import { LanguageError, RepetitionError } from '../tree/error.ts'
import type { Scope } from '../tree/scope.ts'
import { refuseUnwritable } from './quote.ts'

/**
 * `keep`: literals stay in the text. `all`: they become parameters, so that the text depends on the query's shape only.
 * Stay they must as positions (`order by 2`) and in a row that is the value of a column.
 */
export type ParameterMode = 'keep' | 'all'

/** What stands behind `$n` in the text: entry n-1 of the list. */
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
 * How much PostgreSQL knows about the type of a literal from where it stands, once the literal is a parameter.
 * `known`: its neighbour or target has a type. `open`: a text resolves as a quoted literal does, a number would not be a number.
 * `none`: it must say its own type. `constant`: no parameter does, since only a constant becomes whatever the column wants.
 */
export type Inference = 'known' | 'open' | 'none' | 'constant'

/** SQL with the strength of its outermost operator, by which whoever embeds it decides about parentheses. */
export interface Printed {
  readonly text: string
  readonly level: number
}

/** By kind, which most expressions are told apart by, and structure; null until first printed. */
export type Shared = ReadonlyMap<Expression['kind'], Map<string, SharedText | null>>

export interface SharedText {
  readonly printed: Printed
  /** What it repeats inside; printed again, it repeats that again. */
  readonly repeated: Repeated
}

/** How often something was written out again, and how much of the source that was. */
export interface Repeated {
  readonly times: number
  readonly characters: number
}

/**
 * Some expressions are written out again: what an alias in `having` stands for, and what a projection with aggregates groups by. Those with queries
 * inside, which may do the same, would make gigabytes of a page of text. So it holds for a whole statement, and counts each time they are written.
 */
export const REPETITIONS_MAX = 64

/** Of the source, over all repetitions, unless another limit is given: an alias may stand for thousands of arguments. */
export const REPEATED_CHARACTERS_MAX = 65_536

export interface Printer {
  readonly mode: ParameterMode
  readonly parameters: SqlParameter[]
  /** Numbers of the parameters that the author named or numbered: the same one is the same `$n` wherever it stands. */
  readonly numbers: Map<string, number>
  /**
   * Expressions that PostgreSQL compares with each other, such as those of `group by` and the projection. They must come out with the same
   * parameters. Null when there are none, and when literals are kept, which are equal by themselves.
   */
  shared: Shared | null
  /** What was written out again so far; see `REPETITIONS_MAX`. */
  repeated: Repeated
  readonly repeatedCharactersMax: number
  /** Set inside definitions, which cannot have parameters: what to call them in the refusal. */
  readonly definition: string | null
  expression(expression: Expression, scope: Scope, floor: number, inference?: Inference): string
  /** A query inside another statement, without its parentheses. */
  query(get: Get, scope: Scope): string
  /** The statement of a common table. */
  commonTable(statement: Statement, scope: Scope): string
  type(type: TypeName): string
}

/** `$n` of a parameter that the author wrote. */
export function placeholder(parameter: Parameter, printer: Printer): string {
  const entry: SqlParameter =
    parameter.kind === 'position' ? { kind: 'position', n: parameter.n } : { kind: 'name', name: parameter.name }
  const identity = parameter.kind === 'position' ? `$${parameter.n}` : `:${parameter.name}`
  const number = printer.numbers.get(identity) ?? printer.parameters.push(entry)
  printer.numbers.set(identity, number)
  return `$${number}`
}

/** `$n` of a lifted literal: each has its own, equal or not, so that the text does not depend on values. */
export function lifted(value: string, type: Literal['type'], printer: Printer): string {
  refuseUnwritable(value, 'the text')
  return `$${printer.parameters.push({ kind: 'literal', value, type })}`
}

/** An expression that is written out one more time. */
export function onceMore({ span }: Expression): Repeated {
  return { times: 1, characters: span.end - span.start }
}

/** Refuses, at the place of an expression, what would be repeated too often or at too great a length. */
export function countRepetitions(printer: Printer, more: Repeated, { span }: Expression): void {
  const times = printer.repeated.times + more.times
  const characters = printer.repeated.characters + more.characters
  printer.repeated = { times, characters }
  const isOften = times > REPETITIONS_MAX
  const { repeatedCharactersMax } = printer
  if (!isOften && (characters <= repeatedCharactersMax || repeatedCharactersMax === 0)) return
  const limit = isOften ? `${REPETITIONS_MAX} times` : `${repeatedCharactersMax} characters`
  const message = `the SQL of this query would repeat parts of it more than ${limit}, because an alias in "having" stands for its expression, and aggregates are grouped by the other fields; read from (get …) as name instead`
  throw isOften ? new LanguageError(message, span) : new RepetitionError(message, span)
}
