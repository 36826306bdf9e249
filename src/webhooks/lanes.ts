/**
 * What waits, by endpoint. Each endpoint is a lane with its own places, and lanes take turns: one that is slow, dead, or has thousands waiting costs the
 * others nothing. Data only: who delivers says when.
 */
import type { Delivery } from './delivery.ts'

/** On their way at the same time, altogether and to one endpoint. */
export const IN_FLIGHT_MAX = 64
export const LANE_IN_FLIGHT_MAX = 8

/** An endpoint that failed so often in a row is asked by one delivery at a time, until it answers well. */
export const FAILURES_UNTIL_NARROW = 5

/** Held altogether, whether it waits for its turn, for its next try, or for an answer. */
export const HELD_MAX = 100_000
export const HELD_BYTES_MAX: number = 64 * 1024 * 1024

/** What is known of endpoints for which nothing waits here: that they fail. */
export const IDLE_LANES_MAX = 1_000

interface Lane<T> {
  readonly endpoint: string
  readonly ready: Set<T>
  /** With what cancels the wait. */
  readonly waiting: Map<T, () => void>
  readonly running: Set<T>
  bytes: number
  failures: number
}

export interface LaneStats {
  readonly ready: number
  readonly waiting: number
  readonly inFlight: number
  readonly bytes: number
  /** When the oldest of all came; null if nothing is held. */
  readonly oldestMs: number | null
  /** Endpoints that are asked by one delivery at a time. */
  readonly narrow: number
}

export interface Lanes<T extends Delivery = Delivery> {
  /** Takes a new delivery in; answers those that had to go for it. */
  add(delivery: T): readonly T[]
  /** The next one whose turn it is; null if there is none, or no place. It is in flight until it is left or waits. */
  take(): T | null
  /** Its try is over; `next` is the same delivery for the next try, and `start` begins that wait and answers what cancels it. */
  retry(delivery: T, next: T, start: () => () => void): void
  /** The wait is over. */
  wake(delivery: T): void
  /** Its try is over, and with it the delivery. */
  leave(delivery: T): void
  /** How its try went, before it is left or waits. */
  judge(delivery: T, outcome: 'good' | 'bad'): void
  /** How many the lane of an endpoint can have when it may hold `ahead` for each of its places – one that fails holds one –, and how many more than now. */
  room(endpoint: string, ahead: number): { readonly most: number; readonly free: number }
  /** Cancels the waits; answers all that was not in flight. */
  empty(which: 'waiting' | 'all'): readonly T[]
  /** Nothing is on its way, and nothing could be. */
  isIdle(): boolean
  stats(): LaneStats
}

export function createLanes<T extends Delivery = Delivery>(): Lanes<T> {
  const lanes = new Map<string, Lane<T>>()
  /** Lanes that have something ready and a place for it; the one whose turn it is comes first. */
  const turns = new Set<Lane<T>>()
  let held = 0
  let bytes = 0
  let inFlight = 0

  function laneOf(endpoint: string): Lane<T> {
    const known = lanes.get(endpoint)
    if (known !== undefined) return known
    const lane = {
      endpoint,
      ready: new Set<T>(),
      waiting: new Map(),
      running: new Set<T>(),
      bytes: 0,
      failures: 0,
    }
    lanes.set(endpoint, lane)
    return lane
  }

  function look(lane: Lane<T>): void {
    if (lane.ready.size > 0 && lane.running.size < placesOf(lane)) turns.add(lane)
    else turns.delete(lane)
    if (isEmpty(lane) && lane.failures === 0) lanes.delete(lane.endpoint)
    if (lanes.size > IDLE_LANES_MAX) forgetIdle()
  }

  function forgetIdle(): void {
    for (const lane of lanes.values()) if (isEmpty(lane)) lanes.delete(lane.endpoint)
  }

  function hold(lane: Lane<T>, delivery: T): void {
    held += 1
    bytes += delivery.body.length
    lane.bytes += delivery.body.length
  }

  function release(lane: Lane<T>, delivery: T): void {
    held -= 1
    bytes -= delivery.body.length
    lane.bytes -= delivery.body.length
  }

  /** Of the lane that holds most: what has waited longest, at best for another try. */
  function evict(): T | null {
    let fullest: Lane<T> | null = null
    for (const lane of lanes.values()) {
      if (lane.ready.size + lane.waiting.size > 0 && lane.bytes > (fullest?.bytes ?? 0)) fullest = lane
    }
    if (fullest === null) return null
    const [[failing, cancel] = []] = fullest.waiting
    const [ready] = fullest.ready
    const victim = failing ?? ready
    if (victim === undefined) return null
    cancel?.()
    fullest.waiting.delete(victim)
    fullest.ready.delete(victim)
    release(fullest, victim)
    look(fullest)
    return victim
  }

  function end(delivery: T): Lane<T> {
    const lane = laneOf(delivery.endpoint)
    if (lane.running.delete(delivery)) {
      inFlight -= 1
      release(lane, delivery)
    }
    return lane
  }

  return {
    add(delivery) {
      const lane = laneOf(delivery.endpoint)
      hold(lane, delivery)
      lane.ready.add(delivery)
      look(lane)
      const gone: T[] = []
      while (held > HELD_MAX || bytes > HELD_BYTES_MAX) {
        const victim = evict()
        if (victim === null) break
        gone.push(victim)
      }
      return gone
    },
    take() {
      if (inFlight >= IN_FLIGHT_MAX) return null
      const [lane] = turns
      const [delivery] = lane?.ready ?? []
      if (lane === undefined || delivery === undefined) return null
      lane.ready.delete(delivery)
      lane.running.add(delivery)
      inFlight += 1
      // To the end of the line.
      turns.delete(lane)
      look(lane)
      return delivery
    },
    retry(delivery, next, start) {
      const before = end(delivery)
      const lane = laneOf(next.endpoint)
      hold(lane, next)
      lane.waiting.set(next, start())
      if (before !== lane) look(before)
      look(lane)
    },
    wake(delivery) {
      const lane = laneOf(delivery.endpoint)
      if (!lane.waiting.delete(delivery)) return
      lane.ready.add(delivery)
      look(lane)
    },
    leave: delivery => look(end(delivery)),
    judge({ endpoint }, outcome) {
      const lane = laneOf(endpoint)
      lane.failures = outcome === 'good' ? 0 : lane.failures + 1
      look(lane)
    },
    empty(which) {
      const all: T[] = []
      for (const lane of [...lanes.values()]) {
        for (const cancel of lane.waiting.values()) cancel()
        const gone = [...lane.waiting.keys(), ...(which === 'all' ? lane.ready : [])]
        for (const delivery of gone) release(lane, delivery)
        all.push(...gone)
        lane.waiting.clear()
        if (which === 'all') lane.ready.clear()
        look(lane)
      }
      return all
    },
    room(endpoint, ahead) {
      const lane = lanes.get(endpoint)
      if (lane === undefined) return { most: LANE_IN_FLIGHT_MAX * ahead, free: LANE_IN_FLIGHT_MAX * ahead }
      const most = isNarrow(lane) ? 1 : LANE_IN_FLIGHT_MAX * ahead
      return { most, free: Math.max(0, most - lane.ready.size - lane.running.size) }
    },
    isIdle: () => inFlight === 0 && [...lanes.values()].every(({ ready }) => ready.size === 0),
    stats() {
      const all = [...lanes.values()]
      const sum = (of: (lane: Lane<T>) => number) => all.reduce((total, lane) => total + of(lane), 0)
      return {
        ready: sum(lane => lane.ready.size),
        waiting: sum(lane => lane.waiting.size),
        ...{ inFlight, bytes, oldestMs: oldestOf(all) },
        narrow: all.filter(isNarrow).length,
      }
    },
  }
}

function placesOf(lane: Lane<Delivery>): number {
  return isNarrow(lane) ? 1 : LANE_IN_FLIGHT_MAX
}

function isEmpty({ ready, waiting, running }: Lane<Delivery>): boolean {
  return ready.size + waiting.size + running.size === 0
}

function isNarrow({ failures }: Pick<Lane<Delivery>, 'failures'>): boolean {
  return failures >= FAILURES_UNTIL_NARROW
}

function oldestOf(lanes: readonly Lane<Delivery>[]): number | null {
  let oldest: number | null = null
  for (const { ready, waiting, running } of lanes) {
    for (const set of [ready, waiting.keys(), running]) {
      for (const { createdAtMs } of set) if (oldest === null || createdAtMs < oldest) oldest = createdAtMs
    }
  }
  return oldest
}
