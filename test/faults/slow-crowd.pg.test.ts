/**
 * Thousands of clients that send a byte now and then: other clients are served as usual, and each slow client
 * costs little memory.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture, serviceFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { residentBytes } from '../support/process.ts'
import { connectTo } from '../support/raw-http.ts'

const CROWD = 2_000
/** Each client sends one byte in every round. */
const ROUNDS = 5
const ROUND_MS = 1_000

/** A socket, its parser, and the received part of a request head. Measured: 16 KB. */
const CLIENT_BYTES_MAX = 50_000

/** Half of the other clients' requests are answered within this time. Without load it is milliseconds. */
const ANSWER_MS_MAX = 500

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (1, 'one');
  grant select on notes to app
`)
const svc = serviceFixture(database)

const memory = (): Promise<number> => residentBytes(svc.child.pid ?? 0)

/** Half of them send their headers slowly, the other half the body they announced. */
const HEADS = [
  'GET /api/notes/1?x=',
  'POST /api/notes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"',
]

async function slowClient(index: number): Promise<Socket> {
  const socket = connectTo(svc.url)
  // The server may close the connection.
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(HEADS[index % HEADS.length] ?? '')
  return socket
}

test('thousands of clients that send a byte a second each do not delay other clients', {
  timeout: 60_000,
}, async () => {
  const headers = {
    Authorization: `Bearer ${await mintToken(SECRET, { tenantId: 't1', expiresInSeconds: 600 }, Date.now())}`,
  }
  const took: number[] = []
  async function ask(): Promise<void> {
    const began = performance.now()
    const response = await fetch(`${svc.url}/api/notes/1`, { headers })
    expect(await response.json()).toEqual({ data: { id: 1, body: 'one' } })
    took.push(performance.now() - began)
  }
  for (let i = 0; i < 100; i++) await ask()
  took.length = 0
  const before = await memory()
  const crowd: Socket[] = []
  try {
    while (crowd.length < CROWD)
      crowd.push(...(await Promise.all(Array.from({ length: 100 }, (_, i) => slowClient(i)))))
    for (let round = 0; round < ROUNDS; round++) {
      for (const socket of crowd) socket.write('x')
      for (let i = 0; i < 20; i++) await ask()
      await sleep(ROUND_MS)
    }
    expect(took.sort((a, b) => a - b)[took.length / 2]).toBeLessThan(ANSWER_MS_MAX)
    // All of them are still connected: others were not served by disconnecting them.
    expect(crowd.filter(({ closed }) => !closed).length).toBe(CROWD)
    expect((await memory()) - before).toBeLessThan(CROWD * CLIENT_BYTES_MAX)
  } finally {
    for (const socket of crowd) socket.destroy()
  }
  await ask()
})
