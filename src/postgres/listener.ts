/**
 * A dedicated connection for LISTEN. It sends heartbeats, because a half-open socket reports nothing,
 * reconnects by itself, and reports when notifications may have been missed.
 */
import type { Gss } from './auth/gss-attempts.ts'
import { type Backoff, delayMs } from './backoff.ts'
import { CommandBatch } from './batch.ts'
import { Connection, type ConnectionListener } from './connection.ts'
import { BlockedError, ConnectError, UnavailableError } from './errors.ts'
import { NO_FLOW } from './flow.ts'
import { HostOrder } from './host-order.ts'
import { connect } from './startup.ts'
import type { ConnectionTarget } from './target.ts'
import type { Command, ResultRow } from './types.ts'

/** The server truncates longer names; a truncated name would never match. */
const CHANNEL_BYTES_MAX = 63
/** Limit on the channels, about one per table. */
const CHANNELS_MAX = 10_000
const HEARTBEAT_MS = 10_000
const HEARTBEAT_ANSWER_MS = 5_000
const RECONNECT: Backoff = { firstMs: 100, maxMs: 5_000 }

/** The options of a listener. */
export interface ListenerOptions {
  readonly target: ConnectionTarget
  readonly onNotification: (channel: string, payload: string) => void
  /** The connection was lost and all channels are listened to again; notifications in between are lost. */
  readonly onGap: () => void
  /** Required if the target allows Kerberos. */
  readonly gss?: Gss | null
  readonly onEvent?: (event: ListenerEvent) => void
  readonly heartbeatMs?: number
  /** Time limit on the response to a heartbeat, after which the connection counts as dead. */
  readonly heartbeatAnswerMs?: number
  readonly random?: () => number
  /** Runs on every new connection once its channels are listened to, and before callers are informed. */
  readonly prepare?: PrepareConnection
}

/** Prepares a new connection by running commands. */
export type PrepareConnection = (ask: (command: Command) => Promise<readonly ResultRow[]>) => Promise<void>

/** An event of the listener's connection. */
export type ListenerEvent =
  | { readonly kind: 'connected'; readonly processId: number }
  | {
      readonly kind: 'connect-failed'
      readonly error: ConnectError
      readonly failures: number
      readonly retryInMs: number
    }
  | { readonly kind: 'lost'; readonly error: Error }

/** Listens on channels. */
export interface Listener {
  /**
   * Resolves once the channel is listened to, however long the database is unavailable. Rejects when the
   * listener is closed, or for an invalid name.
   */
  listen(channel: string): Promise<void>
  /** Stops callbacks for the channel. */
  unlisten(channel: string): void
  readonly connected: boolean
  close(): void
}

/** Creates a listener, which connects at the first `listen`. */
export function createListener(options: ListenerOptions): Listener {
  return new PostgresListener(options)
}

class PostgresListener implements Listener, ConnectionListener {
  readonly #options: Required<ListenerOptions>
  readonly #hosts: HostOrder
  /** Channels with their waiting callers. An empty list: the channel is listened to, or will be again. */
  readonly #channels = new Map<string, { resolve(): void; reject(error: Error): void }[]>()
  readonly #shutdown = new AbortController()
  #connection: Connection | null = null
  #opening = false
  #wasConnected = false
  #failures = 0
  #timer: NodeJS.Timeout | null = null

  constructor(options: ListenerOptions) {
    this.#options = {
      heartbeatMs: HEARTBEAT_MS,
      heartbeatAnswerMs: HEARTBEAT_ANSWER_MS,
      gss: null,
      onEvent: () => {},
      random: Math.random,
      prepare: async () => {},
      ...options,
    }
    this.#hosts = new HostOrder(options.target, { random: this.#options.random })
  }

  get connected(): boolean {
    return this.#connection !== null
  }

  listen(channel: string): Promise<void> {
    if (this.#shutdown.signal.aborted) return Promise.reject(closedError())
    const bytes = Buffer.byteLength(channel)
    if (bytes === 0 || bytes > CHANNEL_BYTES_MAX || channel.includes('\0')) {
      return Promise.reject(
        new RangeError(
          `a channel name must have 1 to ${CHANNEL_BYTES_MAX} bytes without zero bytes; this one has ${bytes}`,
        ),
      )
    }
    if (!this.#channels.has(channel) && this.#channels.size >= CHANNELS_MAX) {
      return Promise.reject(new RangeError(`${CHANNELS_MAX} channels already have listeners, the maximum`))
    }
    return new Promise((resolve, reject) => {
      const waiters = this.#channels.get(channel) ?? []
      waiters.push({ resolve, reject })
      this.#channels.set(channel, waiters)
      if (this.#connection !== null) this.#listenTo(this.#connection, [channel])
      else if (!this.#opening && this.#timer === null) void this.#open()
    })
  }

  unlisten(channel: string): void {
    const waiters = this.#channels.get(channel)
    if (waiters === undefined) return
    this.#channels.delete(channel)
    for (const waiter of waiters) waiter.resolve()
    if (this.#connection !== null)
      this.#send(this.#connection, [{ text: `unlisten ${quote(channel)}`, parameters: [] }])
  }

  close(): void {
    this.#shutdown.abort(closedError())
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const waiters of this.#channels.values()) for (const waiter of waiters) waiter.reject(closedError())
    this.#channels.clear()
    this.#connection?.destroy(closedError())
  }

  // --- ConnectionListener ---

  notification(channel: string, payload: string): void {
    if (this.#channels.has(channel)) this.#options.onNotification(channel, payload)
  }

  closed(connection: Connection, reason: Error | null): void {
    if (this.#connection !== connection) return
    this.#connection = null
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#shutdown.signal.aborted) return
    this.#options.onEvent({ kind: 'lost', error: reason ?? new Error('a session setting changed') })
    this.#openLater(null)
  }

  finished(): void {}

  measured(): void {}
  available(): void {}
  cancelRequested(): void {}

  // // --- connection ---

  async #open(): Promise<void> {
    this.#opening = true
    const { target, gss } = this.#options
    try {
      const { signal } = this.#shutdown
      const connected = await connect({ target, throughPooler: false, gss, hosts: this.#hosts, signal })
      const clock = (): number => performance.now()
      const limits = { statementCacheSize: 0, pipelineDepth: Infinity, clock }
      const connection = new Connection(connected, limits, this)
      await this.#listenToAll(connection)
    } catch (error) {
      this.#opening = false
      this.#openFailed(error as Error)
    }
  }

  /**
   * Adopts the connection in the same turn in which the last channel is listened to; channels may be added
   * concurrently.
   */
  async #listenToAll(connection: Connection): Promise<void> {
    const listened = new Set<string>()
    let prepared = false
    try {
      for (;;) {
        this.#shutdown.signal.throwIfAborted()
        // The server may have closed right after its response; `closed` was called before the connection was
        // adopted.
        if (connection.isClosed) throw new Error('the connection was lost right after its channels were listened to')
        const missing = [...this.#channels.keys()].filter(channel => !listened.has(channel))
        if (missing.length === 0 && prepared) break
        if (missing.length > 0) await this.#send(connection, missing.map(listenCommand)).result
        for (const channel of missing) listened.add(channel)
        if (prepared) continue
        await this.#options.prepare(async command => (await this.#send(connection, [command]).result)[0]?.rows ?? [])
        prepared = true
      }
      this.#adopt(connection)
    } catch (error) {
      connection.destroy(error as Error)
      throw error
    }
  }

  #adopt(connection: Connection): void {
    this.#connection = connection
    this.#opening = false
    this.#failures = 0
    this.#options.onEvent({ kind: 'connected', processId: connection.session.processId })
    this.#scheduleHeartbeat(connection)
    for (const channel of this.#channels.keys()) this.#confirm(channel)
    if (this.#wasConnected) this.#options.onGap()
    this.#wasConnected = true
  }

  #openFailed(cause: Error): void {
    if (this.#shutdown.signal.aborted) return
    const error =
      cause instanceof ConnectError ? cause : new ConnectError(`LISTEN failed: ${cause.message}`, false, cause)
    this.#failures++
    const retryInMs = this.#openLater(error)
    this.#options.onEvent({ kind: 'connect-failed', error, failures: this.#failures, retryInMs })
  }

  #openLater(error: Error | null): number {
    const patienceMs = delayMs(RECONNECT, Math.max(1, this.#failures), this.#options.random)
    const inMs = Math.max(patienceMs, error instanceof BlockedError ? error.forMs : 0)
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#open()
    }, inMs)
    return inMs
  }

  #listenTo(connection: Connection, channels: readonly string[]): void {
    this.#send(connection, channels.map(listenCommand)).result.then(
      () => {
        for (const channel of channels) this.#confirm(channel)
      },
      // Refused or lost: a new connection listens to everything again.
      error => connection.destroy(error),
    )
  }

  #confirm(channel: string): void {
    for (const waiter of this.#channels.get(channel)?.splice(0) ?? []) waiter.resolve()
  }

  #send(connection: Connection, commands: readonly Command[]): CommandBatch {
    const unit = new CommandBatch(NO_FLOW, commands, () => {})
    // Callers who need the outcome await it themselves; `closed` handles a lost connection.
    unit.result.catch(() => {})
    connection.send(unit)
    return unit
  }

  #scheduleHeartbeat(connection: Connection): void {
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(
        () => connection.destroy(new Error(`no response to a heartbeat within ${this.#options.heartbeatAnswerMs} ms`)),
        this.#options.heartbeatAnswerMs,
      )
      this.#send(connection, [{ text: 'select 1', parameters: [] }]).result.then(
        () => {
          if (this.#timer !== null) clearTimeout(this.#timer)
          if (this.#connection === connection) this.#scheduleHeartbeat(connection)
        },
        error => connection.destroy(error),
      )
    }, this.#options.heartbeatMs)
  }
}

function listenCommand(channel: string): Command {
  return { text: `listen ${quote(channel)}`, parameters: [] }
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function closedError(): UnavailableError {
  return new UnavailableError('the listener is closed', false)
}
