/** A client of `/ws` for tests. It keeps the messages received, and waits for messages by type. */
import { WebSocket } from 'ws'

// biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of a message by its expectations
export type Message = any

export interface TestSocket {
  readonly socket: WebSocket
  say(message: Readonly<Record<string, unknown>>): void
  /** The next message that has not been taken, in order of arrival. */
  next(): Promise<Message>
  /** The next message of this type. Earlier messages are skipped. */
  nextOf(type: string): Promise<Message>
  /** Resolves with the close code and reason. */
  readonly closed: Promise<readonly [code: number, reason: string]>
  /** Called with every message, including those that no test waits for. */
  onMessage: ((message: Message) => void) | null
  close(): Promise<void>
}

export interface SocketOptions {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly protocols?: readonly string[]
  readonly path?: string
  /** The certificate authority to trust, for `https`. */
  readonly ca?: string
}

/** Rejects with the status if the upgrade is refused. */
export async function openSocket(url: string, options: SocketOptions = {}): Promise<TestSocket> {
  const { token, headers = {}, protocols = [], path = '/ws', ca } = options
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const socket = new WebSocket(url.replace(/^http/, 'ws') + path, [...protocols], {
    headers: { ...authorization, ...headers },
    perMessageDeflate: false,
    ...(ca === undefined ? {} : { ca }),
  })
  const messages: Message[] = []
  let wake: (() => void) | null = null
  let ended = false
  const client: TestSocket = {
    socket,
    onMessage: null,
    say: message => socket.send(JSON.stringify(message)),
    async next() {
      for (;;) {
        const message = messages.shift()
        if (message !== undefined) return message
        if (ended) throw new Error(`the socket was closed: ${await client.closed}`)
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
    async nextOf(type) {
      for (;;) {
        const message = await client.next()
        if (message.type === type) return message
        if (message.type === 'error') throw new Error(`expected ${type}, got ${JSON.stringify(message)}`)
      }
    },
    closed: new Promise(resolve => socket.once('close', (code, reason) => resolve([code, String(reason)]))),
    async close() {
      socket.close()
      await client.closed
    },
  }
  socket.on('message', data => {
    const message = JSON.parse(String(data))
    if (client.onMessage !== null) client.onMessage(message)
    else messages.push(message)
    wake?.()
  })
  socket.on('close', () => {
    ended = true
    wake?.()
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('unexpected-response', (_, response) => {
      socket.on('error', () => {})
      socket.terminate()
      reject(new Error(String(response.statusCode)))
    })
    socket.once('error', reject)
  })
  socket.on('error', () => {})
  return client
}
