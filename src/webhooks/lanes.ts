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

export class Lanes<T extends Delivery = Delivery> {
  readonly #lanes = new Map<string, Lane<T>>()
  /** Lanes that have something ready and a place for it; the one whose turn it is comes first. */
  readonly #turns = new Set<Lane<T>>()
  #held = 0
  #bytes = 0
  #inFlight = 0

  /** Takes a new delivery in; answers those that had to go for it. */
  add(delivery: T): readonly T[] {
    const lane = this.#laneOf(delivery.endpoint)
    this.#hold(lane, delivery)
    lane.ready.add(delivery)
    this.#look(lane)
    const gone: T[] = []
    while (this.#held > HELD_MAX || this.#bytes > HELD_BYTES_MAX) {
      const victim = this.#evict()
      if (victim === null) break
      gone.push(victim)
    }
    return gone
  }

  /** The next one whose turn it is; null if there is none, or no place. It is in flight until it is left or waits. */
  take(): T | null {
    if (this.#inFlight >= IN_FLIGHT_MAX) return null
    const [lane] = this.#turns
    const [delivery] = lane?.ready ?? []
    if (lane === undefined || delivery === undefined) return null
    lane.ready.delete(delivery)
    lane.running.add(delivery)
    this.#inFlight += 1
    // To the end of the line.
    this.#turns.delete(lane)
    this.#look(lane)
    return delivery
  }

  /** Its try is over; `next` is the same delivery for the next try, and `start` begins that wait and answers what cancels it. */
  retry(delivery: T, next: T, start: () => () => void): void {
    const before = this.#end(delivery)
    const lane = this.#laneOf(next.endpoint)
    this.#hold(lane, next)
    lane.waiting.set(next, start())
    if (before !== lane) this.#look(before)
    this.#look(lane)
  }

  /** The wait is over. */
  wake(delivery: T): void {
    const lane = this.#laneOf(delivery.endpoint)
    if (!lane.waiting.delete(delivery)) return
    lane.ready.add(delivery)
    this.#look(lane)
  }

  /** Its try is over, and with it the delivery. */
  leave(delivery: T): void {
    this.#look(this.#end(delivery))
  }

  /** How its try went, before it is left or waits. */
  judge({ endpoint }: T, outcome: 'good' | 'bad'): void {
    const lane = this.#laneOf(endpoint)
    lane.failures = outcome === 'good' ? 0 : lane.failures + 1
    this.#look(lane)
  }

  /** How many the lane of an endpoint can have when it may hold `ahead` for each of its places – one that fails holds one –, and how many more than now. */
  room(endpoint: string, ahead: number): { readonly most: number; readonly free: number } {
    const lane = this.#lanes.get(endpoint)
    if (lane === undefined) return { most: LANE_IN_FLIGHT_MAX * ahead, free: LANE_IN_FLIGHT_MAX * ahead }
    const most = isNarrow(lane) ? 1 : LANE_IN_FLIGHT_MAX * ahead
    return { most, free: Math.max(0, most - lane.ready.size - lane.running.size) }
  }

  /** Cancels the waits; answers all that was not in flight. */
  empty(which: 'waiting' | 'all'): readonly T[] {
    return [...this.#lanes.values()].flatMap(lane => this.#emptyLane(lane, which))
  }

  /** Nothing is on its way, and nothing could be. */
  isIdle(): boolean {
    return this.#inFlight === 0 && [...this.#lanes.values()].every(({ ready }) => ready.size === 0)
  }

  stats(): LaneStats {
    const all = [...this.#lanes.values()]
    const sum = (of: (lane: Lane<T>) => number) => all.reduce((total, lane) => total + of(lane), 0)
    return {
      ready: sum(lane => lane.ready.size),
      waiting: sum(lane => lane.waiting.size),
      ...{ inFlight: this.#inFlight, bytes: this.#bytes, oldestMs: oldestOf(all) },
      narrow: all.filter(isNarrow).length,
    }
  }

  #laneOf(endpoint: string): Lane<T> {
    const known = this.#lanes.get(endpoint)
    if (known !== undefined) return known
    const lane = { endpoint, ready: new Set<T>(), waiting: new Map(), running: new Set<T>(), bytes: 0, failures: 0 }
    this.#lanes.set(endpoint, lane)
    return lane
  }

  /** After each change of a lane: whether it is in line, and whether it is kept. */
  #look(lane: Lane<T>): void {
    if (lane.ready.size > 0 && lane.running.size < placesOf(lane)) this.#turns.add(lane)
    else this.#turns.delete(lane)
    if (isEmpty(lane) && lane.failures === 0) this.#lanes.delete(lane.endpoint)
    if (this.#lanes.size > IDLE_LANES_MAX) this.#forgetIdle()
  }

  #forgetIdle(): void {
    for (const lane of this.#lanes.values()) if (isEmpty(lane)) this.#lanes.delete(lane.endpoint)
  }

  #hold(lane: Lane<T>, delivery: T): void {
    this.#held += 1
    this.#bytes += delivery.body.length
    lane.bytes += delivery.body.length
  }

  #release(lane: Lane<T>, delivery: T): void {
    this.#held -= 1
    this.#bytes -= delivery.body.length
    lane.bytes -= delivery.body.length
  }

  #end(delivery: T): Lane<T> {
    const lane = this.#laneOf(delivery.endpoint)
    if (lane.running.delete(delivery)) {
      this.#inFlight -= 1
      this.#release(lane, delivery)
    }
    return lane
  }

  /** Of the lane that holds most: what has waited longest, at best for another try. */
  #evict(): T | null {
    const lane = this.#fullest()
    if (lane === null) return null
    const [[failing, cancel] = []] = lane.waiting
    const [ready] = lane.ready
    const victim = failing ?? ready
    if (victim === undefined) return null
    cancel?.()
    lane.waiting.delete(victim)
    lane.ready.delete(victim)
    this.#release(lane, victim)
    this.#look(lane)
    return victim
  }

  /** Of those that hold something that is not on its way. */
  #fullest(): Lane<T> | null {
    let fullest: Lane<T> | null = null
    for (const lane of this.#lanes.values()) {
      if (lane.ready.size + lane.waiting.size > 0 && lane.bytes > (fullest?.bytes ?? 0)) fullest = lane
    }
    return fullest
  }

  #emptyLane(lane: Lane<T>, which: 'waiting' | 'all'): readonly T[] {
    for (const cancel of lane.waiting.values()) cancel()
    const gone = [...lane.waiting.keys(), ...(which === 'all' ? lane.ready : [])]
    for (const delivery of gone) this.#release(lane, delivery)
    lane.waiting.clear()
    if (which === 'all') lane.ready.clear()
    this.#look(lane)
    return gone
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
