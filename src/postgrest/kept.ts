/** Results that depend on a short text only, kept because clients repeat the same few texts. */
import { LRUCache } from 'lru-cache'

/** Limit on the kept results of one kind. */
export const KEPT_MAX = 2_000
/** Limit on the characters of a text whose result is kept. */
export const KEPT_CHARACTERS_MAX = 1_000

/** Returns the kept result of a text, or makes it. */
export type Keep<T extends object> = (text: string, make: () => T) => T

/** Creates a function that returns the kept result of a text, or makes it. Short texts are kept. */
export function createKept<T extends object>(
  max: number = KEPT_MAX,
  charactersMax: number = KEPT_CHARACTERS_MAX,
): Keep<T> {
  const kept = new LRUCache<string, T>({ max })
  return (text, make) => {
    const found = kept.get(text)
    if (found !== undefined) return found
    const made = make()
    if (text.length <= charactersMax) kept.set(text, made)
    return made
  }
}

/** A function with the results of `make`, which must depend on the text only. */
export function keptByText<T extends object>(make: (text: string) => T): (text: string) => T {
  const keep = createKept<T>()
  return text => keep(text, () => make(text))
}
