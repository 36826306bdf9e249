/**
 * Decisions 10, design 5 (6): with the outbox, what was answered is told – at least once, or it is a dead letter –, whatever happens to gateways, database and
 * receivers; and what was not written is not.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'
import { type Received, receiver } from '../support/receiver.ts'
import type { TestServer } from '../support/server.ts'

const SIGNING = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const LISTENING = /"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/

const ROWS = 700
/** Rows that are changed again and again. */
const KEYS = 25
const CHANGES = 500
const KILLS = 5

let server: TestServer
let folder: string
beforeAll(async () => {
  server = await privateServer()
  folder = await mkdtemp(join(tmpdir(), 'outbox-faults-'))
  await execute(
    server.adminUrl,
    `create table notes (id int primary key, n int not null, tenant_id text);
     create table counters (id int primary key, version int not null, tenant_id text);
     insert into counters select n, 0, 't' || n % 5 from generate_series(1, ${KEYS}) as n;
     grant all on notes, counters to app`,
  )
  await installed(server)
})
afterAll(async () => {
  killSvc()
  await server.close()
  await rm(folder, { recursive: true })
})

/** Ways to fail. */
const FAILURES: readonly ((response: ServerResponse) => void)[] = [
  response => response.writeHead(500).end('no\0'),
  response => response.writeHead(429, { 'Retry-After': '1' }).end(),
  response => response.socket?.destroy(),
  response => response.socket?.end('HTTP/1.1 200'),
  // It hangs.
  () => {},
  // It takes it, and nobody hears of that.
  response => response.writeHead(200, { 'Content-Length': '9' }).write('ha', () => response.destroy()),
  response => void setTimeout(() => response.writeHead(200).end(), 300),
]

/** Every fifth webhook fails the first time that it comes. */
function flaky(): (response: ServerResponse, received: Received) => void {
  const seen = new Set<unknown>()
  return (response, { headers }) => {
    const id = headers['webhook-id']
    const isFirst = !seen.has(id)
    seen.add(id)
    if (isFirst && seen.size % 5 === 0) FAILURES[(seen.size / 5) % FAILURES.length]?.(response)
    else response.writeHead(204).end()
  }
}

test('what was answered is told, whoever is killed', { timeout: 180_000 }, async () => {
  const [plain, keyed, dead] = [
    await receiver(flaky()),
    await receiver(flaky()),
    await receiver(r => r.writeHead(503).end()),
  ]
  const file = join(folder, 'triggers.yaml')
  const common = { secret: SIGNING, timeout_ms: 500, retry_count: 8 }
  await writeFile(
    file,
    JSON.stringify([
      { ...common, name: 'plain', table: 'notes', operations: ['create'], webhook_url: plain.url },
      { ...common, name: 'keyed', table: 'counters', operations: ['update'], webhook_url: keyed.url, order: 'key' },
      { ...common, name: 'dead', table: 'notes', operations: ['delete'], webhook_url: dead.url, retry_count: 0 },
    ]),
  )
  const config = await configFile(
    `events_path = ${JSON.stringify(file)}\nwebhook_allow = ["127.0.0.1"]\nrate_limit_rate = 100000\nrate_limit_burst = 100000\nacquire_timeout_ms = 500`,
  )
  const environment = { DATABASE_URL: server.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0', SVC_CONFIG: config }
  const token = await mintToken(SECRET, { tenantId: 't1', expiresInSeconds: 600 }, Date.now())
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }

  const gateways: { svc: Svc; url: string }[] = []
  const start = async (at: number): Promise<void> => {
    const svc = startSvc(['serve'], environment)
    gateways[at] = { svc, url: await svc.says(LISTENING) }
  }
  await Promise.all([start(0), start(1)])
  let turn = 0
  /** Undefined: nobody knows what became of it. */
  const send = async (method: string, path: string, body: unknown): Promise<Response | undefined> => {
    const to = gateways[turn++ % gateways.length]
    const signal = AbortSignal.timeout(5_000)
    return fetch(`${to?.url}${path}`, { method, headers, body: JSON.stringify(body), signal }).catch(() => undefined)
  }

  const created = new Set<number>()
  const refused = new Set<number>()
  const deleted = new Set<number>()
  let nextRow = 1
  let nextChange = 0
  const writeRows = async (): Promise<void> => {
    while (nextRow <= ROWS) {
      const id = nextRow++
      // One of seven cannot be written, with the row before it.
      const isBad = id % 7 === 0
      const rows = isBad
        ? [
            { id: -id, n: 1 },
            { id, n: null },
          ]
        : [{ id, n: 1, tenant_id: `t${id % 20}` }]
      const status = (await send('POST', '/api/notes', rows))?.status
      if (status === 201) created.add(id)
      if (isBad) for (const row of rows) refused.add(row.id)
      if (status === 201 && id % 10 === 1 && (await send('DELETE', `/api/notes/${id}`, undefined))?.status === 204)
        deleted.add(id)
    }
  }
  const changeRows = async (): Promise<void> => {
    while (nextChange < CHANGES) {
      const id = (nextChange++ % KEYS) + 1
      const query = `set counters values version = version + 1 where id = ${id}`
      await send('POST', '/api/_query', { query })
    }
  }
  const writing = Promise.all([writeRows(), writeRows(), writeRows(), changeRows(), changeRows()])
  let isWriting = true
  void writing.then(() => {
    isWriting = false
  })
  for (let kills = 0; kills < KILLS || isWriting; kills++) {
    const at = kills % 2
    const count = plain.received.length
    // Not before it has something to lose.
    if (isWriting) await Promise.race([plain.until(count + 40), writing])
    gateways[at]?.svc.child.kill('SIGKILL')
    await gateways[at]?.svc.exited
    if (kills === 2) await server.restart()
    await start(at)
  }
  await writing

  const client = new pg.Client({ connectionString: server.adminUrl })
  await client.connect()
  const rows = async (text: string): Promise<number[][]> =>
    (await client.query<Record<string, number>>(text)).rows.map(row => Object.values(row))
  while ((await rows('select 1 from svc.webhook limit 1')).length > 0)
    await new Promise(resolve => setTimeout(resolve, 100))
  const deadIds = new Set(
    (await rows(`select (old ->> 'id')::int from svc.webhook_dead where trigger = 'dead'`)).map(([id]) => id),
  )
  const versions = await rows('select id, version from counters order by id')
  const otherDead = await rows(`select id from svc.webhook_dead where trigger <> 'dead'`)
  const ids = new Set((await rows('select id from notes')).map(([id]) => id))
  await client.end()

  expect(created.size).toBeGreaterThan(ROWS / 3)
  const told = new Set<number>(plain.received.map(({ json }) => json.data.new.id))
  expect([...created].filter(id => !told.has(id))).toEqual([])
  expect([...ids].filter(id => id !== undefined && !told.has(id))).toEqual([])
  expect([...told].filter(id => refused.has(id))).toEqual([])
  expect([...deleted].filter(id => !deadIds.has(id))).toEqual([])
  expect(otherDead).toEqual([])

  const bodies = new Map<unknown, string>()
  const verifier = new Webhook(SIGNING)
  for (const { headers: sent, text } of [...plain.received, ...keyed.received]) {
    verifier.verify(text, sent as Record<string, string>)
    expect(bodies.get(sent['webhook-id']) ?? text).toBe(text)
    bodies.set(sent['webhook-id'], text)
  }
  // Once for each change: the id is the same on every try, whichever gateway makes it.
  expect(new Set(plain.received.map(({ headers: { 'webhook-id': id } }) => id)).size).toBe(told.size)

  expect(versions.reduce((sum, [, version = 0]) => sum + version, 0)).toBeGreaterThan(CHANGES / 3)
  expect(deleted.size).toBeGreaterThan(10)
  const seen = new Map<number, number[]>()
  for (const { json } of keyed.received) {
    const { id, version } = json.data.new
    const before = seen.get(id) ?? []
    if (!before.includes(version)) seen.set(id, [...before, version])
  }
  for (const [id = 0, version = 0] of versions) {
    expect([id, seen.get(id) ?? []]).toEqual([id, Array.from({ length: version }, (_, index) => index + 1)])
  }
  await Promise.all([plain.close(), keyed.close(), dead.close()])
})
