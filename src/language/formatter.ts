/** What travels through a run of the formatter: the parts that contain each other. */

import type { Expression, Get, Statement } from './ast.ts'
import type { Doc } from './document.ts'

export interface Formatter {
  /** In parentheses if it binds weaker than `floor`, a level of `BINDING`. */
  expression(expression: Expression, floor?: number): Doc
  /** A read as it stands in parentheses: on one line if it fits. */
  query(get: Get): Doc
  /** The statement, a clause per line; whoever embeds it makes a group of it. */
  statement(statement: Statement): Doc
}

/** How tightly the language binds: the order of its grammar, which is not PostgreSQL's. */
export const BINDING = {
  any: 0,
  or: 1,
  and: 2,
  not: 3,
  comparison: 4,
  concatenate: 5,
  add: 6,
  multiply: 7,
  negate: 8,
  step: 9,
  cast: 10,
  primary: 11,
} as const
