/** A client of `/ws` for tests: what was said is kept, and waited for by what it is. */
import { WebSocket } from 'ws'

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of a message by expecting it
export type Message = any

export interface TestSocket {
  readonly socket: WebSocket
  say(message: Readonly<Record<string, unknown>>): void
  /** The next message that was not taken yet, in the order they came. */
  next(): Promise<Message>
  /** The next one of this type; those before it are skipped. */
  nextOf(type: string): Promise<Message>
  /** Resolves with code and reason. */
  readonly closed: Promise<readonly [code: number, reason: string]>
  /** Called with every message, also those that nobody waits for. */
  onMessage: ((message: Message) => void) | null
  close(): Promise<void>
}

export interface SocketOptions {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly protocols?: readonly string[]
  readonly path?: string
  /** Whom it trusts, for `https`. */
  readonly ca?: string
}

/** Rejects with the status where the upgrade is refused. */
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
