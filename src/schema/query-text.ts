/**
 * Queries and conditions between dollar signs: SQL that is kept unchanged, except for white space around it.
 */

import { LanguageError } from '../language/tree/error.ts'
import { type Cursor, failExpecting, readBody, skipBlanks } from './cursor.ts'
import { printDollarQuoted } from './name.ts'

export function readQuery(cursor: Cursor): string {
  skipBlanks(cursor)
  const start = cursor.at
  const query = trimmed(readBody(cursor, '$$'))
  if (query !== '') return query
  cursor.at = start
  failExpecting(cursor, ['a query or condition between "$$" and "$$"'])
}

/** Prints a query on the same line if it has one line, otherwise on separate lines. */
export function printQueryText(query: string): string {
  const text = trimmed(query)
  if (text === '') throw new LanguageError('a query or condition is empty')
  return printDollarQuoted(/[\r\n]/.test(text) ? `\n${text}\n` : ` ${text} `)
}

/** Trims only the white space of SQL; other blanks may be part of a name. */
function trimmed(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && BLANK.has(text[start] ?? '')) start++
  while (end > start && BLANK.has(text[end - 1] ?? '')) end--
  return text.slice(start, end)
}

const BLANK: ReadonlySet<string> = new Set([' ', '\t', '\n', '\r', '\f', '\v'])
