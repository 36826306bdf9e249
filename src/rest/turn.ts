/** Large requests are worked through in several turns of the event loop, so that others are answered in between. */

export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
