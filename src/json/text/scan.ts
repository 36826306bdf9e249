/** Finds the end of JSON inside another text, and checks its syntax, without creating values. */
import { BLANKS, endOf, SCALAR, STRING } from './words.ts'

export interface JsonText {
  /** The offset after the value; null if the text is not JSON. */
  readonly end: number | null
  /** The offset of the first byte that cannot belong to JSON. */
  readonly failedAt: number
  /** True if it contains an object. */
  readonly hasObject: boolean
  /**
   * Offsets of the brackets and braces that were still open at `failedAt`: none of these begins a JSON value.
   */
  readonly unclosed: readonly number[]
}

/**
 * Scans the object or array that begins at the offset. It needs no stack, however deep the value is, and
 * rejects more than `depthMax` levels.
 */
export function scanJson(text: string, start: number, depthMax: number): JsonText {
  const open: number[] = []
  let at = start
  let hasObject = false
  const skip = (word: RegExp): boolean => {
    const end = endOf(word, text, at)
    if (end < 0) return false
    at = end
    return true
  }
  const take = (character: string): boolean => {
    skip(BLANKS)
    if (text.charAt(at) !== character) return false
    at++
    return true
  }
  const innermost = (): string => text.charAt(open.at(-1) ?? text.length)
  const failed = (): JsonText => ({ end: null, failedAt: at, hasObject, unclosed: open })
  /** `"key":`, inside an open object. */
  const key = (): boolean => {
    skip(BLANKS)
    return innermost() === '[' || (skip(STRING) && take(':'))
  }
  for (;;) {
    skip(BLANKS)
    const character = text.charAt(at)
    if (character === '{' || character === '[') {
      if (open.length === depthMax) return failed()
      open.push(at++)
      hasObject ||= character === '{'
      if (!take(character === '{' ? '}' : ']')) {
        if (!key()) return failed()
        continue
      }
      open.pop()
    } else if (!skip(STRING) && !skip(SCALAR)) return failed()
    // After a value: the enclosing object or array ends or continues.
    while (open.length > 0 && take(innermost() === '{' ? '}' : ']')) open.pop()
    if (open.length === 0) return { end: at, failedAt: at, hasObject, unclosed: open }
    if (!take(',') || !key()) return failed()
  }
}
