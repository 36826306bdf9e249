/** What travels through a run of the formatter: the parts that contain each other. */

import type { Expression, Get, Statement } from '../tree/ast.ts'
import type { Doc } from './document.ts'

export interface Formatter {
  /** In parentheses if it binds weaker than `floor`, a level of `BINDING`. */
  expression(expression: Expression, floor?: number): Doc
  /** A read as it stands in parentheses: on one line if it fits. */
  query(get: Get): Doc
  /** The statement, a clause per line; whoever embeds it makes a group of it. */
  statement(statement: Statement): Doc
}
