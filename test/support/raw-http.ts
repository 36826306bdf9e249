/** An HTTP client that shows what others hide: where bytes stop, whether an answer is whole, and requests sent without waiting. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface Asked {
  readonly response: IncomingMessage
  /** The next line of the body without its end; null at the end of the body, whether it is whole or not. */
  line(): Promise<string | null>
  /** All lines that are left. */
  lines(): Promise<string[]>
  /** The body arrived with its end. */
  readonly complete: boolean
  /** Goes away. */
  abort(): void
}

/** Asks on a connection of its own, and reads no more of the body than is asked for. */
export async function ask(
  url: string,
  token: string,
  { method = 'GET', agent = new Agent() }: { readonly method?: string; readonly agent?: Agent } = {},
): Promise<Asked> {
  const asking = request(url, { method, agent, headers: { Authorization: `Bearer ${token}` } })
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
    // Cut off: `complete` tells.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
  }
  if (rest !== '') yield rest
}

export interface RawConnection {
  readonly socket: Socket
  /** Sends a request, whatever has been answered by now. */
  send(path: string, token?: string): void
  /** Everything received so far. */
  readonly received: () => string
  /** Resolves when what was received matches, with the match; rejects when the connection ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>
}

/** A socket to the server of the URL. */
export function connectTo(url: string): Socket {
  const { hostname, port } = new URL(url)
  return connect(Number(port), hostname)
}

/** Everything that comes back, as Latin-1, until the server closes the connection; rejects when it is reset. */
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
  // The server may cut the connection off; `closed` tells.
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
