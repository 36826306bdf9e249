/** Reads of one socket share memory, and no part of it is overwritten. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Progress } from './progress.ts'
import { openSocket } from './socket.ts'
import { parseUrl } from './url.ts'

const server = createServer()
let opened: Socket | null = null
afterEach(async () => {
  opened?.destroy()
  server.close()
  await once(server, 'close')
})

test('bytes that were read stay unchanged, however much is read after them', async () => {
  // Small reads, reads that nearly fill a piece of memory, and one larger than any piece.
  const sent = Array.from({ length: 300 }, (_, n) => randomBytes(n === 150 ? 300_000 : n % 50 === 0 ? 40_000 : 300))
  const whole = Buffer.concat(sent)
  server.on('connection', (peer: Socket) => {
    let at = 0
    peer.on('data', () => peer.write(sent[at++] ?? ''))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const target = parseUrl(`postgres://u@127.0.0.1:${port}/d?sslmode=disable`)
  const { socket } = await openSocket(target, new AbortController().signal, new Progress())
  opened = socket

  const chunks: Buffer[] = []
  let bytes = 0
  let due = 0
  let index = 0
  const ask = () => {
    due += sent[index++]?.length ?? 0
    socket.write('?')
  }
  const done = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('data', chunk => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes === whole.length) resolve()
      else if (bytes === due) ask()
    })
  })
  ask()
  await done
  expect(Buffer.concat(chunks).equals(whole)).toBe(true)
  // At least 300 reads, of half a megabyte in pieces of 64 KB.
  expect(chunks.length).toBeGreaterThanOrEqual(300)
  expect(new Set(chunks.map(({ buffer }) => buffer)).size).toBeLessThan(40)
})
