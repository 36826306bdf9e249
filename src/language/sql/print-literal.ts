/** Prints literals: as constants, or lifted to parameters of the type that the constant would have. */

import type { Count, Literal } from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { LEVEL } from './precedence.ts'
import { type Inference, lifted, type PrintedExpression, type Printer, placeholder } from './printer.ts'
import { quoteLiteral } from './quote.ts'

/**
 * PostgreSQL's `numeric` has up to 131 072 digits before the decimal point, more than fit into a query text
 * of 64 KiB.
 */
const INTEGER = /^-?[0-9]+$/
const DECIMAL = /^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/
const DURATION = /^([0-9]+)(s|m|h|d|w|mo|y)$/

const UNITS: Readonly<Record<string, string>> = {
  s: 'second',
  m: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
  mo: 'month',
  y: 'year',
}

const INT4_MAX = 2n ** 31n - 1n
const INT8_MAX = 2n ** 63n - 1n

/** Prints a literal, or lifts it to a parameter. */
export function printLiteral(literal: Literal, printer: Printer, inference: Inference): PrintedExpression {
  if (literal.type === 'null') return primary('NULL')
  return printer.mode === 'all' && printer.definition === null && inference !== 'constant'
    ? liftedLiteral(literal, printer, inference)
    : constant(literal)
}

/**
 * Prints a literal that PostgreSQL's syntax requires to be constant, such as a position in `order by` or
 * `group by`.
 */
export function constant(literal: Literal): PrintedExpression {
  switch (literal.type) {
    case 'integer':
    case 'decimal':
      return { text: number(literal), level: literal.value.startsWith('-') ? LEVEL.minus : LEVEL.primary }
    case 'text':
      return primary(quoteLiteral(literal.value))
    case 'boolean':
      return primary(boolean(literal))
    case 'json':
      return { text: `${quoteLiteral(literal.value)}::jsonb`, level: LEVEL.cast }
    case 'duration':
      return primary(`INTERVAL ${quoteLiteral(interval(literal))}`)
    case 'null':
      return primary('NULL')
    default:
      return unknownNode(literal.type)
  }
}

function liftedLiteral(literal: Literal, printer: Printer, inference: Inference): PrintedExpression {
  const lift = (value: string, type: string | null): PrintedExpression => {
    const text = lifted(value, literal.type, printer)
    return type === null ? primary(text) : { text: `${text}::${type}`, level: LEVEL.cast }
  }
  switch (literal.type) {
    case 'integer': {
      const type = integerType(number(literal))
      return lift(literal.value, inference === 'known' && type === 'int4' ? null : type)
    }
    case 'decimal':
      // Next to an integer column, PostgreSQL would infer the type integer and reject 1.5.
      return lift(number(literal), 'numeric')
    case 'text':
      return lift(literal.value, inference === 'none' ? 'text' : null)
    case 'boolean':
      return lift(boolean(literal), inference === 'known' ? null : 'bool')
    case 'json':
      return lift(literal.value, 'jsonb')
    case 'duration':
      return lift(interval(literal), 'interval')
    case 'null':
      return primary('NULL')
    default:
      return unknownNode(literal.type)
  }
}

/** Prints the operand of `limit` or `offset`. */
export function printCount(count: Count, clause: 'limit' | 'offset', printer: Printer): string {
  if (count.kind !== 'literal') return placeholder(count, printer)
  if (count.type !== 'integer' || !/^[0-9]+$/.test(count.value)) {
    throw new LanguageError(
      `${clause} takes a whole number that is not negative, or a parameter; it got ${count.value}`,
      count.span,
    )
  }
  return printLiteral(count, printer, 'known').text
}

/** The type that PostgreSQL gives an integer constant (PostgreSQL manual, 4.1.2.6). */
function integerType(digits: string): string {
  if (digits.length > 20) return 'numeric'
  const value = BigInt(digits)
  const size = value < 0n ? -value : value
  return size <= INT4_MAX ? 'int4' : size <= INT8_MAX ? 'int8' : 'numeric'
}

function number(literal: Literal): string {
  const form = literal.type === 'integer' ? INTEGER : DECIMAL
  if (!form.test(literal.value)) {
    throw new LanguageError(`the ${literal.type} ${JSON.stringify(literal.value)} is not a number`, literal.span)
  }
  return literal.value
}

function boolean(literal: Literal): string {
  if (literal.value !== 'true' && literal.value !== 'false') {
    throw new LanguageError(`the boolean ${JSON.stringify(literal.value)} is neither true nor false`, literal.span)
  }
  return literal.value
}

/** `24h` → `24 hours`. */
function interval(literal: Literal): string {
  const [, digits = '', unit = ''] = DURATION.exec(literal.value) ?? []
  const word = UNITS[unit]
  if (word === undefined) {
    throw new LanguageError(
      `invalid duration ${JSON.stringify(literal.value)}; ` +
        'write a whole number and one of s, m, h, d, w, mo, y, as in 24h',
      literal.span,
    )
  }
  return digits === '1' ? `1 ${word}` : `${digits} ${word}s`
}

function primary(text: string): PrintedExpression {
  return { text, level: LEVEL.primary }
}
