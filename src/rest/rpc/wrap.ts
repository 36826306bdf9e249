/**
 * Builds a JSON object from separate values by joining bytes, so that PostgreSQL can read the arguments by
 * name.
 */
import type { Slot } from './bind-arguments.ts'

/** Prints `{"a1":…,"a2":[…]}`. The keys need no escapes. */
export function wrapArguments(slots: readonly Slot[]): Buffer {
  const parts: Buffer[] = []
  for (const [index, { key, values, list }] of slots.entries()) {
    parts.push(Buffer.from(`${index === 0 ? '{' : ','}"${key}":`, 'latin1'))
    if (list) parts.push(OPEN_LIST)
    for (const [n, { bytes }] of values.entries()) {
      if (n > 0) parts.push(COMMA)
      parts.push(bytes)
    }
    if (list) parts.push(CLOSE_LIST)
  }
  parts.push(CLOSE)
  return Buffer.concat(parts)
}

const COMMA = Buffer.from(',')
const CLOSE = Buffer.from('}')
const OPEN_LIST = Buffer.from('[')
const CLOSE_LIST = Buffer.from(']')
