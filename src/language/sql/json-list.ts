/** A list in brackets where it meets JSON: `[1, 'a']` is an array as long as nothing is known of what stands beside it. */

import type { Arithmetic, Comparison, Expression, Literal } from '../tree/ast.ts'
import { unreachable } from '../tree/error.ts'

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

/** The list as JSON; whatever is no list, or has something in it that is no JSON value, stays what it is. */
export function listAsJson(expression: Expression): Expression {
  if (expression.kind !== 'array') return expression
  const value = jsonText(expression)
  return value === null ? expression : { kind: 'literal', type: 'json', value, span: expression.span }
}

/** Both sides of these are of one type. `?|` and `?&` look for the texts of an array. */
const ALIKE: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>=', '@>', '<@', '||'])

/** Whether a list to one side of the operator is JSON when the other side is. */
export function isAlike({ operator }: Comparison | Arithmetic): boolean {
  return ALIKE.has(operator)
}

/** As it stands, with a list on one side as JSON where the other side is JSON by its form. */
export function withJsonList<T extends Comparison | Arithmetic>(pair: T): T {
  const { left, right } = pair
  if (left.kind !== 'array' && right.kind !== 'array') return pair
  if (!isAlike(pair)) return pair
  if (isJsonByForm(right)) return { ...pair, left: listAsJson(left) }
  return isJsonByForm(left) ? { ...pair, right: listAsJson(right) } : pair
}

/** Whether the expression is JSON by its form alone; a column may be, too. */
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
      return unreachable(type)
  }
}
