/** A webhook receiver: a real HTTP server that keeps what it received and answers as configured. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createCondition } from './condition.ts'

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body parsed as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of a body by its expectations
  readonly json: any
}

/** `count` is the number of requests so far, including this one. */
export type Respond = (response: ServerResponse, received: Received, count: number) => void

export interface Receiver {
  readonly url: string
  /** The received requests. Empty if nothing is kept. */
  readonly received: readonly Received[]
  /** The number of connections opened so far. */
  connections(): number
  /** The number of connections open now. */
  open(): number
  /** Resolves once this number of requests have been received. */
  until(count: number): Promise<readonly Received[]>
  /** Resolves once the condition holds. It is evaluated after each request. */
  waitUntil(isMet: () => boolean): Promise<void>
  respond(how: Respond): void
  close(): Promise<void>
}

export const OK: Respond = response => response.writeHead(200).end('thanks')

/** `keeps` is `nothing` in tests that receive more requests than fit into memory. */
export async function receiver(how: Respond = OK, keeps: 'all' | 'nothing' = 'all'): Promise<Receiver> {
  const received: Received[] = []
  let came = 0
  const condition = createCondition()
  const sockets = new Set<Socket>()
  let connections = 0
  let respond = how
  const server = createServer((request, response) => {
    void textOf(request).then(text => {
      const { method = '', url: path = '', headers } = request
      const one = { method, path, headers, text, json: text === '' ? null : JSON.parse(text) }
      came += 1
      if (keeps === 'all') received.push(one)
      respond(response, one, came)
      condition.notify()
    })
  })
  server.on('connection', socket => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      condition.notify()
    })
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    connections: () => connections,
    open: () => sockets.size,
    waitUntil: condition.waitUntil,
    async until(count) {
      await condition.waitUntil(() => came >= count)
      return received
    },
    respond(next) {
      respond = next
    },
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
