/**
 * Limits the connections of clients, in total and from one address, including idle ones. A connection above a
 * limit is answered 503 before Node creates a parser for it, and is closed.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Budget, Exceeded } from '../limits/budget.ts'

/** The dependencies of the connection limit. */
export interface ConnectionLimit {
  readonly budget: Budget<string | number | null>
  /**
   * The key of the address that the connection counts for, or null for a trusted proxy, whose connections
   * belong to many clients.
   */
  readonly holderOf: (socket: Socket) => string | number | null
  /** Prints the whole response; called for every rejection. */
  readonly refusal: (limit: Exceeded) => string
}

/**
 * Limit on rejected connections that stay open until their client has read the response. Connections above it
 * are closed without a response.
 */
const LINGERING_MAX = 256

/** Time for the client to read the rejection and close. */
const LINGER_MS_MAX = 1_000

/**
 * Installs the limit. Call it after all other connection listeners of `server` are registered, and before the
 * first connection.
 */
export function limitConnections(server: Server, { budget, holderOf, refusal }: ConnectionLimit): void {
  const listeners = server.listeners('connection')
  let lingering = 0

  function refuse(socket: Socket, limit: Exceeded): void {
    budget.refuse(limit)
    const response = refusal(limit)
    socket.on('error', () => {})
    if (lingering >= LINGERING_MAX) {
      socket.destroy()
      return
    }
    lingering += 1
    // Data already sent by the client is read and discarded: closing a connection with unread data resets it,
    // and the client would lose the response.
    socket.resume()
    socket.end(response, 'latin1')
    const timer = setTimeout(() => socket.destroy(), LINGER_MS_MAX)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => {
      clearTimeout(timer)
      lingering -= 1
    })
  }

  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const holder = holderOf(socket)
    const limit = budget.exceeded(holder)
    if (limit !== null) {
      refuse(socket, limit)
      return
    }
    budget.take(holder, 1)
    socket.once('close', () => budget.give(holder, 1))
    for (const listener of listeners) listener.call(server, socket)
  })
}
