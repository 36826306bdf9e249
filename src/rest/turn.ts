/** Large requests are worked through in several turns of the event loop, so that others are answered in between. */

/** A body above this size is read in one turn, and what was read is used in the next. */
const LARGE_BODY_BYTES = 256 * 1024

export function isLarge({ body }: { readonly body: Buffer }): boolean {
  return body.length > LARGE_BODY_BYTES
}

export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
