/** The values in an array and in the arrays in it, one after the other: for types, which are told by how values begin. */
import type { JsonType } from '../../json/json-body.ts'

export interface Leaf {
  readonly type: Exclude<JsonType, 'array'>
  /** Of an object just its beginning. */
  readonly start: number
  readonly end: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** `bytes` are known to be JSON (`parseJsonBody`). Linear, whatever they hold, up to the first object, which is the last leaf told. */
export function* leavesOf(bytes: Buffer): Generator<Leaf, void> {
  let at = 0
  while (at < bytes.length) {
    const start = at
    const type = BEGINS[bytes[at] ?? 0]
    if (type === undefined) {
      at += 1
      continue
    }
    at = endOf(bytes, start, type)
    yield { type: type === 'integer' ? typeOfNumber(bytes, start, at) : type, start, end: at }
    if (type === 'object') return
  }
}

/** What a value is that begins with this byte; numbers are told apart at their end. Brackets, commas and blanks begin none. */
const BEGINS: readonly (Leaf['type'] | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  if (character === '"') return 'string'
  if (character === '{') return 'object'
  if (character === 't' || character === 'f') return 'boolean'
  if (character === 'n') return 'null'
  return /[-0-9]/.test(character) ? 'integer' : undefined
})

function endOf(bytes: Buffer, start: number, type: Leaf['type']): number {
  switch (type) {
    case 'string': {
      let at = start + 1
      while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
      return at + 1
    }
    case 'object':
      return start + 1
    default: {
      let at = start + 1
      while (at < bytes.length && IS_WORD[bytes[at] ?? 0]) at += 1
      return at
    }
  }
}

/** Bytes of numbers, `true`, `false` and `null`. */
const IS_WORD: readonly boolean[] = Array.from({ length: 256 }, (_, byte) =>
  /[-+.0-9a-zA-Z]/.test(String.fromCharCode(byte)),
)

function typeOfNumber(bytes: Buffer, start: number, end: number): 'integer' | 'number' {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (byte === 0x2e || byte === 0x65 || byte === 0x45) return 'number'
  }
  return 'integer'
}
