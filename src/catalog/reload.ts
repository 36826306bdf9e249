/**
 * Holds the current catalog and keeps it up to date: on request, on notification, and by polling
 * (docs/guides/your-own-database.md#when-the-schema-changes). A new catalog is built separately and swapped
 * as a whole; if that fails, the old one stays in use.
 */
import type { Catalog } from './model.ts'

export interface CatalogSourceOptions {
  /** Reads the whole catalog. */
  readonly load: () => Promise<Catalog>
  /** Reads only its fingerprint. */
  readonly fingerprint: () => Promise<string>
  /** Seconds between two checks of the fingerprint; 0 disables them. */
  readonly pollSeconds: number
  readonly onEvent: (event: CatalogEvent) => void
  readonly timers?: Timers
}

export type CatalogEvent =
  | {
      readonly kind: 'loaded'
      readonly reason: string
      /** False if the schema is unchanged; the same object stays in use. */
      readonly changed: boolean
      readonly tables: number
      readonly durationMs: number
    }
  /** The old catalog stays in use. */
  | { readonly kind: 'failed'; readonly reason: string; readonly error: unknown }

/** A clock and timers; tests provide their own. */
export interface Timers {
  /** Monotonic milliseconds. */
  now(): number
  /** Calls back once after `delayMs`, without keeping the process alive; returns what cancels it. */
  after(delayMs: number, call: () => void): () => void
}

/** Notifications within this period – a migration sends one per statement – cause a single check. */
export const SETTLE_MS = 100

export interface CatalogSource {
  /** The current catalog. A request must read it once and use the same object throughout. */
  current(): Catalog
  /** True if the schema was read after every report of `notify`. */
  isCertain(): boolean
  /**
   * Reads the catalog even if its fingerprint is unchanged (SIGHUP). Resolves at the end of a read that began
   * after this call: true if it succeeded. Never rejects. Calls during a read share the next one.
   */
  reload(reason: string): Promise<boolean>
  /**
   * Something may have changed (NOTIFY svc_schema): checks the fingerprint soon, and reloads if it differs.
   */
  notify(reason: string): void
  /** Stops all checks, swaps and events; `current()` keeps returning the last catalog. */
  close(): void
}

/** Loads the first catalog. Rejects with errors of `load`, so that startup can report them and retry. */
export async function createCatalogSource(options: CatalogSourceOptions): Promise<CatalogSource> {
  return new Source(options, await options.load())
}

/** A check reads the fingerprint first and stops if it is unchanged; a load reads everything. */
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
  /**
   * Settles when all requests so far have ended. Requests run one at a time, so that an older result never
   * replaces a newer one.
   */
  #tail: Promise<unknown> = Promise.resolve()
  /** Requested and not started yet; further requests join it. */
  #waiting: Request | null = null
  /** Counts the reports of possible changes. */
  #reports = 0
  /** The reports before the last successful read. */
  #heard = 0

  constructor(options: CatalogSourceOptions, first: Catalog) {
    this.#options = options
    this.#timers = options.timers ?? SYSTEM_TIMERS
    this.#catalog = first
    this.#schedulePoll()
  }

  current(): Catalog {
    return this.#catalog
  }

  isCertain(): boolean {
    return this.#heard === this.#reports
  }

  reload(reason: string): Promise<boolean> {
    return this.#request('load', reason)
  }

  notify(reason: string): void {
    this.#reports++
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
    const reports = this.#reports
    try {
      if (this.#closed) return false
      if (request.work === 'look' && (await this.#options.fingerprint()) === this.#catalog.fingerprint) {
        this.#heard = reports
        return true
      }
      const read = await this.#options.load()
      if (this.#closed) return false
      this.#heard = reports
      const changed = read.fingerprint !== this.#catalog.fingerprint
      // The same object for the same schema, so that caches keyed by it (printed statements) stay valid.
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

/** Longer delays make setTimeout fire immediately (Node: TimeoutOverflowWarning). */
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
