/**
 * Adds what Node does not track for connections: which ones have unfinished responses, so that closing the
 * server does not cut them off (docs/guides/deploying.md#start-reload-stop); that a client disconnected while
 * its response waits behind others; and when a pipelined request can start.
 *
 * Node's `closeIdleConnections` treats a connection as idle as soon as its response has been handed over,
 * although a slow reader may have received only a part of it
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#serverclosecallback). A connection whose response ends
 * later stays open until its keep-alive timeout. Both `server.close()` and Fastify call this method, so it is
 * replaced.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The state of a server's connections. */
export interface Connections {
  /**
   * Reports whether no other request has arrived on the connection after this one, so the connection can end
   * with its response.
   */
  isLast(response: ServerResponse): boolean
  /**
   * Resolves when the request of `response` can start, or when the connection has closed; null if it can
   * start at once. A pipelined request starts before earlier responses are complete only if all earlier
   * requests are reads (RFC 9112, 9.3.2), few of them are running, and the client reads its responses.
   */
  turnOf(response: ServerResponse): Promise<void> | null
  /** Calls back once, when the response has been handed to the kernel or its connection has closed. */
  whenOver(response: ServerResponse, callback: () => void): void
  /** The same for a complete response of which `bytes` have not been sent yet. */
  whenSent(response: ServerResponse, bytes: number, callback: () => void): void
  /**
   * Calls back once per connection, when every complete request on it has been answered; at once if all have.
   */
  whenAnswered(socket: Socket, callback: () => void): void
  /** The work to end if the client of a request disconnects. */
  disconnectOf(request: IncomingMessage): Disconnect
}

/** Limits on one connection. */
export interface ConnectionLimits {
  /** Limit on the unsent bytes of a connection; above it the next pipelined request does not start. */
  readonly unsentBytesMax: number
  /**
   * Limit on the concurrent pipelined requests of a connection. The size of a response is known only when it
   * is complete.
   */
  readonly runningMax: number
  /**
   * Limit on the requests of a connection without a complete response. Above it, nothing more is read until
   * half of them are answered.
   */
  readonly outstandingMax: number
}

/** The state of a connection. */
interface Line {
  last: ServerResponse | null
  /** The requests without a complete response, in order; empty unless the client pipelines. */
  readonly outstanding: Outstanding[]
  running: number
  unsentBytes: number
  /** Callbacks that wait for a response to end. */
  readonly callbacks: Set<() => void>
  /** Those with listeners, whose responses are not complete. */
  readonly disconnects: Disconnect[]
  isClosed: boolean
  isPaused: boolean
}

interface Outstanding {
  readonly response: ServerResponse
  readonly isSafe: boolean
  /** `new`: `turnOf` has not been called, because the request was rejected or its body is still arriving. */
  state: 'new' | 'waiting' | 'running' | 'sending'
  start: (() => void) | null
}

const NO_LIMIT = Number.POSITIVE_INFINITY

/** Tracks every connection of `server`, which must not have any yet. */
export function watchConnections(
  server: Server,
  { unsentBytesMax = NO_LIMIT, runningMax = NO_LIMIT, outstandingMax = NO_LIMIT }: Partial<ConnectionLimits> = {},
): Connections {
  const lines = new Map<Socket, Line>()
  const pipelined = new WeakMap<ServerResponse, Outstanding>()

  server.on('connection', (socket: Socket) => {
    lines.set(socket, {
      ...{ last: null, outstanding: [], running: 0, unsentBytes: 0 },
      ...{ callbacks: new Set(), isPaused: false, disconnects: [], isClosed: false },
    })
    // Each pipelined request listens for the end of the connection.
    socket.setMaxListeners(0)
    socket.once('close', () => {
      const line = lines.get(socket)
      lines.delete(socket)
      if (line !== undefined) abandon(line)
    })
  })
  // Runs before the listener that handles the request, which can call `turnOf`.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const line = lines.get(request.socket)
    if (line === undefined) return
    const before = line.last
    line.last = response
    if (before === null || before.writableFinished) return
    // Responses leave a connection in the order of its requests, so everything before `before` is listed or
    // finished.
    if (!pipelined.has(before)) follow(line, before, before.writableEnded ? 'sending' : 'running')
    follow(line, response, 'new')
    if (line.outstanding.length <= outstandingMax) return
    line.isPaused = true
    // Node resumes the connection after reading the request to its end.
    process.nextTick(() => {
      if (line.isPaused) request.socket.pause()
    })
  })

  function follow(line: Line, response: ServerResponse, state: Outstanding['state']): void {
    const one: Outstanding = { response, isSafe: isSafe(response.req), state, start: null }
    line.outstanding.push(one)
    pipelined.set(response, one)
    if (state === 'running') line.running += 1
    response.once('close', () => {
      answered(line, one)
      line.outstanding.splice(line.outstanding.indexOf(one), 1)
      advance(line)
      if (line.isPaused && line.outstanding.length <= outstandingMax / 2) {
        line.isPaused = false
        response.req.socket.resume()
      }
    })
  }

  function answered(line: Line, one: Outstanding): void {
    if (one.state === 'running') line.running -= 1
    one.state = 'sending'
  }

  /** Starts every request that can start. */
  function advance(line: Line): void {
    let isFirst = true
    for (const one of line.outstanding) {
      if (one.response.writableFinished) continue
      if (one.state === 'waiting') {
        const mayOvertake = one.isSafe && line.running < runningMax && line.unsentBytes < unsentBytesMax
        if (!isFirst && !mayOvertake) return
        one.state = 'running'
        line.running += 1
        one.start?.()
      }
      // Everything after a write waits for it.
      if (!one.isSafe) return
      isFirst = false
    }
  }

  function onceOver(line: Line, response: ServerResponse, callback: () => void): void {
    const once = () => {
      if (line.callbacks.delete(once)) callback()
    }
    line.callbacks.add(once)
    // Registered before the listener that starts the next request, which checks what remains.
    response.prependOnceListener('close', once)
  }

  /** Node reports the closed connection only to the response being sent. */
  function abandon(line: Line): void {
    for (const callback of line.callbacks) callback()
    for (const { start } of line.outstanding) start?.()
    line.isClosed = true
    for (const disconnect of line.disconnects.splice(0)) disconnect.gone()
  }

  function endWhenFinished(socket: Socket): void {
    const line = lines.get(socket)
    if (line === undefined) return
    const { last } = line
    if (last === null || last.writableFinished) socket.destroySoon()
    // Another request can have arrived after it.
    else last.once('close', () => endWhenFinished(socket))
  }

  server.closeIdleConnections = () => {
    for (const socket of lines.keys()) endWhenFinished(socket)
  }
  const asked = new WeakSet<Socket>()
  return {
    isLast: response => lines.get(response.req.socket)?.last === response,
    turnOf(response) {
      const one = pipelined.get(response)
      if (one === undefined) return null
      const { socket } = response.req
      const line = lines.get(socket)
      if (line === undefined || socket.destroyed) return null
      one.state = 'waiting'
      advance(line)
      if (isRunning(one)) return null
      return new Promise(resolve => {
        one.start = resolve
      })
    },
    whenOver(response, callback) {
      const line = lines.get(response.req.socket)
      if (line === undefined) callback()
      else onceOver(line, response, callback)
    },
    whenSent(response, bytes, callback) {
      const line = lines.get(response.req.socket)
      if (line === undefined) {
        callback()
        return
      }
      line.unsentBytes += bytes
      onceOver(line, response, () => {
        line.unsentBytes -= bytes
        callback()
      })
      const one = pipelined.get(response)
      if (one === undefined) return
      answered(line, one)
      advance(line)
    },
    whenAnswered(socket, callback) {
      // Every chunk after invalid bytes is another error.
      if (asked.has(socket)) return
      asked.add(socket)
      const last = lines.get(socket)?.last ?? null
      if (last === null || last.writableFinished || !last.req.complete) callback()
      else last.once('close', callback)
    },
    disconnectOf: request => new Disconnect(lines.get(request.socket) ?? null),
  }
}

/**
 * Calls functions once, asynchronously, if the client of a request disconnects before its response is
 * complete.
 */
export class Disconnect {
  /** Null if the connection is closed already. */
  readonly #line: Pick<Line, 'disconnects' | 'isClosed'> | null
  #listeners: (() => void)[] | null = null

  constructor(line: Pick<Line, 'disconnects' | 'isClosed'> | null) {
    this.#line = line
  }

  add(listener: () => void): void {
    const line = this.#line
    if (line === null || line.isClosed) {
      process.nextTick(listener)
    } else if (this.#listeners === null) {
      this.#listeners = [listener]
      line.disconnects.push(this)
    } else {
      this.#listeners.push(listener)
    }
  }

  gone(): void {
    const listeners = this.#listeners ?? []
    this.#listeners = null
    for (const listener of listeners) listener()
  }

  /** The response is complete. */
  answered(): void {
    if (this.#listeners === null || this.#line === null) return
    this.#listeners = null
    const { disconnects } = this.#line
    // Almost always the only one.
    if (disconnects.length === 1) disconnects.pop()
    else disconnects.splice(disconnects.indexOf(this), 1)
  }
}

function isRunning({ state }: Outstanding): boolean {
  return state === 'running'
}

function isSafe({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

/**
 * Calls back once, asynchronously, if the connection closes before the response is finished. Returns a
 * function that cancels the callback.
 *
 * Only the response being sent has a socket, so Node reports a closed connection to that response only, not
 * to pipelined ones.
 */
export function onceGone(response: ServerResponse, listener: () => void): () => void {
  const { socket } = response.req
  const waits = response.socket === null
  const gone = () => {
    if (waits) forget()
    if (!response.writableFinished) listener()
  }
  const forget = () => {
    response.off('close', gone)
    if (waits) socket.off('close', gone)
  }
  if (socket.destroyed) {
    process.nextTick(gone)
    return forget
  }
  response.once('close', gone)
  if (waits) socket.once('close', gone)
  return forget
}
