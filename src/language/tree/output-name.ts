/** Names of the columns of a result. */

import type { Expression, Field } from './ast.ts'
import { SYNTAX_FUNCTIONS, upperCased } from './functions.ts'

/** The alias, or the name that PostgreSQL would choose (`FigureColname`); null for `*` and for `?column?`. */
export function outputName(field: Field): string | null {
  return field.kind === 'star' ? null : (field.alias ?? nameOf(field.expression))
}

function nameOf(expression: Expression): string | null {
  switch (expression.kind) {
    case 'column':
      // A longer path can lead into a JSON value, and a column with such a path has no name.
      return expression.path.length <= 2 ? (expression.path.at(-1) ?? null) : null
    case 'function': {
      const name = expression.name.toLowerCase()
      return upperCased(expression) !== null || SYNTAX_FUNCTIONS.has(name) ? name : expression.name
    }
    case 'cast':
      return expression.operand.kind === 'column' || expression.operand.kind === 'function'
        ? nameOf(expression.operand)
        : null
    default:
      return null
  }
}
