/** Results of functions of a short text, kept because clients repeat the same few texts. */
import { LRUCache } from 'lru-cache'

/** Limits on the kept results of one function. */
const KEPT_MAX = 2_000
const KEPT_CHARACTERS_MAX = 1_000

/** A function with the results of `make`, which must depend on the text only. Those of short texts stay. */
export function keptByText<T extends object>(make: (text: string) => T): (text: string) => T {
  const kept = new LRUCache<string, T>({ max: KEPT_MAX })
  return text => {
    const found = kept.get(text)
    if (found !== undefined) return found
    const made = make(text)
    if (text.length <= KEPT_CHARACTERS_MAX) kept.set(text, made)
    return made
  }
}
