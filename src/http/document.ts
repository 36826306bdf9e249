/** Documents that are the same for all callers of a kind, such as the schema's: made once for what they depend on. */

export interface DocumentParts<T> {
  /** The documents are made anew when one of these is another. */
  readonly sources: () => readonly unknown[]
  /** Callers of one key get one document. */
  readonly keyOf: (of: T) => string
  readonly make: (of: T) => unknown
}

/** Kinds of callers whose documents are kept; of a large schema each is some megabytes. */
const DOCUMENTS_MAX = 32

export function documentFor<T>({ sources, keyOf, make }: DocumentParts<T>): (of: T) => Buffer {
  let from: readonly unknown[] = []
  const made = new Map<string, Buffer>()
  return of => {
    const now = sources()
    if (now.length !== from.length || now.some((source, index) => source !== from[index])) {
      made.clear()
      from = now
    }
    const key = keyOf(of)
    const found = made.get(key)
    if (found !== undefined) return found
    const [oldest] = made.keys()
    if (made.size >= DOCUMENTS_MAX && oldest !== undefined) made.delete(oldest)
    const document = Buffer.from(JSON.stringify(make(of)))
    made.set(key, document)
    return document
  }
}
