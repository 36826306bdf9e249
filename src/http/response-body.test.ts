/** Time limits for clients that do not read, over real sockets. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { limitReaderIdleUntilSent } from './response-body.ts'

const LARGE = 8_000_000

let server: Server
let client: Socket
afterEach(() => {
  client.destroy()
  server.close()
})

/**
 * Responds to `/large` at once and to `/slow` never. Resolves with the server's socket once both were
 * requested on one connection.
 */
async function pipelined(...paths: readonly string[]): Promise<Socket> {
  let left = paths.length
  const socket = new Promise<Socket>(resolve => {
    server = createServer({ keepAliveTimeout: 5_000 }, (request, response) => {
      if (request.url === '/large') {
        response.end(Buffer.alloc(LARGE))
        limitReaderIdleUntilSent(response)
      }
      left -= 1
      if (left === 0) resolve(request.socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write(paths.map(path => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  return socket
}

async function readAll(): Promise<void> {
  let bytes = 0
  for await (const chunk of client.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes >= LARGE) return
  }
}

test('a client that does not read its response is disconnected, but not while a slow request is running', async () => {
  const socket = await pipelined('/large', '/slow')
  expect(socket.timeout).toBe(60_000)
  await readAll()
  while (socket.timeout !== 0) await new Promise(setImmediate)
})

test('an idle connection keeps the keep-alive timeout', async () => {
  const socket = await pipelined('/large')
  await readAll()
  while (socket.writableLength > 0) await new Promise(setImmediate)
  while (socket.timeout === 0 || socket.timeout === 60_000) await new Promise(setImmediate)
  expect(socket.timeout).toBeGreaterThanOrEqual(5_000)
  expect(socket.timeout).toBeLessThan(10_000)
})
