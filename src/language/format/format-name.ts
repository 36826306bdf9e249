/** Formats names and texts so that they are parsed back unchanged. */

import { extendHash, findWord, ROLE } from '../syntax/vocabulary.ts'
import type { Span } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'

/** A text that the lexer reads as one word. */
const PLAIN = /^[\p{L}_][\p{L}\p{M}\p{N}_]*$/u

/** Words that would have their special meaning at the start of an operand or a table. */
const TAKEN: ReadonlySet<string> = new Set(
  'all current get groups lateral many range regex rows similar unbounded'.split(' '),
)

/** A name where keywords are possible: in backticks if it would not be parsed as a name. */
export function formatName(name: string): string {
  const role = roleOf(name)
  const isFree = (role === ROLE.name || role === ROLE.call) && !TAKEN.has(name.toLowerCase())
  return isFree ? formatAnyName(name) : quoteName(name)
}

/**
 * The unqualified name of a function. Before a parenthesis, some words start special syntax, and two others
 * are calls only there.
 */
export function formatFunctionName(name: string): string {
  if (/^(left|right)$/i.test(name)) return name
  return roleOf(name) === ROLE.call ? quoteName(name) : formatName(name)
}

function roleOf(name: string): number {
  let hash = 0
  for (let at = 0; at < name.length; at++) hash = extendHash(hash, name.charCodeAt(at))
  return findWord(name, 0, name.length, hash)?.role ?? ROLE.name
}

/** A name after a dot or `as`, where keywords are not possible. */
export function formatAnyName(name: string): string {
  return PLAIN.test(name) ? name : quoteName(name)
}

/**
 * Any name in backticks.
 *
 * @throws LanguageError if it is empty.
 */
export function quoteName(name: string): string {
  if (name === '') throw noTextForm('an empty name')
  return `\`${name.replaceAll('`', '``')}\``
}

/** `alias.column`. */
export function formatDotted([first, ...others]: readonly string[]): string {
  if (first === undefined) throw new LanguageError('a column has no name')
  return [formatName(first), ...others.map(formatAnyName)].join('.')
}

/**
 * A text in quotes. Three quotes would start a raw text, so a text that starts with a quote gets the other
 * kind of quotes.
 */
export function formatText(text: string): string {
  const quote = text.startsWith("'") ? '"' : "'"
  return `${quote}${text.replaceAll(quote, quote + quote)}${quote}`
}

/** The error for a part of a tree that was built in code and cannot be written in the language. */
export function noTextForm(what: string, span?: Span): LanguageError {
  return new LanguageError(`${what} has no text form`, span)
}
