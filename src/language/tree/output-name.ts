/** What the columns of an answer are called. */

import type { Expression, Field } from './ast.ts'
import { SYNTAX_FUNCTIONS, upperCased } from './functions.ts'

/** The alias, or the name PostgreSQL gives by itself (`FigureColname`); null for `*` and for what it calls `?column?`. */
export function outputName(field: Field): string | null {
  return field.kind === 'star' ? null : (field.alias ?? nameOf(field.expression))
}

function nameOf(expression: Expression): string | null {
  switch (expression.kind) {
    case 'column':
      // A longer path may lead into JSON, whose columns have no name.
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
