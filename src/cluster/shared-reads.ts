/**
 * Reads of the change log that several workers need: one of them reads, and the others receive its result. A
 * read continues from a position and ends at the next one, so a worker that is behind receives the results in
 * order.
 */

/** The response to a worker that needs a read: a result, or the turn to read. */
export type ReadTurn =
  /** The result of another worker's read, which began this many milliseconds ago. */
  | { readonly kind: 'result'; readonly value: unknown; readonly ageMs: number }
  /** The worker reads and reports the result. */
  | { readonly kind: 'read' }

/** The result of a read, and its place in the sequence. */
export interface ReadStep {
  /** The name of the stream. Two reads of one stream from the same position have the same result. */
  readonly stream: string
  /** The position from which the read continues; empty for the first read of a worker. */
  readonly from: string
  readonly to: string
  readonly value: unknown
}

/** The recent reads. Each worker process has an id that is never reused. */
export interface SharedReads {
  /**
   * Resolves at once, or when the worker that is reading from this position has reported. A result without
   * changes is valid only for its time, so it is used for at most `unchangedMsMax`.
   */
  turn(worker: number, stream: string, from: string, unchangedMsMax: number): Promise<ReadTurn>
  /** Records the result of a read; `step` is null if the read failed. */
  report(worker: number, stream: string, from: string, step: ReadStep | null): void
  /** Gives the turns of a worker that has ended to others. */
  drop(worker: number): void
}

/** Limit on the results kept for each stream. A worker that needs an older one reads by itself. */
const STEPS_MAX = 64

/** Limit on the streams kept. Above it, the one that was read longest ago is dropped. */
const STREAMS_MAX = 64

/** The maximum age of a result for a worker's first read. Later changes follow with the next read. */
const FIRST_MS_MAX = 1_000

/** How long a worker waits for the read of another one before it reads by itself. */
const WAIT_MS_MAX = 2_000

interface Kept extends ReadStep {
  readonly beganAt: number
}

interface Reading {
  readonly worker: number
  readonly beganAt: number
  readonly waiting: Waiting[]
}

interface Waiting {
  readonly worker: number
  take(turn: ReadTurn): void
}

interface Stream {
  readonly steps: Map<string, Kept>
  readonly reading: Map<string, Reading>
  latest: Kept | null
}

/** Creates an empty set. `now`: milliseconds of a monotonic clock. */
export function createSharedReads(now: () => number): SharedReads {
  const streams = new Map<string, Stream>()

  function streamOf(name: string): Stream {
    const known = streams.get(name) ?? { steps: new Map(), reading: new Map(), latest: null }
    streams.delete(name)
    streams.set(name, known)
    const [oldest] = streams.keys()
    if (streams.size > STREAMS_MAX && oldest !== undefined) streams.delete(oldest)
    return known
  }

  function known({ steps, latest }: Stream, from: string, unchangedMsMax: number): Kept | null {
    const step = from === '' ? latest : steps.get(from)
    if (step === undefined || step === null) return null
    const ageMs = now() - step.beganAt
    if (from === '') return ageMs <= FIRST_MS_MAX ? step : null
    return step.to !== from || ageMs < unchangedMsMax ? step : null
  }

  function resultOf({ value, beganAt }: Kept): ReadTurn {
    return { kind: 'result', value, ageMs: now() - beganAt }
  }

  function keep(stream: Stream, step: ReadStep, beganAt: number): Kept {
    const kept = { ...step, beganAt }
    stream.latest = kept
    stream.steps.delete(step.from)
    stream.steps.set(step.from, kept)
    const [oldest] = stream.steps.keys()
    if (stream.steps.size > STEPS_MAX && oldest !== undefined) stream.steps.delete(oldest)
    return kept
  }

  /** Gives the turn to the next waiting worker. */
  function passOn(stream: Stream, from: string, { waiting: [next, ...waiting] }: Reading): void {
    stream.reading.delete(from)
    if (next === undefined) return
    stream.reading.set(from, { worker: next.worker, beganAt: now(), waiting })
    next.take({ kind: 'read' })
  }

  /** Gives the turn to a worker that has waited for too long. */
  function takeOver(stream: Stream, from: string, worker: Waiting): void {
    const reading = stream.reading.get(from)
    const waiting = (reading?.waiting ?? []).filter(each => each !== worker)
    stream.reading.set(from, { worker: worker.worker, beganAt: now(), waiting })
    worker.take({ kind: 'read' })
  }

  return {
    turn(worker, name, from, unchangedMsMax) {
      const stream = streamOf(name)
      const step = known(stream, from, unchangedMsMax)
      if (step !== null) return Promise.resolve(resultOf(step))
      const reading = stream.reading.get(from)
      if (reading === undefined) {
        stream.reading.set(from, { worker, beganAt: now(), waiting: [] })
        return Promise.resolve({ kind: 'read' })
      }
      return new Promise(resolve => {
        const waiting: Waiting = {
          worker,
          take(turn) {
            clearTimeout(timer)
            resolve(turn)
          },
        }
        const timer = setTimeout(() => takeOver(stream, from, waiting), WAIT_MS_MAX)
        reading.waiting.push(waiting)
      })
    },
    report(worker, name, from, step) {
      const stream = streamOf(name)
      const reading = stream.reading.get(from)
      // Another worker has the turn now.
      if (reading?.worker !== worker) return
      if (step === null) {
        passOn(stream, from, reading)
        return
      }
      const kept = keep(stream, step, reading.beganAt)
      stream.reading.delete(from)
      for (const { take } of reading.waiting) take(resultOf(kept))
    },
    drop(worker) {
      for (const stream of streams.values()) {
        for (const [from, reading] of stream.reading) {
          if (reading.worker === worker) passOn(stream, from, reading)
        }
      }
    },
  }
}
