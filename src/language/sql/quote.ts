/** Quotes names and texts for PostgreSQL. This is the only module that puts strings into SQL. */

import { shorten } from '../../text/shorten.ts'
import { LanguageError } from '../tree/error.ts'
import { IDENTIFIER_BYTES_MAX, utf8Length } from '../tree/identifier.ts'
import { COLUMN_ONLY, RESERVED, TYPE_OR_FUNCTION } from './keywords.ts'

/**
 * Names that need no quotes. PostgreSQL also reads non-ASCII letters and `$` unchanged, but not with every
 * encoding, and not every tool does.
 */
const PLAIN = /^[a-z_][a-z0-9_]*$/

/** Keywords that need quotes as the name of a table or column. */
const TAKEN: ReadonlySet<string> = new Set([...RESERVED, ...TYPE_OR_FUNCTION])

/**
 * The name of a table, column, alias or schema: unquoted if PostgreSQL reads it unchanged, otherwise in
 * double quotes.
 *
 * @throws LanguageError if the name is empty, too long, or not valid in PostgreSQL.
 */
export function quoteIdentifier(name: string): string {
  return PLAIN.test(name) && !TAKEN.has(name) && name.length <= IDENTIFIER_BYTES_MAX ? name : inDoubleQuotes(name)
}

/**
 * Unreserved keywords that start special syntax before a parenthesis: a qualified operator, grouping sets.
 */
const OPENING: ReadonlySet<string> = new Set(['operator', 'cube', 'rollup'])

/**
 * The unqualified name of a function or type, for which different keywords need quotes (PostgreSQL manual,
 * appendix C).
 *
 * @throws LanguageError if the name is empty, too long, or not valid in PostgreSQL.
 */
export function quoteFunctionOrType(name: string): string {
  const isTaken = RESERVED.has(name) || COLUMN_ONLY.has(name) || OPENING.has(name)
  return PLAIN.test(name) && !isTaken && name.length <= IDENTIFIER_BYTES_MAX ? name : inDoubleQuotes(name)
}

/**
 * The schema of a function or type, or the name of an argument; unquoted only if it is in no class of
 * keywords.
 *
 * @throws LanguageError if the name is empty, too long, or not valid in PostgreSQL.
 */
export function quoteQualifier(name: string): string {
  return COLUMN_ONLY.has(name) ? inDoubleQuotes(name) : quoteIdentifier(name)
}

/**
 * Any name in double quotes, for positions where an unreserved keyword has a special meaning, such as
 * `recursive` after `WITH`.
 *
 * @throws LanguageError if the name is empty, too long, or not valid in PostgreSQL.
 */
export function inDoubleQuotes(name: string): string {
  if (name === '') throw new LanguageError('a name is empty; PostgreSQL has no empty names')
  assertStorable(name, 'the name')
  if (utf8Length(name) > IDENTIFIER_BYTES_MAX) {
    throw new LanguageError(
      `the name ${shown(name)} has ${utf8Length(name)} bytes; ` +
        `PostgreSQL accepts at most ${IDENTIFIER_BYTES_MAX} and would truncate it`,
    )
  }
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * A text in single quotes. Backslashes need no escape: `standard_conforming_strings` is on, as by default.
 *
 * @throws LanguageError if the text contains NUL or an unpaired surrogate.
 */
export function quoteLiteral(text: string): string {
  assertStorable(text, 'the text')
  return `'${text.replaceAll("'", "''")}'`
}

/**
 * Checks that a text can be represented in UTF-8 and PostgreSQL.
 *
 * @throws LanguageError if it contains NUL, or an unpaired surrogate, which would silently become U+FFFD.
 */
export function assertStorable(text: string, what: string): void {
  if (text.includes('\0'))
    throw new LanguageError(`${what} ${shown(text)} contains a NUL character; PostgreSQL cannot hold it`)
  if (/\p{Surrogate}/u.test(text)) {
    throw new LanguageError(`${what} ${shown(text)} contains an unpaired surrogate; it is not valid Unicode`)
  }
}

/** A name as shown in a message: quoted, escaped, and at most one line long. */
function shown(text: string): string {
  return JSON.stringify(shorten(text))
}
