/** The functions of the formatter that call each other recursively. */

import type { Expression, Get, Statement } from '../tree/ast.ts'
import type { Doc } from './document.ts'

/** The functions that format the parts of a tree. */
export interface Formatter {
  /** Formats an expression, in parentheses if its precedence is lower than `floor`, a level of `BINDING`. */
  expression(expression: Expression, floor?: number): Doc
  /** Formats a read in parentheses, on one line if it fits. */
  query(get: Get): Doc
  /** Formats a statement with one clause per line; the caller wraps it in a group. */
  statement(statement: Statement): Doc
}
