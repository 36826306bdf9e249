/** What is said about a text that is not understood: where it stops, what was possible there, and a text that is right. */
import type { Construct, Corpus } from '../corpus/corpus.ts'
import { withHabit } from '../language/hints/foreign.ts'
import { placeOf } from '../language/syntax/place.ts'
import { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import { LanguageError } from '../language/tree/error.ts'
import { SchemaSyntaxError } from '../schema/syntax-error.ts'
import { shorten } from '../text/shorten.ts'
import { mended } from './mend.ts'
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
    /** The text mended where a small change mends it, else another that shows the construct. Always one that is right. */
    readonly example: string
  }
}

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
    const { problem, line, column, found, expected, hint } =
      error instanceof QuerySyntaxError ? withHabit(error, text) : error
    return { message: problem, line, column, found, expected, hint }
  }
  const { message, span } = error
  const place = span === null ? { line: null, column: null } : placeOf(text, span.start)
  const found = span === null ? null : shorten(text.slice(span.start, span.end))
  return { message, ...place, found, expected: [], hint: null }
}

/** For queries. */
export function exampleFor(text: string, corpus: Corpus): (error: LanguageError) => string {
  return error =>
    (error instanceof QuerySyntaxError ? mended(text, error) : null) ??
    exampleOf(constructNear(text, offsetOf(error, text)), corpus, text)
}

function offsetOf(error: LanguageError, text: string): number {
  return error instanceof QuerySyntaxError ? error.offset : (error.span?.start ?? text.length)
}

/** Of the construct's examples the one that shares most words with the text, and of equals the shortest. */
export function exampleOf(construct: Construct, { examples }: Corpus, text = ''): string {
  const words = wordsOf(text)
  const [nearest] = examples
    .filter(example => example.construct === construct && !MEANS_EVERY_ROW.test(example.query))
    .map(({ query, formatted = query }) => ({ formatted, likeness: likeness(words, wordsOf(formatted)) }))
    .sort((a, b) => b.likeness - a.likeness || a.formatted.length - b.formatted.length)
  if (nearest === undefined) throw new Error(`${construct} has no example`)
  return nearest.formatted
}

/** What somebody copies in a hurry should not change a whole table. */
const MEANS_EVERY_ROW = /\bwhere all\b/

/** As much of the beginning as says what the text is about. */
const LIKENED_LENGTH_MAX = 1_000

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(
    text
      .slice(0, LIKENED_LENGTH_MAX)
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
