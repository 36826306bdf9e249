/** Prints comparisons, and infers the types of their operands from each other. */

import type { Comparison, Expression, Literal } from '../tree/ast.ts'
import { unknownNode } from '../tree/error.ts'
import { type NameScope, resolveColumn } from '../tree/scope.ts'
import { withJsonList } from './json-list.ts'
import { LEVEL } from './precedence.ts'
import type { Inference, PrintedExpression } from './printer.ts'
import { quoteLiteral } from './quote.ts'

/** Prints an operand, in parentheses if its precedence is lower than `floor`. */
export type PrintOperand = (part: Expression, floor: number, inference?: Inference) => string

/** Prints a comparison. */
export function printComparison(comparison: Comparison, at: PrintOperand, scope: NameScope): PrintedExpression {
  const { operator, left, right } = withJsonList(comparison)
  switch (operator) {
    case '<':
    case '<=':
    case '>':
    case '>=':
      return {
        text: [
          at(left, LEVEL.like, inferenceInOrder(left, right, scope)),
          operator,
          at(right, LEVEL.like, inferenceInOrder(right, left, scope)),
        ].join(' '),
        level: LEVEL.comparison,
      }
    case '=':
    case '<>':
      return {
        text: [
          at(left, LEVEL.like, besideRight(left, right)),
          operator,
          at(right, LEVEL.like, inferenceBeside(left, right)),
        ].join(' '),
        level: LEVEL.comparison,
      }
    case '@>':
    case '<@':
    case '&&':
    case '?':
    case '?|':
    case '?&':
    case '~*':
    case '<<':
    case '>>':
    case '&<':
    case '&>':
    case '-|-':
      return infix(left, operator, right, at)
    case 'regex':
      return infix(left, '~', right, at)
    case 'matches':
      return infix(left, '@@', right, at)
    case '@@':
      return {
        text:
          `to_tsvector('english', COALESCE(${at(left, LEVEL.any)}, '')) @@ ` +
          `websearch_to_tsquery('english', ${at(right, LEVEL.any)})`,
        level: LEVEL.operator,
      }
    case '~':
      return { text: `${at(left, LEVEL.operator)} ILIKE ${containing(right, at)}`, level: LEVEL.like }
    default:
      return unknownNode(operator)
  }
}

/** Prints a binary operator of the level `LEVEL.operator`. */
export function infix(left: Expression, operator: string, right: Expression, at: PrintOperand): PrintedExpression {
  return { text: `${at(left, LEVEL.operator)} ${operator} ${at(right, LEVEL.operator + 1)}`, level: LEVEL.operator }
}

/**
 * The `ILIKE` pattern for a substring. `\`, `%` and `_` of the text are escaped (PostgreSQL manual, 9.7.1).
 */
function containing(value: Expression, at: PrintOperand): string {
  // A number is searched for as written.
  if (value.kind === 'literal' && (value.type === 'text' || value.type === 'integer' || value.type === 'decimal')) {
    const pattern: Literal = { ...value, type: 'text', value: `%${value.value.replace(/[\\%_]/g, '\\$&')}%` }
    return at(pattern, LEVEL.operator)
  }
  const escaped = [
    ['\\', '\\\\'],
    ['%', '\\%'],
    ['_', '\\_'],
  ].reduce(
    (text, [from = '', to = '']) => `replace(${text}, ${quoteLiteral(from)}, ${quoteLiteral(to)})`,
    at(value, LEVEL.any, 'none'),
  )
  return `'%' || ${escaped} || '%'`
}

/**
 * The type information that a literal gets from the other operand: its type, unless that is a literal or
 * parameter too. The items of a row are compared with the items of another row, and with nothing else.
 */
export function inferenceBeside(neighbour: Expression, part: Expression): Inference {
  switch (neighbour.kind) {
    case 'literal':
      return neighbour.type === 'null' ? 'none' : 'open'
    case 'position':
    case 'named':
      return 'open'
    case 'row':
      return neighbour.items.every(item => inferenceBeside(item, item) === 'known') ? 'known' : 'open'
    default:
      return part.kind === 'row' ? 'none' : 'known'
  }
}

/** A row to the left of a query is compared with the query's columns, as in `in`. */
function besideRight(left: Expression, right: Expression): Inference {
  return left.kind === 'row' && right.kind === 'subquery' ? 'known' : inferenceBeside(right, left)
}

/**
 * The type information for operands of an ordering comparison. A number keeps its type, so that PostgreSQL
 * rejects it beside a text; compared as text, 10 would be less than 9.
 */
export function inferenceInOrder(part: Expression, neighbour: Expression, scope: NameScope): Inference {
  return isTextByForm(neighbour, scope) ? 'open' : besideRight(part, neighbour)
}

function isTextByForm(expression: Expression, scope: NameScope): boolean {
  if (expression.kind === 'column') return resolveColumn(expression.path, scope).steps.length > 0
  return expression.kind === 'json step' && (expression.operator === '->>' || expression.operator === '#>>')
}
