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

/** The name of the column whose value the error is about; null if it is about something else. */
export function refusedColumn(error: unknown, table: Table, row: ObjectOutline): string | null {
  if (!(error instanceof GatewayError) || error.code !== 'QUERY_ERROR' || !isDataException(error)) return null
  const said = error.cause instanceof Error ? error.cause.message : error.message
  return findValue(() => valuesOf(row, table), quotesOf(said))?.meant.name ?? null
}

/** The same for rows of a table. */
export function nameRefusedColumn(error: unknown, table: Table, body: ObjectOutline | JsonArray): unknown {
  return nameRefusedValue(error, () => valuesOf(body, table))
}

/**
 * Returns `PARSE_ERROR` with the column or argument, its type and the value if `error` is about a value in
 * the body; otherwise returns `error` unchanged.
 */
export function nameRefusedValue(error: unknown, values: () => Iterable<Meant>): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'QUERY_ERROR' || !isDataException(error)) return error
  // The message for the caller can be shortened; the quoted value is found only in the full message.
  const said = error.cause instanceof Error ? error.cause.message : error.message
  const refused = findValue(values, quotesOf(said))
  if (refused === null) return error
  const { subject, type, typeText } = refused.meant
  const labels = labelsOf(type)
  const expected = labels.length === 0 ? '' : `; expected one of ${labels.join(', ')}`
  const message = `${subject} is ${typeText} and cannot hold "${shorten(refused.value)}": ${error.message}${expected}`
  return new GatewayError('PARSE_ERROR', message, {
    details: error.details,
    cause: error,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
  })
}

function isDataException(error: GatewayError): boolean {
  return sqlstateOf(error)?.startsWith('22') === true
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
  readonly array: string | null
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
    array: arrays.length === 0 ? null : withoutEscapes(arrays.reduce((a, b) => (b.length > a.length ? b : a))),
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

/**
 * Limit on the search. The error of a longer body is PostgreSQL's own: searching the body would block other
 * requests.
 */
const SEARCHED_CHARACTERS_MAX = 128 * 1024

/**
 * The first value that the message quotes, preferably one of a type that the message names. Values of types
 * that accept any JSON are skipped.
 */
function findValue(values: () => Iterable<Meant>, quotes: Quotes): Refused | null {
  if (quotes.texts.size === 0) return null
  let first: Refused | null = null
  let left = SEARCHED_CHARACTERS_MAX
  for (const meant of values()) {
    const { type, text } = meant
    left -= text.length
    if (left < 0) return null
    if (isText(type) || isJson(type)) continue
    const value = valueIn(text, quotes) ?? arrayIn(type, text, quotes)
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

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false/g

/**
 * The part of a value that PostgreSQL could not read: the value itself or one inside it, such as an element.
 * Numbers keep all their digits, and objects are as they were written.
 */
function valueIn(json: string, { texts, containers }: Quotes): string | undefined {
  const whole = containers.find(text => json.includes(text))
  if (whole !== undefined) return whole
  for (const token of json.match(TOKENS) ?? []) {
    const value = token.startsWith('"') ? (JSON.parse(token) as string) : token
    if (texts.has(value)) return value
  }
  return undefined
}

/**
 * Finds an array that was sent in PostgreSQL's text form (rewriting.ts) and that the message quotes in
 * full or in part. Returns the JSON from the request.
 */
function arrayIn(type: DataType, json: string, { array }: Quotes): string | undefined {
  const form = array === null || !json.startsWith('[') ? null : arrayFormOf(type)
  if (array === null || form === null) return undefined
  const rewriting = Rewriting.text(Buffer.from(json), form)
  rewriting.run(Number.POSITIVE_INFINITY)
  return withoutEscapes(rewriting.bytes().toString()).includes(array) ? json : undefined
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
