/**
 * A TCP relay in front of a server. It counts what passes, and can be silenced: connections stay open, and no
 * bytes are forwarded.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Relay {
  readonly port: number
  /** The number of connections so far. */
  readonly accepted: number
  /** The bytes that the server has sent. */
  readonly answeredBytes: number
  /** How often a client has sent something first, or after something from the server: round trips. */
  readonly turns: number
  /** Stops forwarding on every connection. New connections are still accepted. */
  silence(): void
  /** Forwards on new connections again. Silenced connections stay silent. */
  restore(): void
  close(): Promise<void>
}

export async function relayTo(port: number): Promise<Relay> {
  const sockets = new Set<Socket>()
  let silent = false
  let accepted = 0
  let answeredBytes = 0
  let turns = 0
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer(client => {
    accepted++
    keep(client)
    if (silent) return
    const upstream = connect(port, '127.0.0.1')
    keep(upstream)
    let muted = false
    const pass = (from: Socket, to: Socket): void => {
      from.on('data', chunk => {
        muted ||= silent
        if (!muted) to.write(chunk)
      })
      from.on('close', () => {
        if (!muted && !silent) to.destroy()
      })
    }
    pass(client, upstream)
    pass(upstream, client)
    let isClientsTurn = true
    client.on('data', () => {
      if (isClientsTurn) turns++
      isClientsTurn = false
    })
    upstream.on('data', chunk => {
      answeredBytes += chunk.length
      isClientsTurn = true
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the relay has no port')
  return {
    port: address.port,
    get accepted() {
      return accepted
    },
    get answeredBytes() {
      return answeredBytes
    },
    get turns() {
      return turns
    },
    silence() {
      silent = true
    },
    restore() {
      silent = false
    },
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
