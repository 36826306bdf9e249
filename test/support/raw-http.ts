/**
 * A low-level HTTP client for tests that need to see where bytes stop, whether a response is complete, or
 * that send requests without waiting.
 */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface Asked {
  readonly response: IncomingMessage
  /** The next line of the body without its line feed; null at the end of the body, complete or not. */
  line(): Promise<string | null>
  /** All remaining lines. */
  lines(): Promise<string[]>
  /** Whether the body arrived completely. */
  readonly complete: boolean
  /** Closes the connection. */
  abort(): void
}

interface AskingOptions {
  readonly method?: string
  readonly agent?: Agent
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request on a new connection and reads only as much of the body as is asked for. */
export async function ask(
  url: string,
  token: string,
  { method = 'GET', agent = new Agent(), headers = {} }: AskingOptions = {},
): Promise<Asked> {
  const asking = request(url, { method, agent, headers: { Authorization: `Bearer ${token}`, ...headers } })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  const found = splitLines(response)
  return {
    response,
    async line() {
      const { value, done } = await found.next()
      return done === true ? null : value
    },
    async lines() {
      const all: string[] = []
      for await (const line of found) all.push(line)
      return all
    },
    get complete() {
      return response.complete
    },
    abort: () => asking.destroy(),
  }
}

async function* splitLines(response: IncomingMessage): AsyncGenerator<string, void> {
  response.setEncoding('utf8')
  let rest = ''
  try {
    for await (const chunk of response) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch (error) {
    // The connection was cut off; `complete` reports it.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
  }
  if (rest !== '') yield rest
}

export interface RawConnection {
  readonly socket: Socket
  /** Sends a request without waiting for earlier responses. */
  send(path: string, token?: string): void
  /** Everything received so far. */
  readonly received: () => string
  /** Resolves with the match when the received bytes match. Rejects when the connection ends before that. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>
}

/** Opens a socket to the server of the URL. */
export function connectTo(url: string): Socket {
  const { hostname, port } = new URL(url)
  return connect(Number(port), hostname)
}

/**
 * Everything received, as Latin-1, until the server closes the connection. Rejects if the connection is
 * reset.
 */
export function exchange(url: string, ...sent: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connectTo(url)
    socket.on('data', chunk => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
    for (const part of sent) socket.write(part)
  })
}

export async function openRaw(url: string): Promise<RawConnection> {
  const { host } = new URL(url)
  const socket = connectTo(url)
  let received = ''
  let ended = false
  socket.on('data', chunk => {
    received += chunk.toString('latin1')
  })
  // The server may reset the connection; `closed` reports it.
  socket.on('error', () => {})
  const closed = new Promise<void>(resolve => {
    socket.once('close', () => {
      ended = true
      resolve()
    })
  })
  await once(socket, 'connect')
  return {
    socket,
    closed,
    received: () => received,
    send(path, token) {
      const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\n`)
    },
    async until(pattern) {
      for (;;) {
        const found = pattern.exec(received)
        if (found !== null) return found
        if (ended) throw new Error(`the connection ended before ${pattern}: ${received.slice(-2_000)}`)
        await Promise.race([once(socket, 'data'), closed])
      }
    },
  }
}
