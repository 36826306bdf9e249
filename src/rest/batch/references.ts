/**
 * References of an operation to the answers of earlier ones (docs/reference/batches.md#references): `{"$ref":
 * "order.id"}` and `"$0.data.id"`. Values are copied from the JSON of the answer, so numbers keep all digits.
 */
import { GatewayError } from '../../errors.ts'
import { type JsonBody, type JsonValue, parseJsonBody, partBytes, partOf } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'

/** A reference to a value in an answer. */
export interface ResultReference {
  /** The position of the operation, starting at 0. */
  readonly operation: number
  /** Member names and positions, from the whole body of the answer. */
  readonly path: readonly string[]
  /** The reference as it was written. */
  readonly written: string
}

/** A text with references in it. */
export type Template = readonly (string | ResultReference)[]

/** Returns the position of the operation with an `id`, or undefined if none before this one has it. */
export type FindOperation = (id: string) => number | undefined

/** A reference in a path: names without characters that have a meaning there. */
const IN_ADDRESS = /\$(\d+)((?:\.\w+)*\.?)/g
const IN_BODY = /^\$\d+\.[A-Za-z_]/
const ESCAPED_IN_BODY = /^\$\$+\d+\.[A-Za-z_]/

/**
 * Reads the path and query of operation `own`.
 * @throws {GatewayError} `PARSE_ERROR` for a reference to an operation that is not an earlier one.
 */
export function parseAddress(text: string, own: number): Template {
  const parts: (string | ResultReference)[] = []
  let from = 0
  for (const found of text.matchAll(IN_ADDRESS)) {
    const [written, number = '', path = ''] = found
    if (!/^\.[A-Za-z_]/.test(path)) continue
    // A full stop at the end belongs to the text.
    const names = path.endsWith('.') ? path.slice(0, -1) : path
    parts.push(text.slice(from, found.index), positional(number, names, own))
    from = found.index + written.length - (path.length - names.length)
  }
  return [...parts, text.slice(from)]
}

/**
 * Reads a JSON value of operation `own`, which is known to be valid.
 * @throws {GatewayError} `PARSE_ERROR` for a reference to an operation that is not an earlier one.
 */
export function parseValue(json: Buffer, own: number, find: FindOperation): Template {
  const text = json.toString()
  if (!text.includes('$') && !text.includes('\\u0024')) return [text]
  const parts: (string | ResultReference)[] = []
  let from = 0
  const replace = (start: number, end: number, by: string | ResultReference) => {
    parts.push(text.slice(from, start), by)
    from = end
  }
  for (let at = 0; at < text.length; ) {
    const start = at
    const object = text[at] === '{' ? matchAt(ONLY_REF, text, at) : null
    if (object !== null && decoded(object[1]) === '$ref') {
      at += object[0].length
      replace(start, at, named(decoded(object[2]), own, find))
      continue
    }
    const string = text[at] === '"' ? matchAt(STRING, text, at) : null
    at += string?.[0].length ?? 1
    if (string === null || matchAt(KEY_END, text, at) !== null) continue
    const value = decoded(string[0])
    if (IN_BODY.test(value)) replace(start, at, positionalIn(value, own))
    else if (ESCAPED_IN_BODY.test(value)) replace(start, at, JSON.stringify(value.slice(1)))
  }
  return [...parts, text.slice(from)]
}

const STRING = /"(?:[^"\\]|\\.)*"/y
const ONLY_REF = /\{\s*("(?:[^"\\]|\\.)*")\s*:\s*("(?:[^"\\]|\\.)*")\s*\}/y
const KEY_END = /\s*:/y

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function decoded(json: string | undefined): string {
  return JSON.parse(json ?? '""') as string
}

/** `$0.data.id`: the names begin at the whole answer. */
function positionalIn(written: string, own: number): ResultReference {
  const dot = written.indexOf('.')
  return positional(written.slice(1, dot), written.slice(dot), own)
}

function positional(number: string, names: string, own: number): ResultReference {
  const written = `$${number}${names}`
  const operation = Number(number)
  if (operation >= own) throw refused(written, `operation ${number} is not before operation ${own}`)
  return { operation, path: names.slice(1).split('.'), written }
}

/** `order.id`: the names begin at `data` of the answer. */
function named(written: string, own: number, find: FindOperation): ResultReference {
  const [id = '', ...names] = written.split('.')
  const operation = find(id)
  if (operation === undefined || operation >= own) {
    throw refused(written, `no operation before operation ${own} has the id "${shorten(id)}"`)
  }
  return { operation, path: ['data', ...names], written }
}

function refused(written: string, why: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `the reference "${shorten(written)}" has no value: ${why}`)
}

/** The operations that a template refers to. */
export function operationsIn(...templates: readonly Template[]): readonly number[] {
  const found = templates.flat().flatMap(part => (typeof part === 'string' ? [] : [part.operation]))
  return [...new Set(found)]
}

/** Returns the body of the answer to an operation. */
export type FindAnswer = (operation: number) => Buffer | null

/** Fills a path and query: values are percent-encoded. */
export function fillAddress(template: Template, find: FindAnswer): string {
  return template.map(part => (typeof part === 'string' ? part : encodeURIComponent(textOf(part, find)))).join('')
}

/** Fills a JSON value. */
export function fillValue(template: Template, find: FindAnswer): Buffer {
  return Buffer.concat(
    template.map(part => (typeof part === 'string' ? Buffer.from(part) : referredTo(part, find).bytes)),
  )
}

function textOf(reference: ResultReference, find: FindAnswer): string {
  const { type, bytes } = referredTo(reference, find)
  switch (type) {
    case 'string':
      return decoded(bytes.toString())
    case 'integer':
    case 'number':
    case 'boolean':
      return bytes.toString()
    default:
      throw refused(reference.written, `it is ${type}, which a path cannot hold`)
  }
}

/** @throws {GatewayError} `PARSE_ERROR` if the answer has no such value. */
function referredTo({ operation, path, written }: ResultReference, find: FindAnswer): JsonValue {
  let bytes = find(operation)
  let value: JsonValue | undefined
  for (const name of path) {
    value = bytes === null ? undefined : memberOf(bytes, name)
    if (value === undefined) throw refused(written, `the answer to operation ${operation} has no "${shorten(name)}"`)
    bytes = value.bytes
  }
  if (value === undefined) throw refused(written, 'it names no member')
  return value
}

function memberOf(bytes: Buffer, name: string): JsonValue | undefined {
  const whole = outline(bytes)
  switch (whole?.kind) {
    case 'object': {
      const member = whole.members.find(({ key }) => key === name)
      return member === undefined ? undefined : partOf(whole, member)
    }
    case 'array': {
      const item = /^\d{1,9}$/.test(name) ? whole.items[Number(name)] : undefined
      return item === undefined ? undefined : { type: item.type, bytes: partBytes(whole, item) }
    }
    default:
      return undefined
  }
}

/** An answer can be nested more deeply than a body may be. */
function outline(bytes: Buffer): JsonBody | null {
  try {
    return parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  } catch {
    return null
  }
}
