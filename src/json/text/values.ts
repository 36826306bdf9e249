/**
 * Parses JSON text to exact values, for the claims of a token. `JSON.parse` would round 12345678901234567890
 * to another tenant, and use the second of two `tenant_id`. Here numbers keep their digits and repeated keys
 * are rejected, and so is everything that PostgreSQL's `text` cannot store: NUL, and unpaired surrogates.
 */
import { ANY_STRING, BLANKS, endOf, SCALAR, STRING } from './words.ts'

export type Json = string | boolean | null | JsonNumber | readonly Json[] | JsonObject
export type JsonObject = ReadonlyMap<string, Json>

export interface JsonNumber {
  /** As written. */
  readonly digits: string
}

/** The text is not JSON, or not acceptable as claims; the message completes "its payload …". */
export class JsonError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JsonError'
  }
}

const DEPTH_MAX = 32

export function parseJson(text: string): Json {
  const reader = new Reader(text)
  const value = reader.value(0)
  reader.end()
  return value
}

/** Prints a value without white space, with keys in the given order and numbers as written. */
export function printJson(value: Json): string {
  if (isArray(value)) return `[${value.map(printJson).join(',')}]`
  if (isObject(value))
    return `{${[...value].map(([key, member]) => `${JSON.stringify(key)}:${printJson(member)}`).join(',')}}`
  return isNumber(value) ? value.digits : JSON.stringify(value)
}

export function isNumber(value: Json | undefined): value is JsonNumber {
  return typeof value === 'object' && value !== null && 'digits' in value
}

export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(depth: number): Json {
    if (depth > DEPTH_MAX) throw new JsonError(`nests deeper than ${DEPTH_MAX}`)
    this.#take(BLANKS)
    const first = this.#text[this.#at]
    const value =
      first === '{'
        ? this.#object(depth)
        : first === '['
          ? this.#array(depth)
          : first === '"'
            ? this.#string()
            : this.#scalar()
    this.#take(BLANKS)
    return value
  }

  end(): void {
    if (this.#at < this.#text.length) throw notJson()
  }

  #object(depth: number): JsonObject {
    const members = new Map<string, Json>()
    this.#expect('{')
    this.#take(BLANKS)
    if (this.#skip('}')) return members
    do {
      this.#take(BLANKS)
      const key = this.#string()
      if (members.has(key)) throw new JsonError('repeats a key')
      this.#take(BLANKS)
      this.#expect(':')
      members.set(key, this.value(depth + 1))
    } while (this.#skip(','))
    this.#expect('}')
    return members
  }

  #array(depth: number): readonly Json[] {
    const elements: Json[] = []
    this.#expect('[')
    this.#take(BLANKS)
    if (this.#skip(']')) return elements
    do elements.push(this.value(depth + 1))
    while (this.#skip(','))
    this.#expect(']')
    return elements
  }

  #string(): string {
    const written = this.#take(STRING)
    if (written !== null) return JSON.parse(written) as string
    const refused = this.#take(ANY_STRING)
    if (refused === null) throw notJson()
    throw new JsonError(
      (JSON.parse(refused) as string).includes('\0')
        ? 'contains the character NUL, which PostgreSQL cannot hold'
        : 'contains half a surrogate pair, which is not a character',
    )
  }

  #scalar(): Json {
    const written = this.#take(SCALAR)
    if (written === null) throw notJson()
    return /^[tfn]/.test(written) ? (JSON.parse(written) as boolean | null) : { digits: written }
  }

  #take(word: RegExp): string | null {
    const start = this.#at
    const end = endOf(word, this.#text, start)
    if (end < 0) return null
    this.#at = end
    return this.#text.slice(start, end)
  }

  #skip(character: string): boolean {
    const found = this.#text[this.#at] === character
    if (found) this.#at += 1
    return found
  }

  #expect(character: string): void {
    if (!this.#skip(character)) throw notJson()
  }
}

const notJson = (): JsonError => new JsonError('is not valid JSON')
