/** JSON inside a query: where it ends, and whether it is JSON at all (RFC 8259), without making values of it. */

import { NESTING_MAX } from '../tree/nesting.ts'

export interface JsonText {
  /** The offset behind the value; null where the text is no JSON. */
  readonly end: number | null
  /** Where it stops being JSON. */
  readonly failedAt: number
  /** Whether an object stands somewhere in it. */
  readonly hasObject: boolean
  /** Offsets of the brackets and braces that were still open where it stopped being JSON: none of these begins a JSON value. */
  readonly unclosed: readonly number[]
}

/** Text without control characters, and as jsonb takes it: without halves of surrogate pairs and `\u0000`, written out or escaped. */
const STRING =
  /"(?:[^"\\\x00-\x1f\p{Surrogate}]|\\["\\/bfnrt]|\\u(?!0000)(?:[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}|[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}))*"/uy
const SCALAR = /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![A-Za-z0-9_])/y

const BLANKS = ' \t\r\n'

/** The object or array that begins at the offset. Takes no stack, however deep it is, and is refused below `NESTING_MAX` levels. */
export function scanJson(text: string, start: number): JsonText {
  const open: number[] = []
  let at = start
  let hasObject = false
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.test(text)
    if (found) at = pattern.lastIndex
    return found
  }
  const skipBlanks = (): void => {
    while (BLANKS.includes(text.charAt(at)) && at < text.length) at++
  }
  const take = (character: string): boolean => {
    skipBlanks()
    if (text.charAt(at) !== character) return false
    at++
    return true
  }
  const innermost = (): string => text.charAt(open.at(-1) ?? text.length)
  const failed = (): JsonText => ({ end: null, failedAt: at, hasObject, unclosed: open })
  /** `"key":`, where an object stands open. */
  const key = (): boolean => {
    skipBlanks()
    return innermost() === '[' || (skip(STRING) && take(':'))
  }
  for (;;) {
    skipBlanks()
    const character = text.charAt(at)
    if (character === '{' || character === '[') {
      if (open.length === NESTING_MAX) return failed()
      open.push(at++)
      hasObject ||= character === '{'
      if (!take(character === '{' ? '}' : ']')) {
        if (!key()) return failed()
        continue
      }
      open.pop()
    } else if (!skip(STRING) && !skip(SCALAR)) return failed()
    // Behind a value: what is open ends, or goes on.
    while (open.length > 0 && take(innermost() === '{' ? '}' : ']')) open.pop()
    if (open.length === 0) return { end: at, failedAt: at, hasObject, unclosed: open }
    if (!take(',') || !key()) return failed()
  }
}
