/**
 * Requests whose head is as large as allowed, or larger: each is rejected, other clients are served, and no
 * memory is retained.
 */
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture, serviceFixture } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { residentBytes } from '../support/process.ts'
import { connectTo } from '../support/raw-http.ts'

/** Below the 64 KiB of docs/reference/limits.md, with room for the rest of the head. */
const NEARLY = 60_000
const ABOVE = 70_000
const TURNS = 120

/** Half of the bytes sent by all rounds together. Measured: 22 MB. */
const GROWTH_BYTES_MAX = 75_000_000

let token: string
const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (1, 'one');
  grant select on notes to app
`)
const svc = serviceFixture(database)

beforeAll(async () => {
  token = await mintToken(SECRET, { tenantId: 't1', expiresInSeconds: 600 }, Date.now())
})

const fill = (piece: string, bytes: number) => piece.repeat(Math.floor(bytes / piece.length))

/** Query strings that are rejected before the database is queried. */
const QUERIES: Readonly<Record<string, string>> = {
  'thousands of filters': fill('id=1&', NEARLY),
  'thousands of names': Array.from({ length: 6_000 }, (_, n) => `c${n}=1`).join('&'),
  'deep logic': `or=${fill('and(', NEARLY)}`,
  'a long list': `id=in.(${fill('1,', NEARLY)}1)`,
  'a long name': `${fill('a', NEARLY)}=1`,
  'a deep path': `body->${fill('a->', NEARLY)}b=1`,
  'a long selection': `select=${fill('id,', NEARLY)}id`,
  'a deep expansion': `expand=${fill('a.', NEARLY)}a`,
  'a long sort': `sort=${fill('id,', NEARLY)}id`,
  escapes: `id=${fill('%25', NEARLY)}`,
  'half an escape': `id=${fill('%', NEARLY)}`,
}

/** Complete heads without the request line. */
const HEADERS: Readonly<Record<string, readonly [lines: string, status: RegExp]>> = {
  'one above the limit': [`X-Bomb: ${fill('a', ABOVE)}\r\n`, /^431$/],
  // Only names and values count, which are half of these bytes.
  'thousands of headers above the limit': [fill('X-B: 1\r\n', 4 * ABOVE), /^431$/],
  'a header name above the limit': [`${fill('a', ABOVE)}: 1\r\n`, /^431$/],
  'a token just below the limit': [`Authorization: Bearer ${fill('a', NEARLY)}\r\n`, /^401$/],
  'thousands of proxy addresses': [`X-Forwarded-For: ${fill('1,', NEARLY)}\r\n`, /^401$/],
  'thousands of preferences': [`Prefer: ${fill('a,', NEARLY)}\r\n`, /^401$/],
}

const authorization = () => `Authorization: Bearer ${token}\r\n`

/** The status of the response. */
async function ask(path: string, headers: string): Promise<string> {
  const socket = connectTo(svc.url)
  // The server closes the connection without reading the rest.
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`)
  const answer = await text(socket).catch(() => '')
  return /^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? `no answer: ${answer.slice(0, 100)}`
}

describe('an oversized head is rejected', () => {
  test.each(Object.entries(QUERIES))('%s', async (_, query) => {
    expect(await ask(`/api/notes?${query}`, authorization())).toBe('400')
  })

  test.each(Object.entries(HEADERS))('header: %s', async (_, [headers, status]) => {
    expect(await ask('/api/notes', headers)).toMatch(status)
  })
})

test('oversized heads in several rounds do not delay other clients and retain no memory', {
  timeout: 120_000,
}, async () => {
  // Each request is different, so a cache that keeps the text would grow again.
  const bombs = (n: number) => [
    ...Object.values(QUERIES).map(query => ask(`/api/notes?t${n}=1&${query}`, authorization())),
    ...Object.values(HEADERS).map(([headers]) => ask(`/api/notes?t${n}=1`, headers)),
  ]
  const turn = async (n: number) => {
    const [answer] = await Promise.all([ask('/api/notes/1', authorization()), ...bombs(n)])
    expect(answer).toBe('200')
  }
  await turn(0)
  const before = await residentBytes(svc.child.pid ?? 0)
  for (let n = 1; n <= TURNS; n++) await turn(n)
  expect((await residentBytes(svc.child.pid ?? 0)) - before).toBeLessThan(GROWTH_BYTES_MAX)
  expect(svc.child.exitCode).toBeNull()
})
