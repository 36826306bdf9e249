/** docs/guides/scaling.md#what-workers-share: limits are counted once, and no worker serves old results. */
import { once } from 'node:events'
import { Agent, type ClientRequest, request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { INVOKER } from '../support/postgres-version.ts'
import { killSvc } from '../support/process.ts'
import { startWithWorkers, type WorkersFixture } from '../support/workers.ts'

// Every test starts three processes.
vi.setConfig({ testTimeout: 90_000 })

const database = databaseFixture(`
  create table counters (id int primary key, value int not null);
  insert into counters select n, 0 from generate_series(1, 8) n;
  create view naps ${INVOKER} as select 1 as id, pg_sleep(3)::text as slept;
  grant select, insert, update on all tables in schema public to app
`)
afterEach(killSvc)

async function serve(toml: string): Promise<WorkersFixture> {
  return startWithWorkers(['--workers', '2'], { DATABASE_URL: database.url, SVC_CONFIG: await configFile(toml) })
}

interface Caller {
  /** Sends a request over the caller's own connection, which stays with one worker. */
  send(method: string, path: string, body?: object): Promise<{ status: number; json: { data: { value: number } } }>
  close(): void
}

async function caller(url: string): Promise<Caller> {
  const token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 600 }, Date.now())
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    async send(method, path, body) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const asked = httpRequest(`${url}${path}`, { method, agent, headers })
      asked.end(body === undefined ? undefined : JSON.stringify(body))
      const [response] = await once(asked, 'response')
      let text = ''
      for await (const chunk of response) text += chunk
      return { status: response.statusCode, json: JSON.parse(text) }
    },
    close: () => agent.destroy(),
  }
}

async function callers(url: string, count: number): Promise<readonly Caller[]> {
  const all: Caller[] = []
  // One after the other, so that the connections go to the workers in turn.
  for (let number = 0; number < count; number++) {
    const one = await caller(url)
    await one.send('GET', '/health')
    all.push(one)
  }
  return all
}

test('a write acknowledged by one worker is never followed by an older result of another', async () => {
  const gateway = await serve('cache.enabled = true\ncache.ttl_secs = 600\nrate_limit_rate = 0')
  const [writers, readers] = [await callers(gateway.url, 4), await callers(gateway.url, 8)]
  const acknowledged = new Map<number, number>()
  let isWriting = true
  let hits = 0

  const reading = readers.map(async (reader, index) => {
    const id = 1 + (index % 4)
    while (isWriting) {
      const atLeast = acknowledged.get(id) ?? 0
      const { status, json } = await reader.send('GET', `/api/counters/${id}`)
      expect(status).toBe(200)
      expect(json.data.value).toBeGreaterThanOrEqual(atLeast)
      hits++
    }
  })
  await Promise.all(
    writers.map(async (writer, index) => {
      const id = index + 1
      for (let value = 1; value <= 150; value++) {
        const { status } = await writer.send('PATCH', `/api/counters/${id}`, { value })
        expect(status).toBe(200)
        acknowledged.set(id, value)
        // Read at once by a caller of each worker.
        const [one, other] = [readers[0], readers[1]]
        const seen = await Promise.all([one, other].map(reader => reader?.send('GET', `/api/counters/${id}`)))
        for (const answer of seen) expect(answer?.json.data.value).toBeGreaterThanOrEqual(value)
      }
    }),
  )
  isWriting = false
  await Promise.all(reading)
  expect(hits).toBeGreaterThan(100)
  const internal = (await (await fetch(`${gateway.url}/health/internal`)).json()) as { cache: { hits: number } }
  expect(internal.cache.hits).toBeGreaterThan(50)
  for (const one of [...writers, ...readers]) one.close()
})

test('the rate limit of an address is counted for all workers together, up to one lease', async () => {
  const gateway = await serve('rate_limit_rate = 1\nrate_limit_burst = 100')
  const all = await callers(gateway.url, 8)
  const startedAt = performance.now()
  const statuses = await Promise.all(
    all.map(async one => {
      const answers: number[] = []
      for (let asked = 0; asked < 40; asked++) answers.push((await one.send('GET', '/api/counters/1')).status)
      return answers
    }),
  )
  const accepted = statuses.flat().filter(status => status === 200).length
  const refilled = Math.ceil((performance.now() - startedAt) / 1_000) + 10
  // The 8 requests of the start took a token each; a worker can hold up to 16 that the other one lacks.
  expect(accepted).toBeLessThanOrEqual(100 - 8 + refilled)
  expect(accepted).toBeGreaterThanOrEqual(100 - 8 - 16)
  expect(statuses.flat().filter(status => status === 429).length).toBe(320 - accepted)
})

test('the permits of a tenant are counted for all workers together', async () => {
  const gateway = await serve(
    'exposed_views = ["naps"]\ntenant_max_concurrent = 4\nmax_connections = 16\ntenant_max_connections = 12\n' +
      'explain_max_cost = 0\nexplain_max_rows = 0',
  )
  const all = await callers(gateway.url, 10)
  // Each worker leases permits that it does not use afterwards.
  for (const one of all) expect((await one.send('GET', '/api/counters/1')).status).toBe(200)
  const statuses = (await Promise.all(all.map(one => one.send('GET', '/api/naps')))).map(({ status }) => status)
  expect(statuses.filter(status => status === 200).length).toBe(4)
  expect(statuses.filter(status => status === 429).length).toBe(6)
})

test('connections are counted for all workers together, and places are free again when they are closed', async () => {
  const gateway = await serve('max_client_connections = 6\naddress_max_client_connections = 5')
  const open = async (): Promise<{ socket: Socket; head: string }> => {
    const { hostname, port } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    // The request is on its way before the worker knows whether there is a place.
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
    const [data] = await once(socket, 'data')
    return { socket, head: String(data).slice(0, 12) }
  }
  const first = []
  for (let number = 0; number < 8; number++) first.push(await open())
  expect(first.map(({ head }) => head)).toEqual([...Array(5).fill('HTTP/1.1 200'), ...Array(3).fill('HTTP/1.1 503')])
  for (const { socket } of first) socket.destroy()
  await expect.poll(async () => (await open()).head, { timeout: 10_000 }).toBe('HTTP/1.1 200')
})

test('a cursor of one worker continues at the other, without a shared secret of tokens too', async () => {
  const gateway = await startWithWorkers(['--workers', '2'], {
    DATABASE_URL: database.url,
    SVC_CONFIG: await configFile('require_auth = false'),
  })
  const all = await callers(gateway.url, 2)
  const first = (await all[0]?.send('GET', '/api/counters?limit=2')) as unknown as {
    json: { next_cursor: string }
  }
  const next = await all[1]?.send('GET', `/api/counters?limit=2&cursor=${first.json.next_cursor}`)
  expect(next?.status).toBe(200)
})

test('imports are counted for all workers together, and those of a worker that ends are free again', async () => {
  const svc = await serve('max_imports = 3\ntenant_max_imports = 2\nrate_limit_rate = 0')
  const uploads: ClientRequest[] = []
  /** Begins an import that does not end, and returns its status once it is running or refused. */
  const begin = async (tenantId: string): Promise<number> => {
    const token = await mintToken(SECRET, { tenantId, expiresInSeconds: 600 }, Date.now())
    const authorization = `Bearer ${token}`
    const id = `import-${uploads.length}`
    const headers = { authorization, 'content-type': 'text/csv', 'x-request-id': id }
    const upload = httpRequest(`${svc.url}/api/counters`, { method: 'POST', agent: false, headers })
    uploads.push(upload)
    upload.on('error', () => {})
    const refused = once(upload, 'response').then(([response]) => response.statusCode as number)
    refused.catch(() => {})
    upload.write('id,value\n')
    for (;;) {
      const running = fetch(`${svc.url}/api/_imports/${id}`, { headers: { authorization } }).then(one => one.status)
      const status = await Promise.race([refused, running])
      if (status !== 404) return status
    }
  }
  // Connections go to the workers in turn, so each worker receives every second import.
  expect([await begin('a'), await begin('a'), await begin('a'), await begin('a')]).toEqual([200, 200, 429, 429])
  expect([await begin('b'), await begin('b'), await begin('c')]).toEqual([200, 503, 503])
  for (const upload of uploads.splice(0)) upload.destroy()
  await expect.poll(() => begin('d')).toBe(200)
  // One after the other, so that one of them always listens.
  for (const [number, pid] of svc.pids()) {
    process.kill(pid, 'SIGKILL')
    await svc.logged('worker: serving', 2 + number)
  }
  expect([await begin('d'), await begin('d'), await begin('e')]).toEqual([200, 200, 200])
  for (const upload of uploads) upload.destroy()
})

test('every worker answers the progress of an import', async () => {
  const { url } = await serve('')
  const all = await callers(url, 4)
  const token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 600 }, Date.now())
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'text/csv', 'x-request-id': 'shared-import' }
  const imported = await fetch(`${url}/api/counters`, { method: 'POST', headers, body: 'id,value\n101,1\n' })
  expect(imported.status).toBe(201)
  const statuses = await Promise.all(all.map(one => one.send('GET', '/api/_imports/shared-import')))
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const others = await Promise.all(all.map(one => one.send('GET', '/api/_imports/other')))
  expect(others.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  for (const one of all) one.close()
})
