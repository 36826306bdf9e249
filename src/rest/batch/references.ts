/**
 * References of an operation to the results of earlier ones (docs/reference/batches.md#references): `{"$ref":
 * "order.id"}` and `"$0.data.id"`. Values are copied from the JSON of the result, so numbers keep all digits.
 */
import { GatewayError } from '../../errors.ts'
import { type JsonBody, type JsonValue, parseJsonBody, partBytes, partOf } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'
import { nextTurn } from '../next-turn.ts'

/** A reference to a value in a result. */
export interface ResultReference {
  /** The position of the operation, starting at 0. */
  readonly operation: number
  /** Member names and positions, starting at the whole body of the response. */
  readonly path: readonly string[]
  /** The reference as it was written. */
  readonly written: string
}

/** A text with references in it. */
export type Template = readonly (string | ResultReference)[]

/** The operation that contains references. */
export interface ReferringOperation {
  /** Its position, starting at 0. */
  readonly own: number
  /** Returns the position of the operation with an `id`, or undefined if none before this one has it. */
  readonly find: (id: string) => number | undefined
  /**
   * Counts a reference of the batch.
   * @throws {GatewayError} `PAYLOAD_TOO_LARGE` above the limit.
   */
  readonly count: () => void
}

/** Limit on the names of one reference. */
const NAMES_MAX = 32

/** A reference in a path. Its names cannot contain characters that have a meaning in a path. */
const IN_ADDRESS = /\$(\d+)((?:\.\w+)*\.?)/g
const IN_BODY = /^\$\d+\.[A-Za-z_]/
const ESCAPED_IN_BODY = /^\$\$+\d+\.[A-Za-z_]/

/**
 * Reads the path and query of an operation.
 * @throws {GatewayError} `PARSE_ERROR` for a reference to an operation that is not an earlier one.
 */
export function parseAddress(text: string, by: ReferringOperation): Template {
  const parts: (string | ResultReference)[] = []
  let from = 0
  for (const found of text.matchAll(IN_ADDRESS)) {
    const [written, number = '', path = ''] = found
    if (!/^\.[A-Za-z_]/.test(path)) continue
    // A full stop at the end is not part of the reference.
    const names = path.endsWith('.') ? path.slice(0, -1) : path
    parts.push(text.slice(from, found.index), positional(number, names, by))
    from = found.index + written.length - (path.length - names.length)
  }
  return [...parts, text.slice(from)]
}

/**
 * Reads a JSON value of an operation, which is known to be valid.
 * @throws {GatewayError} `PARSE_ERROR` for a reference to an operation that is not an earlier one.
 */
export function parseValue(json: Buffer, by: ReferringOperation): Template {
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
      replace(start, at, named(decoded(object[2]), by))
      continue
    }
    const string = text[at] === '"' ? matchAt(STRING, text, at) : null
    at += string?.[0].length ?? 1
    if (string === null || matchAt(KEY_END, text, at) !== null) continue
    const value = decoded(string[0])
    if (IN_BODY.test(value)) replace(start, at, positionalIn(value, by))
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

/** `$0.data.id`: the names begin at the whole body of the response. */
function positionalIn(written: string, by: ReferringOperation): ResultReference {
  const dot = written.indexOf('.')
  return positional(written.slice(1, dot), written.slice(dot), by)
}

function positional(number: string, names: string, by: ReferringOperation): ResultReference {
  const written = `$${number}${names}`
  const operation = Number(number)
  if (operation >= by.own) throw refused(written, `operation ${number} is not before operation ${by.own}`)
  return counted({ operation, path: names.slice(1).split('.'), written }, by)
}

/** `order.id`: the names begin at the member `data` of the response. */
function named(written: string, by: ReferringOperation): ResultReference {
  const [id = '', ...names] = written.split('.')
  const operation = by.find(id)
  if (operation === undefined || operation >= by.own) {
    throw refused(written, `no operation before operation ${by.own} has the id "${shorten(id)}"`)
  }
  return counted({ operation, path: ['data', ...names], written }, by)
}

function counted(reference: ResultReference, { count }: ReferringOperation): ResultReference {
  if (reference.path.length > NAMES_MAX) throw refused(reference.written, `it has more than ${NAMES_MAX} names`)
  count()
  return reference
}

function refused(written: string, why: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `the reference "${shorten(written)}" has no value: ${why}`)
}

/** The operations that a template refers to. */
export function operationsIn(...templates: readonly Template[]): readonly number[] {
  const found = templates.flat().flatMap(part => (typeof part === 'string' ? [] : [part.operation]))
  return [...new Set(found)]
}

/** Returns the body of the response to an operation. */
export type FindAnswer = (operation: number) => Buffer | null

/** Bytes that are parsed before other requests get a turn. */
const BYTES_AT_ONCE = 256 * 1024

/**
 * Fills a path and query: values are percent-encoded.
 * @throws {GatewayError} `PARSE_ERROR` for a reference without a value, `HEADERS_TOO_LARGE` above `bytesMax`.
 */
export async function fillAddress(template: Template, answers: ReferredAnswers, bytesMax: number): Promise<string> {
  let filled = ''
  for (const part of template) {
    filled += typeof part === 'string' ? part : encodeURIComponent(textOf(part, await answers.value(part)))
    if (filled.length > bytesMax) {
      throw new GatewayError('HEADERS_TOO_LARGE', `the path of the operation is larger than ${bytesMax} bytes`)
    }
  }
  return filled
}

/**
 * Fills a JSON value.
 * @throws {GatewayError} `PARSE_ERROR` for a reference without a value, `PAYLOAD_TOO_LARGE` above `bytesMax`.
 */
export async function fillValue(template: Template, answers: ReferredAnswers, bytesMax: number): Promise<Buffer> {
  const filled: Buffer[] = []
  let size = 0
  for (const part of template) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : (await answers.value(part)).bytes
    size += bytes.length
    if (size > bytesMax) {
      throw new GatewayError(
        'PAYLOAD_TOO_LARGE',
        `the body of the operation is larger than ${bytesMax} bytes with the values that it refers to; refer to less`,
      )
    }
    filled.push(bytes)
  }
  return Buffer.concat(filled)
}

function textOf({ written }: ResultReference, { type, bytes }: JsonValue): string {
  switch (type) {
    case 'string':
      return decoded(bytes.toString())
    case 'integer':
    case 'number':
    case 'boolean':
      return bytes.toString()
    default:
      throw refused(written, `it is ${type}, which a path cannot contain`)
  }
}

/** A value in a result. Its members are parsed when they are needed. */
interface ReferredValue {
  readonly value: JsonValue
  outline?: JsonBody | null
}

/** The results that the references of one operation read. Each value is parsed once. */
export class ReferredAnswers {
  readonly #find: FindAnswer
  readonly #bytesMax: number
  readonly #known = new Map<string, ReferredValue | undefined>()
  #work = 0

  /** `bytesMax`: limit on the bytes of a result that references read. */
  constructor(find: FindAnswer, bytesMax: number) {
    this.#find = find
    this.#bytesMax = bytesMax
  }

  /** @throws {GatewayError} `PARSE_ERROR` if the result has no such value. */
  async value({ operation, path, written }: ResultReference): Promise<JsonValue> {
    let key = String(operation)
    let found = this.#answer(key, operation, written)
    for (const name of path) {
      key += `.${name}`
      if (!this.#known.has(key)) this.#known.set(key, found === undefined ? undefined : await this.#member(found, name))
      found = this.#known.get(key)
      if (found === undefined)
        throw refused(written, `the response to operation ${operation} has no "${shorten(name)}"`)
    }
    if (found === undefined) throw refused(written, 'it names no member')
    return found.value
  }

  #answer(key: string, operation: number, written: string): ReferredValue | undefined {
    if (this.#known.has(key)) return this.#known.get(key)
    const bytes = this.#find(operation)
    if (bytes !== null && bytes.length > this.#bytesMax) {
      throw refused(written, `the response to operation ${operation} is larger than ${this.#bytesMax} bytes`)
    }
    const whole = bytes === null ? undefined : ({ value: { type: 'object', bytes } } as const)
    this.#known.set(key, whole)
    return whole
  }

  async #member(of: ReferredValue, name: string): Promise<ReferredValue | undefined> {
    this.#work += of.value.bytes.length
    if (this.#work > BYTES_AT_ONCE) {
      this.#work = 0
      await nextTurn()
    }
    if (of.outline === undefined) of.outline = outline(of.value.bytes)
    const value = memberOf(of.outline, name)
    return value === undefined ? undefined : { value }
  }
}

function memberOf(whole: JsonBody | null, name: string): JsonValue | undefined {
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

/** A result can be nested more deeply than a request body may be. */
function outline(bytes: Buffer): JsonBody | null {
  try {
    return parseJsonBody(bytes, Number.POSITIVE_INFINITY)
  } catch {
    return null
  }
}
