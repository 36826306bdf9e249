/**
 * Clients that read slowly, or not at all, do not affect others: they hold no database connection, and no
 * more memory than their responses need.
 */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { bufferBytes } from '../support/buffer-bytes.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { connectTo } from '../support/raw-http.ts'

const MB = 1_000_000

/**
 * An ordinary response takes a fraction of this. A request that waits for an occupied connection gets
 * `UNAVAILABLE` much later.
 */
const AT_ONCE_MS = 1_000

let token: string
const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (3, repeat('x', ${3 * MB})), (8, repeat('x', ${8 * MB})), (1, 'small');
  grant select on notes to app
`)
const gateway = gatewayFixture(database, { toml: 'max_connections = 1\nacquire_timeout_ms = 10000' })

beforeAll(async () => {
  token = await gateway.token({ tenantId: 't1' })
})

/** A connection that has sent a request and reads nothing until the caller iterates over it. */
function ask(path: string): Socket {
  const { host } = new URL(gateway.url)
  const socket = connectTo(gateway.url)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  return socket
}

test('four clients that never read their 8 MB hold no connection and at most 24 MB of memory each', async () => {
  const before = bufferBytes()
  const clients = Array.from({ length: 4 }, () => ask('/api/notes?id=8'))
  try {
    // The response has begun, so the row has arrived from the database.
    await Promise.all(clients.map(client => new Promise(resolve => client.once('readable', resolve))))
    const began = performance.now()
    expect((await gateway.get('/api/notes/1')).json.data).toEqual({ id: 1, body: 'small' })
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS)
    // Twice the size: the received row, and the response made from it.
    expect(bufferBytes() - before).toBeLessThan(3 * clients.length * 8 * MB)
  } finally {
    for (const client of clients) client.destroy()
  }
})

test('a client that reads slowly and steadily gets the complete response', async () => {
  const client = ask('/api/notes?id=3')
  let received = ''
  for await (const chunk of client) {
    received += chunk.toString('latin1')
    if (received.endsWith('}')) break
    await sleep(20)
  }
  const [head = '', body = ''] = received.split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 200 /)
  expect(JSON.parse(body)).toMatchObject({ count: 1, data: [{ id: 3 }] })
  expect(JSON.parse(body).data[0].body).toBe('x'.repeat(3 * MB))
})
