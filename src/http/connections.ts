/**
 * What Node does not know of connections: which have something to finish, so that a server that closes cuts none of them short
 * (docs/guides/deploying.md#start-reload-stop), that a client has gone whose answer had not come to its turn, and when a pipelined request may start.
 *
 * Node's `closeIdleConnections` takes a connection for idle as soon as its answer was handed over, although a slow reader has only a part of it yet
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#serverclosecallback), and one whose answer ends later stays open until its keep-alive
 * timeout. Both `server.close()` and Fastify call it, so it is replaced by one that knows.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Connections {
  /** No other request of the same connection has come after it, so the connection may end with its answer. */
  isLast(response: ServerResponse): boolean
  /**
   * Resolves when the request of `response` may be started; null when it may be at once. A request that was sent without waiting for the answers before
   * it starts while those are outstanding only if all of them just read (RFC 9112, 9.3.2), if few of them run, and if their client reads its answers.
   * Resolves as well when the connection has closed.
   */
  turnOf(response: ServerResponse): Promise<void> | null
  /** Calls back once, when the answer has been handed to the kernel or its connection has closed. */
  whenOver(response: ServerResponse, callback: () => void): void
  /** The same for an answer that is complete, of which `bytes` still wait to be sent. */
  whenSent(response: ServerResponse, bytes: number, callback: () => void): void
  /** Calls back, once for a connection, when every request that came whole on it has its answer; at once if all have. */
  whenAnswered(socket: Socket, callback: () => void): void
}

export interface ConnectionLimits {
  /** Bytes waiting to be sent on one connection, beyond which its next pipelined request is not started. */
  readonly unsentBytesMax: number
  /** Pipelined requests of one connection that may run at once: the size of an answer is known only when it is there. */
  readonly runningMax: number
  /** Requests of one connection without a complete answer. Beyond that nothing more is read from it until half of them are answered. */
  readonly outstandingMax: number
}

/** What is known of a connection. */
interface Line {
  last: ServerResponse | null
  /** Those not answered completely, in their order; empty as long as requests come one at a time. */
  readonly outstanding: Outstanding[]
  running: number
  unsentBytes: number
  /** What waits for an answer to be over. */
  readonly callbacks: Set<() => void>
  isPaused: boolean
}

interface Outstanding {
  readonly response: ServerResponse
  readonly isSafe: boolean
  /** `new`: nobody has asked for its turn, because it was refused or its body is still coming. */
  state: 'new' | 'waiting' | 'running' | 'sending'
  start: (() => void) | null
}

const NO_LIMIT = Number.POSITIVE_INFINITY

/** Watches every connection of `server`, which must not have any yet. */
export function watchConnections(
  server: Server,
  { unsentBytesMax = NO_LIMIT, runningMax = NO_LIMIT, outstandingMax = NO_LIMIT }: Partial<ConnectionLimits> = {},
): Connections {
  const lines = new Map<Socket, Line>()
  const pipelined = new WeakMap<ServerResponse, Outstanding>()

  server.on('connection', (socket: Socket) => {
    lines.set(socket, {
      ...{ last: null, outstanding: [], running: 0, unsentBytes: 0 },
      ...{ callbacks: new Set(), isPaused: false },
    })
    // Requests sent without waiting each listen for its end.
    socket.setMaxListeners(0)
    socket.once('close', () => {
      const line = lines.get(socket)
      lines.delete(socket)
      if (line !== undefined) abandon(line)
    })
  })
  // Runs before the listener that answers, which may ask for the turn.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const line = lines.get(request.socket)
    if (line === undefined) return
    const before = line.last
    line.last = response
    if (before === null || before.writableFinished) return
    // Answers leave a connection in the order of its requests, so what was asked before `before` has been listed, or is finished.
    if (!pipelined.has(before)) follow(line, before, before.writableEnded ? 'sending' : 'running')
    follow(line, response, 'new')
    if (line.outstanding.length <= outstandingMax) return
    line.isPaused = true
    // Node resumes the connection when it has read the request to its end.
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

  /** Starts every request whose turn has come. */
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
      // Whatever comes behind a change waits for it.
      if (!one.isSafe) return
      isFirst = false
    }
  }

  function onceOver(line: Line, response: ServerResponse, callback: () => void): void {
    const once = () => {
      if (line.callbacks.delete(once)) callback()
    }
    line.callbacks.add(once)
    // Before the listener that starts what comes behind it, which looks at what is left.
    response.prependOnceListener('close', once)
  }

  /** Node tells only the response being sent that its connection has closed. */
  function abandon(line: Line): void {
    for (const callback of line.callbacks) callback()
    for (const { start } of line.outstanding) start?.()
  }

  function endWhenFinished(socket: Socket): void {
    const line = lines.get(socket)
    if (line === undefined) return
    const { last } = line
    if (last === null || last.writableFinished) socket.destroySoon()
    // A request may have come behind it meanwhile.
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
      // Every chunk that comes behind bytes which are no request is an error of its own.
      if (asked.has(socket)) return
      asked.add(socket)
      const last = lines.get(socket)?.last ?? null
      if (last === null || last.writableFinished || !last.req.complete) callback()
      else last.once('close', callback)
    },
  }
}

function isRunning({ state }: Outstanding): boolean {
  return state === 'running'
}

function isSafe({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

/**
 * Calls back once, and never before it has returned, if the connection closes before the answer is finished. Returns what takes that back.
 *
 * Of several requests that a client sent without waiting, only the one being answered has a socket, and Node tells only that one.
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
