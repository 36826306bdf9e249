/**
 * Corrects a text that the parser rejects if a small change makes it valid: probably what the author meant.
 */

import { printSql } from '../language/sql/print.ts'
import { parse } from '../language/syntax/parse.ts'
import type { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import { LanguageError } from '../language/tree/error.ts'
import { fromSql } from './from-sql.ts'

/** Longer texts are not corrected. */
export const CORRECTED_LENGTH_MAX = 2_000

const INSTEAD = /^did you mean "([^"]+)" instead of "([^"]+)"\?$/
const MEANT = /^did you mean "([^"]+)"\?$/

/** Null if no change makes it a valid query. */
export function correctedQuery(text: string, error: QuerySyntaxError): string | null {
  if (text.length > CORRECTED_LENGTH_MAX) return null
  for (const candidate of candidates(text, error)) {
    if (candidate !== text && isRight(candidate)) return candidate
  }
  return null
}

/** The likeliest first; each is tried only if the one before is wrong. */
function* candidates(text: string, error: QuerySyntaxError): Generator<string, void> {
  const { offset, found, expected } = error
  const hint = error.hint ?? ''
  const [, better, worse] = INSTEAD.exec(hint) ?? []
  if (better !== undefined && worse !== undefined) {
    // It is before the position at which the parser noticed the error.
    const at = text.toLowerCase().lastIndexOf(worse.toLowerCase(), offset - 1)
    if (at >= 0) yield replaced(text, at, worse, better)
  }
  yield fromSql(text)
  const isAtEnd = offset >= text.length
  const [, meant] = MEANT.exec(hint) ?? []
  if (meant !== undefined && !isAtEnd) yield replaced(text, offset, found, meant)
  const [only, ...others] = expected
  if (only !== undefined && others.length === 0 && !only.includes(' ')) yield replaced(text, offset, '', `${only} `)
  const whole = expected.find(word => /^[a-z]{3,}$/.test(word) && found.toLowerCase().startsWith(word))
  if (whole !== undefined) yield replaced(text, offset, found, whole)
  // Only punctuation: a word was meant to say something, so it is not left out.
  if (/^[^\w\s'"`]+$/.test(found)) yield replaced(text, offset, found, '')
}

function replaced(text: string, at: number, old: string, by: string): string {
  return text.slice(0, at) + by + text.slice(at + old.length)
}

function isRight(text: string): boolean {
  try {
    printSql(parse(text))
    return true
  } catch (error) {
    if (error instanceof LanguageError) return false
    throw error
  }
}
