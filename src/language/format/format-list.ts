/** Lists, most of which cannot be empty in the language. */

import type { Expression } from '../tree/ast.ts'
import { commaList, type Doc } from './document.ts'
import { noTextForm } from './format-name.ts'
import type { Formatter } from './formatter.ts'

/**
 * Returns the list unchanged.
 *
 * @throws LanguageError if it is empty and therefore has no text form.
 */
export function nonEmpty<T>(items: readonly T[], what: string): readonly T[] {
  if (items.length === 0) throw noTextForm(`${what}: an empty list`)
  return items
}

/** `a, b`: expressions on one line, or one per line. */
export function formatList(expressions: readonly Expression[], formatter: Formatter): Doc {
  return commaList(expressions.map(item => formatter.expression(item)))
}
