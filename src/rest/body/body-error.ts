/**
 * Adds the column or argument to an error about a value in a body. The body reaches PostgreSQL as one JSON
 * parameter, so PostgreSQL's message quotes the value but names neither the column nor the item (SQLSTATE
 * class 22, data exception; PostgreSQL manual, appendix A).
 */
import { baseOf, isJson, isText } from '../../access/types.ts'
import type { DataType, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { type JsonArray, type ObjectOutline, parseJsonBody, partBytes } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'
import { nextTurn } from '../next-turn.ts'
import { sqlstateOf } from '../sqlstate.ts'
import { Rewriting } from './rewriting.ts'
import { arrayFormOf } from './text-forms.ts'

/** A value in a body and the column or argument it is for. */
export interface Meant {
  /** How the error message names it: `item 2: column "id"`, `argument "a"`. */
  readonly subject: string
  /** The name of the column; omitted for an argument. */
  readonly name?: string
  readonly type: DataType
  readonly typeText: string
  /** The value as JSON. */
  readonly text: string
}

/** The column whose value an error is about, and the error with its name. */
export interface NamedRefusal {
  /** Null if the error is about something else. */
  readonly column: string | null
  readonly error: unknown
}

/**
 * Searches a row for the value that the error is about. Each call searches for one turn of the event loop and
 * returns undefined if more is left.
 */
export function refusalSearch(error: unknown, table: Table, row: ObjectOutline): () => NamedRefusal | undefined {
  if (!isAboutValue(error)) return () => ({ column: null, error })
  const search = findValue(() => valuesOf(row, table), quotesOf(messageOf(error)))
  return () => {
    const found = searchOnce(search)
    if (found === undefined) return undefined
    return found === null
      ? { column: null, error }
      : { column: found.meant.name ?? null, error: refusedValue(error, found) }
  }
}

/** The same as `nameRefusedValue` for rows of a table. */
export function nameRefusedColumn(
  error: unknown,
  table: Table,
  body: ObjectOutline | JsonArray,
): unknown | Promise<unknown> {
  return nameRefusedValue(error, () => valuesOf(body, table))
}

/**
 * Returns `PARSE_ERROR` with the column or argument, its type and the value if `error` is about a value in
 * the body; otherwise returns `error` unchanged. A large body is searched in several turns of the event loop,
 * and the result is then a promise.
 */
export function nameRefusedValue(error: unknown, values: () => Iterable<Meant>): unknown | Promise<unknown> {
  if (!isAboutValue(error)) return error
  const search = findValue(values, quotesOf(messageOf(error)))
  const first = searchOnce(search)
  if (first !== undefined) return first === null ? error : refusedValue(error, first)
  return searchInTurns(search).then(found => (found === null ? error : refusedValue(error, found)))
}

function refusedValue(error: GatewayError, { meant, value }: Refused): GatewayError {
  const { subject, type, typeText } = meant
  const labels = labelsOf(type)
  const expected = labels.length === 0 ? '' : `; expected one of ${labels.join(', ')}`
  const message = `${subject} is ${typeText} and cannot hold "${shorten(value)}": ${error.message}${expected}`
  return new GatewayError('PARSE_ERROR', message, {
    details: error.details,
    cause: error,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
  })
}

function isAboutValue(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code === 'QUERY_ERROR' && sqlstateOf(error)?.startsWith('22') === true
}

/** The full message. That for the caller can be shortened, and then lacks the end of the quoted value. */
function messageOf(error: GatewayError): string {
  return error.cause instanceof Error ? error.cause.message : error.message
}

/** The quotation marks in PostgreSQL's translated messages. */
const QUOTES: ReadonlySet<string> = new Set('"“”„«»')

/**
 * Limit on the quotation marks considered at each end of a message. Messages quote one or two parts, but a
 * value can contain any number of quotation marks.
 */
const MARKS_MAX = 4

/** Number of characters searched for the type name at each end of the message. */
const FRAME_CHARACTERS = 300

/** A message, prepared for comparison with every value of a body. */
interface Quotes {
  /** Every text that could be the quoted value: between any of the first and last quotation marks. */
  readonly texts: ReadonlySet<string>
  /** The texts that could be JSON arrays or objects. */
  readonly containers: readonly string[]
  /**
   * The longest text that could be PostgreSQL's text form of an array, without escapes; null if there is
   * none.
   */
  readonly array: Pattern | null
  /** The beginning and the end of the message. */
  readonly frame: string
}

function quotesOf(message: string): Quotes {
  const marks = outerMarks(message)
  const found = marks.flatMap((start, index) => marks.slice(index + 1).map(end => inside(message, start, end)))
  const containers = found.filter(text => CONTAINERS.has(`${text.at(0)}${text.at(-1)}`))
  const arrays = containers.filter(text => text.startsWith('{'))
  return {
    texts: new Set(found),
    containers,
    array:
      arrays.length === 0 ? null : patternOf(withoutEscapes(arrays.reduce((a, b) => (b.length > a.length ? b : a)))),
    frame: `${message.slice(0, FRAME_CHARACTERS)} ${message.slice(-FRAME_CHARACTERS)}`,
  }
}

/** The positions of the first and last quotation marks, in order. */
function outerMarks(message: string): readonly number[] {
  const marks: number[] = []
  for (let at = 0; at < message.length && marks.length < MARKS_MAX; at += 1) {
    if (QUOTES.has(message[at] ?? '')) marks.push(at)
  }
  const first = marks.at(-1) ?? message.length
  const last: number[] = []
  for (let at = message.length - 1; at > first && last.length < MARKS_MAX; at -= 1) {
    if (QUOTES.has(message[at] ?? '')) last.push(at)
  }
  return [...marks, ...last.reverse()]
}

/** The text between two quotation marks. French marks have spaces on their inner sides. */
function inside(message: string, start: number, end: number): string {
  const from = NARROW_SPACES.has(message[start + 1] ?? '') ? start + 2 : start + 1
  return message.slice(from, NARROW_SPACES.has(message[end - 1] ?? '') ? end - 1 : end)
}

const NARROW_SPACES: ReadonlySet<string> = new Set(['\u00a0', '\u202f'])

const CONTAINERS: ReadonlySet<string> = new Set(['[]', '{}'])

interface Refused {
  readonly meant: Meant
  /** The part of the value that the message quotes. */
  readonly value: string
}

/** Number of characters searched in one turn of the event loop. */
const CHARACTERS_IN_A_TURN = 128 * 1024

/** A search in steps, each of which yields the number of characters that it has searched. */
type Search<T> = Generator<number, T>

/** Searches for one turn; undefined if more is left. */
function searchOnce<T>(search: Search<T>): T | undefined {
  for (let left = CHARACTERS_IN_A_TURN; left > 0; ) {
    const step = search.next()
    if (step.done === true) return step.value
    left -= step.value
  }
  return undefined
}

async function searchInTurns<T>(search: Search<T>): Promise<T> {
  for (;;) {
    await nextTurn()
    const found = searchOnce(search)
    if (found !== undefined) return found
  }
}

/**
 * The first value that the message quotes, preferably one of a type that the message names. Values of types
 * that accept any JSON are skipped.
 */
function* findValue(values: () => Iterable<Meant>, quotes: Quotes): Search<Refused | null> {
  if (quotes.texts.size === 0) return null
  let first: Refused | null = null
  for (const meant of values()) {
    const { type, text } = meant
    // A short value is at least a step, because the row that contains it was parsed.
    yield STEP_CHARACTERS
    if (isText(type) || isJson(type)) continue
    const value = (yield* valueIn(text, quotes)) ?? (yield* arrayIn(type, text, quotes))
    if (value === undefined) continue
    const refused = { meant, value }
    if (isNamed(meant, quotes)) return refused
    first ??= refused
  }
  return first
}

function* valuesOf(body: ObjectOutline | JsonArray, { columnByName }: Table): Generator<Meant> {
  const items = body.kind === 'object' ? [null] : body.items
  for (const [index, item] of items.entries()) {
    const row = item === null ? body : parseJsonBody(partBytes(body, item), 0)
    if (row.kind !== 'object') continue
    const place = body.kind === 'object' ? '' : `item ${index + 1}: `
    for (const member of row.members) {
      const column = columnByName.get(member.key)
      if (column === undefined) continue
      const { name, type, typeText } = column
      yield { subject: `${place}column "${name}"`, name, type, typeText, text: partBytes(row, member).toString() }
    }
  }
}

const STEP_CHARACTERS = 64

/** A token with a value, or the start of an array or object. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|[[{]/g

/**
 * The part of a value that PostgreSQL could not read: the value itself or one inside it, such as an element.
 * Numbers keep all their digits, and objects are as they were written. Arrays are nested to a limited depth,
 * so few of their starts can agree with a quoted one for long.
 */
function* valueIn(json: string, { texts, containers }: Quotes): Search<string | undefined> {
  let searched = 0
  for (const { 0: token, index } of json.matchAll(TOKENS)) {
    if (index - searched >= STEP_CHARACTERS) {
      yield index - searched
      searched = index
    }
    if (token === '[' || token === '{') {
      const container = containers.find(text => json.startsWith(text, index))
      if (container !== undefined) return container
      continue
    }
    const value = token.startsWith('"') ? (JSON.parse(token) as string) : token
    if (texts.has(value)) return value
  }
  yield json.length - searched
  return undefined
}

/** Limit on the text form of an array that is compared; the error of a longer one is PostgreSQL's own. */
const TEXT_FORM_MAX = 16 * 1024 * 1024

/**
 * Finds an array that was sent in PostgreSQL's text form (rewriting.ts) and that the message quotes in
 * full or in part. Returns the JSON from the request.
 */
function* arrayIn(type: DataType, json: string, { array }: Quotes): Search<string | undefined> {
  const form = array === null || !json.startsWith('[') ? null : arrayFormOf(type)
  if (array === null || form === null) return undefined
  const rewriting = Rewriting.text(Buffer.from(json), form)
  while (!rewriting.run(CHARACTERS_IN_A_TURN)) yield CHARACTERS_IN_A_TURN
  const bytes = rewriting.bytes()
  if (bytes.length > TEXT_FORM_MAX) return undefined
  const decoder = new TextDecoder()
  const matcher = createMatcher(array)
  for (let at = 0; at < bytes.length; at += CHARACTERS_IN_A_TURN) {
    const part = decoder.decode(bytes.subarray(at, at + CHARACTERS_IN_A_TURN), { stream: true })
    if (matcher(withoutEscapes(part))) return json
    yield CHARACTERS_IN_A_TURN
  }
  return undefined
}

/**
 * A text to search for, with the length of the longest border of each of its beginnings: the search is linear
 * for every text (Knuth, Morris and Pratt, 1977). That of a hostile body can agree with itself almost
 * everywhere.
 */
interface Pattern {
  readonly text: string
  readonly borders: Int32Array
}

function patternOf(text: string): Pattern {
  const borders = new Int32Array(text.length)
  for (let at = 1, border = 0; at < text.length; at += 1) {
    while (border > 0 && text.charCodeAt(at) !== text.charCodeAt(border)) border = borders[border - 1] as number
    if (text.charCodeAt(at) === text.charCodeAt(border)) border += 1
    borders[at] = border
  }
  return { text, borders }
}

/** Reports whether the parts that were passed to it so far contain the pattern. */
function createMatcher({ text, borders }: Pattern): (part: string) => boolean {
  let matched = 0
  return part => {
    for (let at = 0; at < part.length; at += 1) {
      const code = part.charCodeAt(at)
      while (matched > 0 && code !== text.charCodeAt(matched)) matched = borders[matched - 1] as number
      if (code === text.charCodeAt(matched)) matched += 1
      if (matched === text.length) return true
    }
    return false
  }
}

/** Removes escapes: a nested array has more of them than the same array on its own. */
function withoutEscapes(text: string): string {
  return text.replace(/["\\]/g, '')
}

/** Reports whether the message names the type or its element type. */
function isNamed({ type, typeText }: Meant, { frame }: Quotes): boolean {
  const name = typeText.replace(/\[\]|\(.*\)/g, '')
  return frame.includes(`${name}: `) || frame.endsWith(` ${name}`) || frame.includes(` ${baseOf(type).name}: `)
}

function labelsOf(type: DataType): readonly string[] {
  const base = baseOf(type)
  return base.kind === 'array' && base.of !== null ? labelsOf(base.of) : base.labels
}
