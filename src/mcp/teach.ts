/** What is said about a text that is not understood: where it stops, what was possible there, and a text that is right. */
import type { Construct } from '../language/corpus/constructs.ts'
import { EXAMPLES } from '../language/corpus/index.ts'
import { LanguageError } from '../language/error.ts'
import { parse } from '../language/parse.ts'
import { placeOf } from '../language/place.ts'
import { printSql } from '../language/print.ts'
import { SchemaSyntaxError } from '../language/schema/syntax-error.ts'
import { QuerySyntaxError } from '../language/syntax-error.ts'
import { shorten } from '../shorten.ts'
import { constructNear } from './near.ts'

export interface Lesson {
  readonly ok: false
  readonly error: {
    /** The problem in a line, without its place. */
    readonly message: string
    /** From 1; null where it is the whole. */
    readonly line: number | null
    readonly column: number | null
    readonly found: string | null
    readonly expected: readonly string[]
    /** What to write instead, where that is known. */
    readonly hint: string | null
    /** The text mended where the hint mends it, else another that shows the construct. Always one that is right. */
    readonly example: string
  }
}

/** Longer texts are not written once more, mended. */
const MENDED_LENGTH_MAX = 2_000

/** What `work` answers about a text, or the lesson. Whatever else is thrown is a defect. */
export function taught<T>(text: string, example: (error: LanguageError) => string, work: () => T): T | Lesson {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error
    return { ok: false, error: { ...describe(error, text), example: example(error) } }
  }
}

function describe(error: LanguageError, text: string): Omit<Lesson['error'], 'example'> {
  if (error instanceof QuerySyntaxError || error instanceof SchemaSyntaxError) {
    const { problem, line, column, found, expected, hint } = error
    return { message: problem, line, column, found, expected, hint }
  }
  const { message, span } = error
  const place = span === null ? { line: null, column: null } : placeOf(text, span.start)
  const found = span === null ? null : shorten(text.slice(span.start, span.end))
  return { message, ...place, found, expected: [], hint: null }
}

/** For queries. */
export function exampleFor(text: string): (error: LanguageError) => string {
  return error => mended(text, error) ?? exampleOf(constructNear(text, offsetOf(error, text)))
}

function offsetOf(error: LanguageError, text: string): number {
  return error instanceof QuerySyntaxError ? error.offset : (error.span?.start ?? text.length)
}

/** The shortest example: what it shows is what there is to see. */
export function exampleOf(construct: Construct): string {
  const [shortest] = EXAMPLES.filter(example => example.construct === construct)
    .map(({ query, formatted = query }) => formatted)
    .sort((a, b) => a.length - b.length)
  if (shortest === undefined) throw new Error(`${construct} has no example`)
  return shortest
}

const INSTEAD = /^did you mean "([^"]+)" instead of "([^"]+)"\?$/
const MEANT = /^did you mean "([^"]+)"\?$/

/** The text as the hint would have it, if that is right. */
function mended(text: string, error: LanguageError): string | null {
  if (!(error instanceof QuerySyntaxError) || text.length > MENDED_LENGTH_MAX) return null
  const { hint, offset, found } = error
  const [, better, worse] = INSTEAD.exec(hint ?? '') ?? []
  const [, meant] = MEANT.exec(hint ?? '') ?? []
  if (better !== undefined && worse !== undefined) {
    return ifRight(replaced(text, text.toLowerCase().lastIndexOf(worse.toLowerCase(), offset - 1), worse, better))
  }
  return meant === undefined ? null : ifRight(replaced(text, offset, found, meant))
}

function replaced(text: string, at: number, old: string, by: string): string {
  return at < 0 ? '' : text.slice(0, at) + by + text.slice(at + old.length)
}

function ifRight(text: string): string | null {
  try {
    printSql(parse(text))
    return text
  } catch (error) {
    if (error instanceof LanguageError) return null
    throw error
  }
}
