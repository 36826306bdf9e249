/** The client of a gateway: `createClient`. */
import type { BuilderSchema, Untyped } from '../language/builder/builder-types.ts'
import type * as language from '../language/index.ts'
import { type BatchOptions, collect } from './batch.ts'
import { type LiveListener, liveQuery } from './changes.ts'
import { createHttp, type Http, type RequestOptions } from './http.ts'
import { globalSocket, type SocketConstructor } from './platform.ts'
import type { AnySchema, ArgsOf, FunctionName, ReturnsOf, SchemaLike, TableName } from './schema-types.ts'
import { type ConnectionState, createSocket, type SharedSocket } from './socket.ts'
import { Table, type TableConnection } from './table.ts'
import { createTokens, type TokenProvider } from './tokens.ts'

/** Options of a client. */
export interface ClientOptions {
  /** The URL of the gateway. */
  readonly url: string
  /**
   * A token, or a function that returns one. It is called with `null` for the first token, with `'expires'`
   * half a minute before a socket's token expires, and with `'refused'` when the gateway did not accept it.
   */
  readonly token?: TokenProvider
  /** Limit on one attempt of a request, in milliseconds; 30 000 by default. */
  readonly timeoutMs?: number
  /** How often a read is repeated after a temporary failure; 3 by default. */
  readonly retries?: number
  /**
   * Sends an `Idempotency-Key` with every write, and repeats writes like reads. Only for a gateway that
   * honours the header: others would run a repeated write twice. False by default.
   */
  readonly idempotencyKeys?: boolean
  /** Receives the state of the socket. */
  readonly onState?: (state: ConnectionState, why: string) => void
  /** Receives failures that belong to no single request, such as those of the socket or of `token`. */
  readonly onError?: (error: unknown) => void
  /** Parses the JSON of responses; `JSON.parse` by default, which rounds numbers of more than 15 digits. */
  readonly parse?: (text: string) => unknown
  /** Another implementation of `fetch`. */
  readonly fetch?: typeof globalThis.fetch
  /** Another implementation of `WebSocket`, such as that of the package `ws` on Node.js 20. */
  readonly WebSocket?: SocketConstructor
}

/** Options of a live query. */
export interface LiveQueryOptions<Row> extends LiveListener<Row> {
  /** The main table of the query. */
  readonly table: string
  /** The values of its parameters. */
  readonly parameters?: QueryParameters
  /** Minimum time between two executions of the query, in milliseconds; 1 000 by default, at least 100. */
  readonly intervalMs?: number
}

/** Values of `$1`, `$2`, … as an array, or of `:name` as an object. */
export type QueryParameters = readonly unknown[] | Readonly<Record<string, unknown>>

/** The text of a query, or a query of the builder. */
export type QueryText<Row = unknown> = string | language.Built<language.Statement, Row> | { toText(): string }

/** Collects the operations of a batch. An operation can refer to the results of earlier ones. */
export interface Batch<S extends SchemaLike> {
  /** A table whose requests are part of the batch. */
  from<T extends TableName<S>>(table: T): Table<S, T>
  /** A function call that is part of the batch. */
  rpc<F extends FunctionName<S>>(name: F, args?: ArgsOf<S, F>): Promise<ReturnsOf<S, F>>
  /** A query text that is part of the batch. */
  query<Row = unknown>(text: QueryText<Row>, parameters?: QueryParameters): Promise<readonly Row[]>
  /** Refers to a member of an earlier operation's row, for use in a body: `batch.ref(0, 'id')`. */
  // biome-ignore lint/suspicious/noExplicitAny: replaces a value of any type
  ref(operation: number, ...path: readonly (string | number)[]): any
}

/** A client of one gateway, for one caller. */
export interface Client<S extends SchemaLike = AnySchema> {
  /** A table by its name in paths. */
  from<T extends TableName<S>>(table: T): Table<S, T>
  /** Calls a function with arguments by name, or by position. */
  rpc<F extends FunctionName<S>>(name: F, args?: ArgsOf<S, F>, options?: RequestOptions): Promise<ReturnsOf<S, F>>
  /** The rows of a query text, or of a query of the builder. */
  query<Row = unknown>(
    text: QueryText<Row>,
    parameters?: QueryParameters,
    options?: RequestOptions,
  ): Promise<readonly Row[]>
  /** Delivers the rows now, and again whenever the result changes. Returns a function that ends it. */
  live<Row = unknown>(text: QueryText<Row>, options: LiveQueryOptions<Row>): () => void
  /**
   * Sends several requests as one. By default they are one transaction. `make` receives a `Batch`, calls its
   * methods without awaiting them, and returns their promises.
   */
  batch<const R extends readonly Promise<unknown>[]>(
    make: (batch: Batch<S>) => R,
    options?: BatchOptions,
  ): Promise<{ -readonly [N in keyof R]: Awaited<R[N]> }>
  /** The query builder with the types of the schema, loaded when it is first used. */
  builder(): Promise<language.Builder<AnySchema extends S ? Untyped : S extends BuilderSchema<S> ? S : Untyped>>
  /** The state of the socket. */
  readonly state: ConnectionState
  /** Ends all subscriptions and closes the socket. */
  close(): void
}

const TIMEOUT_MS = 30_000
const RETRIES = 3
const LIVE_INTERVAL_MS = 1_000

/**
 * Creates a client. Nothing is sent until the client is used.
 * @throws {TypeError} if the URL is not one of `http` or `https`.
 */
export function createClient<S extends SchemaLike = AnySchema>(options: ClientOptions): Client<S> {
  const { token = null, timeoutMs = TIMEOUT_MS, retries = RETRIES, idempotencyKeys = false, onState, onError } = options
  if (!/^https?:\/\/[^/?#]/.test(options.url)) {
    throw new TypeError(
      `${JSON.stringify(options.url)} is not the URL of a gateway; write it as https://api.example.com`,
    )
  }
  const base = options.url.replace(/[?#].*$/, '').replace(/\/+$/, '')
  const tokens = createTokens(token)
  const http = createHttp({
    ...{ base, tokens, timeoutMs, retries, idempotencyKeys, parse: options.parse ?? JSON.parse },
    // Browsers refuse a `fetch` that is called as a method of another object.
    fetch: options.fetch ?? ((...request) => globalThis.fetch(...request)),
  })
  let state: ConnectionState = 'idle'
  let shared: SharedSocket | null = null
  function socket(): SharedSocket {
    shared ??= createSocket({
      url: `${base.replace(/^http/, 'ws')}/ws`,
      tokens,
      WebSocket: options.WebSocket ?? globalSocket(),
      onState(next, why) {
        state = next
        onState?.(next, why)
      },
      onError: onError ?? (() => {}),
    })
    return shared
  }
  return {
    ...requestsOf<S>({ http, socket }),
    live(text, { table, parameters, intervalMs = LIVE_INTERVAL_MS, ...listener }) {
      const query = { svc: textOf(text), table, interval_ms: intervalMs }
      return liveQuery(socket(), parameters === undefined ? query : { ...query, parameters }, listener)
    },
    async batch(make, batchOptions = {}) {
      const collected = collect()
      const requests = requestsOf<S>({ http: collected.http, socket })
      const promises = make({ ...requests, ref: collected.ref })
      // A failure rejects all of them, and the first one is reported below.
      for (const promise of promises) promise.catch(() => {})
      await collected.send(http, batchOptions)
      return (await Promise.all(promises)) as never
    },
    async builder() {
      const { builder } = await import('../language/index.ts')
      return builder() as never
    },
    get state() {
      return state
    },
    close() {
      shared?.close()
    },
  }
}

function requestsOf<S extends SchemaLike>(
  connection: Omit<TableConnection, 'http'> & { readonly http: Pick<Http, 'send'> & Partial<Http> },
): Pick<Client<S>, 'from' | 'rpc' | 'query'> {
  const { http } = connection
  return {
    from: table => new Table(connection, table),
    async rpc(name, args, options) {
      const path = `/api/rpc/${encodeURIComponent(name)}`
      const { body } = await http.send({ method: 'POST', path, ...(args === undefined ? {} : { body: args }) }, options)
      return body.data
    },
    async query(text, parameters, options) {
      const body = { query: textOf(text), ...(parameters === undefined ? {} : { parameters }) }
      return (await http.send({ method: 'POST', path: '/api/_query', body }, options)).body.data
    },
  }
}

function textOf(text: QueryText): string {
  return typeof text === 'string' ? text : text.toText()
}
