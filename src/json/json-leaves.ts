/**
 * The values in an array and its nested arrays, one after the other; their types are determined by their
 * first characters.
 */
import type { JsonScalarType, JsonType } from './json-body.ts'
import {
  byteAt,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  scanString,
  scanWord,
  skipWhiteSpace,
  typeOf,
} from './json-scanner.ts'

export interface Leaf {
  readonly type: Exclude<JsonType, 'array'>
  /** For an object, only its beginning. */
  readonly start: number
  readonly end: number
}

/**
 * `bytes` must be valid JSON (`parseJsonBody`). Linear time, up to the first object, which is the last leaf
 * returned.
 */
export function* leavesOf(bytes: Buffer): Generator<Leaf, void> {
  let at = skipWhiteSpace(bytes, 0)
  while (at < bytes.length) {
    const start = at
    const byte = byteAt(bytes, at)
    if (byte === OPEN_BRACE) {
      yield { type: 'object', start, end: start + 1 }
      return
    }
    if (byte === OPEN_BRACKET || byte === CLOSE_BRACKET || byte === COMMA) at += 1
    else {
      at = byte === QUOTE ? scanString(bytes, at) : scanWord(bytes, at, 'a JSON value')
      yield { type: typeOf(bytes, start, at) as JsonScalarType, start, end: at }
    }
    at = skipWhiteSpace(bytes, at)
  }
}
