/**
 * The cached keys of a provider: fetched at startup, again before they become stale, and again when a token
 * names an unknown key. While the provider does not answer, the last keys stay in use for up to a day.
 */
import type { Clock } from '../../clock.ts'
import { type KeySource, type LookedAgain, succeed } from './key-source.ts'
import type { FetchedKeys } from './provider.ts'
import type { SigningKey } from './signing-key.ts'

/** The dependencies of the cached keys of a provider. */
export interface RemoteKeysParts {
  /** Fetches the keys. Rejects with the reason. */
  readonly fetch: () => Promise<FetchedKeys>
  readonly clock: Clock
  /** A number from 0 to 1. It spreads the fetches of gateways that were started together. */
  readonly random: () => number
  readonly onEvent: (event: KeysEvent) => void
}

/** A change in the state of a provider's keys. */
export type KeysEvent =
  /** The first keys, changed keys, or the first keys after a failure. */
  | { readonly kind: 'fetched'; readonly keys: number; readonly unusable: readonly string[] }
  /** The first failure after a success; `servedForMs`: how long the old keys stay in use. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly servedForMs: number }
  /** The keys are too old to accept tokens. */
  | { readonly kind: 'dropped' }

/** The state of a provider's keys. */
export interface KeysStats {
  readonly keys: number
  /** The time since the keys became stale; 0 while they are fresh or missing. */
  readonly staleMs: number
  readonly fetched: number
  readonly failed: number
}

/** How long stale keys stay in use if they cannot be fetched. */
const STALE_MS_MAX = 86_400_000
/** The minimum time between two fetches caused by an unknown `kid`. */
const UNKNOWN_KID_COOL_DOWN_MS = 30_000
const RETRY_MS_MIN = 1_000
const RETRY_MS_MAX = 30_000
/**
 * The fraction of the keys' lifetime after which they are fetched again, so that there is time for a few
 * failures.
 */
const REFRESH_AFTER = 0.8
const SPREAD = 0.1

interface Held {
  readonly keys: readonly SigningKey[]
  readonly freshUntil: number
}

/** The keys of one provider, kept up to date until `close`. */
export class RemoteKeys implements KeySource {
  /** The fetch started by the constructor. */
  readonly firstFetch: Promise<LookedAgain>
  readonly #parts: RemoteKeysParts
  #held: Held | null = null
  #inFlight: Promise<LookedAgain> | null = null
  /** The number of failures since the last success. */
  #failures = 0
  #lookedAgainAt = Number.NEGATIVE_INFINITY
  #nextAt: number
  #cancel: () => void = () => {}
  #isClosed = false
  readonly #counts = { fetched: 0, failed: 0 }

  /** Starts the first fetch without waiting for it. */
  constructor(parts: RemoteKeysParts) {
    this.#parts = parts
    this.#nextAt = parts.clock.now()
    this.firstFetch = this.fetch()
  }

  current(): readonly SigningKey[] | null {
    return this.#held?.keys ?? null
  }

  /** Joins the fetch in progress, or starts one. Never rejects. */
  fetch(): Promise<LookedAgain> {
    this.#inFlight ??= this.#fetchOnce().finally(() => {
      this.#inFlight = null
    })
    return this.#inFlight
  }

  async lookAgain(): Promise<LookedAgain> {
    if (this.#inFlight !== null) return this.#inFlight
    const now = this.#parts.clock.now()
    if (now - this.#lookedAgainAt < UNKNOWN_KID_COOL_DOWN_MS) return this.#failures > 0 ? 'failed' : 'fetched'
    this.#lookedAgainAt = now
    return this.fetch()
  }

  retryAfterSeconds(): number {
    return Math.max(1, Math.ceil((this.#nextAt - this.#parts.clock.now()) / 1_000))
  }

  stats(): KeysStats {
    const { keys = [], freshUntil = Number.POSITIVE_INFINITY } = this.#held ?? {}
    return { keys: keys.length, staleMs: Math.max(0, this.#parts.clock.now() - freshUntil), ...this.#counts }
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async #fetchOnce(): Promise<LookedAgain> {
    this.#cancel()
    let outcome: LookedAgain
    try {
      this.#take(await this.#parts.fetch())
      outcome = 'fetched'
    } catch (error) {
      this.#fail(error)
      outcome = 'failed'
    }
    return outcome
  }

  #take({ keys, unusable, maxAgeMs }: FetchedKeys): void {
    const { clock, onEvent } = this.#parts
    const before = this.#held?.keys ?? null
    const held = succeed(before ?? [], keys)
    const isNews = before === null || this.#failures > 0 || held.length !== before.length || !held.every(isIn(before))
    this.#held = { keys: held, freshUntil: clock.now() + maxAgeMs }
    this.#failures = 0
    this.#counts.fetched += 1
    if (isNews) onEvent({ kind: 'fetched', keys: held.length, unusable })
    this.#fetchIn(maxAgeMs * (REFRESH_AFTER - SPREAD * this.#parts.random()))
  }

  #fail(error: unknown): void {
    const { clock, onEvent } = this.#parts
    this.#failures += 1
    this.#counts.failed += 1
    const endsAt = this.#held === null ? 0 : this.#held.freshUntil + STALE_MS_MAX
    const servedForMs = Math.max(0, endsAt - clock.now())
    if (this.#failures === 1) onEvent({ kind: 'failed', error, servedForMs })
    if (this.#held !== null && servedForMs === 0) {
      succeed(this.#held.keys, [])
      this.#held = null
      onEvent({ kind: 'dropped' })
    }
    const waitMs = Math.min(RETRY_MS_MIN * 2 ** Math.min(this.#failures - 1, 10), RETRY_MS_MAX)
    this.#fetchIn(waitMs * (1 - SPREAD * this.#parts.random()))
  }

  #fetchIn(ms: number): void {
    if (this.#isClosed) return
    this.#nextAt = this.#parts.clock.now() + ms
    this.#cancel = this.#parts.clock.after(ms, () => void this.fetch())
  }
}

const isIn =
  (keys: readonly SigningKey[]) =>
  (key: SigningKey): boolean =>
    keys.includes(key)
