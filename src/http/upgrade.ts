/**
 * `GET /ws` (docs/reference/realtime.md#connecting) and other paths: upgrades a connection and transports the
 * frames of RFC 6455 to a session. The content of the messages is handled elsewhere.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { GatewayError } from '../errors.ts'
import type { Emit } from '../events.ts'
import type { Identity } from '../identity/identity.ts'
import { parseTraceContext } from '../trace-context.ts'
import type { Admit } from './admission.ts'
import type { JudgeHead } from './head.ts'
import { refuseRaw } from './raw-refusal.ts'
import { headerPairs, type ResponseHeaders } from './response-headers.ts'

/** The realtime side of the sockets, as far as it is needed here. */
export interface Sockets {
  /** The path of the upgrade request. */
  readonly path: string
  readonly messageBytesMax: number
  /** True if tokens can be in the URL. */
  readonly queryToken: boolean
  /** Identifies the caller of the upgrade request; null if only messages identify callers. */
  readonly authenticate: ((headers: IncomingMessage['headers']) => Identity | Promise<Identity>) | null
  /**
   * Admits a connection. `identity` is null if the first message authenticates the caller.
   * @throws {GatewayError} if the connection is rejected.
   */
  admit(address: string | number, identity: Identity | null): SocketSeat
  /** `query`: the query string of the upgrade request. */
  open(link: SocketLink, identity: Identity | null, seat: SocketSeat, query: string): SocketSession
  leave(): void
}

/** The place of an admitted connection; released when the connection is closed. */
export interface SocketSeat {
  claim(identity: Identity): void
  leave(): void
}

/** The functions by which a session sends and closes. */
export interface SocketLink {
  send(text: string): void
  readonly buffered: number
  pause(): void
  resume(): void
  close(code: number, reason: string): void
}

/** The session behind a socket. */
export interface SocketSession {
  receive(message: Buffer, form: 'text' | 'binary'): void
  closed(): void
}

/** The dependencies of upgrades. */
export interface UpgradeOptions {
  /** The protocols, each at its path. */
  readonly sockets: readonly Sockets[]
  readonly admit: Admit
  /** The client's address, as the key of its limits. */
  readonly holderOf: (request: IncomingMessage) => string | number
  readonly judgeHead: JudgeHead
  readonly corsAllowedOrigins: readonly string[]
  readonly isDraining: () => boolean
  readonly nextRequestId: (given: string | undefined) => string
  readonly emit: Emit
  readonly headers: ResponseHeaders
  readonly now: () => number
}

/** An upgrade in progress. */
interface Handshake {
  readonly requestId: string
  elapsedMs(): number
  refuse(error: unknown): void
}

/** The open sockets. */
export interface Upgrades {
  /** Closes all sockets with the closing handshake and terminates clients that do not answer it. */
  close(): Promise<void>
}

/**
 * Interval of pings. A client that has not answered by the next ping has disconnected; the socket itself does
 * not report that.
 */
const PING_INTERVAL_MS = 30_000

/** Time limit for the closing handshake. */
const CLOSE_MS_MAX = 2_000

/** Limit on buffered data above which pings of the client are not answered. */
const PONG_BUFFERED_MAX = 64 * 1024

/** The two subprotocols: one with the token in it, because pages cannot set headers, and one without. */
const TOKEN_PROTOCOL = 'svc.bearer.'
const PLAIN_PROTOCOL = 'svc'

/** Handles upgrades to WebSocket on `server`. */
export function takeUpgrades(server: Server, options: UpgradeOptions): Upgrades {
  const { sockets, admit, judgeHead, holderOf, corsAllowedOrigins, emit, now } = options
  const handshakes = new WeakMap<IncomingMessage, Handshake>()
  const routes = new Map(sockets.map(route => [route.path, { route, frames: framesOf(route) }]))

  function framesOf({ messageBytesMax }: Sockets): WebSocketServer {
    const frames = new WebSocketServer({
      ...{ noServer: true, clientTracking: false, autoPong: false },
      maxPayload: messageBytesMax,
      // A compressed message can grow a thousandfold when it is inflated, which would bypass the limit on
      // messages.
      perMessageDeflate: false,
      handleProtocols: chosenProtocol,
    })
    frames.on('headers', addHeaders)
    // The library would respond to an invalid handshake (RFC 6455, 4.2.1) without the error envelope.
    frames.on('wsClientError', (error, _socket, request) => {
      const message = `this is not a WebSocket handshake (RFC 6455, 4.2.1): ${error.message}`
      handshakes.get(request)?.refuse(new GatewayError('PARSE_ERROR', message, { headers: SUPPORTED_VERSION }))
    })
    return frames
  }

  function addHeaders(lines: string[], request: IncomingMessage): void {
    const handshake = handshakes.get(request)
    if (handshake === undefined) return
    const { requestId, elapsedMs } = handshake
    lines.push(
      ...headerPairs(options.headers(requestId, elapsedMs(), null)).map(([name, value]) => `${name}: ${value}`),
    )
  }
  const open = new Set<WebSocket>()
  /** The clients that have answered since the last ping. */
  const alive = new WeakSet<WebSocket>()

  const pinging = setInterval(() => {
    for (const socket of open) {
      if (!alive.has(socket)) {
        socket.terminate()
        continue
      }
      alive.delete(socket)
      socket.ping()
    }
  }, PING_INTERVAL_MS)
  pinging.unref()

  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node no longer handles errors of the socket.
    socket.on('error', () => socket.destroy())
    const found = isWebSocket(request) ? routes.get(pathOf(request)) : undefined
    if (found !== undefined) void accept(found, request, socket, head)
    else answerPlainly(server, request, socket, options)
  })

  async function accept(
    { route, frames }: { readonly route: Sockets; readonly frames: WebSocketServer },
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
  ): Promise<void> {
    const { path } = route
    const started = now()
    const elapsedMs = () => Math.round((now() - started) * 100) / 100
    const requestId = options.nextRequestId(one(request.headers['x-request-id']))
    const trace = parseTraceContext(request.headers)
    const done = (status: number, error: GatewayError | null, caller: Identity | null) => {
      const code = error?.code ?? null
      emit({
        ...{ kind: 'request', method: 'GET', route: path, status, code },
        ...{ durationMs: elapsedMs(), requestId, tenantId: caller?.tenantId ?? '', role: caller?.role ?? null },
        ...{ trace, path, table: null, function: null, rows: null, databaseMs: null, cache: null },
      })
    }
    const refuse = (error: unknown) => {
      const known = error instanceof GatewayError ? error : new GatewayError('INTERNAL', 'an unexpected error occurred')
      if (known !== error) emit({ kind: 'request failed', requestId, trace, error })
      refuseRaw(socket, known, requestId, options.headers(requestId, elapsedMs(), null))
      done(known.status, known, null)
    }
    handshakes.set(request, { requestId, elapsedMs, refuse })
    try {
      const refusal = (await admit(request)) ?? judgeHead(request)
      if (refusal !== null) throw refusal
      if (options.isDraining()) throw new GatewayError('UNAVAILABLE', 'the gateway is shutting down; try again')
      assertOrigin(request, corsAllowedOrigins)
      const identity = await callerOf(request, route)
      const seat = route.admit(holderOf(request), identity)
      socket.once('close', seat.leave)
      if (socket.destroyed) seat.leave()
      frames.handleUpgrade(request, socket, head, webSocket => {
        try {
          const link = linkOf(webSocket)
          serve(webSocket, route.open(link, identity, seat, queryOf(request)))
          done(101, null, identity)
        } catch (error) {
          webSocket.close(1013, error instanceof GatewayError ? error.message.slice(0, 100) : '')
        }
      })
    } catch (error) {
      refuse(error)
    }
  }

  function serve(socket: WebSocket, session: SocketSession): void {
    open.add(socket)
    alive.add(socket)
    socket.on('message', (data, isBinary) => {
      alive.add(socket)
      session.receive(data as Buffer, isBinary ? 'binary' : 'text')
    })
    socket.on('ping', data => {
      alive.add(socket)
      if (socket.bufferedAmount < PONG_BUFFERED_MAX) socket.pong(data)
    })
    socket.on('pong', () => alive.add(socket))
    // Invalid frames: the close code names the violated rule (RFC 6455, 7.4.1).
    socket.on('error', () => {})
    socket.on('close', () => {
      open.delete(socket)
      session.closed()
    })
  }

  return {
    async close() {
      clearInterval(pinging)
      for (const route of sockets) route.leave()
      await allClosed(open)
      for (const socket of open) socket.terminate()
    },
  }
}

function linkOf(socket: WebSocket): SocketLink {
  return {
    send(text) {
      if (socket.readyState === socket.OPEN) socket.send(text)
    },
    get buffered() {
      return socket.bufferedAmount
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close(code, reason) {
      // A client whose socket was paused may have sent its close frame long ago.
      socket.resume()
      socket.close(code, reason)
      setTimeout(() => socket.terminate(), CLOSE_MS_MAX).unref()
    },
  }
}

function allClosed(open: ReadonlySet<WebSocket>): Promise<void> {
  if (open.size === 0) return Promise.resolve()
  return new Promise(resolve => {
    const timer = setTimeout(resolve, CLOSE_MS_MAX)
    for (const socket of open) {
      socket.once('close', () => {
        if (open.size > 0) return
        clearTimeout(timer)
        resolve()
      })
    }
  })
}

/**
 * RFC 6455, 4.2.2 requires this header in the response to a handshake of another version; in other responses
 * it is harmless.
 */
const SUPPORTED_VERSION = { 'Sec-WebSocket-Version': '13' }

/** The caller, or null if the request has no credentials but needs them. */
async function callerOf(request: IncomingMessage, { authenticate, queryToken }: Sockets): Promise<Identity | null> {
  if (authenticate === null) return null
  const { headers } = request
  const token = tokenOf(request, queryToken)
  if (headers.authorization === undefined && token !== null) {
    return authenticate({ ...headers, authorization: `Bearer ${token}` })
  }
  try {
    return await authenticate(headers)
  } catch (error) {
    if (headers.authorization === undefined && error instanceof GatewayError && error.code === 'UNAUTHORIZED')
      return null
    throw error
  }
}

function tokenOf(request: IncomingMessage, queryToken: boolean): string | null {
  const offered = protocolsOf(request).find(protocol => protocol.startsWith(TOKEN_PROTOCOL))
  if (offered !== undefined) return offered.slice(TOKEN_PROTOCOL.length)
  return queryToken ? new URLSearchParams(queryOf(request)).get('access_token') : null
}

function queryOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

function protocolsOf({ headers }: IncomingMessage): readonly string[] {
  return (headers['sec-websocket-protocol'] ?? '').split(',').map(protocol => protocol.trim())
}

/**
 * A browser fails if none of the offered protocols is chosen (RFC 6455, 4.1). The protocol with the token is
 * repeated only if it is the only one offered.
 */
function chosenProtocol(offered: ReadonlySet<string>): string | false {
  if (offered.has(PLAIN_PROTOCOL)) return PLAIN_PROTOCOL
  for (const protocol of offered) if (protocol.startsWith(TOKEN_PROTOCOL)) return protocol
  return false
}

/**
 * Pages of other origins can open sockets without a preflight (RFC 6455, 10.2); clients that are not pages
 * send no origin.
 */
function assertOrigin({ headers: { origin } }: IncomingMessage, allowed: readonly string[]): void {
  if (origin === undefined || allowed.length === 0 || allowed.includes('*') || allowed.includes(origin)) return
  throw new GatewayError('FORBIDDEN', 'pages of this origin are not allowed to connect (cors_allowed_origins)')
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * An offer of another protocol, as in every request of `curl --http2`, can be ignored (RFC 9110, 7.8). Node
 * reads no body in such a request, so a request with a body is rejected.
 */
function answerPlainly(server: Server, request: IncomingMessage, socket: Socket, options: UpgradeOptions): void {
  const { headers } = request
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0) {
    const requestId = options.nextRequestId(one(headers['x-request-id']))
    const refusal = new GatewayError('PARSE_ERROR', 'send a body without the header Upgrade')
    refuseRaw(socket, refusal, requestId, options.headers(requestId, 0, null))
    return
  }
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.end())
  request.push(null)
  server.emit('request', request, response)
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
