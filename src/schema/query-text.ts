/**
 * Queries and conditions between dollar signs: SQL to the letter, only the white space around it is not part
 * of it.
 */

import { LanguageError } from '../language/tree/error.ts'
import { type Cursor, fail, readBody, skipBlanks } from './cursor.ts'
import { printBody } from './name.ts'

export function readQuery(cursor: Cursor): string {
  skipBlanks(cursor)
  const start = cursor.at
  const query = trimmed(readBody(cursor, '$$'))
  if (query !== '') return query
  cursor.at = start
  fail(cursor, ['a query or condition between "$$" and "$$"'])
}

/** On one line if it is one line, otherwise on separate lines. */
export function printQueryText(query: string): string {
  const text = trimmed(query)
  if (text === '') throw new LanguageError('a query or condition is empty')
  return printBody(/[\r\n]/.test(text) ? `\n${text}\n` : ` ${text} `)
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
