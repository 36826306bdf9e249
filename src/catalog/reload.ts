/**
 * Holds the catalogue in service and keeps it up to date: on request, on notification, and by polling (docs/guides/your-own-database.md#when-the-schema-changes).
 * A new catalogue is built aside and swapped whole; when that fails the old one keeps serving.
 */
import type { Catalog } from './model.ts'

export interface CatalogSourceOptions {
  /** Reads the whole catalogue. */
  readonly load: () => Promise<Catalog>
  /** Reads only its fingerprint. */
  readonly fingerprint: () => Promise<string>
  /** Seconds between two looks at the fingerprint; 0 never looks. */
  readonly pollSeconds: number
  readonly onEvent: (event: CatalogEvent) => void
  readonly timers?: Timers
}

export type CatalogEvent =
  | {
      readonly kind: 'loaded'
      readonly reason: string
      /** False: what was read is what was served already, and goes on being served as the same object. */
      readonly changed: boolean
      readonly tables: number
      readonly durationMs: number
    }
  /** The old catalogue keeps serving. */
  | { readonly kind: 'failed'; readonly reason: string; readonly error: unknown }

/** The clock and the timers of the world; tests bring their own. */
export interface Timers {
  /** Milliseconds from any beginning, never going back. */
  now(): number
  /** Calls back once after `delayMs`, without keeping the process alive; returns what cancels it. */
  after(delayMs: number, call: () => void): () => void
}

/** Notices that come together – a migration sends one for each of its statements – cause one look at the schema. */
export const SETTLE_MS = 100

export interface CatalogSource {
  /** The catalogue to serve a request by: take it once at the beginning and stay with it. */
  current(): Catalog
  /**
   * Reads the catalogue, whatever its fingerprint says (SIGHUP). Resolves when a read that began after this call has
   * ended, to whether it succeeded; never rejects. Calls that come while a read is under way share the next one.
   */
  reload(reason: string): Promise<boolean>
  /** Something may have changed (NOTIFY svc_schema): soon looks at the fingerprint, and reloads if it differs. */
  notify(reason: string): void
  /** No look, no swap and no event from here on; `current()` goes on answering. */
  close(): void
}

/** Loads the first catalogue; rejects with what `load` rejects with, so that start-up can say so and try again. */
export async function createCatalogSource(options: CatalogSourceOptions): Promise<CatalogSource> {
  return new Source(options, await options.load())
}

/** Looking reads the fingerprint first and is done if it is the one served; loading reads everything. */
type Work = 'look' | 'load'

interface Request {
  work: Work
  readonly reasons: Set<string>
  readonly done: Promise<boolean>
}

class Source implements CatalogSource {
  readonly #options: CatalogSourceOptions
  readonly #timers: Timers
  #catalog: Catalog
  #closed = false
  #cancelPoll: () => void = nothing
  #cancelNotice: (() => void) | null = null
  /** Ends when all requests so far have ended. One runs at a time: an older answer never replaces a newer one. */
  #tail: Promise<unknown> = Promise.resolve()
  /** Asked for and not begun yet; whoever asks meanwhile joins it. */
  #waiting: Request | null = null

  constructor(options: CatalogSourceOptions, first: Catalog) {
    this.#options = options
    this.#timers = options.timers ?? SYSTEM_TIMERS
    this.#catalog = first
    this.#schedulePoll()
  }

  current(): Catalog {
    return this.#catalog
  }

  reload(reason: string): Promise<boolean> {
    return this.#request('load', reason)
  }

  notify(reason: string): void {
    if (this.#closed || this.#cancelNotice !== null) return
    this.#cancelNotice = this.#timers.after(SETTLE_MS, () => {
      this.#cancelNotice = null
      void this.#request('look', reason)
    })
  }

  close(): void {
    this.#closed = true
    this.#cancelPoll()
    this.#cancelNotice?.()
  }

  #schedulePoll(): void {
    const { pollSeconds } = this.#options
    if (this.#closed || pollSeconds === 0) return
    this.#cancelPoll = this.#timers.after(Math.min(pollSeconds * 1000, DELAY_MS_MAX), () => {
      void this.#request('look', 'poll').then(() => this.#schedulePoll())
    })
  }

  #request(work: Work, reason: string): Promise<boolean> {
    if (this.#waiting !== null) {
      if (work === 'load') this.#waiting.work = 'load'
      this.#waiting.reasons.add(reason)
      return this.#waiting.done
    }
    const begin = (): Promise<boolean> => {
      this.#waiting = null
      return this.#run(request)
    }
    const request: Request = { work, reasons: new Set([reason]), done: this.#tail.then(begin) }
    this.#waiting = request
    this.#tail = request.done
    return request.done
  }

  /** Never rejects. */
  async #run(request: Request): Promise<boolean> {
    const reason = [...request.reasons].join(', ')
    const startedAt = this.#timers.now()
    try {
      if (this.#closed) return false
      if (request.work === 'look' && (await this.#options.fingerprint()) === this.#catalog.fingerprint) return true
      const read = await this.#options.load()
      if (this.#closed) return false
      const changed = read.fingerprint !== this.#catalog.fingerprint
      // The same object for the same schema: what others keep for a catalogue (printed statements) stays good.
      if (changed) this.#catalog = read
      const durationMs = this.#timers.now() - startedAt
      this.#options.onEvent({ kind: 'loaded', reason, changed, tables: read.tables.size, durationMs })
      return true
    } catch (error) {
      if (!this.#closed) this.#options.onEvent({ kind: 'failed', reason, error })
      return false
    }
  }
}

/** A longer delay makes setTimeout fire at once (Node: TimeoutOverflowWarning). */
const DELAY_MS_MAX = 2 ** 31 - 1

const SYSTEM_TIMERS: Timers = {
  now: () => performance.now(),
  after(delayMs, call) {
    const timer = setTimeout(call, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

function nothing(): void {}
