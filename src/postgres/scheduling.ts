/**
 * Which of its flow's connections takes the next exchange, or whether it takes another one. Few connections with many exchanges in flight beat many
 * connections with few: answers and questions share packets, and the server's processes do not compete for cores. So fast work is packed onto the connection
 * that is busiest, while the wait there is too short to notice. Slow work gets a connection to itself.
 */

import type { Flow } from './flow.ts'

/** What takes longer goes where the wait is shortest. */
const FAST_MS = 1
/** Waiting this long behind fast work is the price of packing; beyond it, work spreads and the pool grows. */
const PACK_MS = 2
/** Where the wait would be longer than this, the exchange waits for whichever connection is free first instead. */
const QUEUE_MS_MAX = 5

/** What the choice needs to know of a connection. */
export interface Candidate {
  /** The flow whose exchanges it carries; null while it is free. */
  readonly owner: Flow | null
  readonly accepting: boolean
  readonly depth: number
  /** Infinity behind something slow. */
  waitMs(now: number): number
}

export interface Choice<C> {
  /** Null: wait. */
  readonly candidate: C | null
  /** One more connection would be worth having. */
  readonly grow: boolean
}

/** Among the connections of `flow`, and with `mayTake` the free ones. */
export function choose<C extends Candidate>(
  candidates: readonly C[],
  flow: Flow,
  mayTake: boolean,
  expectedMs: number,
  now: number,
): Choice<C> {
  const fast = expectedMs <= FAST_MS
  let packed: C | null = null
  let packedMs = -1
  let shortest: C | null = null
  let shortestMs = Infinity
  for (const candidate of candidates) {
    if (candidate.owner === null ? !mayTake : candidate.owner !== flow) continue
    if (!candidate.accepting) continue
    const waitMs = candidate.waitMs(now)
    if (fast && waitMs <= PACK_MS && waitMs > packedMs) {
      packed = candidate
      packedMs = waitMs
    }
    if (waitMs < shortestMs) {
      shortest = candidate
      shortestMs = waitMs
    }
  }
  if (packed !== null) return { candidate: packed, grow: false }
  if (shortest === null || shortestMs > QUEUE_MS_MAX) return { candidate: null, grow: true }
  return { candidate: shortest, grow: shortest.depth > 0 }
}
