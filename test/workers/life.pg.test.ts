/** docs/guides/scaling.md#workers: several processes behind one address, from their start to their end. */
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { killSvc, startSvc } from '../support/process.ts'
import { startWithWorkers, type WorkersFixture } from '../support/workers.ts'

const database = databaseFixture(`
  create table notes (id int primary key, body text);
  insert into notes select n, 'note ' || n from generate_series(1, 100) n;
  grant select, insert, update on notes to app
`)
// Every test starts three processes or more.
vi.setConfig({ testTimeout: 90_000 })

let token: string
beforeAll(async () => {
  token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 600 }, Date.now())
})
afterEach(killSvc)

async function serve(toml = '', workers = '2'): Promise<WorkersFixture> {
  return startWithWorkers(['--workers', workers], {
    DATABASE_URL: database.url,
    SVC_CONFIG: await configFile(toml),
  })
}

interface Outcome {
  readonly status: number
  readonly connection: string | undefined
}

function get(url: string, agent: Agent): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(url, { agent, headers: { authorization: `Bearer ${token}` } }, response => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode ?? 0, connection: response.headers.connection }))
      response.on('error', reject)
    })
    asked.on('error', reject)
    asked.end()
  })
}

/** Sends requests over connections until it is stopped. Returns what failed. The rate limit is off. */
function underLoad(url: string): { stop(): Promise<{ ok: number; failed: string[] }> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  let isStopped = false
  const result = { ok: 0, failed: [] as string[] }
  const running = Array.from({ length: 8 }, async () => {
    while (!isStopped) {
      const outcome = await get(`${url}/api/notes/1`, agent).catch((error: Error) => error.message)
      if (typeof outcome === 'object' && outcome.status === 200) result.ok++
      else result.failed.push(JSON.stringify(outcome))
    }
  })
  return {
    async stop() {
      isStopped = true
      await Promise.all(running)
      agent.destroy()
      return result
    },
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Resolves when the process has ended. It is not a child of this one, so there is no event. */
async function gone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise(resolve => setTimeout(resolve, 20))
}

test('two workers share one address, and SIGTERM ends both with exit code 0', async () => {
  const gateway = await serve()
  const agent = new Agent({ keepAlive: false })
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => get(`${gateway.url}/api/notes/1`, agent)))
  expect(outcomes.map(({ status }) => status)).toEqual(Array(8).fill(200))
  await gateway.says(/("worker":1,[^\n]*"msg":"request")/)
  await gateway.says(/("worker":2,[^\n]*"msg":"request")/)
  const pids = [...gateway.pids().values()]
  expect(pids.length).toBe(2)
  gateway.child.kill('SIGTERM')
  expect(await gateway.exited).toEqual([0, null])
  expect(pids.map(isRunning)).toEqual([false, false])
  expect(gateway.said.error).toBe('')
})

test('a killed worker loses only its requests in progress, and is started again', async () => {
  const gateway = await serve('rate_limit_rate = 0')
  const load = underLoad(gateway.url)
  await gateway.says(/("worker":2,[^\n]*"msg":"request")/)
  const before = gateway.pids().get(1) ?? 0
  process.kill(before, 'SIGKILL')
  await gateway.logged('worker: serving', 3)
  const { ok, failed } = await load.stop()
  expect(gateway.pids().get(1)).not.toBe(before)
  expect(ok).toBeGreaterThan(0)
  // Eight connections, of which the killed worker had some, each with one request.
  expect(failed.length).toBeLessThanOrEqual(8)
  const agent = new Agent({ keepAlive: false })
  expect((await get(`${gateway.url}/api/notes/1`, agent)).status).toBe(200)
})

test('SIGUSR2 replaces all workers without a failed request', async () => {
  const gateway = await serve('rate_limit_rate = 0')
  const before = [...gateway.pids().values()]
  const load = underLoad(gateway.url)
  await gateway.says(/("worker":2,[^\n]*"msg":"request")/)
  gateway.child.kill('SIGUSR2')
  await gateway.logged('worker: all replaced')
  const { ok, failed } = await load.stop()
  expect(failed).toEqual([])
  expect(ok).toBeGreaterThan(0)
  expect(before.map(isRunning)).toEqual([false, false])
  expect([...gateway.pids().values()].map(isRunning)).toEqual([true, true])
})

test('SIGUSR2 with an invalid file keeps the workers', async () => {
  const file = await configFile('drain_timeout_ms = 500')
  const gateway = await startWithWorkers(['--workers', '2'], { DATABASE_URL: database.url, SVC_CONFIG: file })
  const before = [...gateway.pids().values()]
  const { writeFile } = await import('node:fs/promises')
  await writeFile(file, '[gateway]\nmax_connections = "many"\n')
  gateway.child.kill('SIGUSR2')
  await gateway.logged('worker: not replaced')
  expect(before.map(isRunning)).toEqual([true, true])
})

test('when the primary process is killed, its workers end', async () => {
  const gateway = await serve()
  const pids = [...gateway.pids().values()]
  gateway.child.kill('SIGKILL')
  await Promise.all(pids.map(gone))
})

test('workers that keep ending stop the gateway with exit code 1', async () => {
  const gateway = await serve()
  for (let kills = 1; kills <= 6; kills++) {
    process.kill(gateway.pids().get(1) ?? 0, 'SIGKILL')
    if (kills < 6) await gateway.logged('worker: started', 2 + kills)
  }
  expect(await gateway.exited).toEqual([1, null])
  expect(gateway.said.error).toMatch(/^worker 1 ended with signal SIGKILL, the 6th time in a row/)
})

test('a mistake in the configuration is reported once', async () => {
  const gateway = startSvc(['serve', '--workers', '2'], {
    DATABASE_URL: database.url,
    JWT_SECRET: SECRET,
    SVC_DEV_MODE: '1',
    SVC_BIND: '0.0.0.0:0',
  })
  expect(await gateway.exited).toEqual([1, null])
  expect(gateway.said.error.match(/SVC_DEV_MODE is on/g)?.length).toBe(1)
})

test('more workers than connections are refused', async () => {
  const argv = { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_CONFIG: await configFile('max_connections = 3') }
  const gateway = startSvc(['serve', '--workers', '4'], argv)
  expect(await gateway.exited).toEqual([2, null])
  expect(gateway.said.error).toContain('--workers 4 needs max_connections of 4 or more')
})

test('/metrics and /health/internal add the figures of all workers, and counters survive a killed worker', async () => {
  const gateway = await serve()
  const agent = new Agent({ keepAlive: false })
  for (let asked = 0; asked < 10; asked++) await get(`${gateway.url}/api/notes/1`, agent)
  const metrics = async () => (await fetch(`${gateway.url}/metrics`)).text()
  const requests = /svc_http_requests_total{method="GET",route="\/api\/{table}\/{id}",status="2xx"} (\d+)/
  const text = await metrics()
  expect(Number(requests.exec(text)?.[1])).toBe(10)
  expect(text).toContain('svc_workers{state="serving"} 2')
  expect(text).toContain('svc_pool_max_connections 10')
  process.kill(gateway.pids().get(2) ?? 0, 'SIGKILL')
  await gateway.logged('worker: serving', 3)
  const after = await metrics()
  expect(Number(requests.exec(after)?.[1])).toBe(10)
  expect(after).toContain('svc_worker_restarts_total{worker="2"} 1')
  const internal = (await (await fetch(`${gateway.url}/health/internal`)).json()) as {
    workers: { number: number; state: string; restarts: number }[]
    pool: { max_connections: number }
    limits: { max_connections: number }
  }
  expect(internal.workers).toMatchObject([
    { number: 1, state: 'serving', restarts: 0 },
    { number: 2, state: 'serving', restarts: 1 },
  ])
  expect(internal.pool.max_connections).toBe(10)
  expect(internal.limits.max_connections).toBe(10)
  expect(await (await fetch(`${gateway.url}/health`)).json()).toMatchObject({ status: 'ok' })
})

test('SIGHUP reaches every worker', async () => {
  const gateway = await serve('schema_poll_secs = 86400')
  gateway.child.kill('SIGHUP')
  await gateway.logged('asked to', 2)
  gateway.child.kill('SIGINT')
  await once(gateway.child, 'exit')
})

test('/health and writes do not wait for a worker that hangs or starts', async () => {
  const gateway = await serve('cache.enabled = true')
  const stopped = gateway.pids().get(2) ?? 0
  process.kill(stopped, 'SIGSTOP')
  const healths = await Promise.all(Array.from({ length: 4 }, () => answered(`${gateway.url}/health`, 1_500)))
  // Only the connection that was given to the stopped worker waits.
  expect(healths.filter(Boolean).length).toBeGreaterThanOrEqual(2)
  process.kill(stopped, 'SIGKILL')
  await gateway.logged('worker: started', 3)
  const written = await fetch(`${gateway.url}/api/notes/1`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    body: '{"body":"changed"}',
  })
  expect(written.status).toBe(200)
})

/** Reports whether the response arrives in time. */
async function answered(url: string, msMax: number): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(msMax), headers: { connection: 'close' } }).then(
    ({ status }) => status === 200,
    () => false,
  )
}
