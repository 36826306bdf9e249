/** docs/guides/scaling.md#what-workers-share: changes by one worker reach all of them. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { killSvc } from '../support/process.ts'
import { receiver } from '../support/receiver.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'
import { startWithWorkers, type WorkersFixture } from '../support/workers.ts'

// Every test starts three processes.
vi.setConfig({ testTimeout: 90_000 })

const database = databaseFixture(`
  create table notes (id int primary key, body text);
  create table logged (id int primary key, body text);
  grant select, insert, update on notes, logged to app
`)
/** Without `svc install`, which one of the tests runs in the other. */
const plain = databaseFixture(`
  create table notes (id int primary key, body text);
  grant select, insert on notes to app
`)
const folder = folderFixture()
afterEach(killSvc)

async function serve(toml: string, environment: Readonly<Record<string, string>> = {}): Promise<WorkersFixture> {
  return startWithWorkers(['--workers', '2'], {
    ...{ DATABASE_URL: database.url, SVC_CONFIG: await configFile(toml) },
    ...environment,
  })
}

async function post(url: string, path: string, body: object): Promise<void> {
  const token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 600 }, Date.now())
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(201)
  await response.arrayBuffer()
}

/** Subscribers, whose connections go to the workers in turn. */
async function subscribers(url: string, table: string, count: number): Promise<readonly TestSocket[]> {
  const token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 600 }, Date.now())
  const sockets: TestSocket[] = []
  for (let number = 0; number < count; number++) {
    const socket = await openSocket(url, { token })
    socket.say({ type: 'subscribe', channel: `svc_table_${table}` })
    await socket.nextOf('subscribed')
    sockets.push(socket)
  }
  return sockets
}

test.each(['notes', 'logged'])('subscribers at every worker receive the writes of every worker to %s', async table => {
  if (table === 'logged') await installed(database, [{ schema: 'public', table }])
  const gateway = await serve('log_level = "info"')
  const sockets = await subscribers(gateway.url, table, 4)
  // Both workers have subscribers.
  await gateway.says(/"worker":1,[^\n]*("route":"\/ws")/)
  await gateway.says(/"worker":2,[^\n]*("route":"\/ws")/)
  for (let id = 1; id <= 4; id++) await post(gateway.url, `/api/${table}`, { id, body: 'new' })
  for (const socket of sockets) {
    const seen = new Set<number>()
    while (seen.size < 4) {
      const message = await socket.nextOf('notification')
      seen.add(Number(message.key.id))
    }
    expect([...seen].sort()).toEqual([1, 2, 3, 4])
  }
  if (table === 'logged') {
    await new Promise(resolve => setTimeout(resolve, 2_500))
    const before = await readsOf(gateway.url)
    await new Promise(resolve => setTimeout(resolve, 2_000))
    // Ten times a second, by one worker or the other; if each read for itself, it would be twenty.
    expect((await readsOf(gateway.url)) - before).toBeLessThan(30)
  }
  await Promise.all(sockets.map(socket => socket.close()))
})

/** Reads of the change log by all workers. */
async function readsOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^svc_realtime_log_reads_total (\d+)$/m.exec(text)?.[1])
}

interface Answer {
  readonly id?: string
  readonly dead_letters: readonly { readonly id: string }[]
  readonly dead_letter_count: number
}

test('dead letters in the memory of each worker are listed, shown and deleted together', async () => {
  const hook = await receiver(response => response.writeHead(410).end())
  const file = join(folder, 'triggers.yaml')
  await writeFile(
    file,
    JSON.stringify([{ name: 'hook', table: 'notes', operations: ['create'], webhook_url: hook.url }]),
  )
  const gateway = await serve(`webhook_allow = ["127.0.0.0/8"]\nevents_path = ${JSON.stringify(file)}`, {
    SVC_ADMIN_TOKEN: 'an-admin-token',
    DATABASE_URL: plain.url,
  })
  const operate = async (path: string, method = 'GET') => {
    const headers = { authorization: 'Bearer an-admin-token', connection: 'close' }
    return (await fetch(gateway.url + path, { method, headers })).json() as Promise<Answer>
  }
  for (let id = 11; id <= 14; id++) await post(gateway.url, '/api/notes', { id, body: 'new' })
  await expect
    .poll(async () => (await operate('/internal/webhooks')).dead_letters.length, { timeout: 20_000 })
    .toBeGreaterThanOrEqual(2)
  const { dead_letters: letters, dead_letter_count: count } = await operate('/internal/webhooks')
  expect(count).toBe(letters.length)
  for (const { id } of letters) {
    const { id: shown } = await operate(`/internal/webhooks/dead-letter?id=${id}`)
    expect(shown).toBe(id)
  }
  expect(await operate('/internal/webhooks/purge?all=true', 'POST')).toEqual({ purged: letters.length })
  expect((await operate('/internal/webhooks')).dead_letters).toEqual([])
  await hook.close()
})
