/**
 * Lists in brackets that are compared with JSON. By default, `[1, 'a']` is an array; next to a JSON operand
 * it becomes JSON.
 */

import type { Arithmetic, Comparison, Expression, Literal } from '../tree/ast.ts'
import { unknownNode } from '../tree/error.ts'

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

/**
 * The list as a JSON literal. Other expressions, and lists with items that are not JSON values, are returned
 * unchanged.
 */
export function listAsJson(expression: Expression): Expression {
  if (expression.kind !== 'array') return expression
  const value = jsonText(expression)
  return value === null ? expression : { kind: 'literal', type: 'json', value, span: expression.span }
}

/**
 * Operators with both operands of the same type. `?|` and `?&` are not among them: they take an array of
 * texts.
 */
const SAME_TYPE_OPERATORS: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>=', '@>', '<@', '||'])

/**
 * Reports whether the operator requires both operands to have the same type, so that a list beside JSON is
 * JSON.
 */
export function hasOperandsOfOneType({ operator }: Comparison | Arithmetic): boolean {
  return SAME_TYPE_OPERATORS.has(operator)
}

/** The pair with a list on one side converted to JSON if the other side is evidently JSON. */
export function withJsonList<T extends Comparison | Arithmetic>(pair: T): T {
  const { left, right } = pair
  if (left.kind !== 'array' && right.kind !== 'array') return pair
  if (!hasOperandsOfOneType(pair)) return pair
  if (isJsonByForm(right)) return { ...pair, left: listAsJson(left) }
  return isJsonByForm(left) ? { ...pair, right: listAsJson(right) } : pair
}

/** Reports whether the syntax alone shows that the expression is JSON. A column may be JSON too. */
function isJsonByForm(expression: Expression): boolean {
  return expression.kind === 'json step'
    ? expression.operator === '->' || expression.operator === '#>'
    : expression.kind === 'literal' && expression.type === 'json'
}

function jsonText(expression: Expression): string | null {
  if (expression.kind === 'literal') return literalText(expression)
  if (expression.kind !== 'array') return null
  const items = expression.items.map(jsonText)
  return items.includes(null) ? null : `[${items.join(', ')}]`
}

function literalText({ type, value }: Literal): string | null {
  switch (type) {
    case 'null':
      return 'null'
    case 'text':
      return JSON.stringify(value)
    case 'integer':
    case 'decimal':
      return NUMBER.test(value) ? value : null
    case 'boolean':
    case 'json':
      return value
    case 'duration':
      return null
    default:
      return unknownNode(type)
  }
}
