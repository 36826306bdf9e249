/**
 * Limits the connections of clients, in total and from one address, including idle ones. A connection above a
 * limit is answered with 503 before Node creates a parser for it, and is closed.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Exceeded } from '../limits/budget.ts'
import type { ConnectionSlots } from '../limits/connection-slots.ts'

/** The dependencies of the connection limit. */
export interface ConnectionLimit {
  readonly slots: ConnectionSlots
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
export function limitConnections(server: Server, { slots, holderOf, refusal }: ConnectionLimit): void {
  const listeners = server.listeners('connection')
  let lingering = 0

  function refuse(socket: Socket, limit: Exceeded): void {
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

  function admit(socket: Socket, holder: string | number | null): void {
    socket.once('close', () => slots.leave(holder))
    for (const listener of listeners) listener.call(server, socket)
  }

  /** Bytes that arrive before the answer wait in the socket. */
  async function admitLater(
    socket: Socket,
    holder: string | number | null,
    answer: Promise<Exceeded | null>,
  ): Promise<void> {
    const ignore = () => {}
    socket.on('error', ignore)
    const limit = await answer
    if (limit !== null) refuse(socket, limit)
    else if (socket.destroyed) slots.leave(holder)
    else admit(socket, holder)
    socket.off('error', ignore)
  }

  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const holder = holderOf(socket)
    const limit = slots.enter(holder)
    if (limit instanceof Promise) void admitLater(socket, holder, limit)
    else if (limit === null) admit(socket, holder)
    else refuse(socket, limit)
  })
}
