/**
 * Parses a JSON request body (docs/reference/writing.md#bodies): valid UTF-8, no duplicate keys in an object,
 * nested at most 64 deep. The result is an outline: the bytes of values are passed to PostgreSQL unchanged,
 * so numbers keep every digit.
 * Implemented here because none of the packages that preserve numbers or positions (lossless-json,
 * jsonc-parser, momoa) works on bytes, rejects every duplicate key or survives deep nesting.
 */
import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors.ts'
import { DistinctKeys } from './json-keys.ts'
import {
  byteAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  describeToken,
  END,
  type JsonType,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  refuseBody,
  refuseFound,
  refuseUtf8,
  scanString,
  scanWord,
  skipPlain,
  skipWhiteSpace,
  typeOf,
} from './json-scanner.ts'

export type { JsonType } from './json-scanner.ts'

export type JsonScalarType = Exclude<JsonType, 'object' | 'array'>

/**
 * A value of the outermost object or array. Its offsets are positions in the `bytes` of that; `partBytes`
 * extracts the value.
 */
export interface JsonPart {
  readonly type: JsonType
  readonly start: number
  readonly end: number
}

export interface JsonMember extends JsonPart {
  readonly key: string
}

export interface JsonItem extends JsonPart {
  /**
   * The keys of an object in the given order; empty for other types. Consecutive objects with the same keys
   * in the same order share one array.
   */
  readonly keys: readonly string[]
}

export interface ObjectOutline {
  readonly kind: 'object'
  /** The bytes without surrounding white space, like all `bytes` here. */
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
}

export interface JsonArray {
  readonly kind: 'array'
  readonly bytes: Buffer
  readonly items: readonly JsonItem[]
}

export interface JsonScalar {
  readonly kind: 'scalar'
  readonly type: JsonScalarType
  readonly bytes: Buffer
}

/** An empty body, or one with only white space. */
export interface JsonEmpty {
  readonly kind: 'empty'
}

export type JsonBody = ObjectOutline | JsonArray | JsonScalar | JsonEmpty

/** Limit on the nesting of objects and arrays. */
export const JSON_DEPTH_MAX = 64

/**
 * The keys that the outermost object accepts. Parsing stops at the first other key, because a body can
 * contain 200 000 keys.
 */
export interface KnownKeys {
  /** True if the items of an array are such objects as well. */
  readonly inItems: boolean
  has(key: string): boolean
  refuse(key: string): never
}

/** Where duplicate keys are allowed: nowhere, or in objects within the values of a row. */
export type RepeatedKeys = 'nowhere' | 'in values'

/**
 * Parses a body in linear time, allocating only members, items and keys. `repeats`: where duplicate
 * keys are allowed.
 * @throws GatewayError PARSE_ERROR with line and column, PAYLOAD_TOO_LARGE for an array of more than
 * `itemsMax` items, and the error of `keys` for an unknown key
 */
export function parseJsonBody(
  body: Buffer,
  itemsMax: number,
  keys: KnownKeys | null = null,
  repeats: RepeatedKeys = 'nowhere',
): JsonBody {
  if (!isUtf8(body)) refuseUtf8(body)
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) {
    refuseBody(body, 0, 'found a byte order mark, expected JSON; send the body without it')
  }
  const start = skipWhiteSpace(body, 0)
  if (start === body.length) return EMPTY
  const outline = outlineValue(body, start, itemsMax, keys, repeats)
  const rest = skipWhiteSpace(body, start + outline.bytes.length)
  if (rest < body.length) {
    refuseBody(
      body,
      rest,
      `found ${describeToken(body, rest)} after the JSON value, expected the end of the body; send one value`,
    )
  }
  return outline
}

const EMPTY: JsonEmpty = { kind: 'empty' }

/** A single value as received: its type is known and nothing is decoded. */
export interface JsonValue {
  readonly type: JsonType
  readonly bytes: Buffer
}

export function partOf(whole: ObjectOutline | JsonArray, part: JsonPart): JsonValue {
  return { type: part.type, bytes: partBytes(whole, part) }
}

export function partBytes(whole: ObjectOutline | JsonArray, part: JsonPart): Buffer {
  return whole.bytes.subarray(part.start, part.end)
}

function outlineValue(
  body: Buffer,
  start: number,
  itemsMax: number,
  keys: KnownKeys | null,
  repeats: RepeatedKeys,
): ObjectOutline | JsonArray | JsonScalar {
  const isArray = body[start] === OPEN_BRACKET
  const walk = new Walk(body, repeats === 'nowhere' ? JSON_DEPTH_MAX : isArray ? 2 : 1)
  switch (body[start]) {
    case OPEN_BRACE: {
      walk.expect(keys, 1)
      const members: JsonMember[] = []
      const end = walk.value(start, (type, from, to) => {
        members.push({ key: walk.lastKey(1), type, start: from - start, end: to - start })
      })
      return { kind: 'object', bytes: body.subarray(start, end), members }
    }
    case OPEN_BRACKET: {
      if (keys?.inItems === true) walk.expect(keys, 2)
      const items: JsonItem[] = []
      const end = walk.value(start, (type, from, to) => {
        if (items.length === itemsMax) throw tooManyItems(itemsMax)
        const keys = type === 'object' ? walk.keys(2) : NO_KEYS
        items.push({ type, start: from - start, end: to - start, keys })
      })
      return { kind: 'array', bytes: body.subarray(start, end), items }
    }
    default: {
      const end = walk.value(start, () => {})
      return { kind: 'scalar', type: typeOf(body, start, end) as JsonScalarType, bytes: body.subarray(start, end) }
    }
  }
}

function tooManyItems(itemsMax: number): GatewayError {
  return new GatewayError(
    'PAYLOAD_TOO_LARGE',
    `the array in the body has more than ${itemsMax} items; send fewer at a time`,
  )
}

const NO_KEYS: readonly string[] = []

const EXPECTED = 'a JSON value: an object, an array, a string in double quotes, a number, true, false or null'

/**
 * Parses a value in one pass without recursion. It stores only the open containers and, for each depth, the
 * keys of the last object.
 */
class Walk {
  readonly #body: Buffer
  readonly #text: string
  readonly #isObject: boolean[] = []
  readonly #keys: DistinctKeys[] = []
  /** Objects below this depth can repeat keys. */
  readonly #distinctDepth: number
  #known: KnownKeys | null = null
  #knownDepth = 0

  constructor(body: Buffer, distinctDepth: number) {
    this.#distinctDepth = distinctDepth
    this.#body = body
    this.#text = body.toString('latin1')
  }

  /** Sets the keys that objects at this depth accept. */
  expect(keys: KnownKeys | null, depth: number): void {
    this.#known = keys
    this.#knownDepth = depth
  }

  keys(depth: number): readonly string[] {
    return this.#keysAt(depth).names()
  }

  lastKey(depth: number): string {
    return this.#keysAt(depth).lastName()
  }

  /** Returns where the value ends; calls `onPart` for each value directly inside it. */
  value(start: number, onPart: (type: JsonType, start: number, end: number) => void): number {
    const body = this.#body
    let at = start
    let depth = 0
    let expected = EXPECTED
    let partStart = start
    for (;;) {
      // A value begins here.
      if (depth === 1) partStart = at
      const byte = byteAt(body, at)
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        const isObject = byte === OPEN_BRACE
        depth += 1
        if (depth > JSON_DEPTH_MAX) {
          refuseBody(
            body,
            at,
            `found a value nested more than ${JSON_DEPTH_MAX} deep; flatten it, or send it as a string`,
          )
        }
        this.#isObject[depth] = isObject
        if (isObject && depth <= this.#distinctDepth) this.#keysAt(depth).open()
        at = skipWhiteSpace(body, at + 1)
        if (byteAt(body, at) !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
          expected = isObject ? EXPECTED : 'a JSON value or "]"'
          if (isObject) at = this.#key(at, depth, 'a key in double quotes or "}"')
          continue
        }
        at += 1
        depth -= 1
      } else {
        at = byte === QUOTE ? scanString(body, at) : scanWord(body, at, expected)
      }
      // A value ended here, and with it perhaps those around it.
      for (;;) {
        if (depth === 0) return at
        if (depth === 1) onPart(typeOf(body, partStart, at), partStart, at)
        const isObject = this.#isObject[depth] === true
        at = skipWhiteSpace(body, at)
        const next = byteAt(body, at)
        if (next === COMMA) {
          at = skipWhiteSpace(body, at + 1)
          expected = isObject ? EXPECTED : 'a JSON value after the comma'
          if (isObject) at = this.#key(at, depth, 'a key in double quotes after the comma')
          break
        }
        if (next !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
          refuseFound(body, at, isObject ? '"," or "}"' : '"," or "]"')
        }
        at += 1
        depth -= 1
      }
    }
  }

  /** member = string name-separator value: takes the name, and returns where its value begins. */
  #key(start: number, depth: number, expected: string): number {
    const body = this.#body
    if (byteAt(body, start) !== QUOTE) refuseFound(body, start, expected)
    const end = depth > this.#distinctDepth ? scanString(body, start) : this.#distinctKey(start, depth)
    const colon = skipWhiteSpace(body, end)
    if (byteAt(body, colon) !== COLON) refuseFound(body, colon, '":" after a key')
    return skipWhiteSpace(body, colon + 1)
  }

  #distinctKey(start: number, depth: number): number {
    const body = this.#body
    const keys = this.#keysAt(depth)
    const repeated = keys.repeat(start)
    if (repeated !== END) return repeated
    const plainEnd = skipPlain(body, start + 1)
    const isPlain = byteAt(body, plainEnd) === QUOTE
    const end = isPlain ? plainEnd + 1 : scanString(body, start)
    keys.add(start + 1, end - 1, isPlain)
    if (this.#known !== null && depth === this.#knownDepth) {
      const name = keys.lastName()
      if (!this.#known.has(name)) this.#known.refuse(name)
    }
    return end
  }

  #keysAt(depth: number): DistinctKeys {
    let keys = this.#keys[depth]
    if (keys === undefined) {
      keys = new DistinctKeys(this.#body, this.#text)
      this.#keys[depth] = keys
    }
    return keys
  }
}
