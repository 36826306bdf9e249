/** Explains an invalid text: where it stops, what was possible there, and a valid text. */
import type { Construct, Corpus } from '../corpus/corpus.ts'
import { withSqlHint } from '../language/hints/sql-hints.ts'
import { lineColumnAt } from '../language/syntax/line-column.ts'
import { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import { LanguageError } from '../language/tree/error.ts'
import { SchemaSyntaxError } from '../schema/syntax-error.ts'
import { shorten } from '../text/shorten.ts'
import { correctedQuery } from './corrected-query.ts'
import { constructNear } from './nearest-construct.ts'

/** An error with its position, the expected text and a correct example. */
export interface Lesson {
  readonly ok: false
  readonly error: {
    /** The problem in one line, without its position. */
    readonly message: string
    /** Counted from 1; null if the error concerns the whole text. */
    readonly line: number | null
    readonly column: number | null
    readonly found: string | null
    readonly expected: readonly string[]
    /** What to write instead, if known. */
    readonly hint: string | null
    /** The corrected text if a small change corrects it, else an example of the construct. Always valid. */
    readonly example: string
  }
}

/** The result of `work` for a text, or the lesson. Any other exception is a defect. */
export function resultOrLesson<T>(text: string, example: (error: LanguageError) => string, work: () => T): T | Lesson {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error
    return { ok: false, error: { ...describe(error, text), example: example(error) } }
  }
}

function describe(error: LanguageError, text: string): Omit<Lesson['error'], 'example'> {
  if (error instanceof QuerySyntaxError || error instanceof SchemaSyntaxError) {
    const { problem, line, column, found, expected, hint } =
      error instanceof QuerySyntaxError ? withSqlHint(error, text) : error
    return { message: problem, line, column, found, expected, hint }
  }
  const { message, span } = error
  const place = span === null ? { line: null, column: null } : lineColumnAt(text, span.start)
  const found = span === null ? null : shorten(text.slice(span.start, span.end))
  return { message, ...place, found, expected: [], hint: null }
}

/** For queries. */
export function exampleFor(text: string, corpus: Corpus): (error: LanguageError) => string {
  return error =>
    (error instanceof QuerySyntaxError ? correctedQuery(text, error) : null) ??
    exampleOf(constructNear(text, offsetOf(error, text)), corpus, text)
}

function offsetOf(error: LanguageError, text: string): number {
  return error instanceof QuerySyntaxError ? error.offset : (error.span?.start ?? text.length)
}

/** The construct's example that shares most words with the text, and among equals the shortest. */
export function exampleOf(construct: Construct, { examples }: Corpus, text = ''): string {
  const words = wordsOf(text)
  const [nearest] = examples
    .filter(example => example.construct === construct && !MEANS_EVERY_ROW.test(example.query))
    .map(({ query, formatted = query }) => ({ formatted, likeness: likeness(words, wordsOf(formatted)) }))
    .sort((a, b) => b.likeness - a.likeness || a.formatted.length - b.formatted.length)
  if (nearest === undefined) throw new Error(`${construct} has no example`)
  return nearest.formatted
}

/** An example that is copied without thought must not change a whole table. */
const MEANS_EVERY_ROW = /\bwhere all\b/

/** The part of the text used to find a similar example. */
const COMPARED_LENGTH_MAX = 1_000

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(
    text
      .slice(0, COMPARED_LENGTH_MAX)
      .toLowerCase()
      .match(/[a-z_]+/g) ?? [],
  )
}

/** The words of both as a part of the words of either. */
function likeness(some: ReadonlySet<string>, others: ReadonlySet<string>): number {
  let shared = 0
  for (const word of others) if (some.has(word)) shared++
  return shared / (some.size + others.size - shared || 1)
}
