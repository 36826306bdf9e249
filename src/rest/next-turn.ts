/**
 * Large requests are processed in several turns of the event loop, so that other requests are served in
 * between.
 */

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
