/** Names and texts as the language reads them back. */

import { findWord, hashed, ROLE } from '../syntax/vocabulary.ts'
import { LanguageError } from '../tree/error.ts'

/** What the lexer takes for one word, and a person for a name. */
const PLAIN = /^[\p{L}_][\p{L}\p{M}\p{N}_]*$/u

/** Words that would be read as themselves at the beginning of an operand or a table. */
const TAKEN: ReadonlySet<string> = new Set(
  'all current get groups lateral many range regex rows similar unbounded'.split(' '),
)

/** A name where keywords are possible: bare where it would be read as itself, else in back-ticks. */
export function formatName(name: string): string {
  const role = roleOf(name)
  const isFree = (role === ROLE.name || role === ROLE.call) && !TAKEN.has(name.toLowerCase())
  return isFree ? formatAnyName(name) : quoteName(name)
}

/** The unqualified name of a function: some words open a syntax of their own before a parenthesis, two others are calls only there. */
export function formatFunctionName(name: string): string {
  if (/^(left|right)$/i.test(name)) return name
  return roleOf(name) === ROLE.call ? quoteName(name) : formatName(name)
}

function roleOf(name: string): number {
  let hash = 0
  for (let at = 0; at < name.length; at++) hash = hashed(hash, name.charCodeAt(at))
  return findWord(name, 0, name.length, hash)?.role ?? ROLE.name
}

/** A name after a dot or `as`, where no keyword is possible. */
export function formatAnyName(name: string): string {
  return PLAIN.test(name) ? name : quoteName(name)
}

/** A name in back-ticks, whatever it is. */
export function quoteName(name: string): string {
  if (name === '') throw new LanguageError('an empty name has no text form')
  return `\`${name.replaceAll('`', '``')}\``
}

/** `alias.column`. */
export function formatDotted([first, ...others]: readonly string[]): string {
  if (first === undefined) throw new LanguageError('a column has no name')
  return [formatName(first), ...others.map(formatAnyName)].join('.')
}

/** Three quotes would open a raw text, so a text that begins with a quote is written with the other kind. */
export function formatText(text: string): string {
  const quote = text.startsWith("'") ? '"' : "'"
  return `${quote}${text.replaceAll(quote, quote + quote)}${quote}`
}
