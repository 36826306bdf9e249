/** Lists, which the language mostly has not empty. */

import type { Expression } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import { type Doc, list } from './document.ts'
import type { Formatter } from './formatter.ts'

/** The list, which a text cannot have empty. */
export function some<T>(items: readonly T[], what: string): readonly T[] {
  if (items.length === 0) throw new LanguageError(`${what}: there is none, and no text form for that`)
  return items
}

/** `a, b`: expressions in one line, or one per line. */
export function formatList(expressions: readonly Expression[], formatter: Formatter): Doc {
  return list(expressions.map(item => formatter.expression(item)))
}
