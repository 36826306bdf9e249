/**
 * A scripted server that speaks PostgreSQL's protocol, built on the client's codec with the directions
 * swapped. It simulates what a real server never does, or does too rarely to test.
 */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { type BackendMessage, type ColumnDescription, encodeBackend } from '../../src/postgres/protocol/backend.ts'
import { decodeFirstPacket, decodeFrontend, type FrontendMessage } from '../../src/postgres/protocol/frontend.ts'
import { Reader } from '../../src/postgres/protocol/reader.ts'
import { Writer } from '../../src/postgres/protocol/writer.ts'

/** One client connection, as the server sees it. */
export interface FakeSession {
  readonly number: number
  readonly socket: Socket
  /** The client's next message. Rejects when the client has disconnected. */
  next(): Promise<FrontendMessage>
  /** All messages up to and including the next one of this kind. */
  until(kind: FrontendMessage['kind']): Promise<FrontendMessage[]>
  send(...messages: readonly BackendMessage[]): void
  /** Sends bytes unchanged. */
  raw(bytes: Uint8Array): void
  /**
   * Answers a start-up packet with trust authentication, UTF8 and ReadyForQuery. False if it was a cancel
   * request, which is then handled.
   */
  welcome(processId?: number): Promise<boolean>
  /** Resolves when the client has closed the connection. */
  readonly gone: Promise<void>
}

export interface FakePostgres {
  readonly port: number
  readonly url: string
  /** The number of connections so far. */
  readonly count: number
  close(): Promise<void>
}

export const PROCESS_ID = 4711

/**
 * `script` plays the server for each client. Errors that it throws after the client has disconnected are
 * ignored.
 */
export async function fakePostgres(script: (session: FakeSession) => Promise<void>): Promise<FakePostgres> {
  const sockets = new Set<Socket>()
  const failures: unknown[] = []
  let count = 0
  const server = createServer(socket => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('close', () => sockets.delete(socket))
    const session = serve(socket, ++count)
    script(session).catch(error => {
      if (!socket.destroyed && !socket.readableEnded) failures.push(error)
      socket.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the fake server has no port')
  return {
    port: address.port,
    url: `postgres://somebody:secret@127.0.0.1:${address.port}/anything`,
    get count() {
      return count
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
      if (failures.length > 0) throw failures[0]
    },
  }
}

function serve(socket: Socket, number: number): FakeSession {
  const arrived: FrontendMessage[] = []
  const waiting: { resolve(message: FrontendMessage): void; reject(error: Error): void }[] = []
  let first = true
  let ended = false
  const take = (message: FrontendMessage): void => {
    const waiter = waiting.shift()
    if (waiter === undefined) arrived.push(message)
    else waiter.resolve(message)
  }
  const reader = new Reader({
    message(type, bytes, start, end) {
      const message = first ? decodeFirstPacket(bytes, start, end) : decodeFrontend(type, bytes, start, end)
      // A request for encryption is followed by another first packet.
      if (message.kind === 'startup') {
        first = false
        reader.typed = true
      }
      take(message)
    },
    tooLong(_type, bytes) {
      throw new Error(`the client announced a message of ${bytes} bytes`)
    },
  })
  reader.typed = false
  const gone = new Promise<void>(resolve => {
    const end = (): void => {
      ended = true
      for (const waiter of waiting.splice(0)) waiter.reject(new Error('the client has disconnected'))
      resolve()
    }
    socket.on('end', end).on('close', end)
  })
  socket.on('error', () => {})
  socket.on('data', chunk => reader.push(chunk))

  const writer = new Writer()
  const session: FakeSession = {
    number,
    socket,
    gone,
    next() {
      const message = arrived.shift()
      if (message !== undefined) return Promise.resolve(message)
      if (ended) return Promise.reject(new Error('the client has disconnected'))
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
    },
    async until(kind) {
      const messages = []
      for (;;) {
        const message = await session.next()
        messages.push(message)
        if (message.kind === kind) return messages
      }
    },
    send(...messages) {
      for (const message of messages) encodeBackend(writer, message)
      const bytes = Buffer.from(writer.take())
      writer.recycle()
      socket.write(bytes)
    },
    raw(bytes) {
      socket.write(bytes)
    },
    async welcome(processId = PROCESS_ID) {
      let message = await session.next()
      if (message.kind === 'sslRequest') {
        session.raw(Buffer.from('N'))
        message = await session.next()
      }
      if (message.kind === 'cancelRequest') {
        socket.end()
        return false
      }
      if (message.kind !== 'startup') throw new Error(`expected a start-up packet, got ${message.kind}`)
      session.send(AUTHENTICATION_OK, UTF8, { kind: 'backendKeyData', processId, secret: Buffer.from('key!') }, READY)
      return true
    },
  }
  return session
}

export const AUTHENTICATION_OK: BackendMessage = { kind: 'authentication', authentication: { method: 'ok' } }
export const UTF8: BackendMessage = { kind: 'parameterStatus', name: 'client_encoding', value: 'UTF8' }
export const READY: BackendMessage = { kind: 'readyForQuery', status: 'idle' }

export function error(sqlstate: string, message: string, more: Readonly<Record<string, string>> = {}): BackendMessage {
  return {
    kind: 'error',
    fields: new Map(Object.entries({ S: 'ERROR', V: 'ERROR', C: sqlstate, M: message, ...more })),
  }
}

export function row(...columns: (string | null)[]): BackendMessage {
  return { kind: 'dataRow', columns: columns.map(column => (column === null ? null : Buffer.from(column))) }
}

export function description(...names: string[]): BackendMessage {
  const fields = names.map((name): ColumnDescription => {
    return { name, tableOid: 0, column: 0, typeOid: 25, typeSize: -1, typeModifier: -1, format: 0 }
  })
  return { kind: 'rowDescription', fields }
}

/** The server's response to Parse, Describe, Bind and Execute of a statement with one text column. */
export function firstAnswer(...values: string[]): BackendMessage[] {
  return [
    { kind: 'parseComplete' },
    { kind: 'parameterDescription', typeOids: [] },
    description('value'),
    ...nextAnswer(...values),
  ]
}

/** The server's response to Bind and Execute alone. */
export function nextAnswer(...values: string[]): BackendMessage[] {
  return [
    { kind: 'bindComplete' },
    ...values.map(value => row(value)),
    { kind: 'commandComplete', tag: `SELECT ${values.length}` },
  ]
}
