/**
 * Measures how long the server takes for each request of a connection. Responses of pipelined requests arrive
 * together, and are read late when this process is busy, so the time between two of them says little about
 * either. Over a window of some milliseconds in which the server was never idle, their mean is right.
 */

/** Shorter windows say little, unless the server had nothing to do before. */
const WINDOW_MS = 2
/** A response that takes longer is not delayed by this process, so the time is its own. */
const CLEARLY_SLOW_MS = 5

/** A finished request. */
export interface Finished {
  /** The key of its estimate. */
  readonly latencyKey: string
  /** The estimate when it was sent: the requests of a window share its time in this proportion. */
  readonly expectedMs: number
}

/** How long the server took for a request. */
export interface Measured {
  readonly latencyKey: string
  readonly ms: number
}

const NONE: readonly Measured[] = []

/** The times of one connection. All times are in milliseconds of one clock. */
export class ServiceTimes {
  /** Requests whose responses ended in the chunk that is being read. */
  #chunk: Finished[] = []
  #chunkAt = 0
  /** Earlier requests of the window. */
  #window: Finished[] = []
  #startedAt = 0
  /** When the latest response arrived, or the first request was sent. */
  #busySince = 0
  #beganIdle = false

  /** The server has received requests after it had none. */
  begin(now: number): void {
    this.#startedAt = now
    this.#busySince = now
    this.#beganIdle = true
    this.#window = []
  }

  /** A response has been read. */
  finished(request: Finished, now: number): void {
    if (this.#chunk.length === 0) this.#chunkAt = now
    this.#chunk.push(request)
  }

  /** A response has been read whose time depends on its reader. */
  discard(now: number): void {
    this.#chunk = []
    this.#restart(now)
  }

  /**
   * Called when every response that has arrived has been read. `isIdle`: the server has nothing left to do.
   * Returns what is known from now on.
   */
  chunkRead(isIdle: boolean): readonly Measured[] {
    const [first, ...others] = this.#chunk
    if (first === undefined) return NONE
    const now = this.#chunkAt
    this.#chunk = []
    const ms = now - this.#busySince
    const measured: Measured[] = []
    if (ms >= CLEARLY_SLOW_MS) {
      measured.push(...this.#timesUntil(this.#busySince), { latencyKey: first.latencyKey, ms })
      this.#restart(now)
      this.#window = others
    } else {
      this.#window.push(first, ...others)
      this.#busySince = now
    }
    if (isIdle || now - this.#startedAt >= WINDOW_MS) {
      measured.push(...this.#timesUntil(now))
      this.#restart(now)
    }
    return measured
  }

  #restart(now: number): void {
    this.#startedAt = now
    this.#busySince = now
    this.#beganIdle = false
    this.#window = []
  }

  #timesUntil(now: number): readonly Measured[] {
    const ms = now - this.#startedAt
    const requests = this.#window
    if (requests.length === 0 || (ms < WINDOW_MS && !this.#beganIdle)) return NONE
    const expectedMs = requests.reduce((sum, request) => sum + request.expectedMs, 0)
    return requests.map(({ latencyKey, expectedMs: own }) => ({
      latencyKey,
      ms: expectedMs > 0 ? (ms * own) / expectedMs : ms / requests.length,
    }))
  }
}
