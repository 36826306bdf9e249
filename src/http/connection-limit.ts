/**
 * How many connections clients may have, in total and from one address, idle ones included. A connection too many is answered 503 before Node makes a
 * parser for it, and closed.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Budget, Exceeded } from '../limits/budget.ts'

export interface ConnectionLimit {
  readonly budget: Budget<string | number | null>
  /** Whose share the connection belongs to; null for a trusted proxy, whose connections are those of many. */
  readonly holderOf: (socket: Socket) => string | number | null
  /** The whole response. Called for every refusal. */
  readonly refusal: (limit: Exceeded) => string
}

/** Refused connections that may wait for their client to read why. More are closed without an answer. */
const LINGERING_MAX = 256

/** For the client to read the refusal and close. */
const LINGER_MS_MAX = 1_000

/** Has to come after everybody else who listens for connections of `server`, and before the first of them. */
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
    // What has been sent is read and thrown away: a connection closed over unread bytes is reset, and the answer lost with it.
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
