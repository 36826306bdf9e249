/**
 * A clock that only the simulation moves. While it runs, the global timers are its own, so the code of the
 * gateway that waits by `setTimeout` runs unchanged; nothing else may run in the process.
 */

interface Due {
  readonly at: number
  readonly order: number
  readonly call: () => void
  isCancelled: boolean
}

export interface VirtualTime {
  /** Milliseconds since the start. */
  now(): number
  /** Calls once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, call: () => void): () => void
  /** Calls every `intervalMs`; the returned function stops it. */
  every(intervalMs: number, call: () => void): () => void
  sleep(delayMs: number): Promise<void>
  /** Moves the clock to `untilMs`, and runs everything that is due on the way. */
  run(untilMs: number): Promise<void>
  /** Restores the timers of the process. */
  close(): void
}

/** Creates a clock at 0, and replaces the global timers. */
export function startVirtualTime(): VirtualTime {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
  const heap: Due[] = []
  let now = 0
  let orders = 0

  function push(due: Due): void {
    let at = heap.push(due) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(due, heap[parent])) break
      heap[at] = heap[parent] as Due
      at = parent
    }
    heap[at] = due
  }

  function pop(): Due | undefined {
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++
      if (!isBefore(heap[child], last)) break
      heap[at] = heap[child] as Due
      at = child
    }
    heap[at] = last
    return first
  }

  function add(delayMs: number, call: () => void): Due {
    const due = { at: now + Math.max(0, delayMs), order: orders++, call, isCancelled: false }
    push(due)
    return due
  }

  const time: VirtualTime = {
    now: () => now,
    after(delayMs, call) {
      const due = add(delayMs, call)
      return () => {
        due.isCancelled = true
      }
    },
    every(intervalMs, call) {
      let isStopped = false
      const again = (): void => {
        if (isStopped) return
        call()
        add(intervalMs, again)
      }
      add(intervalMs, again)
      return () => {
        isStopped = true
      }
    },
    sleep: delayMs => new Promise(resolve => add(delayMs, resolve)),
    async run(untilMs) {
      // Promises that are settled already run before the first timer.
      await turn()
      for (let [due] = heap; due !== undefined && due.at <= untilMs; [due] = heap) {
        now = due.at
        while (heap[0] !== undefined && heap[0].at <= now) {
          const next = pop()
          if (next?.isCancelled === false) next.call()
        }
        await turn()
      }
      now = untilMs
    },
    close() {
      Object.assign(globalThis, real)
    },
  }
  const setTimeout = (call: () => void, delayMs = 0) => {
    const due = add(delayMs, call)
    return { due, unref() {}, ref() {} }
  }
  const clearTimeout = (timer?: { due?: Due } | null) => {
    if (timer?.due !== undefined) timer.due.isCancelled = true
  }
  Object.assign(globalThis, { setTimeout, clearTimeout })
  return time
}

function isBefore(one: Due | undefined, other: Due | undefined): boolean {
  if (one === undefined || other === undefined) return false
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

/** All promises that can settle without a timer have settled. */
function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
