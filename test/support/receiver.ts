/** Somebody who is sent webhooks: a real HTTP server that keeps what it got, and answers as it is told. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createMoments } from './moments.ts'

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The text as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of a body by expecting it
  readonly json: any
}

/** `count`: how many came before, this one included. */
export type Respond = (response: ServerResponse, received: Received, count: number) => void

export interface Receiver {
  readonly url: string
  /** Empty, where nothing is kept. */
  readonly received: readonly Received[]
  /** How many connections were made. */
  connections(): number
  /** How many of them are open. */
  open(): number
  /** Resolves once so many have come. */
  until(count: number): Promise<readonly Received[]>
  /** Resolves once it is so; asked after each that comes. */
  when(isSo: () => boolean): Promise<void>
  respond(how: Respond): void
  close(): Promise<void>
}

export const OK: Respond = response => response.writeHead(200).end('thanks')

/** Where more is to come than fits into memory, nothing is kept; whoever answers has seen it. */
export async function receiver(how: Respond = OK, keeps: 'all' | 'nothing' = 'all'): Promise<Receiver> {
  const received: Received[] = []
  let came = 0
  const moments = createMoments()
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
      moments.look()
    })
  })
  server.on('connection', socket => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      moments.look()
    })
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    connections: () => connections,
    open: () => sockets.size,
    when: moments.when,
    async until(count) {
      await moments.when(() => came >= count)
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
