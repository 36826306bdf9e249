/** Prints names and texts of a document. */

import { assertStorable, inDoubleQuotes } from '../language/sql/quote.ts'
import { LanguageError } from '../language/tree/error.ts'
import type { TableName } from './model.ts'

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Prints a name: bare if it is a plain word and not one of `taken`, in backticks otherwise. */
export function printName(name: string, taken?: ReadonlySet<string>): string {
  // Rejects names that are invalid in PostgreSQL: empty, too long, or invalid Unicode.
  inDoubleQuotes(name)
  return PLAIN.test(name) && !taken?.has(name.toLowerCase()) ? name : `\`${name.replaceAll('`', '``')}\``
}

export function printDocumentTable({ schema, name }: TableName): string {
  return schema === null ? printName(name) : `${printName(schema)}.${printName(name)}`
}

export function printText(text: string): string {
  assertStorable(text, 'the text')
  return `'${text.replaceAll("'", "''")}'`
}

/** Prints a text unchanged between `$$`, or between tags if it contains `$$`. */
export function printDollarQuoted(text: string): string {
  assertStorable(text, 'the text')
  const tag = tagFor(text)
  return `${tag}${text}${tag}`
}

/**
 * A tag that neither occurs in the text nor would arise at its boundary. One pass, however many tags the text
 * contains.
 */
function tagFor(text: string): string {
  if (!text.includes('$$') && !text.endsWith('$')) return '$$'
  const used = new Set(Array.from(text.matchAll(/\$q([0-9]*)(?=\$|$)/g), match => match[1]))
  for (let n = 1; n <= used.size + 1; n++) {
    if (!used.has(String(n))) return `$q${n}$`
  }
  throw new LanguageError('no tag is free')
}
