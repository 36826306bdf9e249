/** When pipelined requests start, over real sockets. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Connections, type Disconnect, watchConnections } from './connections.ts'

const LARGE = 8_000_000

let server: Server
let connections: Connections
let client: Socket
/** The paths in the order in which their requests started. */
let started: string[]
let came: number
const answers = new Map<string, (size: number) => void>()
const disconnects = new Map<string, Disconnect>()
/** The paths whose client disconnected before the response, once for each listener. */
let gone: string[]

beforeEach(async () => {
  started = []
  came = 0
  gone = []
  answers.clear()
  disconnects.clear()
  server = createServer((request, response) => void handle(request, response))
  connections = watchConnections(server, { unsentBytesMax: 1_000_000, runningMax: 4, outstandingMax: 64 })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
})
afterEach(() => {
  client.destroy()
  server.close()
})

/** Responds with the given number of bytes when the test requests it. */
async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  came += 1
  const path = request.url ?? ''
  const disconnect = connections.disconnectOf(request)
  disconnects.set(path, disconnect)
  disconnect.add(() => gone.push(path))
  await connections.turnOf(response)
  started.push(path)
  answers.set(path, size => {
    response.end(Buffer.alloc(size))
    disconnect.answered()
    const { writableLength } = response
    if (writableLength > 0) connections.whenSent(response, writableLength, () => {})
  })
}

function send(...requests: readonly string[]): void {
  client.write(requests.map(line => `${line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`).join(''))
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate)
}

/** Resolves when every request that can start has started. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
}

const answer = (path: string, size = 1) => answers.get(path)?.(size)

describe('pipelined requests', () => {
  test('that read run concurrently, up to four', async () => {
    send('GET /1', 'GET /2', 'GET /3', 'GET /4', 'GET /5', 'GET /6')
    await until(() => came === 6)
    await settled()
    expect(started).toEqual(['/1', '/2', '/3', '/4'])
    answer('/3')
    await until(() => started.length === 5)
    answer('/1')
    await until(() => started.length === 6)
    expect(started).toEqual(['/1', '/2', '/3', '/4', '/5', '/6'])
  })

  test('wait for a write before them, and a write waits for all requests before it', async () => {
    send('GET /1', 'POST /2', 'GET /3', 'GET /4')
    await until(() => came === 4)
    await settled()
    expect(started).toEqual(['/1'])
    client.resume()
    answer('/1')
    await until(() => started.length === 2)
    await settled()
    expect(started).toEqual(['/1', '/2'])
    answer('/2')
    await until(() => started.length === 4)
    expect(started).toEqual(['/1', '/2', '/3', '/4'])
  })

  test('wait while the client has not read the responses before them', async () => {
    send('GET /1', ...Array.from({ length: 9 }, (_, n) => `GET /${n + 2}`))
    await until(() => came === 10)
    answer('/1', LARGE)
    await settled()
    expect(started).toEqual(['/1', '/2', '/3', '/4'])
    answer('/2')
    answer('/3')
    answer('/4')
    await settled()
    expect(started.length).toBe(4)
    client.resume()
    await until(() => started.length === 8)
  })

  test('are released when their connection closes', async () => {
    send('POST /1', 'POST /2', 'POST /3')
    await until(() => came === 3)
    client.destroy()
    await until(() => started.length === 3)
  })

  test('are not read while too many are unanswered, and all are answered eventually', async () => {
    const count = 10_000
    send(...Array.from({ length: count }, (_, n) => `GET /${n}`))
    await until(() => came > 64)
    await settled()
    expect(came).toBeLessThan(count / 2)
    client.resume()
    for (let n = 0; n < count; n++) {
      await until(() => answers.has(`/${n}`))
      answer(`/${n}`)
    }
    expect(came).toBe(count)
  })
})

describe('a disconnected client', () => {
  test('ends its requests without a response, each listener once', async () => {
    send('GET /1', 'GET /2', 'GET /3')
    await until(() => started.length === 3)
    disconnects.get('/3')?.add(() => gone.push('/3 again'))
    answer('/2')
    client.destroy()
    await until(() => gone.length > 0)
    await settled()
    expect(gone).toEqual(['/1', '/3', '/3 again'])
  })

  test('is reported, asynchronously, to a listener that is added later', async () => {
    send('GET /1')
    await until(() => started.length === 1)
    client.destroy()
    await until(() => gone.length === 1)
    disconnects.get('/1')?.add(() => gone.push('later'))
    expect(gone).toEqual(['/1'])
    await until(() => gone.length === 2)
    expect(gone).toEqual(['/1', 'later'])
  })

  test('after its responses ends nothing', async () => {
    send('GET /1')
    await until(() => started.length === 1)
    answer('/1')
    await once(client, 'data')
    const closed = new Promise<void>(resolve => server.close(() => resolve()))
    client.destroy()
    await closed
    expect(gone).toEqual([])
  })
})
