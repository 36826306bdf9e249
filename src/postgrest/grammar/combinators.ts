/**
 * Parser combinators with the error messages that clients of PostgREST know: an error is at the furthest
 * position that was reached, with what was found there and everything that was expected.
 *
 * After a parser has consumed input, its alternatives are no longer tried; `attempt` makes a parser consume
 * nothing if it fails.
 */

/** Messages about one position, in the order in which they are shown. */
interface Message {
  readonly kind: 'found' | 'unexpected' | 'expected' | 'message'
  readonly text: string
}

interface Failure {
  readonly at: number
  readonly messages: readonly Message[]
}

interface Reply<T> {
  /** Absent if the parser failed. */
  readonly value?: { readonly of: T }
  readonly at: number
  readonly consumed: boolean
  readonly failure: Failure
}

/** Parses `text` from `at`. */
export type TextParser<T> = (text: string, at: number) => Reply<T>

/** The error of a text that does not parse. */
export interface GrammarError {
  /** The position, counted from 1. */
  readonly line: number
  readonly column: number
  /** `unexpected "x" expecting …`. */
  readonly details: string
}

/** Parses a whole text. */
export function parseText<T>(parser: TextParser<T>, text: string): { readonly value: T } | GrammarError {
  const reply = parser(text, 0)
  if (reply.value !== undefined) return { value: reply.value.of }
  const { at, messages } = reply.failure
  const before = text.slice(0, at).split('\n')
  return { line: before.length, column: (before.at(-1) ?? '').length + 1, details: printMessages(messages) }
}

// ---- errors -----------------------------------------------------------------------------------------------

const ORDER: Readonly<Record<Message['kind'], number>> = { found: 0, unexpected: 1, expected: 2, message: 3 }

function printMessages(messages: readonly Message[]): string {
  const texts = (kind: Message['kind']): readonly string[] =>
    messages.flatMap(message => (message.kind === kind ? [message.text] : []))
  const sorted = messages.toSorted((a, b) => ORDER[a.kind] - ORDER[b.kind])
  if (sorted.length === 0) return 'unknown parse error'
  const [found] = texts('found')
  const unexpected = distinct(texts('unexpected'))
  const first =
    unexpected.length > 0 || found === undefined ? '' : `unexpected ${found === '' ? 'end of input' : found}`
  const parts = [
    first,
    unexpected.length === 0 ? '' : `unexpected ${joined(unexpected)}`,
    listed('expecting ', distinct(texts('expected'))),
    listed('', distinct(texts('message'))),
  ]
  return parts.filter(part => part !== '').join(' ')
}

function listed(before: string, texts: readonly string[]): string {
  return texts.length === 0 ? '' : before + joined(texts)
}

function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].filter(text => text !== '')
}

function joined(texts: readonly string[]): string {
  const last = texts.at(-1) ?? ''
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(', ')} or ${last}`
}

const NO_MESSAGES: readonly Message[] = []

function nothingAt(at: number): Failure {
  return { at, messages: NO_MESSAGES }
}

/** Merges two failures: keeps the one at the later position, or both at the same position. */
function merged(a: Failure, b: Failure): Failure {
  if (b.messages.length === 0 && a.messages.length > 0) return a
  if (a.messages.length === 0 && b.messages.length > 0) return b
  if (a.at !== b.at) return a.at > b.at ? a : b
  return a.messages.length === 0 ? a : { at: a.at, messages: [...a.messages, ...b.messages] }
}

function failed(at: number, consumed: boolean, failure: Failure): Reply<never> {
  return { at, consumed, failure }
}

function shown(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

// ---- characters -------------------------------------------------------------------------------------------

function foundAt(text: string, at: number): Message {
  return { kind: 'found', text: at < text.length ? shown(text[at] ?? '') : '' }
}

/** One character that `accepts` holds for. */
export function satisfy(accepts: (character: string) => boolean): TextParser<string> {
  return (text, at) => {
    const character = text[at]
    if (character !== undefined && accepts(character)) {
      return { value: { of: character }, at: at + 1, consumed: true, failure: nothingAt(at + 1) }
    }
    return failed(at, false, { at, messages: [foundAt(text, at)] })
  }
}

/** This character. */
export function character(wanted: string): TextParser<string> {
  return label(
    shown(wanted),
    satisfy(found => found === wanted),
  )
}

/** Any character except these. */
export function noneOf(excluded: string): TextParser<string> {
  return satisfy(found => !excluded.includes(found))
}

/** Exactly this text; a part of it counts as consumed. */
export function word(wanted: string): TextParser<string> {
  const expected: Message = { kind: 'expected', text: shown(wanted) }
  return (text, at) => {
    let end = at
    while (end - at < wanted.length && text[end] === wanted[end - at]) end += 1
    if (end - at === wanted.length) {
      return { value: { of: wanted }, at: end, consumed: true, failure: nothingAt(end) }
    }
    return failed(at, end > at, { at, messages: [foundAt(text, end), expected] })
  }
}

/** The longest text of characters that `accepts` holds for, at least one. */
export function many1Of(accepts: (character: string) => boolean, named: readonly string[]): TextParser<string> {
  const expected = named.map((text): Message => ({ kind: 'expected', text }))
  return (text, at) => {
    let end = at
    while (end < text.length && accepts(text[end] ?? '')) end += 1
    const failure: Failure = { at: end, messages: [foundAt(text, end), ...expected] }
    if (end === at) return failed(at, false, failure)
    return { value: { of: text.slice(at, end) }, at: end, consumed: true, failure }
  }
}

/** The longest text of characters except these, which can be empty. */
export function manyNoneOf(excluded: string): TextParser<string> {
  return (text, at) => {
    let end = at
    while (end < text.length && !excluded.includes(text[end] ?? '')) end += 1
    const failure: Failure = { at: end, messages: [foundAt(text, end)] }
    return { value: { of: text.slice(at, end) }, at: end, consumed: end > at, failure }
  }
}

/** The end of the text. */
export const end: TextParser<null> = (text, at) => {
  if (at === text.length) return { value: { of: null }, at, consumed: false, failure: nothingAt(at) }
  return failed(at, false, {
    at,
    messages: [
      { kind: 'unexpected', text: `'${text[at]}'` },
      { kind: 'expected', text: 'end of input' },
    ],
  })
}

// ---- combinations -----------------------------------------------------------------------------------------

/** Consumes nothing and returns `value`. */
export function give<T>(value: T): TextParser<T> {
  return (_, at) => ({ value: { of: value }, at, consumed: false, failure: nothingAt(at) })
}

/** `first`, then the parser that its result selects. */
export function chain<A, B>(first: TextParser<A>, next: (value: A) => TextParser<B>): TextParser<B> {
  return (text, at) => {
    const one = first(text, at)
    if (one.value === undefined) return failed(one.at, one.consumed, one.failure)
    const two = next(one.value.of)(text, one.at)
    const failure = two.consumed ? two.failure : merged(one.failure, two.failure)
    return { ...two, consumed: one.consumed || two.consumed, failure }
  }
}

/** The result of `parser`, converted. */
export function mapResult<A, B>(parser: TextParser<A>, convert: (value: A) => B): TextParser<B> {
  return (text, at) => {
    const { value, ...reply } = parser(text, at)
    return value === undefined ? reply : { ...reply, value: { of: convert(value.of) } }
  }
}

type Results<P extends readonly TextParser<unknown>[]> = {
  [N in keyof P]: P[N] extends TextParser<infer T> ? T : never
}

/** Several parsers, one after the other. */
export function sequence<const P extends readonly TextParser<unknown>[]>(...parsers: P): TextParser<Results<P>> {
  return (text, at) => {
    const values: unknown[] = []
    let here = at
    let consumed = false
    let failure = nothingAt(at)
    for (const parser of parsers) {
      const reply: Reply<unknown> = parser(text, here)
      failure = reply.consumed ? reply.failure : merged(failure, reply.failure)
      consumed ||= reply.consumed
      if (reply.value === undefined) return failed(reply.at, consumed, failure)
      values.push(reply.value.of)
      here = reply.at
    }
    return { value: { of: values as Results<P> }, at: here, consumed, failure }
  }
}

/** The first of the parsers that succeeds, or that fails after it has consumed something. */
export function either<T>(...parsers: readonly TextParser<T>[]): TextParser<T> {
  return (text, at) => {
    let failure = nothingAt(at)
    for (const parser of parsers) {
      const reply = parser(text, at)
      if (reply.consumed) return reply
      failure = merged(failure, reply.failure)
      if (reply.value !== undefined) return { ...reply, failure }
    }
    return failed(at, false, failure)
  }
}

/** `parser`, which consumes nothing if it fails. */
export function attempt<T>(parser: TextParser<T>): TextParser<T> {
  return (text, at) => {
    const reply = parser(text, at)
    return reply.value === undefined ? failed(at, false, reply.failure) : reply
  }
}

/** `parser` without consuming what it found. */
export function ahead(parser: TextParser<unknown>): TextParser<null> {
  return (text, at) => {
    const reply = parser(text, at)
    return reply.value === undefined
      ? failed(reply.at, reply.consumed, reply.failure)
      : { value: { of: null }, at, consumed: false, failure: nothingAt(at) }
  }
}

/** Fails where one of these characters is next. */
export function unlessNext(accepts: (character: string) => boolean): TextParser<null> {
  return (text, at) => {
    const next = text[at]
    return next !== undefined && accepts(next)
      ? failed(at, false, { at, messages: [{ kind: 'unexpected', text: `'${next}'` }] })
      : { value: { of: null }, at, consumed: false, failure: nothingAt(at) }
  }
}

/** Names what a parser expects, for errors where it has consumed nothing. */
export function label<T>(name: string, parser: TextParser<T>): TextParser<T> {
  return (text, at) => {
    const reply = parser(text, at)
    if (reply.consumed || (reply.value !== undefined && reply.failure.messages.length === 0)) return reply
    const others = reply.failure.messages.filter(({ kind }) => kind !== 'expected')
    return {
      ...reply,
      failure: { at: reply.failure.at, messages: [{ kind: 'expected', text: name }, ...others] },
    }
  }
}

/** `parser`, or `otherwise` if it fails without consuming anything. */
export function option<T, U>(otherwise: U, parser: TextParser<T>): TextParser<T | U> {
  return either<T | U>(parser, give(otherwise))
}

/** Any number of times. `parser` must consume something. */
export function many<T>(parser: TextParser<T>): TextParser<readonly T[]> {
  return (text, at) => {
    const values: T[] = []
    let here = at
    for (;;) {
      const reply = parser(text, here)
      if (reply.value === undefined) {
        if (reply.consumed) return failed(reply.at, true, reply.failure)
        return { value: { of: values }, at: here, consumed: here > at, failure: reply.failure }
      }
      values.push(reply.value.of)
      here = reply.at
    }
  }
}

/** One or more, separated by `separator`. */
export function separated<T>(parser: TextParser<T>, separator: TextParser<unknown>): TextParser<readonly T[]> {
  const others = many(mapResult(sequence(separator, parser), ([, value]) => value))
  return mapResult(sequence(parser, others), ([first, more]) => [first, ...more])
}

/** `parser` between two others. */
export function inside<T>(open: TextParser<unknown>, parser: TextParser<T>, close: TextParser<unknown>): TextParser<T> {
  return mapResult(sequence(open, parser, close), ([, value]) => value)
}
