/** Caches documents that are the same for all callers of a kind, such as the schema. */

/** How to make a document and when to make it again. */
export interface DocumentParts<T> {
  /** The values that a document depends on; a change of any of them invalidates all documents. */
  readonly sources: () => readonly unknown[]
  /** The key of a caller's kind; callers with the same key get the same document. */
  readonly keyOf: (of: T) => string
  /** Makes the document as JSON. */
  readonly make: (of: T) => string | Buffer
}

/** Limit on the number of cached documents. */
const DOCUMENTS_MAX = 32

/**
 * Limit on the bytes of all cached documents. The document of a large schema has several megabytes; a
 * document above the limit is made for every request.
 */
export const KEPT_BYTES_MAX: number = 64 * 1024 * 1024

/** Returns a function that makes a document or takes it from the cache. */
export function documentFor<T>({ sources, keyOf, make }: DocumentParts<T>): (of: T) => Buffer {
  let from: readonly unknown[] = []
  const made = new Map<string, Buffer>()
  let bytes = 0
  return of => {
    const now = sources()
    if (now.length !== from.length || now.some((source, index) => source !== from[index])) {
      made.clear()
      bytes = 0
      from = now
    }
    const key = keyOf(of)
    const found = made.get(key)
    if (found !== undefined) return found
    const text = make(of)
    const document = typeof text === 'string' ? Buffer.from(text) : text
    if (document.length > KEPT_BYTES_MAX) return document
    for (const [oldest, { length }] of made) {
      if (made.size < DOCUMENTS_MAX && bytes + document.length <= KEPT_BYTES_MAX) break
      made.delete(oldest)
      bytes -= length
    }
    made.set(key, document)
    bytes += document.length
    return document
  }
}
