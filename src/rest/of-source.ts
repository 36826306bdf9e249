/** Names of a request's columns are those of its own table, whatever else a statement has that is called so. */
import type { Expression } from '../language/tree/ast.ts'
import { column } from '../language/tree/build.ts'
import { mapChildren } from '../language/tree/children.ts'

/** The expression with its bare names said to be of `alias`: neither a body's column nor a name in the answer can be meant. */
export function ofSource(alias: string, expression: Expression): Expression {
  if (expression.kind === 'column') {
    return expression.path.length === 1 ? column(alias, ...expression.path) : expression
  }
  return mapChildren(expression, { expression: part => ofSource(alias, part), query: query => query })
}
