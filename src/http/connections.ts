/**
 * What Node does not tell of connections: which have something to finish, so that a server that closes cuts none of them short
 * (specification 1.10), that a client has gone whose answer had not come to its turn, and which requests must not overtake each other.
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
   * Several requests that were sent without waiting may be worked on at once only if all of them just read (RFC 9112, 9.3.2). Resolves when those have
   * been answered that the request of `response` has to wait for, or their connection has closed; null if there are none.
   */
  turnOf(response: ServerResponse): Promise<void> | null
  /** Calls back, once for a connection, when every request that came whole on it has its answer; at once if all have. */
  whenAnswered(socket: Socket, callback: () => void): void
}

/** Watches every connection of `server`, which must not have any yet. */
export function watchConnections(server: Server): Connections {
  // Answers leave a connection in the order of its requests: when the last is finished, all are.
  const lastOf = new Map<Socket, ServerResponse | null>()
  /** Answers, and what they wait for. */
  const behind = new WeakMap<ServerResponse, ServerResponse>()

  server.on('connection', (socket: Socket) => {
    lastOf.set(socket, null)
    // Requests sent without waiting each listen for its end.
    socket.setMaxListeners(0)
    socket.once('close', () => lastOf.delete(socket))
  })
  // Before the one who answers, and may ask.
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const before = lastOf.get(request.socket) ?? null
    if (
      before !== null &&
      !before.writableFinished &&
      (!isSafe(request) || !isSafe(before.req) || behind.has(before))
    ) {
      behind.set(response, before)
    }
    lastOf.set(request.socket, response)
  })

  function endWhenFinished(socket: Socket): void {
    const last = lastOf.get(socket)
    if (last === undefined) return
    if (last === null || last.writableFinished) socket.destroySoon()
    // A request may have come behind it meanwhile.
    else last.once('close', () => endWhenFinished(socket))
  }

  server.closeIdleConnections = () => {
    for (const socket of lastOf.keys()) endWhenFinished(socket)
  }
  const asked = new WeakSet<Socket>()
  return {
    isLast: response => lastOf.get(response.req.socket) === response,
    turnOf(response) {
      const before = behind.get(response)
      const { socket } = response.req
      if (before === undefined || before.writableFinished || socket.destroyed) return null
      return new Promise(resolve => {
        const done = () => {
          before.off('close', done)
          socket.off('close', done)
          resolve()
        }
        // Node tells only the one being answered that its connection has closed.
        before.once('close', done)
        socket.once('close', done)
      })
    },
    whenAnswered(socket, callback) {
      // Every chunk that comes behind bytes which are no request is an error of its own.
      if (asked.has(socket)) return
      asked.add(socket)
      const last = lastOf.get(socket) ?? null
      if (last === null || last.writableFinished || !last.req.complete) callback()
      else last.once('close', callback)
    },
  }
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
