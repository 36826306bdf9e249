/** A TCP relay in front of a server that can fall silent: connections stay open, and nothing passes any more. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Relay {
  readonly port: number
  /** Connections since the start. */
  readonly accepted: number
  /** From now on no byte passes on any connection, old or new; each is accepted all the same. */
  silence(): void
  /** New connections work again; those that fell silent stay so. */
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
