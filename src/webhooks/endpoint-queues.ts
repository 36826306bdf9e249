/**
 * Queues of deliveries, one for each endpoint. Each endpoint has its own limit on requests in flight, and
 * endpoints take turns, so that one that is slow, unreachable, or has thousands of deliveries waiting does
 * not delay the others. A pure data structure: the caller sends requests and measures time.
 */
import type { Delivery } from './delivery.ts'

/** Limits on requests in flight, in total and for one endpoint. */
export const IN_FLIGHT_MAX = 64
export const ENDPOINT_IN_FLIGHT_MAX = 8

/**
 * Consecutive failures after which an endpoint is throttled: it receives one request at a time until one
 * succeeds.
 */
export const FAILURES_UNTIL_THROTTLED = 5

/** Limits on the deliveries held in total, whether ready, waiting for a retry, or in flight. */
export const HELD_MAX = 100_000
export const HELD_BYTES_MAX: number = 64 * 1024 * 1024

/** Limit on endpoints that are remembered only for their recent failures. */
export const IDLE_ENDPOINTS_MAX = 1_000

interface EndpointQueue<T> {
  readonly endpoint: string
  readonly ready: Set<T>
  /** Waiting for a retry, with the function that cancels the timer. */
  readonly waiting: Map<T, () => void>
  readonly running: Set<T>
  bytes: number
  failures: number
}

/** Figures over all queues. */
export interface QueueStats {
  readonly ready: number
  readonly waiting: number
  readonly inFlight: number
  readonly bytes: number
  /** When the oldest delivery was created; null for none. */
  readonly oldestMs: number | null
  /** Endpoints that are throttled. */
  readonly throttled: number
}

/** The queues of all endpoints. */
export class EndpointQueues<T extends Delivery = Delivery> {
  readonly #queues = new Map<string, EndpointQueue<T>>()
  /** Queues with a ready delivery and a free slot, in the order of their turns. */
  readonly #runnable = new Set<EndpointQueue<T>>()
  #held = 0
  #bytes = 0
  #inFlight = 0

  /** Adds a new delivery; returns those that were evicted to make room. */
  add(delivery: T): readonly T[] {
    const queue = this.#queueOf(delivery.endpoint)
    this.#hold(queue, delivery)
    queue.ready.add(delivery)
    this.#update(queue)
    const removed: T[] = []
    while (this.#held > HELD_MAX || this.#bytes > HELD_BYTES_MAX) {
      const victim = this.#evict()
      if (victim === null) break
      removed.push(victim)
    }
    return removed
  }

  /**
   * Takes the next delivery; null if none is ready or no slot is free. It is in flight until `finish` or
   * `retry` is called.
   */
  take(): T | null {
    if (this.#inFlight >= IN_FLIGHT_MAX) return null
    const [queue] = this.#runnable
    const [delivery] = queue?.ready ?? []
    if (queue === undefined || delivery === undefined) return null
    queue.ready.delete(delivery)
    queue.running.add(delivery)
    this.#inFlight += 1
    // Move the queue to the end of the order.
    this.#runnable.delete(queue)
    this.#update(queue)
    return delivery
  }

  /**
   * Ends an attempt and schedules the next one. `next` is the delivery for the next attempt; `start` starts
   * the timer and returns the function that cancels it.
   */
  retry(delivery: T, next: T, start: () => () => void): void {
    const before = this.#end(delivery)
    const queue = this.#queueOf(next.endpoint)
    this.#hold(queue, next)
    queue.waiting.set(next, start())
    if (before !== queue) this.#update(before)
    this.#update(queue)
  }

  /** Makes a delivery ready again after its retry delay. */
  wake(delivery: T): void {
    const queue = this.#queueOf(delivery.endpoint)
    if (!queue.waiting.delete(delivery)) return
    queue.ready.add(delivery)
    this.#update(queue)
  }

  /** Ends the attempt, and with it the delivery. */
  finish(delivery: T): void {
    this.#update(this.#end(delivery))
  }

  /** Records the outcome of an attempt, before `finish` or `retry`. */
  recordOutcome({ endpoint }: T, outcome: 'good' | 'bad'): void {
    const queue = this.#queueOf(endpoint)
    queue.failures = outcome === 'good' ? 0 : queue.failures + 1
    this.#update(queue)
  }

  /**
   * The capacity of an endpoint's queue if it may hold `ahead` deliveries per slot (one in total if it is
   * throttled), and how much of it is free.
   */
  capacity(endpoint: string, ahead: number): { readonly most: number; readonly free: number } {
    const queue = this.#queues.get(endpoint)
    if (queue === undefined) return { most: ENDPOINT_IN_FLIGHT_MAX * ahead, free: ENDPOINT_IN_FLIGHT_MAX * ahead }
    const most = isThrottled(queue) ? 1 : ENDPOINT_IN_FLIGHT_MAX * ahead
    return { most, free: Math.max(0, most - queue.ready.size - queue.running.size) }
  }

  /** Cancels retries; returns the deliveries removed, which excludes those in flight. */
  clear(which: 'waiting' | 'all'): readonly T[] {
    return [...this.#queues.values()].flatMap(queue => this.#clearQueue(queue, which))
  }

  /** True if nothing is in flight and nothing is ready. */
  isIdle(): boolean {
    return this.#inFlight === 0 && [...this.#queues.values()].every(({ ready }) => ready.size === 0)
  }

  stats(): QueueStats {
    const all = [...this.#queues.values()]
    const sum = (of: (queue: EndpointQueue<T>) => number) => all.reduce((total, queue) => total + of(queue), 0)
    return {
      ready: sum(queue => queue.ready.size),
      waiting: sum(queue => queue.waiting.size),
      ...{ inFlight: this.#inFlight, bytes: this.#bytes, oldestMs: oldestOf(all) },
      throttled: all.filter(isThrottled).length,
    }
  }

  #queueOf(endpoint: string): EndpointQueue<T> {
    const known = this.#queues.get(endpoint)
    if (known !== undefined) return known
    const queue = { endpoint, ready: new Set<T>(), waiting: new Map(), running: new Set<T>(), bytes: 0, failures: 0 }
    this.#queues.set(endpoint, queue)
    return queue
  }

  /** Updates the turn order after a change to a queue, and drops the queue when it is no longer needed. */
  #update(queue: EndpointQueue<T>): void {
    if (queue.ready.size > 0 && queue.running.size < slotsOf(queue)) this.#runnable.add(queue)
    else this.#runnable.delete(queue)
    if (isEmpty(queue) && queue.failures === 0) this.#queues.delete(queue.endpoint)
    if (this.#queues.size > IDLE_ENDPOINTS_MAX) this.#dropIdle()
  }

  #dropIdle(): void {
    for (const queue of this.#queues.values()) if (isEmpty(queue)) this.#queues.delete(queue.endpoint)
  }

  #hold(queue: EndpointQueue<T>, delivery: T): void {
    this.#held += 1
    this.#bytes += delivery.body.length
    queue.bytes += delivery.body.length
  }

  #release(queue: EndpointQueue<T>, delivery: T): void {
    this.#held -= 1
    this.#bytes -= delivery.body.length
    queue.bytes -= delivery.body.length
  }

  #end(delivery: T): EndpointQueue<T> {
    const queue = this.#queueOf(delivery.endpoint)
    if (queue.running.delete(delivery)) {
      this.#inFlight -= 1
      this.#release(queue, delivery)
    }
    return queue
  }

  /**
   * Evicts from the queue that holds most bytes: the delivery that has waited longest for a retry, or else
   * the oldest ready one.
   */
  #evict(): T | null {
    const queue = this.#fullest()
    if (queue === null) return null
    const [[failing, cancel] = []] = queue.waiting
    const [ready] = queue.ready
    const victim = failing ?? ready
    if (victim === undefined) return null
    cancel?.()
    queue.waiting.delete(victim)
    queue.ready.delete(victim)
    this.#release(queue, victim)
    this.#update(queue)
    return victim
  }

  /** The queue with most bytes among those that hold a delivery that is not in flight. */
  #fullest(): EndpointQueue<T> | null {
    let fullest: EndpointQueue<T> | null = null
    for (const queue of this.#queues.values()) {
      if (queue.ready.size + queue.waiting.size > 0 && queue.bytes > (fullest?.bytes ?? 0)) fullest = queue
    }
    return fullest
  }

  #clearQueue(queue: EndpointQueue<T>, which: 'waiting' | 'all'): readonly T[] {
    for (const cancel of queue.waiting.values()) cancel()
    const removed = [...queue.waiting.keys(), ...(which === 'all' ? queue.ready : [])]
    for (const delivery of removed) this.#release(queue, delivery)
    queue.waiting.clear()
    if (which === 'all') queue.ready.clear()
    this.#update(queue)
    return removed
  }
}

function slotsOf(queue: EndpointQueue<Delivery>): number {
  return isThrottled(queue) ? 1 : ENDPOINT_IN_FLIGHT_MAX
}

function isEmpty({ ready, waiting, running }: EndpointQueue<Delivery>): boolean {
  return ready.size + waiting.size + running.size === 0
}

function isThrottled({ failures }: Pick<EndpointQueue<Delivery>, 'failures'>): boolean {
  return failures >= FAILURES_UNTIL_THROTTLED
}

function oldestOf(queues: readonly EndpointQueue<Delivery>[]): number | null {
  let oldest: number | null = null
  for (const { ready, waiting, running } of queues) {
    for (const set of [ready, waiting.keys(), running]) {
      for (const { createdAtMs } of set) if (oldest === null || createdAtMs < oldest) oldest = createdAtMs
    }
  }
  return oldest
}
