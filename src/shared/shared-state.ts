/**
 * State that the gateways of several machines share, in Valkey or Redis: the counts of rate limits and of
 * permits of tenants, and messages about changed tables and revoked tokens
 * (docs/guides/scaling.md#shared-state).
 *
 * While the store cannot be reached, each gateway counts alone. No request waits longer than `timeoutMs` for
 * the store, and after a failure none waits until the store has answered again.
 */
import { createHash, randomUUID } from 'node:crypto'
import { Redis, type Result } from 'ioredis'
import type { Emit } from '../events.ts'
import { GIVE_BACK_MS, type LeaseStore } from '../limits/leases.ts'
import { createPermitLedger, createTokenLedger, type Ledger } from '../limits/ledger.ts'
import { parseSharedMessage, printSharedMessage } from './messages.ts'
import { ADD_PERMITS, GIVE_TOKENS, TAKE_PERMITS, TAKE_TOKENS } from './scripts.ts'

/** The limits that can be shared by machines. */
export type MachineLimit = 'requests' | 'tenants'

/** The configuration of the store. */
export interface SharedStateOptions {
  /** `redis://` or `rediss://`. */
  readonly url: string
  /** The first part of all names in the store; gateways of one database use the same. */
  readonly prefix: string
  readonly timeoutMs: number
  readonly rateLimitRate: number
  readonly rateLimitBurst: number
  readonly tenantMaxConcurrent: number
  readonly emit: Emit
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** How long the permits of a gateway are counted after its last sign of life; 10 s by default. */
  readonly lifeMs?: number
}

/** The functions that other gateways call by messages. */
export interface SharedHandlers {
  /** Results that depend on these relations are outdated; null: all results. */
  changed(relations: readonly number[] | null): void
  /** The list of revoked tokens has changed. */
  revoked(): void
}

/** Figures for metrics and `/health/internal`. */
export interface SharedStats {
  readonly isConnected: boolean
  /** Commands that failed or were not answered in time. */
  readonly failures: number
}

/** The shared state. */
export interface SharedState {
  /** Resolves when the store has answered, or after a second without an answer. */
  ready(): Promise<void>
  storeOf(limit: MachineLimit): LeaseStore
  /** Resolves when the store has passed the message on, or after the timeout. Never rejects. */
  changed(relations: readonly number[] | null): Promise<void>
  handle(handlers: SharedHandlers): void
  stats(): SharedStats
  close(): Promise<void>
}

const LIFE_MS = 10_000
/** Signs of life within that time. */
const SIGNS = 4
/** After a failure, the store is asked again at this interval until it answers. */
const RETRY_MS = 1_000
/** The process number of this gateway in its own ledgers. */
const OWN = 0

/** Connects to the store. Does not wait for it: until it answers, this gateway counts alone. */
export function openSharedState(options: SharedStateOptions): SharedState {
  return new RedisState(options)
}

class RedisState implements SharedState {
  readonly #options: SharedStateOptions
  readonly #client: Redis
  readonly #subscriber: Redis
  readonly #channel: string
  /** Counts while the store cannot be reached. */
  readonly #own: Readonly<Record<MachineLimit, Ledger>>
  readonly #timer: NodeJS.Timeout
  /** Changed whenever the store was away, so that what it counted before is dropped with the earlier id. */
  #id = randomUUID()
  #isConnected = false
  /** When tokens were last lent by this gateway's own count. */
  #ownTokensAt = Number.NEGATIVE_INFINITY
  readonly #ready: Promise<void>
  #onReady: () => void = () => {}
  #wasConnected = false
  #isClosed = false
  #failures = 0
  #handlers: SharedHandlers = { changed() {}, revoked() {} }

  constructor(options: SharedStateOptions) {
    this.#options = options
    const { url, prefix, timeoutMs, now } = options
    const retryStrategy = () => RETRY_MS
    this.#client = new Redis(url, {
      ...{ enableOfflineQueue: false, maxRetriesPerRequest: 0, commandTimeout: timeoutMs, retryStrategy },
      // Signs of life are sent more often than that, so a connection that went silent is noticed.
      ...{ connectTimeout: RETRY_MS, socketTimeout: LIFE_MS },
      scripts: SCRIPTS,
    })
    this.#subscriber = new Redis(url, { ...{ retryStrategy, connectTimeout: RETRY_MS }, maxRetriesPerRequest: null })
    this.#channel = `{${prefix}}:messages`
    this.#ready = new Promise(resolve => {
      this.#onReady = resolve
      setTimeout(resolve, RETRY_MS).unref()
    })
    this.#own = {
      requests: createTokenLedger({
        ...{ rate: options.rateLimitRate, burst: options.rateLimitBurst, now, processes: () => 1 },
        seed: Number.parseInt(this.#id.slice(0, 8), 16),
      }),
      tenants: createPermitLedger(options.tenantMaxConcurrent, () => 1),
    }
    // The failure of each command is handled where it is sent.
    this.#client.on('error', () => {})
    this.#client.on('ready', () => void this.#live())
    this.#client.on('close', () => this.#away(new Error('the connection was closed')))
    this.#subscriber.on('error', () => {})
    // Messages may have been missed while it was not subscribed.
    this.#subscriber.on('ready', () => this.#handlers.changed(null))
    this.#subscriber.on('message', (_channel, text) => this.#receive(text))
    void this.#subscriber.subscribe(this.#channel).catch(() => {})
    this.#timer = setInterval(() => void this.#live(), Math.min(RETRY_MS, this.#lifeMs / SIGNS))
    this.#timer.unref()
  }

  ready(): Promise<void> {
    return this.#ready
  }

  storeOf(limit: MachineLimit): LeaseStore {
    const own = this.#own[limit]
    return {
      lease: async (holder, units) => {
        const leased = await this.#ask(() => this.#lease(limit, holder, units))
        if (leased !== null) return leased
        if (limit === 'requests') this.#ownTokensAt = this.#options.now()
        return own.lend(OWN, holder, units)
      },
      give: (holder, units) => {
        if (this.#isConnected && !this.#mayBeOwn(limit)) void this.#ask(() => this.#give(limit, holder, units))
        else own.give(OWN, holder, units)
      },
      exceed: (holder, units) => {
        if (limit === 'requests') return
        if (this.#isConnected) void this.#ask(() => this.#add(holder, units))
        else own.exceed(OWN, holder, units)
      },
    }
  }

  async changed(relations: readonly number[] | null): Promise<void> {
    const message = printSharedMessage({ kind: 'changed', from: this.#id, relations })
    await this.#ask(() => this.#client.publish(this.#channel, message))
  }

  handle(handlers: SharedHandlers): void {
    this.#handlers = handlers
  }

  stats(): SharedStats {
    return { isConnected: this.#isConnected, failures: this.#failures }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    // The permits of this gateway are free at once.
    if (this.#isConnected) await this.#client.del(this.#lifeKey).catch(() => {})
    this.#client.disconnect()
    this.#subscriber.disconnect()
  }

  /**
   * Reports whether unused tokens can come from the count of this gateway alone. Tokens are given back soon
   * after they were lent, so only recent ones can.
   */
  #mayBeOwn(limit: MachineLimit): boolean {
    return limit === 'requests' && this.#options.now() - this.#ownTokensAt < 4 * GIVE_BACK_MS
  }

  get #lifeMs(): number {
    return this.#options.lifeMs ?? LIFE_MS
  }

  get #lifeKey(): string {
    return `${this.#lifePrefix}${this.#id}`
  }

  get #lifePrefix(): string {
    return `{${this.#options.prefix}}:gateway:`
  }

  /** The braces keep all keys in one slot of a cluster. The name of a holder can have any length. */
  #keyOf(limit: MachineLimit, holder: string): string {
    const digest = createHash('sha256').update(holder).digest('base64url')
    return `{${this.#options.prefix}}:${limit}:${digest}`
  }

  #lease(limit: MachineLimit, holder: string, units: number): Promise<number> {
    const { rateLimitRate, rateLimitBurst, tenantMaxConcurrent } = this.#options
    const key = this.#keyOf(limit, holder)
    return limit === 'requests'
      ? this.#client.takeTokens(key, units, rateLimitRate, rateLimitBurst)
      : this.#client.takePermits(key, this.#id, units, tenantMaxConcurrent, this.#lifePrefix)
  }

  #give(limit: MachineLimit, holder: string, units: number): Promise<number> {
    return limit === 'requests'
      ? this.#client.giveTokens(this.#keyOf(limit, holder), units, this.#options.rateLimitRate)
      : this.#add(holder, -units)
  }

  #add(holder: string, units: number): Promise<number> {
    return this.#client.addPermits(this.#keyOf('tenants', holder), this.#id, units)
  }

  /** The result of a command; null if the store is away. */
  async #ask<T>(command: () => Promise<T>): Promise<T | null> {
    if (!this.#isConnected) return null
    try {
      return await command()
    } catch (error) {
      this.#failures++
      this.#away(error as Error)
      return null
    }
  }

  /** Gives a sign of life, which also finds out whether the store is there. */
  async #live(): Promise<void> {
    if (this.#isClosed || this.#client.status !== 'ready') return
    try {
      await this.#client.set(this.#lifeKey, '1', 'PX', this.#lifeMs)
      this.#back()
    } catch (error) {
      // The second failure in a row: the connection has gone silent.
      if (!this.#isConnected) this.#client.disconnect(true)
      else this.#failures++
      this.#away(error as Error)
    }
  }

  #back(): void {
    if (this.#isConnected || this.#isClosed) return
    this.#isConnected = true
    this.#onReady()
    if (this.#wasConnected) {
      this.#warn('shared state is available again; limits are counted for all gateways', null)
      // Its connection may have gone silent too. It invalidates everything when it is ready.
      this.#subscriber.disconnect(true)
    }
    this.#wasConnected = true
  }

  #away(error: Error): void {
    if (this.#isClosed || !this.#isConnected) return
    this.#isConnected = false
    this.#id = randomUUID()
    this.#warn(
      `the store of shared state does not answer: ${error.message}; this gateway counts its limits alone`,
      'Check gateway.shared.url, and that the server runs.',
    )
  }

  #warn(message: string, fix: string | null): void {
    this.#options.emit({ kind: 'warning', message, fix })
  }

  #receive(text: string): void {
    const message = parseSharedMessage(text)
    if (message === null || message.from === this.#id) return
    if (message.kind === 'changed') this.#handlers.changed(message.relations)
    else this.#handlers.revoked()
  }
}

const SCRIPTS = {
  takeTokens: { lua: TAKE_TOKENS, numberOfKeys: 1 },
  giveTokens: { lua: GIVE_TOKENS, numberOfKeys: 1 },
  takePermits: { lua: TAKE_PERMITS, numberOfKeys: 1 },
  addPermits: { lua: ADD_PERMITS, numberOfKeys: 1 },
}

// The commands that the client makes of the scripts.
declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeTokens(key: string, units: number, rate: number, burst: number): Result<number, Context>
    giveTokens(key: string, units: number, rate: number): Result<number, Context>
    takePermits(key: string, gateway: string, units: number, max: number, lives: string): Result<number, Context>
    addPermits(key: string, gateway: string, units: number): Result<number, Context>
  }
}

/** Asks all gateways to read the list of revoked tokens again. Rejects if the store cannot be reached. */
export async function publishRevocation(url: string, prefix: string, timeoutMs: number): Promise<void> {
  const client = new Redis(url, {
    ...{ lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null },
    ...{ connectTimeout: timeoutMs, commandTimeout: timeoutMs },
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.publish(`{${prefix}}:messages`, printSharedMessage({ kind: 'revoked', from: randomUUID() }))
  } finally {
    client.disconnect()
  }
}
