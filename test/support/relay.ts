/**
 * A TCP relay in front of a server that can be silenced: connections stay open, and no bytes are forwarded.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Relay {
  readonly port: number
  /** The number of connections so far. */
  readonly accepted: number
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
