/** Names and texts as PostgreSQL reads them: the only places where a string becomes part of a statement. */

import { shorten } from '../../text/shorten.ts'
import { LanguageError } from '../tree/error.ts'
import { IDENTIFIER_BYTES_MAX, utf8Length } from '../tree/identifier.ts'
import { COLUMN_ONLY, RESERVED, TYPE_OR_FUNCTION } from './keywords.ts'

/** Letters outside ASCII and `$` are read unchanged too, but not under every encoding and not by every tool. */
const PLAIN = /^[a-z_][a-z0-9_]*$/

/** Key words that are no bare name of a table or column. */
const TAKEN: ReadonlySet<string> = new Set([...RESERVED, ...TYPE_OR_FUNCTION])

/** The name of a table, column, alias or schema: bare when PostgreSQL reads it unchanged, else in double quotes. */
export function quoteIdentifier(name: string): string {
  return PLAIN.test(name) && !TAKEN.has(name) && name.length <= IDENTIFIER_BYTES_MAX ? name : inDoubleQuotes(name)
}

/** Unreserved words that, before a parenthesis, open a syntax of their own: a qualified operator, grouping sets. */
const OPENING: ReadonlySet<string> = new Set(['operator', 'cube', 'rollup'])

/** The unqualified name of a function or type, where other key words are taken (PostgreSQL manual, appendix C). */
export function quoteFunctionOrType(name: string): string {
  const isTaken = RESERVED.has(name) || COLUMN_ONLY.has(name) || OPENING.has(name)
  return PLAIN.test(name) && !isTaken && name.length <= IDENTIFIER_BYTES_MAX ? name : inDoubleQuotes(name)
}

/** The schema before a function or type: bare only where no class of key words is in the way. */
export function quoteQualifier(name: string): string {
  return COLUMN_ONLY.has(name) ? inDoubleQuotes(name) : quoteIdentifier(name)
}

/**
 * A name in double quotes whatever it is; for the few places where an unreserved word has a meaning of its own, such as
 * `recursive` after `WITH`.
 */
export function inDoubleQuotes(name: string): string {
  if (name === '') throw new LanguageError('a name is empty; PostgreSQL has no empty names')
  refuseUnwritable(name, 'the name')
  if (utf8Length(name) > IDENTIFIER_BYTES_MAX) {
    throw new LanguageError(
      `the name ${shown(name)} has ${utf8Length(name)} bytes; PostgreSQL takes at most ${IDENTIFIER_BYTES_MAX} and would cut it off`,
    )
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** A text in single quotes. Back-slashes are ordinary: `standard_conforming_strings` is on, as it is by default. */
export function quoteLiteral(text: string): string {
  refuseUnwritable(text, 'the text')
  return `'${text.replaceAll("'", "''")}'`
}

/** Refuses what UTF-8 or PostgreSQL cannot hold: NUL, and half a surrogate pair (which would silently become U+FFFD). */
export function refuseUnwritable(text: string, what: string): void {
  if (text.includes('\0'))
    throw new LanguageError(`${what} ${shown(text)} contains a NUL character; PostgreSQL cannot hold it`)
  if (/\p{Surrogate}/u.test(text)) {
    throw new LanguageError(`${what} ${shown(text)} contains half a surrogate pair; it is not valid Unicode`)
  }
}

/** The name as a message shows it: quoted, escaped, never longer than a line. */
function shown(text: string): string {
  return JSON.stringify(shorten(text))
}
