/**
 * A session in replication mode (PostgreSQL manual, 54.4): commands one after another, then a stream of
 * changes. Changes are delivered in commit order, as fast as they are taken: behind a slow reader the socket
 * is paused, so memory is bounded and the server waits. Status updates do not stop, because the server ends a
 * session that is silent for `wal_sender_timeout`.
 */
import type { Gss } from '../auth/gss-attempts.ts'
import { DatabaseError, ProtocolError } from '../errors.ts'
import { BACKEND, type BackendMessage, decodeBackend } from '../protocol/backend.ts'
import { writeCopyDone, writeQuery, writeTerminate } from '../protocol/frontend.ts'
import { MESSAGE_BYTES_MAX } from '../protocol/reader.ts'
import { connect } from '../startup.ts'
import type { ServerSession } from '../startup-conversation.ts'
import type { ConnectionTarget } from '../target.ts'
import { connectionLost, type Wire, type WireSink } from '../wire.ts'
import { createSlotCommand, type SlotOptions, type StreamOptions, startCommand } from './commands.ts'
import { ReplicationStream } from './stream.ts'

/** Limit on the result of a command; those of replication have one row of a few short columns. */
export const COMMAND_BYTES_MAX: number = 1024 * 1024

/** How to open a session. */
export interface ReplicationOptions {
  /** The role needs the attribute REPLICATION. */
  readonly target: ConnectionTarget
  readonly gss?: Gss | null
  /** Ends the attempt, and later the session. */
  readonly signal?: AbortSignal
  /** A longer message is delivered as `skipped`; 64 MiB by default. */
  readonly messageBytesMax?: number
}

/** A row of a command's result. */
export type CommandRow = readonly (string | null)[]

/** Opens a session. Rejects with `ConnectError`. */
export async function openReplication(options: ReplicationOptions): Promise<ReplicationSession> {
  const { target, gss = null, signal, messageBytesMax = MESSAGE_BYTES_MAX } = options
  const { wire, session } = await connect({
    ...{ target, gss, throughPooler: false, replication: true },
    ...(signal === undefined ? {} : { signal }),
  })
  wire.messageBytesMax = messageBytesMax
  return new ReplicationSession(wire, session, signal)
}

/** Messages that the session waits for. Any other one ends it. */
type Expected =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'result'; readonly pending: Pending<readonly CommandRow[]>; rows: CommandRow[]; bytes: number }
  | { readonly kind: 'start'; readonly pending: Pending<ReplicationStream>; readonly options: StreamOptions }
  | { readonly kind: 'stream'; readonly stream: ReplicationStream }
  | { readonly kind: 'end'; readonly pending: Pending<void> }

interface Pending<T> {
  resolve(value: T): void
  reject(error: Error): void
  /** Set by ErrorResponse; the command ends with ReadyForQuery. */
  error: Error | null
}

/** A session in replication mode. */
export class ReplicationSession {
  /** The parameters that the server reported at start-up. */
  readonly session: ServerSession
  readonly #wire: Wire
  readonly #signal: AbortSignal | undefined
  #expected: Expected = { kind: 'nothing' }

  constructor(wire: Wire, session: ServerSession, signal: AbortSignal | undefined) {
    this.session = session
    this.#wire = wire
    this.#signal = signal
    const sink: WireSink = {
      message: (type, bytes, start, end) => this.#receive(type, bytes, start, end),
      tooLong: (type, bodyBytes) => this.#tooLong(type, bodyBytes),
      flushed() {},
      closed: error => this.#closed(error),
    }
    wire.sink = sink
    signal?.addEventListener('abort', this.#aborted)
    if (signal?.aborted === true) this.#aborted()
  }

  /** Runs a replication command or an SQL statement, without parameters. Rejects with `DatabaseError`. */
  run(text: string): Promise<readonly CommandRow[]> {
    return this.#begin(text, pending => ({ kind: 'result', pending, rows: [], bytes: 0 }))
  }

  /** Creates a logical slot for `pgoutput`; resolves to the position from which it delivers changes. */
  async createSlot(options: SlotOptions): Promise<string> {
    const [[, position] = []] = await this.run(createSlotCommand(options))
    if (position == null) throw new ProtocolError('CREATE_REPLICATION_SLOT returned no position')
    return position
  }

  /** Starts the stream. Rejects with `DatabaseError`, for instance 55006 if the slot is in use. */
  start(options: StreamOptions): Promise<ReplicationStream> {
    return this.#begin(startCommand(options), pending => ({ kind: 'start', pending, options }))
  }

  /** Ends the session; what was confirmed is sent first. */
  close(): void {
    if (this.#wire.closed) return
    const expected = this.#expected
    this.#expected = { kind: 'nothing' }
    this.#signal?.removeEventListener('abort', this.#aborted)
    const reason = new Error('the replication session was closed')
    if (expected.kind === 'stream') {
      expected.stream.discard(reason)
      writeCopyDone(this.#wire.writer)
    } else if (expected.kind !== 'nothing') expected.pending.reject(connectionLost(true, reason))
    writeTerminate(this.#wire.writer)
    this.#wire.end()
  }

  #begin<T>(text: string, expect: (pending: Pending<T>) => Expected): Promise<T> {
    if (this.#wire.closed) return Promise.reject(connectionLost(false, this.#wire.reason ?? new Error('it was closed')))
    if (this.#expected.kind !== 'nothing')
      return Promise.reject(new Error(`the replication session is busy (${this.#expected.kind})`))
    return new Promise<T>((resolve, reject) => {
      this.#expected = expect({ resolve, reject, error: null })
      writeQuery(this.#wire.writer, text)
      this.#wire.flushSoon()
    })
  }

  // --- receiving ---

  #receive(type: number, bytes: Buffer, start: number, end: number): void {
    const expected = this.#expected
    if (expected.kind === 'stream' && type === BACKEND.copyData) {
      expected.stream.receive(bytes, start, end)
      return
    }
    const message = decodeBackend(type, bytes, start, end)
    // Both may arrive at any time.
    if (message.kind === 'notice' || message.kind === 'parameterStatus') return
    switch (expected.kind) {
      case 'nothing':
        throw message.kind === 'error' ? new DatabaseError(message.fields) : unexpected(message)
      case 'result':
        this.#receiveResult(expected, message)
        break
      case 'start':
        this.#receiveStart(expected, message)
        break
      case 'stream':
        // The server ends a stream only when it shuts down or its slot is lost.
        if (message.kind === 'error') throw new DatabaseError(message.fields)
        if (message.kind !== 'copyDone') throw unexpected(message)
        throw new Error('the server ended the replication stream')
      case 'end':
        // Changes that were on their way are discarded; they were not confirmed.
        if (message.kind === 'error') expected.pending.error = new DatabaseError(message.fields)
        if (message.kind === 'readyForQuery') this.#settle(expected.pending, undefined)
        break
      default:
        expected satisfies never
    }
  }

  #receiveResult(expected: Extract<Expected, { kind: 'result' }>, message: BackendMessage): void {
    switch (message.kind) {
      case 'rowDescription':
      case 'commandComplete':
      case 'emptyQuery':
        break
      case 'dataRow':
        for (const column of message.columns) expected.bytes += column?.length ?? 0
        if (expected.bytes > COMMAND_BYTES_MAX)
          throw new ProtocolError(`a replication command returned more than ${COMMAND_BYTES_MAX} bytes`)
        expected.rows.push(message.columns.map(column => column?.toString() ?? null))
        break
      case 'error':
        expected.pending.error = new DatabaseError(message.fields)
        break
      case 'readyForQuery':
        this.#settle(expected.pending, expected.rows)
        break
      default:
        throw unexpected(message)
    }
  }

  #receiveStart({ pending, options }: Extract<Expected, { kind: 'start' }>, message: BackendMessage): void {
    if (message.kind === 'error') pending.error = new DatabaseError(message.fields)
    else if (message.kind === 'readyForQuery') {
      pending.error ??= new ProtocolError('START_REPLICATION ended without a stream')
      this.#settle(pending, null as never)
    } else if (message.kind === 'copyBoth') {
      const stream = new ReplicationStream(this.#wire, options, () => this.#stop(stream))
      this.#expected = { kind: 'stream', stream }
      pending.resolve(stream)
    } else throw unexpected(message)
  }

  /** Ends the stream, after which the session takes commands again and the slot is free. */
  #stop(stream: ReplicationStream): Promise<void> {
    const expected = this.#expected
    if (expected.kind !== 'stream' || expected.stream !== stream) return Promise.resolve()
    return new Promise<void>((resolve, reject) => {
      this.#expected = { kind: 'end', pending: { resolve, reject, error: null } }
      writeCopyDone(this.#wire.writer)
      this.#wire.flushSoon()
      this.#wire.resume()
    })
  }

  #settle<T>({ resolve, reject, error }: Pending<T>, value: T): void {
    this.#expected = { kind: 'nothing' }
    if (error === null) resolve(value)
    else reject(error)
  }

  #tooLong(type: number, bodyBytes: number): void {
    const expected = this.#expected
    if (type !== BACKEND.copyData || (expected.kind !== 'stream' && expected.kind !== 'end'))
      throw new ProtocolError(`the server sent a message of ${bodyBytes} bytes, which is too long`)
    if (expected.kind === 'stream') expected.stream.skip(bodyBytes)
  }

  #closed(reason: Error): void {
    const expected = this.#expected
    this.#expected = { kind: 'nothing' }
    this.#signal?.removeEventListener('abort', this.#aborted)
    const error = reason instanceof DatabaseError ? reason : connectionLost(true, reason)
    if (expected.kind === 'stream') expected.stream.fail(error)
    // A server that ends the session reports the reason first.
    else if (expected.kind !== 'nothing') expected.pending.reject(expected.pending.error ?? error)
  }

  readonly #aborted = (): void => {
    this.#wire.destroy(this.#signal?.reason instanceof Error ? this.#signal.reason : new Error('aborted'))
  }
}

function unexpected({ kind }: BackendMessage): ProtocolError {
  return new ProtocolError(`the server sent ${kind} out of turn in a replication session`)
}
