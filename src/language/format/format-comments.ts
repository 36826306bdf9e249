/**
 * Puts comments back into canonical text. The tokens of the source and of the canonical text, which are
 * nearly the same, are aligned. Each comment is placed next to the token it was next to: on a separate line
 * above it, at the end of its line, or before it. Lines break where a comment ends them. The placement
 * depends only on the tokens, so formatting is idempotent.
 */

import { scanJson } from '../../json/text/scan.ts'
import { advance, type Comment, createLexer, type Lexer } from '../syntax/lexer.ts'
import type { Span } from '../tree/ast.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { type Doc, type Gap, type Rendered, render } from './document.ts'

/** A token with its key for alignment. */
export interface AlignedToken extends Span {
  readonly key: string
}

/**
 * `above`: on a separate line. `behind`: at the end of a line. `before`: inside a line, before a token.
 * `last`: after everything else.
 */
interface TokenPosition {
  readonly text: string
  readonly place: 'above' | 'behind' | 'before' | 'last'
  /** In characters of the document's content. */
  readonly position: number
}

/** Renders a document in lines of `width` with the comments of its source text. */
export function renderWithComments(doc: Doc, width: number, text: string, comments: readonly Comment[]): string {
  // With all possible breaks: a comment can be wherever a line can end.
  const placed = placeComments(text, comments, render(doc, -1))
  const forced = placed.filter(({ place }) => place === 'above' || place === 'behind').map(({ position }) => position)
  const sorted = forced.sort((a, b) => a - b)
  return insertComments(placed, render(doc, width, sorted))
}

function placeComments(source: string, comments: readonly Comment[], target: Rendered): readonly TokenPosition[] {
  const from = alignedTokens(source)
  const to = alignedTokens(target.text)
  const twins = align(from, to)
  const places = positionsOf(to, target.gaps)
  const breaks = breaksOutside(source, comments)
  const hasBreak = (start: number, end: number): boolean => (breaks[end] ?? 0) > (breaks[start] ?? 0)
  let next = 0
  return comments.map(({ text, span }) => {
    while (next < from.length && (from[next] as AlignedToken).start < span.start) next += 1
    const before = from[next - 1]
    const after = from[next]
    const opensLine = before === undefined || hasBreak(before.end, span.start)
    const endsLine = after === undefined || hasBreak(span.end, after.start)
    if (endsLine && !opensLine) {
      const place = places[nearest(twins, next - 1, -1)]
      return place === undefined
        ? { text, place: 'above', position: 0 }
        : { text, place: 'behind', position: place.lineEnd }
    }
    const place = places[nearest(twins, next, 1)]
    if (place === undefined) return { text, place: 'last', position: 0 }
    return endsLine
      ? { text, place: 'above', position: place.lineStart }
      : { text, place: 'before', position: place.start }
  })
}

/** The number of line breaks before each offset, except those inside comments. */
function breaksOutside(text: string, comments: readonly Comment[]): Int32Array {
  const counts = new Int32Array(text.length + 1)
  let next = 0
  for (let at = 0, count = 0; at < text.length; at += 1) {
    if (at >= (comments[next]?.span.end ?? text.length)) next += 1
    if (text.charCodeAt(at) === 10 && at < (comments[next]?.span.start ?? text.length)) count += 1
    counts[at + 1] = count
  }
  return counts
}

// ---- tokens -----------------------------------------------------------------------------------------------

/** The tokens of a text that is known to be valid. */
export function alignedTokens(text: string): readonly AlignedToken[] {
  const lexer = createLexer(text)
  // Disables the limit: the text has been parsed before, and canonical text may have more tokens than a query
  // may.
  lexer.count = Number.NEGATIVE_INFINITY
  const tokens: AlignedToken[] = []
  for (advance(lexer); lexer.token !== '#end'; advance(lexer)) {
    const end = jsonEnd(lexer)
    if (end !== null) lexer.end = end
    const { start } = lexer
    // No comment may be put between the colon and the name of a parameter.
    if (lexer.token === ':' && /[\p{L}\p{M}\p{N}_]/u.test(text.charAt(lexer.end))) advance(lexer)
    tokens.push({ key: end === null ? keyOf(lexer) : text.slice(start, end), start, end: lexer.end })
  }
  return tokens
}

/**
 * The end of JSON, which is treated as one token because its strings have different rules than texts; null if
 * the token starts no JSON.
 */
function jsonEnd({ token, text, start }: Lexer): number | null {
  if (token !== '{' && token !== '[') return null
  const { end, hasObject } = scanJson(text, start, NESTING_MAX)
  return hasObject ? end : null
}

/** A key that is equal for a token and its canonical form. */
function keyOf({ token, isWord, text, start, end, value }: Lexer): string {
  if (isWord) return text.slice(start, end).toLowerCase()
  if (token === '#quoted') return value.toLowerCase()
  if (token === '#text') return `'${value}`
  return token.startsWith('#') ? text.slice(start, end) : token
}

/**
 * Maximum distance at which equal tokens are searched for. Canonical text adds and omits only a few
 * consecutive tokens.
 */
const AHEAD_MAX = 24

/** For each token of `from`, the index of the equal token in `to`, or -1. */
function align(from: readonly AlignedToken[], to: readonly AlignedToken[]): readonly number[] {
  const twins: number[] = new Array<number>(from.length).fill(-1)
  const isEqual = (i: number, j: number): boolean => from[i]?.key === to[j]?.key && i < from.length
  let i = 0
  let j = 0
  while (i < from.length && j < to.length) {
    const [down, right] = isEqual(i, j) ? [0, 0] : nextEqual(i, j, isEqual)
    i += down
    j += right
    if (isEqual(i, j)) twins[i] = j
    i += 1
    j += 1
  }
  return twins
}

/**
 * The distances to the nearest pair of equal tokens in both texts; zero if no pair is within `AHEAD_MAX`.
 */
function nextEqual(i: number, j: number, isEqual: (i: number, j: number) => boolean): readonly [number, number] {
  for (let steps = 1; steps <= AHEAD_MAX; steps += 1) {
    for (let down = 0; down <= steps; down += 1) {
      if (isEqual(i + down, j + steps - down)) return [down, steps - down]
    }
  }
  return [0, 0]
}

/** The counterpart of the nearest token in that direction that has one; -1 if absent. */
function nearest(twins: readonly number[], index: number, step: 1 | -1): number {
  for (let at = index; at >= 0 && at < twins.length; at += step) {
    const twin = twins[at] ?? -1
    if (twin >= 0) return twin
  }
  return -1
}

// ---- positions --------------------------------------------------------------------------------------------

/** Positions of a token and of its line, independent of the layout. */
interface Place {
  readonly start: number
  readonly lineStart: number
  readonly lineEnd: number
}

function positionsOf(tokens: readonly AlignedToken[], gaps: readonly Gap[]): readonly Place[] {
  let next = 0
  let spaces = 0
  return tokens.map(({ start }) => {
    for (; (gaps[next]?.at ?? start) < start; next += 1) spaces += gaps[next]?.length ?? 0
    const lineStart = gaps[next - 1]?.position ?? 0
    return { start: start - spaces, lineStart, lineEnd: gaps[next]?.position ?? Number.POSITIVE_INFINITY }
  })
}

function insertComments(placed: readonly TokenPosition[], { text, gaps }: Rendered): string {
  const breaks = gaps.filter(({ isBreak }) => isBreak)
  // Between statements there are two breaks: a comment at the end of a line goes before the first one, a
  // comment above a statement after the last one.
  const lasts = new Map(breaks.map(gap => [gap.position, gap]))
  const firsts = new Map(breaks.toReversed().map(gap => [gap.position, gap]))
  const inserts: { readonly at: number; readonly rank: number; readonly text: string }[] = []
  const closed = new Set<number>()
  let passed = 0
  let spaces = 0
  let below = ''
  for (const { text: comment, place, position } of placed) {
    const last = lasts.get(position)
    if (place === 'behind' && !closed.has(position)) {
      inserts.push({ at: firsts.get(position)?.at ?? text.length, rank: 0, text: ` ${comment}` })
      // A line comment ends the line, so later comments go below it.
      if (comment.startsWith('--')) closed.add(position)
    } else if (place === 'before') {
      // Counterparts are in the same order as the comments.
      for (; (gaps[passed]?.position ?? Number.POSITIVE_INFINITY) <= position; passed += 1) {
        spaces += gaps[passed]?.length ?? 0
      }
      inserts.push({ at: position + spaces, rank: 2, text: `${comment} ` })
    } else if (last !== undefined) {
      const at = last.at + last.length
      inserts.push({ at, rank: 1, text: `${comment}\n${' '.repeat(last.length - 1)}` })
    } else if (place === 'above' && position === 0) {
      inserts.push({ at: 0, rank: 1, text: `${comment}\n` })
    } else {
      below += `\n${comment}`
    }
  }
  const out: string[] = []
  let copied = 0
  for (const insert of inserts.sort((a, b) => a.at - b.at || a.rank - b.rank)) {
    out.push(text.slice(copied, insert.at), insert.text)
    copied = insert.at
  }
  return out.join('') + text.slice(copied) + below
}
