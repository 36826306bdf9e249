/** Documents that are the same for all callers of a kind, such as the schema's: made once for what they depend on. */

export interface DocumentParts<T> {
  /** The documents are made anew when one of these is another. */
  readonly sources: () => readonly unknown[]
  /** Callers of one key get one document. */
  readonly keyOf: (of: T) => string
  /** JSON. */
  readonly make: (of: T) => string | Buffer
}

/** Kinds of callers whose documents are kept. */
const DOCUMENTS_MAX = 32

/** Of a large schema each is some megabytes; one that is larger than all of this is made for every request. */
export const KEPT_BYTES_MAX: number = 64 * 1024 * 1024

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
