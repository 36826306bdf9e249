/** Prints expressions with the fewest parentheses that PostgreSQL's precedence allows. */

import type { Cast, ColumnReference, Expression, In, JsonTest } from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { type NameScope, resolveColumn } from '../tree/scope.ts'
import { listAsJson, withJsonList } from './json-list.ts'
import { LEVEL } from './precedence.ts'
import { inferenceBeside, inferenceInOrder, infix, type PrintOperand, printComparison } from './print-comparison.ts'
import { printFunction } from './print-function.ts'
import { printJsonPatch } from './print-json-patch.ts'
import { printLiteral } from './print-literal.ts'
import {
  countRepetitions,
  type Inference,
  lifted,
  type PrintedExpression,
  type Printer,
  placeholder,
} from './printer.ts'
import { quoteIdentifier, quoteLiteral } from './quote.ts'

/** Prints an expression, in parentheses if its precedence is lower than `floor`. */
export function printExpression(
  expression: Expression,
  scope: NameScope,
  floor: number,
  printer: Printer,
  inference: Inference = 'open',
): string {
  const { text, level } = printShared(expression, scope, printer, inference)
  return level < floor ? `(${text})` : text
}

/**
 * A key that is equal for expressions that PostgreSQL considers the same, that is, which differ only in their
 * spans.
 */
export function structureOf(expression: Expression): string {
  // Fast path: most expressions are columns. No other key starts this way.
  return expression.kind === 'column' ? `column ${expression.path.join('\0')}` : structure(expression)
}

/**
 * Cache of the keys of lists and objects: a key is needed for each repetition, and for each enclosing
 * expression.
 */
const structures: WeakMap<object, string> = new WeakMap()

function structure(value: unknown): string {
  // The length prefix makes the key unambiguous.
  if (typeof value === 'string') return `${value.length}:${value}`
  if (typeof value !== 'object' || value === null) return String(value)
  const known = structures.get(value)
  if (known !== undefined) return known
  if (Array.isArray(value)) return keepStructure(value, `[${value.map(structure).join()}]`)
  let text = '{'
  let hasParts = false
  for (const name in value) {
    if (name === 'span') continue
    const part = (value as Readonly<Record<string, unknown>>)[name]
    hasParts ||= typeof part === 'object' && part !== null
    text += `${name} ${structure(part)},`
  }
  return hasParts ? keepStructure(value, `${text}}`) : `${text}}`
}

function keepStructure(value: object, text: string): string {
  structures.set(value, text)
  return text
}

function printShared(
  expression: Expression,
  scope: NameScope,
  printer: Printer,
  inference: Inference,
): PrintedExpression {
  const alike = printer.shared?.get(expression.kind)
  if (alike === undefined || expression.kind === 'literal') return print(expression, scope, printer, inference)
  const key = structureOf(expression)
  const before = alike.get(key)
  if (before === undefined) return print(expression, scope, printer, inference)
  if (before !== null) {
    countRepetitions(printer, before.repeated, expression)
    return before.printed
  }
  const { times, characters } = printer.repeated
  const printed = print(expression, scope, printer, inference)
  const { repeated } = printer
  alike.set(key, {
    printed,
    repeated: { times: repeated.times - times, characters: repeated.characters - characters },
  })
  return printed
}

function print(expression: Expression, scope: NameScope, printer: Printer, inference: Inference): PrintedExpression {
  switch (expression.kind) {
    case 'literal':
      return printLiteral(expression, printer, inference)
    case 'position':
    case 'named':
      if (printer.definition !== null) {
        throw new LanguageError(`${printer.definition} takes no parameters; write the value`, expression.span)
      }
      return primary(placeholder(expression, printer))
    case 'column':
      return printColumn(expression, scope)
    case 'whole row':
      // Without `.*`, the name would mean a column of this name, if there is one.
      return primary(`${quoteIdentifier(expression.of)}.*`)
    case 'function':
      return primary(printFunction(expression, scope, printer))
    case 'subquery':
      return primary(`(${printer.query(expression.query, scope)})`)
    case 'exists': {
      const text = `EXISTS (${printer.query(expression.query, scope)})`
      return expression.negated ? { text: `NOT ${text}`, level: LEVEL.not } : primary(text)
    }
    default:
      return printOperation(expression, scope, printer, inference)
  }
}

/**
 * Prints a cast. PostgreSQL has no cast from arrays to JSON, so a list of values is printed as JSON, and
 * other arrays are converted with to_json.
 */
function printCast({ operand, type }: Cast, at: PrintOperand, printer: Printer): PrintedExpression {
  const name = printer.type(type)
  const list = (name === 'json' || name === 'jsonb') && operand.kind === 'array' ? listAsJson(operand) : operand
  if (list.kind === 'array' && list.items.length > 0 && (name === 'json' || name === 'jsonb')) {
    return { text: `pg_catalog.to_${name}(${at(list, LEVEL.any)})`, level: LEVEL.primary }
  }
  return { text: `${at(list, LEVEL.cast)}::${name}`, level: LEVEL.cast }
}

type Operation = Exclude<
  Expression,
  { readonly kind: 'literal' | 'position' | 'named' | 'column' | 'whole row' | 'function' | 'subquery' | 'exists' }
>

/** Prints an expression that has operands. */
function printOperation(
  expression: Operation,
  scope: NameScope,
  printer: Printer,
  inference: Inference,
): PrintedExpression {
  const at = (part: Expression, floor: number, partInference?: Inference): string =>
    printer.expression(part, scope, floor, partInference)
  switch (expression.kind) {
    case 'and':
    case 'or': {
      const level = LEVEL[expression.kind]
      const [only, ...others] = expression.operands
      if (only === undefined) throw new LanguageError(`an "${expression.kind}" has no operands`, expression.span)
      if (others.length === 0) return printShared(only, scope, printer, inference)
      const operator = expression.kind === 'and' ? ' AND ' : ' OR '
      return { text: expression.operands.map(operand => at(operand, level)).join(operator), level }
    }
    case 'not':
      return { text: `NOT ${at(expression.operand, LEVEL.not)}`, level: LEVEL.not }
    case 'comparison':
      return printComparison(expression, at, scope)
    case 'pattern': {
      const operator = `${expression.negated ? 'NOT ' : ''}${expression.operator.toUpperCase()}`
      return {
        text: `${at(expression.operand, LEVEL.operator)} ${operator} ${at(expression.pattern, LEVEL.operator)}`,
        level: LEVEL.like,
      }
    }
    case 'is': {
      const what = `${expression.negated ? 'NOT ' : ''}${expression.what.toUpperCase()}`
      const inferred = expression.what === 'null' ? 'none' : 'open'
      return { text: `${at(expression.operand, LEVEL.comparison, inferred)} IS ${what}`, level: LEVEL.is }
    }
    case 'distinct from': {
      const { left, right } = expression
      const operator = `IS ${expression.negated ? 'NOT ' : ''}DISTINCT FROM`
      const above = LEVEL.comparison
      return {
        text: [
          at(left, above, inferenceBeside(right, left)),
          operator,
          at(right, above, inferenceBeside(left, right)),
        ].join(' '),
        level: LEVEL.is,
      }
    }
    case 'between': {
      const { operand, low, high } = expression
      const word = expression.negated ? 'NOT BETWEEN' : 'BETWEEN'
      const bound = (part: Expression): string => at(part, LEVEL.operator, inferenceInOrder(part, operand, scope))
      return { text: `${at(operand, LEVEL.operator)} ${word} ${bound(low)} AND ${bound(high)}`, level: LEVEL.like }
    }
    case 'in':
      return printIn(expression, at, scope, printer)
    case 'json test':
      return printJsonTest(expression, at, printer)
    case 'arithmetic': {
      const level = ARITHMETIC_LEVEL[expression.operator]
      // These operators are left-associative.
      const { left, right } = withJsonList(expression)
      return { text: `${at(left, level)} ${expression.operator} ${at(right, level + 1)}`, level }
    }
    case 'negate': {
      const operand = at(expression.operand, LEVEL.minus)
      // Two consecutive minus signs would start a comment.
      return { text: operand.startsWith('-') ? `-(${operand})` : `-${operand}`, level: LEVEL.minus }
    }
    case 'json step':
      return infix(expression.operand, expression.operator, expression.step, at)
    case 'patch':
      return primary(printJsonPatch(expression.form, at(expression.operand, LEVEL.any), at(expression.step, LEVEL.any)))
    case 'cast':
      return printCast(expression, at, printer)
    case 'case': {
      const operand = expression.operand === null ? '' : ` ${at(expression.operand, LEVEL.any)}`
      const branches = expression.whens.map(
        ({ when, then }) =>
          ` WHEN ${at(when, LEVEL.any, inferredInWhen(when, expression.operand))} THEN ${at(then, LEVEL.any)}`,
      )
      if (branches.length === 0) throw new LanguageError('a case has no "when"', expression.span)
      const otherwise = expression.else === null ? '' : ` ELSE ${at(expression.else, LEVEL.any)}`
      return primary(`CASE${operand}${branches.join('')}${otherwise} END`)
    }
    case 'array':
      // PostgreSQL rejects `ARRAY[]` without a type. The literal '{}' takes its type from the context.
      if (expression.items.length === 0) return primary(`'{}'`)
      return primary(`ARRAY[${expression.items.map(item => at(item, LEVEL.any)).join(', ')}]`)
    case 'row': {
      const items = expression.items.map(item => at(item, LEVEL.any, insideRow(item, inference))).join(', ')
      return primary(expression.items.length > 1 ? `(${items})` : `ROW(${items})`)
    }
    default:
      return unknownNode(expression)
  }
}

const ARITHMETIC_LEVEL = {
  '||': LEVEL.operator,
  '+': LEVEL.add,
  '-': LEVEL.add,
  '*': LEVEL.multiply,
  '/': LEVEL.multiply,
  '%': LEVEL.multiply,
} as const

function printIn(expression: In, at: PrintOperand, scope: NameScope, printer: Printer): PrintedExpression {
  const { operand, set, negated } = expression
  switch (set.kind) {
    case 'in values': {
      if (set.values.length === 0) {
        throw new LanguageError(
          'in () has no values; write at least one, or compare with an array parameter',
          expression.span,
        )
      }
      const values = set.values.map(value => at(value, LEVEL.any, inferenceBeside(operand, value))).join(', ')
      return { text: `${at(operand, LEVEL.operator)}${negated ? ' NOT' : ''} IN (${values})`, level: LEVEL.like }
    }
    case 'subquery':
      return {
        text:
          at(operand, LEVEL.operator, operand.kind === 'row' ? 'known' : 'open') +
          `${negated ? ' NOT' : ''} IN (${printer.query(set.query, scope)})`,
        level: LEVEL.like,
      }
    case 'position':
    case 'named':
    case 'cast':
      // One array instead of a list, so that the SQL text does not depend on the number of values.
      return {
        text: `${at(operand, LEVEL.like)} ${negated ? '<> ALL' : '= ANY'}(${at(set, LEVEL.any)})`,
        level: LEVEL.comparison,
      }
    default:
      return unknownNode(set)
  }
}

function printJsonTest(expression: JsonTest, at: PrintOperand, printer: Printer): PrintedExpression {
  const operand = at(expression.operand, LEVEL.any)
  const path =
    printer.mode === 'all' && printer.definition === null
      ? lifted(expression.path, 'text', printer)
      : quoteLiteral(expression.path)
  switch (expression.test) {
    case 'json_exists':
      return primary(`jsonb_path_exists(${operand}, ${path})`)
    case 'json_query':
      return { text: `jsonb_path_query_first(${operand}, ${path}) IS NOT NULL`, level: LEVEL.is }
    case 'json_value':
      return { text: `jsonb_path_query_first(${operand}, ${path}) #>> '{}' IS NOT NULL`, level: LEVEL.is }
    default:
      return unknownNode(expression.test)
  }
}

/**
 * Prints a column, `orders.id`, or a path into a JSON column, `meta->'a'->>'b'`. The steps belong to the name
 * and never become parameters.
 */
function printColumn(reference: ColumnReference, scope: NameScope): PrintedExpression {
  if (reference.path.length === 0) throw new LanguageError('a column has no name', reference.span)
  const { qualifier, column, steps } = resolveColumn(reference.path, scope)
  let name = ''
  for (const part of qualifier) name += `${quoteIdentifier(part)}.`
  name += quoteIdentifier(column)
  if (steps.length === 0) return primary(name)
  const arrows = steps.map((step, index) => `${index === steps.length - 1 ? '->>' : '->'}${quoteLiteral(step)}`)
  return { text: `${name}${arrows.join('')}`, level: LEVEL.operator }
}

/** To PostgreSQL, the operand of a case is a single value: a row beside it is compared as a whole. */
function inferredInWhen(when: Expression, operand: Expression | null): Inference {
  if (when.kind === 'row') return 'none'
  return operand === null ? 'open' : inferenceBeside(operand, when)
}

/** A row inside a row is compared as a whole, not item by item. */
function insideRow(item: Expression, inference: Inference): Inference {
  if (inference === 'constant') return 'constant'
  return inference === 'known' && item.kind !== 'row' ? 'known' : 'none'
}

function primary(text: string): PrintedExpression {
  return { text, level: LEVEL.primary }
}
