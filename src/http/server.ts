/** The HTTP server: limits on bytes, headers of every response, and the connection to the pipeline. */
import { lookup } from 'node:dns/promises'
import { Server as NetServer, type Socket } from 'node:net'
import cors from '@fastify/cors'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import type { Emit } from '../events.ts'
import type { Answer, Incoming, UploadedBody } from '../exchange.ts'
import type { Exceeded } from '../limits/budget.ts'
import { importFormat } from '../rest/import/table-import.ts'
import { parsePath } from '../rest/path.ts'
import { SHAPE_HEADERS } from '../shapes/shape-answers.ts'
import { parseTraceContext } from '../trace-context.ts'
import { Usage } from '../usage.ts'
import { type Admit, requestPath, requestTarget } from './admission.ts'
import { type BodyParts, createBodies, type HoldBody } from './bodies.ts'
import type { Identify } from './callers.ts'
import { type ConnectionLimit, limitConnections } from './connection-limit.ts'
import { type Connections, type Disconnect, watchConnections } from './connections.ts'
import type { JudgeHead } from './head.ts'
import type { Pipeline, RequestProgress } from './pipeline.ts'
import { printRefusal, refuseRaw } from './raw-refusal.ts'
import { fromFramework, HEADER_BYTES_MAX, REQUEST_MS_MAX, tooManyConnections, unparsable } from './refusals.ts'
import { noProgress, type Reports } from './reports.ts'
import { BODY_BYTES_MAX, HandedRequest, readRequestBody, requestBodyTooLarge } from './request-body.ts'
import { createRequestIds } from './request-id.ts'
import { type AnswerError, type Exchange, Responder } from './responder.ts'
import { EXPOSED_HEADERS, headerPairs, type ResponseHeaders, responseHeaders } from './response-headers.ts'
import type { StreamPaces } from './stream-pace.ts'
import type { Unsent } from './unsent.ts'
import { type Sockets, takeUpgrades, type Upgrades } from './upgrade.ts'
import { openUpload } from './upload.ts'

/** Interval at which Node checks for requests that exceeded their time limit. */
const REQUEST_CHECK_MS = 2_000
/** The code of Node's error for a request that exceeded its time limit. */
const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT'

/** The dependencies and limits of the server. */
export interface HttpServerOptions {
  readonly host: string
  readonly port: number
  readonly corsAllowedOrigins: readonly string[]
  readonly drainTimeoutMs: number
  readonly admit: Admit
  readonly judgeHead: JudgeHead
  readonly reports: Reports
  readonly identify: Identify
  /** Reports whether a path belongs to a request for data, whose body is read. */
  readonly isData: (path: string) => boolean
  /** The response to an error in another dialect; null for the gateway's own form. */
  readonly answerError: AnswerError
  readonly pipeline: Pipeline
  readonly connections: Omit<ConnectionLimit, 'refusal'>
  /** The configured limits, for messages. */
  readonly maxClientConnections: number
  readonly addressMaxClientConnections: number
  readonly bodyBytes: BodyParts['budget']
  readonly holderOf: BodyParts['holderOf']
  readonly maxInflightBodyBytes: number
  readonly addressMaxInflightBodyBytes: number
  readonly sockets: readonly Sockets[]
  readonly unsent: Unsent
  readonly paces: StreamPaces
  /**
   * Limit on the unsent bytes of a connection; above it the next pipelined request does not start. 0 means no
   * limit.
   */
  readonly connectionMaxUnsentBytes: number
  /**
   * Limit on the concurrent pipelined requests of a connection and on those that wait for their responses; 0
   * means no limit.
   */
  readonly connectionMaxConcurrent: number
  readonly connectionMaxPipelined: number
  /**
   * The size above which a body is read in one turn of the event loop and processed in the next; 0 disables
   * this.
   */
  readonly largeBodyBytes: number
  /** The minimum size of compressed responses in bytes; 0 disables compression. */
  readonly compressMinBytes: number
  readonly emit: Emit
  /** True if every response has the `Server-Timing` header. */
  readonly serverTiming: boolean
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Counts since the start. */
export interface ServerStats {
  /** The number of requests with a body above `large_body_bytes`. */
  readonly largeBodies: number
  /** The number of pipelined requests that had to wait for earlier responses. */
  readonly pipelinedWaits: number
}

/** A running server. */
export interface GatewayServer {
  listen(): Promise<string>
  readonly isDraining: () => boolean
  readonly stats: () => ServerStats
  /**
   * Stops accepting connections, because another process accepts them, and resolves when the clients have
   * left. Requests on open connections are answered, with `Connection: close`.
   */
  retire(): Promise<void>
  /** Stops accepting connections, waits for running requests until the deadline, and then closes them. */
  close(): Promise<void>
}

/** Creates the server; it does not listen yet. */
export async function createServer(options: HttpServerOptions): Promise<GatewayServer> {
  const server = new HttpServer(options)
  await server.prepare()
  return server
}

class HttpServer implements GatewayServer {
  readonly #options: HttpServerOptions
  readonly #app: FastifyInstance
  readonly #connections: Connections
  readonly #holdBody: HoldBody
  readonly #upgrades: Upgrades
  readonly #responder: Responder
  readonly #headers: ResponseHeaders
  readonly #nextRequestId = createRequestIds()
  readonly #refusedConnection: Readonly<Record<Exceeded, GatewayError>>
  readonly #hasCors: boolean
  /** The connections whose request is an upload; it has its own time limits. */
  readonly #uploading = new WeakSet<object>()
  #draining = false
  #retiring = false
  #largeBodies = 0
  #pipelinedWaits = 0

  constructor(options: HttpServerOptions) {
    const { maxClientConnections, addressMaxClientConnections } = options
    this.#options = options
    this.#hasCors = options.corsAllowedOrigins.length > 0
    this.#headers = responseHeaders(options.serverTiming)
    this.#refusedConnection = {
      share: tooManyConnections(
        `this address has reached address_max_client_connections (${addressMaxClientConnections})`,
      ),
      total: tooManyConnections(`the gateway has reached max_client_connections (${maxClientConnections})`),
    }
    this.#app = this.#createApp()
    const { server } = this.#app
    this.#connections = watchConnections(server, {
      unsentBytesMax: options.connectionMaxUnsentBytes || Number.POSITIVE_INFINITY,
      runningMax: options.connectionMaxConcurrent || Number.POSITIVE_INFINITY,
      outstandingMax: options.connectionMaxPipelined || Number.POSITIVE_INFINITY,
    })
    const { headers, isDraining } = { headers: this.#headers, isDraining: () => this.#draining }
    const isEnding = () => this.#draining || this.#retiring
    this.#holdBody = createBodies({ ...options, budget: options.bodyBytes, whenOver: this.#connections.whenOver })
    this.#responder = new Responder({
      ...options,
      ...{ headers, isDraining: isEnding, connections: this.#connections, hasCors: this.#hasCors },
    })
    limitConnections(server, { ...options.connections, refusal: limit => this.#refuseConnection(limit) })
    this.#upgrades = takeUpgrades(server, {
      ...options,
      ...{ headers, isDraining, nextRequestId: this.#nextRequestId },
    })
    // An unknown expectation is ignored (RFC 9110, 10.1.1: "MAY").
    server.on('checkExpectation', (request, response) => server.emit('request', request, response))
    // A request whose head is rejected need not send its body.
    server.on('checkContinue', (request, response) => server.emit('request', request, response))
  }

  readonly isDraining = (): boolean => this.#draining

  readonly stats = (): ServerStats => ({ largeBodies: this.#largeBodies, pipelinedWaits: this.#pipelinedWaits })

  /** Registers hooks and routes, in the order in which they apply to a request. */
  async prepare(): Promise<void> {
    const app = this.#app
    app.removeAllContentTypeParsers()
    // The second parser accepts every type; the first one is found faster.
    for (const type of ['application/json', '*'])
      app.addContentTypeParser(type, (request, payload, done) => this.#takeBody(request, payload, done))
    if (this.#hasCors) await this.#allowOrigins()
    // Registered after the plugin, so that a page can read the reason of a rejection.
    app.addHook('onRequest', (request, reply, done) => this.#receive(request, reply, done))
    app.setErrorHandler((error, request, reply) => this.#fail(error, request, reply))
    const handler = (request: FastifyRequest, reply: FastifyReply) => this.#handle(request, reply)
    app.route({ method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], url: '/*', handler })
    // For methods that HTTP defines and the gateway does not support; the pipeline responds with the
    // supported ones.
    app.setNotFoundHandler(handler)
  }

  async listen(): Promise<string> {
    const { host, port } = this.#options
    return this.#app.listen({ host: await oneAddress(host), port })
  }

  async retire(): Promise<void> {
    this.#retiring = true
    const { server } = this.#app
    // Node's own `close` would also close idle connections, on which a request may be on its way.
    const left = new Promise<void>(resolve => NetServer.prototype.close.call(server, () => resolve()))
    await this.#upgrades.close()
    await within(left, this.#options.drainTimeoutMs)
  }

  async close(): Promise<void> {
    this.#draining = true
    await this.#upgrades.close()
    await closeWithin(this.#app, this.#options.drainTimeoutMs)
  }

  #createApp(): FastifyInstance {
    return fastify({
      bodyLimit: BODY_BYTES_MAX,
      requestTimeout: REQUEST_MS_MAX,
      http: {
        // The class of all requests of this server.
        IncomingMessage: HandedRequest,
        // The gateway checks the header itself and uses the error envelope.
        requireHostHeader: false,
        maxHeaderSize: HEADER_BYTES_MAX,
        // Node applies the larger of the two timeouts to the whole request, and this one is 60 s by default.
        headersTimeout: REQUEST_MS_MAX,
        connectionsCheckingInterval: REQUEST_CHECK_MS,
      },
      // The query string is parsed by the route.
      routerOptions: { maxParamLength: HEADER_BYTES_MAX, querystringParser: () => ({}) },
      // The gateway responds itself, so requests during shutdown get the error envelope too.
      return503OnClosing: false,
      // Routes have no JSON schemas, and loading the schema compilers takes most of Fastify's start time.
      schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
      // Called before the hooks.
      frameworkErrors: (error, request, reply) => {
        const fail = (refusal: GatewayError | null) => this.#fail(refusal ?? error, request, reply as FastifyReply)
        const refusal = this.#options.admit(request.raw)
        if (refusal instanceof Promise) void refusal.then(fail)
        else fail(refusal)
      },
      // Sent after the responses to earlier requests, so a completed write is not followed by a rejection in
      // its place.
      clientErrorHandler: (error, socket) => {
        if (error.code === REQUEST_TIMEOUT && this.#uploading.has(socket)) return
        this.#connections.whenAnswered(socket as Socket, () => this.#refuseUnparsable(error, socket as Socket))
      },
    })
  }

  /** Lets the plugin answer preflights; they also have the headers of every response and an event. */
  async #allowOrigins(): Promise<void> {
    const { corsAllowedOrigins } = this.#options
    this.#app.addHook('onSend', (request, reply, payload, done) => {
      const requestId = this.#requestIdOf(request)
      const { elapsedTime: durationMs, statusCode: status } = reply
      reply.headers(Object.fromEntries(headerPairs(this.#headers(requestId, durationMs, null))))
      this.#options.reports.ended({ method: request.method, requestId, status, durationMs, progress: noProgress() })
      done(null, payload)
    })
    // The plugin answers all of them.
    this.#app.addHook('onRequest', (request, reply, done) => {
      if (request.method === 'OPTIONS') this.#receive(request, reply, done)
      else done()
    })
    await this.#app.register(cors, {
      origin: corsAllowedOrigins.includes('*') ? '*' : [...corsAllowedOrigins],
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      exposedHeaders: [...EXPOSED_HEADERS, ...SHAPE_HEADERS],
      maxAge: 600,
      // An OPTIONS request that is not a preflight gets the same response.
      strictPreflight: false,
    })
  }

  /** Checks the head of a request. The body is not read for a caller whose token is invalid. */
  #receive(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const refusal = this.#options.admit(request.raw)
    if (refusal instanceof Promise) void refusal.then(later => this.#receiveAdmitted(later, request, reply, done))
    else this.#receiveAdmitted(refusal, request, reply, done)
  }

  #receiveAdmitted(refused: GatewayError | null, request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const refusal = refused ?? this.#options.judgeHead(request.raw)
    if (refusal !== null) this.#fail(refusal, request, reply)
    else if (hasBody(request)) this.#identifyOrRefuse(request, reply, done)
    else done()
  }

  #identifyOrRefuse(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const accept = () => {
      ;(request.raw as HandedRequest).response = reply.raw
      if (expectsContinue(request) && !isUpload(request)) reply.raw.writeContinue()
      done()
    }
    const { raw, headers } = request
    let known: ReturnType<Identify>
    try {
      known = this.#options.identify({ path: requestPath(raw), headers, connection: raw.socket })
    } catch (error) {
      this.#fail(error, request, reply)
      return
    }
    if (known instanceof Promise) known.then(accept, error => this.#fail(error, request, reply))
    else accept()
  }

  /** Reads the body; only requests for data use one. */
  #takeBody(request: FastifyRequest, payload: unknown, done: (error: Error | null, body?: Buffer) => void): void {
    if (isUpload(request)) {
      done(null)
      return
    }
    readRequestBody(
      payload as HandedRequest,
      this.#options.isData(requestPath(request.raw)) ? this.#holdBody : null,
      done,
    )
  }

  /**
   * Handles a request synchronously if possible, because a turn of the event loop is a large part of the cost
   * of a cached response.
   */
  #handle(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const exchange = this.#exchangeOf(request, reply)
    const responder = this.#responder
    let answer: Answer | Promise<Answer>
    try {
      if (exchange.incoming.upload === undefined) assertSmallBody(request)
      if (exchange.incoming.isLarge) this.#largeBodies += 1
      const turn = this.#connections.turnOf(reply.raw)
      if (turn !== null) this.#pipelinedWaits += 1
      answer = turn === null ? this.#ask(exchange) : turn.then(() => this.#askInTurn(request, exchange))
    } catch (error) {
      responder.fail(exchange, error)
      return
    }
    if (!(answer instanceof Promise)) {
      responder.send(exchange, answer)
      return
    }
    return answer.then(
      answered => responder.send(exchange, answered),
      error => responder.fail(exchange, error),
    )
  }

  #askInTurn(request: FastifyRequest, exchange: Exchange): Answer | Promise<Answer> {
    if (request.raw.socket.destroyed)
      throw new GatewayError('TIMEOUT', 'the client disconnected before its request started')
    return this.#ask(exchange)
  }

  #ask({ incoming, progress }: Exchange): Answer | Promise<Answer> {
    // The health route reports the shutdown itself.
    if (this.#draining && incoming.path !== '/health')
      throw new GatewayError('UNAVAILABLE', 'the gateway is shutting down; try again', {
        headers: { 'Retry-After': '1' },
      })
    return this.#options.pipeline(incoming, progress)
  }

  /** Handles errors from before the handler: a rejected request, an oversized body, an invalid URL. */
  #fail(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    this.#responder.fail(this.#exchangeOf(request, reply), fromFramework(error))
  }

  /** Responds to bytes that are not an HTTP request, for which there is only a socket. */
  #refuseUnparsable(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || socket.destroyed) return
    const refusal = unparsable(error)
    const requestId = this.#nextRequestId(undefined)
    refuseRaw(socket, refusal, requestId, this.#headers(requestId, 0, null))
    this.#reportRefusal(refusal, requestId)
  }

  #refuseConnection(limit: Exceeded): string {
    const refusal = this.#refusedConnection[limit]
    const requestId = this.#nextRequestId(undefined)
    this.#reportRefusal(refusal, requestId)
    return printRefusal(refusal, requestId, this.#headers(requestId, 0, null))
  }

  #reportRefusal({ status, code }: GatewayError, requestId: string): void {
    const progress: RequestProgress = { ...noProgress(), code }
    this.#options.reports.ended({ method: 'unknown', requestId, status, durationMs: 0, progress })
  }

  #exchangeOf(request: FastifyRequest, reply: FastifyReply): Exchange {
    const started = this.#options.now()
    const disconnect = this.#connections.disconnectOf(request.raw)
    const whole = toIncoming(request, disconnect, this.#requestIdOf(request), this.#options.largeBodyBytes)
    const incoming = isUpload(request) ? { ...whole, upload: this.#uploadOf(request, reply) } : whole
    return { reply, incoming, started, progress: noProgress(whole.trace), disconnect }
  }

  #uploadOf(request: FastifyRequest, reply: FastifyReply): UploadedBody {
    const { socket } = request.raw
    return openUpload(request.raw, this.#options.paces.startUpload(), () => {
      this.#uploading.add(socket)
      reply.raw.once('close', () => this.#uploading.delete(socket))
      if (expectsContinue(request)) reply.raw.writeContinue()
    })
  }

  #requestIdOf({ headers }: FastifyRequest): string {
    return this.#nextRequestId(one(headers['x-request-id']))
  }
}

/**
 * Fastify does not read the body of methods that have none; an oversized announced body is still rejected.
 */
function assertSmallBody(request: FastifyRequest): void {
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw requestBodyTooLarge()
}

/** Reports whether the body is read while it is processed: rows for a table, in a format of imports. */
function isUpload({ raw, method, headers }: FastifyRequest): boolean {
  if (method !== 'POST' || importFormat(headers) === null) return false
  try {
    return parsePath(requestPath(raw))?.kind === 'list'
  } catch {
    return false
  }
}

function hasBody({ headers }: FastifyRequest): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : length !== '0'
}

/** Reports whether the client waits for 100 Continue (RFC 9110, 10.1.1). */
function expectsContinue({ headers: { expect } }: FastifyRequest): boolean {
  return expect?.toLowerCase() === '100-continue'
}

function noSchemas(): never {
  throw new Error('no route of this server has a schema')
}

const NO_BODY = Buffer.alloc(0)

function toIncoming(request: FastifyRequest, disconnect: Disconnect, requestId: string, largeBytes: number): Incoming {
  const url = requestTarget(request.raw)
  const mark = url.indexOf('?')
  const body = Buffer.isBuffer(request.body) ? request.body : NO_BODY
  const trace = parseTraceContext(request.headers)
  return {
    method: request.method,
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    headers: request.headers,
    body,
    isLarge: largeBytes > 0 && body.length > largeBytes,
    requestId,
    trace,
    connection: request.raw.socket,
    usage: new Usage({ ms: 0, trace: trace ?? undefined }),
    onAbort(listener) {
      disconnect.add(listener)
    },
  }
}

async function closeWithin(app: FastifyInstance, deadlineMs: number): Promise<void> {
  const cutOff = setTimeout(() => app.server.closeAllConnections(), deadlineMs)
  try {
    await app.close()
  } finally {
    clearTimeout(cutOff)
  }
}

async function within(ended: Promise<void>, deadlineMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, deadlineMs)
  })
  await Promise.race([ended, late]).finally(() => clearTimeout(timer))
}

/**
 * Resolves `localhost`, which can have two addresses. Fastify would open a server for each, but only one is
 * needed and tracked.
 */
async function oneAddress(host: string): Promise<string> {
  return host === 'localhost' ? (await lookup(host)).address : host
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
