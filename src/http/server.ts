/** The HTTP server: limits on bytes, headers of every answer, and the way from the pipeline's answer to the socket. */
import { lookup } from 'node:dns/promises'
import type { OutgoingHttpHeader, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import cors from '@fastify/cors'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { errorBody } from '../envelope.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Emit } from '../events.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Exceeded } from '../limits/budget.ts'
import { printServerTiming } from '../ops/server-timing.ts'
import { maskedPath } from '../rest/allow-list/request-shape.ts'
import type { Route } from '../rest/path.ts'
import { Usage } from '../usage.ts'
import { type Admit, pathOf, targetOf } from './admission.ts'
import { type BodyParts, createBodies } from './bodies.ts'
import { type Choice, compress, compressStream, createCompression } from './compression.ts'
import { type ConnectionLimit, limitConnections } from './connection-limit.ts'
import { onceGone, watchConnections } from './connections.ts'
import type { JudgeHead } from './head.ts'
import type { Identify, Pipeline, Progress } from './pipeline.ts'
import { pairs, printRefusal, refuseRaw, SECURITY_HEADERS } from './raw-refusal.ts'
import { BODY_BYTES_MAX, bodyTooLarge, HandedRequest, readBody } from './request-body.ts'
import { createRequestIds } from './request-id.ts'
import { breakOff, endWith, endWithText, limitReaderIdleUntilSent, sendStream } from './response-body.ts'
import type { StreamPaces } from './stream-pace.ts'
import { SMALL_ANSWER_BYTES, type Unsent } from './unsent.ts'
import { type Sockets, takeUpgrades } from './upgrade.ts'

/** Request line and headers together: room for `max_in_values` of uuids. */
const HEADER_BYTES_MAX = 64 * 1024

/** The whole request, headers and body, must have come by then. */
const REQUEST_MS_MAX = 30_000

/** How often Node looks for requests whose time is over. */
const REQUEST_CHECK_MS = 2_000

export interface ServerOptions {
  readonly host: string
  readonly port: number
  readonly corsAllowedOrigins: readonly string[]
  readonly drainTimeoutMs: number
  readonly admit: Admit
  readonly judgeHead: JudgeHead
  /** Whether somebody logs requests, and wants their paths. */
  readonly logsRequests: boolean
  readonly identify: Identify
  readonly pipeline: Pipeline
  readonly connections: Omit<ConnectionLimit, 'refusal'>
  /** As configured, for the messages. */
  readonly maxClientConnections: number
  readonly addressMaxClientConnections: number
  readonly bodyBytes: BodyParts['budget']
  readonly holderOf: BodyParts['holderOf']
  readonly maxInflightBodyBytes: number
  readonly addressMaxInflightBodyBytes: number
  readonly sockets: Sockets
  readonly unsent: Unsent
  readonly paces: StreamPaces
  /** Bytes waiting to be sent on a connection, beyond which its next pipelined request is not started. 0: no limit. */
  readonly connectionMaxUnsentBytes: number
  /** Smaller answers are not compressed. 0: none are. */
  readonly compressMinBytes: number
  readonly emit: Emit
  /** Every answer says where its time went. */
  readonly serverTiming: boolean
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
}

export interface Server {
  listen(): Promise<string>
  readonly isDraining: () => boolean
  /** Takes no more connections, lets what runs finish until the deadline, then cuts it off. */
  close(): Promise<void>
}

const EXPOSED_HEADERS = [
  'X-Request-Id',
  'X-Response-Time',
  'X-Cache',
  'X-Svc-Txid',
  'Location',
  'Retry-After',
  'Allow',
  'Preference-Applied',
  'WWW-Authenticate',
]

export async function createServer(options: ServerOptions): Promise<Server> {
  const { admit, judgeHead, pipeline, unsent, emit, now } = options
  const nextRequestId = createRequestIds()
  const compression = createCompression(options.compressMinBytes)
  let draining = false
  const refusedConnection: Readonly<Record<Exceeded, GatewayError>> = {
    share: tooMany(`this address has address_max_client_connections (${options.addressMaxClientConnections}) open`),
    total: tooMany(`the gateway has max_client_connections (${options.maxClientConnections}) open`),
  }

  const app: FastifyInstance = fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS_MAX,
    http: {
      IncomingMessage: HandedRequest,
      // Ours, with the envelope.
      requireHostHeader: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      // Node takes the larger of the two for the whole request, and this one is 60 s by default.
      headersTimeout: REQUEST_MS_MAX,
      connectionsCheckingInterval: REQUEST_CHECK_MS,
    },
    // The query is read by whoever knows what it means.
    routerOptions: { maxParamLength: HEADER_BYTES_MAX, querystringParser: () => ({}) },
    // Ours below: requests that meet a closing server get the envelope too.
    return503OnClosing: false,
    // No route has a JSON schema; what would compile them takes most of Fastify's time to start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // It comes before the hooks.
    frameworkErrors: (error, request, reply) => void fail(admit(request.raw) ?? error, request, reply as FastifyReply),
    // Behind the answers to what came before: a change that was made must not look refused.
    clientErrorHandler: (error, socket) =>
      connections.whenAnswered(socket as Socket, () => refuseUnparsable(error, socket as Socket)),
  })
  const connections = watchConnections(app.server, {
    unsentBytesMax: options.connectionMaxUnsentBytes || Number.POSITIVE_INFINITY,
  })
  const bodies = createBodies({ ...options, ...{ budget: options.bodyBytes, whenOver: connections.whenOver } })
  limitConnections(app.server, { ...options.connections, refusal: refuseConnection })
  const upgrades = takeUpgrades(app.server, { ...options, nextRequestId, isDraining: () => draining })
  // What else a client may expect is not refused with an answer that is none of ours (RFC 9110, 10.1.1: "MAY").
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  // Who is refused for its head alone need not send its body.
  app.server.on('checkContinue', (request, response) => app.server.emit('request', request, response))
  app.removeAllContentTypeParsers()
  // The second is for everything; the first is found sooner.
  // Every request of this server is of the class that it was given.
  for (const type of ['application/json', '*']) app.addContentTypeParser(type, takeBody)
  const hasCors = options.corsAllowedOrigins.length > 0
  if (hasCors) {
    // Preflights are answered by the plugin, and they too have these headers and an event.
    app.addHook('onSend', (request, reply, payload, done) => {
      const requestId = nextRequestId(one(request.headers['x-request-id']))
      const { elapsedTime } = reply
      reply.headers({
        ...Object.fromEntries(pairs(SECURITY_HEADERS)),
        'X-Request-Id': requestId,
        'X-Response-Time': printMs(elapsedTime),
        ...Object.fromEntries(pairs(timingHeader(null, elapsedTime))),
      })
      tell(request.method, requestId, reply.statusCode, elapsedTime, noProgress())
      done(null, payload)
    })
    // The plugin answers them all.
    app.addHook('onRequest', (request, reply, done) => {
      if (request.method === 'OPTIONS') receive(request, reply, done)
      else done()
    })
    await app.register(cors, {
      origin: options.corsAllowedOrigins.includes('*') ? '*' : [...options.corsAllowedOrigins],
      methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
      exposedHeaders: EXPOSED_HEADERS,
      maxAge: 600,
      // A question for the methods that is no preflight has the same answer.
      strictPreflight: false,
    })
  }
  // Behind the plugin: a page may read why it was refused.
  app.addHook('onRequest', receive)
  app.setErrorHandler((error, request, reply) => fail(error, request, reply))
  app.route({ method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], url: '/*', handler: handle })
  // Methods that HTTP knows and we do not: the pipeline says what is possible instead.
  app.setNotFoundHandler(handle)

  /** Judges the head of a request. Nothing of a body is read for a caller whose token is not valid. */
  function receive(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const refusal = admit(request.raw) ?? judgeHead(request.raw)
    if (refusal !== null) fail(refusal, request, reply)
    else if (hasBody(request)) identifyOrRefuse(request, reply, done)
    else done()
  }

  function identifyOrRefuse(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const accept = () => {
      ;(request.raw as HandedRequest).response = reply.raw
      if (expectsContinue(request)) reply.raw.writeContinue()
      done()
    }
    const { raw, headers } = request
    let known: ReturnType<Identify>
    try {
      known = options.identify({ path: pathOf(raw), headers, connection: raw.socket })
    } catch (error) {
      fail(error, request, reply)
      return
    }
    if (known instanceof Promise) known.then(accept, error => fail(error, request, reply))
    else accept()
  }

  /** Only what is below /api/ has a use for one. */
  function takeBody(
    request: FastifyRequest,
    payload: unknown,
    done: (error: Error | null, body?: Buffer) => void,
  ): void {
    readBody(payload as HandedRequest, pathOf(request.raw).startsWith('/api/') ? bodies : null, done)
  }

  /** What is answered at once is sent at once: a turn of the event loop is a good part of what such an answer costs. */
  function handle(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const started = now()
    const progress = noProgress()
    const incoming = toIncoming(request, reply, nextRequestId(one(request.headers['x-request-id'])))
    const finish = (answer: Answer) => send(reply, incoming, answer, started, progress)
    const refuse = (error: unknown) => errorAnswer(error, incoming.requestId, progress)
    let answer: Answer | Promise<Answer>
    try {
      assertSmallBody(request)
      const turn = connections.turnOf(reply.raw)
      answer = turn === null ? ask(incoming, progress) : turn.then(() => askInTurn(request, incoming, progress))
    } catch (error) {
      answer = refuse(error)
    }
    if (!(answer instanceof Promise)) return finish(answer)
    return answer.then(finish, error => finish(refuse(error)))
  }

  function askInTurn(request: FastifyRequest, incoming: Incoming, progress: Progress): Answer | Promise<Answer> {
    if (request.raw.socket.destroyed) throw new GatewayError('TIMEOUT', 'the client went away before its turn')
    return ask(incoming, progress)
  }

  function ask(incoming: Incoming, progress: Progress): Answer | Promise<Answer> {
    // Health says itself that it is over.
    if (draining && incoming.path !== '/health')
      throw new GatewayError('UNAVAILABLE', 'the gateway is shutting down; try again', {
        headers: { 'Retry-After': '1' },
      })
    return pipeline(incoming, progress)
  }

  /** Errors from before our handler: not admitted, the body was too large, the URL is no URL. */
  function fail(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const incoming = toIncoming(request, reply, nextRequestId(one(request.headers['x-request-id'])))
    const progress = noProgress()
    send(reply, incoming, errorAnswer(fromFramework(error), incoming.requestId, progress), now(), progress)
  }

  function errorAnswer(error: unknown, requestId: string, progress: Progress): Answer {
    const known = error instanceof GatewayError
    progress.code = codeOf(error)
    if (known && error.limit !== undefined) emit({ kind: 'statement refused', limit: error.limit })
    if (!known || error.status >= 500) emit({ kind: 'request failed', requestId, error })
    return {
      status: known ? error.status : 500,
      headers: { 'Content-Type': 'application/json; charset=utf-8', ...(known ? error.headers : {}) },
      body: errorBody(error, requestId),
    }
  }

  /** Bytes that are no HTTP request: there is no reply object for them, only the socket. */
  function refuseUnparsable(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || socket.destroyed) return
    const refusal = unparsable(error)
    const requestId = nextRequestId(undefined)
    refuseRaw(socket, refusal, requestId, timingHeader(null, 0))
    tell('unknown', requestId, refusal.status, 0, { ...noProgress(), code: refusal.code })
  }

  function refuseConnection(limit: Exceeded): string {
    const error = refusedConnection[limit]
    const requestId = nextRequestId(undefined)
    tell('unknown', requestId, error.status, 0, { ...noProgress(), code: error.code })
    return printRefusal(error, requestId, timingHeader(null, 0))
  }

  /** Every answer is told of, whoever gave it. */
  function tell(
    method: string,
    requestId: string,
    status: number,
    durationMs: number,
    progress: Progress,
    incoming: Incoming | null = null,
    answer: Answer | null = null,
  ): void {
    const { route, code, tenantId, at, caller } = progress
    const usage = incoming?.usage
    const databaseMs = usage?.databaseMs() ?? null
    emit({
      kind: 'request',
      method,
      route,
      status,
      code,
      durationMs: toHundredths(durationMs),
      requestId,
      tenantId,
      role: caller === null ? null : caller.role,
      path: options.logsRequests && incoming !== null && at !== null ? maskedPath(incoming, at) : null,
      table: at === null ? null : (tableOf(at) ?? usage?.table ?? null),
      function: at?.kind === 'rpc' ? at.function : null,
      rows: answer?.rows ?? usage?.rows ?? null,
      databaseMs: databaseMs === null ? null : toHundredths(databaseMs),
      cache: (answer?.headers['X-Cache'] ?? null) as 'HIT' | 'MISS' | null,
    })
  }

  function timingHeader(timing: Progress['timing'], totalMs: number): readonly string[] {
    return options.serverTiming ? ['Server-Timing', printServerTiming(timing, totalMs)] : []
  }

  function send(reply: FastifyReply, incoming: Incoming, answer: Answer, started: number, progress: Progress): void {
    const { body } = answer
    if (lengthOf(body) > SMALL_ANSWER_BYTES && isRead(incoming, answer)) {
      const refusal = unsent.refusal(progress.caller)
      if (refusal !== null) {
        send(reply, incoming, errorAnswer(refusal, incoming.requestId, progress), started, progress)
        return
      }
    }
    reply.hijack()
    const streams = isStream(body)
    const choice = compression.choose(incoming.headers, answer, isStreamed(answer) ? null : lengthOf(body))
    // For HEAD as well: it has the headers of GET, the length among them.
    const encode = choice !== 'none' && choice !== 'identity' && !streams
    if (!encode || body === null) {
      transmit(reply, incoming, answer, choice, started, progress)
      return
    }
    const plain = Buffer.isBuffer(body) ? body : Buffer.from(body.latin1, 'latin1')
    const encoded = compress(plain, choice)
    if (!(encoded instanceof Promise)) {
      transmit(reply, incoming, { ...answer, body: encoded }, choice, started, progress)
      return
    }
    const release = unsent.hold(progress.caller, plain.length)
    void encoded
      .then(
        bytes => transmit(reply, incoming, { ...answer, body: bytes }, choice, started, progress),
        () => transmit(reply, incoming, answer, 'identity', started, progress),
      )
      .catch(error => {
        emit({ kind: 'request failed', requestId: incoming.requestId, error })
        breakOff(reply.raw)
      })
      .finally(release)
  }

  /** `choice`: the coding that the body has, or that a stream is to get. */
  function transmit(
    reply: FastifyReply,
    incoming: Incoming,
    answer: Answer,
    choice: Choice,
    started: number,
    progress: Progress,
  ): void {
    const { body } = answer
    const response = reply.raw
    const durationMs = now() - started
    // A flat list of names and values: the form that Node sends without looking anything up.
    const headers: OutgoingHttpHeader[] = [
      ...SECURITY_HEADERS,
      'X-Request-Id',
      incoming.requestId,
      'X-Response-Time',
      printMs(durationMs),
    ]
    if (options.serverTiming) headers.push(...timingHeader(progress.timing, durationMs))
    for (const name in answer.headers) headers.push(name, answer.headers[name] ?? '')
    if (choice !== 'none') {
      headers.push('Vary', 'Accept-Encoding')
      if (choice !== 'identity') headers.push('Content-Encoding', choice)
    }
    // The plugin's; what Fastify says of the connection, the answer says itself.
    if (hasCors) {
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (name !== 'connection') headers.push(name, value ?? '')
    }
    if (draining && connections.isLast(response)) headers.push('Connection', 'close')
    const done = () =>
      tell(incoming.method, incoming.requestId, answer.status, now() - started, progress, incoming, answer)
    if (isStream(body)) {
      response.writeHead(answer.status, headers)
      const chunks = choice === 'br' || choice === 'gzip' ? compressStream(body, choice) : body
      void sendStream(response, chunks, bytes => unsent.count(progress.caller, bytes), options.paces.start())
        .then(() => holdUnsent(response, progress))
        .catch(error => {
          progress.code = codeOf(error)
          emit({ kind: 'request failed', requestId: incoming.requestId, error })
          breakOff(response)
        })
        .finally(done)
      return
    }
    // Without it Node would send an empty body in chunks.
    const hasLength = body !== null || (answer.status !== 204 && incoming.method !== 'HEAD')
    if (hasLength) headers.push('Content-Length', lengthOf(body))
    response.writeHead(answer.status, headers)
    if (body === null || incoming.method === 'HEAD') response.end()
    else if ('latin1' in body) endWithText(response, body.latin1)
    else endWith(response, body)
    holdUnsent(response, progress)
    done()
  }

  /** What the kernel did not take at once waits for its reader. */
  function holdUnsent(response: ServerResponse, { caller }: Progress): void {
    const bytes = response.writableLength
    if (bytes === 0) return
    connections.whenSent(response, bytes, unsent.hold(caller, bytes))
    limitReaderIdleUntilSent(response)
  }

  return {
    isDraining: () => draining,
    listen: async () => app.listen({ host: await oneAddress(options.host), port: options.port }),
    async close() {
      draining = true
      await upgrades.close()
      await closeWithin(app, options.drainTimeoutMs)
    },
  }
}

function tooMany(what: string): GatewayError {
  return new GatewayError('UNAVAILABLE', `too many connections: ${what}; close one and try again`, {
    headers: { 'Retry-After': '1' },
  })
}

function noProgress(): Progress {
  return { route: 'none', at: null, tenantId: '', caller: null, code: null, timing: null }
}

function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'INTERNAL'
}

/** Methods that carry no body are not read by Fastify; an announced giant is refused all the same. */
function assertSmallBody(request: FastifyRequest): void {
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw bodyTooLarge()
}

function hasBody({ headers }: FastifyRequest): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : length !== '0'
}

/** RFC 9110, 10.1.1. */
function expectsContinue({ headers: { expect } }: FastifyRequest): boolean {
  return expect?.toLowerCase() === '100-continue'
}

function noSchemas(): never {
  throw new Error('no route of this server has a schema')
}

const NO_BODY = Buffer.alloc(0)

function toIncoming(request: FastifyRequest, reply: FastifyReply, requestId: string): Incoming {
  const url = targetOf(request.raw)
  const mark = url.indexOf('?')
  return {
    method: request.method,
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    headers: request.headers,
    body: Buffer.isBuffer(request.body) ? request.body : NO_BODY,
    requestId,
    connection: request.raw.socket,
    usage: new Usage(),
    onAbort(listener) {
      onceGone(reply.raw, listener)
    },
  }
}

/** The table whose rows are read or written. */
function tableOf(route: Route): string | null {
  if (route.kind === 'children') return route.child
  return 'table' in route ? route.table : null
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}

/** Whole milliseconds: where the time went, `Server-Timing` says. */
function printMs(durationMs: number): string {
  return `${Math.round(durationMs)}ms`
}

function isStream(body: Answer['body']): body is AsyncGenerator<Buffer> {
  return body !== null && !('latin1' in body) && !Buffer.isBuffer(body)
}

/** Also where a request by HEAD has no body. */
function isStreamed({ headers }: Answer): boolean {
  return headers['Content-Type']?.startsWith('application/x-ndjson') ?? false
}

/** 0 for a stream. */
function lengthOf(body: Answer['body']): number {
  if (body === null) return 0
  if (Buffer.isBuffer(body)) return body.length
  return 'latin1' in body ? body.latin1.length : 0
}

/** Nothing was changed: the client may ask again. Whatever the method, a read says in `X-Cache` how it used the cache. */
function isRead({ method }: Incoming, { headers }: Answer): boolean {
  return method === 'GET' || method === 'HEAD' || 'X-Cache' in headers
}

async function closeWithin(app: FastifyInstance, deadlineMs: number): Promise<void> {
  const cutOff = setTimeout(() => app.server.closeAllConnections(), deadlineMs)
  try {
    await app.close()
  } finally {
    clearTimeout(cutOff)
  }
}

function fromFramework(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge()
    case 'FST_ERR_BAD_URL':
      return new GatewayError('PARSE_ERROR', 'the path is not valid percent-encoded UTF-8; write % as %25')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new GatewayError('PARSE_ERROR', 'Content-Length does not match the body')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new GatewayError(
        'UNSUPPORTED_MEDIA_TYPE',
        'Content-Type is missing or malformed; expected application/json',
      )
    default:
      // Whatever else Fastify refuses in a request, it says so by a status of the 400s.
      return isRefusal(error) ? new GatewayError('PARSE_ERROR', error.message) : error
  }
}

function isRefusal(error: unknown): error is Error {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 0
  return status >= 400 && status < 500
}

function unparsable({ code }: NodeJS.ErrnoException): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError(
        'HEADERS_TOO_LARGE',
        `the request line and headers are larger than ${HEADER_BYTES_MAX} bytes`,
      )
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('TIMEOUT', `the request did not come whole within ${REQUEST_MS_MAX} ms`)
    default:
      return new GatewayError(
        'PARSE_ERROR',
        'the bytes sent are no HTTP/1.1 request; in the URL everything but ASCII must be percent-encoded',
      )
  }
}

/** `localhost` may be two addresses, and Fastify would open a server for each; one is enough, and only one is watched. */
async function oneAddress(host: string): Promise<string> {
  return host === 'localhost' ? (await lookup(host)).address : host
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
