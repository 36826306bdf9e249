/**
 * Chooses which of a flow's connections takes the next request, or whether it takes another connection. Few
 * connections with many requests in flight are faster than many with few: requests and responses share
 * packets, and server processes do not compete for CPUs. So fast work is packed onto the busiest connection
 * while the wait there is negligible, and slow work gets a connection to itself.
 */

import type { Flow } from './flow.ts'

/** Slower statements go where the wait is shortest. */
const FAST_MS = 0.25
/** The accepted wait of fast work; beyond it, work spreads and the pool grows. */
const PACK_MS = 2
/** If the wait would be longer, the request waits for whichever connection is free first. */
const QUEUE_MS_MAX = 5
/**
 * The same for slower statements: enough that the next one is already there when the server has finished one,
 * and that few requests wait with a server process that gets no core for a while.
 */
const SLOWER_QUEUE_MS_MAX = 0.75

/** A connection as a candidate for a request. */
export interface Candidate {
  /** The flow whose requests it carries; null while it is free. */
  readonly owner: Flow | null
  readonly accepting: boolean
  readonly depth: number
  /** The expected wait; Infinity behind a slow statement. */
  waitMs(now: number): number
}

/** The chosen connection. */
export interface Choice<C> {
  /** Null: the request waits. */
  readonly candidate: C | null
  /** True if one more connection would be useful. */
  readonly grow: boolean
}

/** Chooses among the connections of `flow` and, with `mayTake`, the free ones. */
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
  if (shortest === null || shortestMs > (fast ? QUEUE_MS_MAX : SLOWER_QUEUE_MS_MAX))
    return { candidate: null, grow: true }
  return { candidate: shortest, grow: shortest.depth > 0 }
}
