/**
 * Numbers of a condition in SQL, as values of its statement: conditions that differ only in their numbers
 * then have one statement, which the server plans once.
 */
import type { Expression, Literal } from '../language/tree/ast.ts'
import { cast } from '../language/tree/build.ts'
import { mapChildren, withProperties } from '../language/tree/children.ts'
import type { Values } from '../rest/values.ts'

const INT4_MAX = 2n ** 31n - 1n
const INT8_MAX = 2n ** 63n - 1n

/**
 * Replaces the numbers of a condition by values of the type that PostgreSQL gives the number (PostgreSQL
 * manual, 4.1.2.6). Those of a list stay in the text, because a list can have more of them than a statement
 * can read values, and so do the steps of a path in JSON.
 */
export function numbersAsValues(condition: Expression, values: Values): Expression {
  const replaced = (expression: Expression): Expression => {
    switch (expression.kind) {
      case 'literal': {
        const type = numberType(expression)
        return type === null ? expression : cast(values.add(expression.value), type)
      }
      case 'in':
      case 'json step':
        return withProperties(expression, { operand: replaced(expression.operand) })
      case 'array':
        return expression
      default:
        return mapChildren(expression, { expression: replaced, query: query => query })
    }
  }
  return replaced(condition)
}

/** Null for a constant that is not a number. */
function numberType({ type, value }: Literal): 'int4' | 'int8' | 'numeric' | null {
  if (type === 'decimal') return 'numeric'
  if (type !== 'integer') return null
  const size = BigInt(value.replace('-', ''))
  if (size <= INT4_MAX) return 'int4'
  return size <= INT8_MAX ? 'int8' : 'numeric'
}
