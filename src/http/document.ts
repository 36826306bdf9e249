/** Documents that are the same for everybody, such as the schema's: made once for what they depend on. */

/** `sources`: the document is made anew when one of them is another. */
export function documentOf(sources: () => readonly unknown[], make: () => unknown): () => Buffer {
  let made: { readonly from: readonly unknown[]; readonly document: Buffer } | null = null
  return () => {
    const from = sources()
    if (made === null || from.some((source, index) => source !== made?.from[index])) {
      made = { from, document: Buffer.from(JSON.stringify(make())) }
    }
    return made.document
  }
}
