/** docs/guides/monitoring.md: the contents of `/metrics` and `/health/internal`, and who can read them. */
import { describe, expect, test, vi } from 'vitest'
import { parseExposition } from '../support/exposition.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { filesBelow, read } from '../tidy/tree.ts'
import { shopDatabase } from './shop.ts'

const ADMIN = 'the-admin-token-of-the-tests'
const PATHS = ['/metrics', '/health/internal']
const bearer = (token: string) => ({ as: null, headers: { Authorization: `Bearer ${token}` } })

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)

async function metricsOf(asked: TestGateway) {
  return parseExposition((await asked.get('/metrics', { as: null })).text)
}

/** The value of the sample with these labels; undefined if it does not exist. */
async function valueIn(asked: TestGateway, name: string, labels: Readonly<Record<string, string>> = {}) {
  const samples = (await metricsOf(asked)).get(name)?.samples ?? []
  return samples.find(sample => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))?.value
}

describe('/metrics', () => {
  test('is valid for Prometheus', async () => {
    const reply = await gateway.get('/metrics', { as: null })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(parseExposition(reply.text).size).toBeGreaterThan(30)
  })
  test('counts requests by route, and errors by code', async () => {
    const requests = { method: 'GET', route: '/api/{table}/{id}' }
    const ok = (await valueIn(gateway, 'svc_http_requests_total', { ...requests, status: '2xx' })) ?? 0
    const missing = (await valueIn(gateway, 'svc_http_errors_total', { code: 'NOT_FOUND' })) ?? 0
    await gateway.get('/api/users/1')
    await gateway.get('/api/users/2')
    await gateway.get('/api/users/987654321')
    expect(await valueIn(gateway, 'svc_http_requests_total', { ...requests, status: '2xx' })).toBe(ok + 2)
    expect(await valueIn(gateway, 'svc_http_requests_total', { ...requests, status: '4xx' })).toBe(1)
    expect(await valueIn(gateway, 'svc_http_errors_total', { code: 'NOT_FOUND' })).toBe(missing + 1)
    expect(
      await valueIn(gateway, 'svc_http_request_duration_seconds', { ...requests, le: '+Inf' }),
    ).toBeGreaterThanOrEqual(3)
    const p50 = await valueIn(gateway, 'svc_http_request_latency_seconds', { ...requests, quantile: '0.5' })
    expect(p50).toBeGreaterThan(0)
  })
  test('contains only the pattern of a request’s path', async () => {
    const marks = ['secretpath', 'secrettable', 'secretrequest', 'secrettenant']
    await gateway.get(`/${marks[0]}/x`, { as: null })
    await gateway.get(`/api/${marks[1]}`, {
      as: { tenantId: marks[3] ?? '' },
      headers: { 'X-Request-Id': marks[2] ?? '' },
    })
    const { text } = await gateway.get('/metrics', { as: null })
    for (const mark of [...marks, 't1', SECRET, 'orders']) expect(text).not.toContain(mark)
    expect(await valueIn(gateway, 'svc_http_requests_total', { route: 'none' })).toBeGreaterThan(0)
  })
  test('measures the event loop', async () => {
    const probes = () => valueIn(gateway, 'svc_nodejs_eventloop_lag_seconds', { le: '+Inf' })
    const before = (await probes()) ?? 0
    await vi.waitFor(async () => expect(await probes()).toBeGreaterThan(before), { timeout: 10_000 })
  })
  test('has one label for all unknown methods', async () => {
    for (const method of ['PROPFIND', 'MKCOL', 'REPORT']) {
      expect((await gateway.get('/health', { as: null, method })).status).toBe(405)
    }
    const samples = (await metricsOf(gateway)).get('svc_http_requests_total')?.samples ?? []
    const methods = new Set(samples.map(({ labels }) => labels.method))
    expect(methods).toContain('other')
    for (const method of methods) expect(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'other']).toContain(method)
  })
})

describe('/health/internal', () => {
  test('reports the version, its parts, the database and the limits', async () => {
    const reply = await gateway.get('/health/internal', { as: null })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.json).toEqual({
      version: (await gateway.get('/health', { as: null })).json.version,
      node: process.version,
      uptime_secs: expect.any(Number),
      replicas: [],
      pool: {
        ...{ max_connections: 10, open: expect.any(Number), opening: expect.any(Number), idle: expect.any(Number) },
        ...{ busy: expect.any(Number), streaming: expect.any(Number), in_flight: expect.any(Number), waiting: 0 },
        ...{ finished: expect.any(Number), timed_out: 0, lost: 0 },
      },
      schema: {
        ...{ version: 1, fingerprint: expect.stringMatching(/^d-?\d{8,}$/), tables: expect.any(Number) },
        read_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        reloads: { changed: 0, unchanged: expect.any(Number), failed: 0 },
        postgresql: expect.stringMatching(/^\d+\.\d+$/),
      },
      issuers: [],
      cache: { enabled: false },
      realtime: {
        ...{ listening: false, sockets: 0, tables: {}, subscriptions: 0, groups: 0, visibility_queries_waiting: 0 },
        ...{ log: { reading: false, reads: 0, rows: 0 }, notifications: 0, live_answers: 0, resyncs: {} },
        ...{ live_queries: 0, live_queries_driven: 0, live_runs: 0, live_subscriptions: 0 },
      },
      webhooks: { enabled: false },
      installation: { installed: false },
      capture: { sources: {}, wal: null },
      limits: expect.objectContaining({ max_result_rows: 10_000, statement_timeout_ms: 30_000, default_limit: 50 }),
      warnings: expect.any(Array),
    })
    expect(reply.json.schema.tables).toBe(Object.keys((await gateway.get('/api/_schema')).json.tables).length)
  })
  test('has a new schema version after a schema change', async () => {
    const before = (await gateway.get('/health/internal', { as: null })).json.schema
    await execute(database.adminUrl, 'create table newcomers (id int primary key)')
    await gateway.gateway.reload()
    const after = (await gateway.get('/health/internal', { as: null })).json.schema
    expect(after).toMatchObject({ version: before.version + 1, tables: before.tables + 1 })
    expect(after.fingerprint).not.toBe(before.fingerprint)
    expect(after.read_at > before.read_at).toBe(true)
    expect(await valueIn(gateway, 'svc_schema_version')).toBe(after.version)
    expect(await valueIn(gateway, 'svc_schema_tables')).toBe(after.tables)
    expect(await valueIn(gateway, 'svc_schema_reloads_total', { outcome: 'changed' })).toBe(after.reloads.changed)
  })
  test('has the start-up warnings with their fixes, and no secret', async () => {
    const url = new URL(database.url)
    const secret = 'short-secret-of-the-tests'
    const other = await testGateway(database.url, { environment: { JWT_SECRET: secret, SVC_ADMIN_TOKEN: ADMIN } })
    try {
      const { json, text } = await other.get('/health/internal', bearer(ADMIN))
      expect(json.warnings).toContainEqual({
        message: expect.stringContaining('JWT_SECRET has 25 bytes'),
        fix: expect.stringContaining('openssl rand'),
      })
      for (const hidden of [secret, ADMIN, url.password, 'postgres://'].filter(Boolean))
        expect(text).not.toContain(hidden)
      const metrics = (await other.get('/metrics', bearer(ADMIN))).text
      expect(parseExposition(metrics).get('svc_boot_warnings')?.samples[0]?.value).toBe(json.warnings.length)
    } finally {
      await other.close()
    }
  })
})

describe.each(PATHS)('access to %s', path => {
  test('without an admin token is open to everyone', async () => {
    for (const options of [{ as: null }, {}, bearer('anything')]) {
      expect((await gateway.get(path, options)).status).toBe(200)
    }
  })
  test('with an admin token requires that token', async () => {
    const other = await testGateway(database.url, { environment: { SVC_ADMIN_TOKEN: ADMIN } })
    try {
      expect((await other.get(path, bearer(ADMIN))).status).toBe(200)
      for (const options of [
        { as: null },
        {},
        bearer(`${ADMIN}x`),
        bearer(ADMIN.slice(1)),
        bearer(''),
        bearer('null'),
      ]) {
        for (const method of ['GET', 'HEAD']) {
          const reply = await other.get(path, { ...options, method })
          expect([reply.status, reply.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
          if (method === 'GET') expect(reply.json.error.code).toBe('UNAUTHORIZED')
        }
      }
      // The token does not belong to a caller.
      expect((await other.get('/api/users', bearer(ADMIN))).status).toBe(401)
      expect((await other.get('/health', { as: null })).status).toBe(200)
    } finally {
      await other.close()
    }
  })
  test('with HEAD is GET without the body', async () => {
    const reply = await gateway.get(path, { as: null, method: 'HEAD' })
    expect([reply.status, reply.text]).toEqual([200, ''])
    expect(Number(reply.headers.get('content-length'))).toBeGreaterThan(100)
  })
  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s → 405', async method => {
    const reply = await gateway.get(path, { as: null, method })
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
  test('does not apply to similar paths, which are answered with 404', async () => {
    for (const other of [`${path}/`, `/api${path}/x/y/z`, path.toUpperCase(), '/__proto__']) {
      expect((await gateway.get(other)).status).toBe(404)
    }
  })
})

describe('while the database is unreachable', () => {
  const server = databaseFixture(privateServer)
  const cutOff = gatewayFixture(server, { toml: 'acquire_timeout_ms = 200' })

  test('both respond, and report the problem', async () => {
    await server.kill()
    while ((await cutOff.get('/health', { as: null })).status === 200);
    for (const path of PATHS) expect((await cutOff.get(path, { as: null })).status).toBe(200)
    expect((await cutOff.get('/api/_schema')).status).toBe(200)
    while (((await valueIn(cutOff, 'svc_pool_connect_failures_total')) ?? 0) === 0);
    expect(await valueIn(cutOff, 'svc_pool_connections_lost_total')).toBeGreaterThan(0)
    const { pool } = (await cutOff.get('/health/internal', { as: null })).json
    expect(pool).toMatchObject({ open: 0, idle: 0, busy: 0 })
    expect(pool.lost).toBeGreaterThan(0)
  })
})

describe('Server-Timing', () => {
  /** The entries by name, in order. */
  const partsOf = (headers: Headers) =>
    (headers.get('server-timing') ?? '').split(', ').map(part => {
      const match = /^(\w+);dur=(\d+(?:\.\d+)?)$/.exec(part)
      return [match?.[1], Number(match?.[2])] as const
    })

  test('is absent outside development mode', async () => {
    for (const path of ['/api/users', '/health', '/nowhere']) {
      expect((await gateway.get(path)).headers.get('server-timing')).toBeNull()
    }
  })
  test('is on every response in development mode, with the steps that the request reached', async () => {
    const toml = 'cors_allowed_origins = ["https://app.example.com"]'
    const developing = await testGateway(database.url, { toml, environment: { SVC_DEV_MODE: 'true' } })
    try {
      const timed = async (path: string, options: Parameters<TestGateway['get']>[1] = {}) => {
        const { headers, status } = await developing.get(path, options)
        const parts = partsOf(headers)
        for (const [, ms] of parts) expect(ms).toBeGreaterThanOrEqual(0)
        const total = parts.at(-1)?.[1] ?? 0
        for (const [name, ms] of parts) if (name !== 'total') expect(ms).toBeLessThanOrEqual(total + 0.001)
        return [status, ...parts.map(([name]) => name)]
      }
      const whole = ['auth', 'plan', 'db', 'total']
      expect(await timed('/api/users/1')).toEqual([200, ...whole])
      expect(await timed('/api/users?limit=2')).toEqual([200, ...whole])
      expect(await timed('/api/users?stream=true')).toEqual([200, ...whole])
      expect(await timed('/api/users?nope=1')).toEqual([400, 'auth', 'total'])
      expect(await timed('/api/users/987654321')).toEqual([404, ...whole])
      expect(await timed('/api/users', bearer('x'))).toEqual([401, 'auth', 'total'])
      expect((await timed('/health', { as: null })).at(-1)).toBe('total')
      expect(await timed('/metrics', { as: null })).toEqual([200, 'total'])
      expect(await timed('/nowhere', { as: null })).toEqual([404, 'total'])
      expect(await timed('/api/%', { as: null })).toEqual([400, 'total'])
      const preflight = { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'GET' }
      expect(await timed('/api/users', { as: null, method: 'OPTIONS', headers: preflight })).toEqual([204, 'total'])
    } finally {
      await developing.close()
    }
  })
})

describe('the dashboard', () => {
  const files = filesBelow('docs/operations').filter(path => path.endsWith('.json'))
  /** Every text below a key that contains PromQL. */
  function queriesOf(value: unknown): readonly string[] {
    if (value === null || typeof value !== 'object') return []
    return Object.entries(value).flatMap(([key, below]) =>
      typeof below === 'string' && ['expr', 'query', 'definition'].includes(key) ? [below] : queriesOf(below),
    )
  }

  test.each(files)('%s uses only existing metrics and labels', async file => {
    const told = await metricsOf(gateway)
    const queries = queriesOf(JSON.parse(read(file))).filter(query => query.includes('svc_'))
    expect(queries.length).toBeGreaterThan(20)
    const named = new Set<string>()
    for (const query of queries) {
      const names = query.match(/\bsvc_\w+/g) ?? []
      const families = names.map(name => told.get(name) ?? told.get(name.replace(/_(?:bucket|sum|count)$/, '')))
      expect(families, query).not.toContain(undefined)
      for (const family of families) named.add(family?.name ?? '')
      const labels = new Set(
        families.flatMap(family => family?.samples.flatMap(({ labels }) => Object.keys(labels)) ?? []),
      )
      const used = [...query.matchAll(/\bby \(([^)]*)\)|(\w+)(?=!?=~?")/g)].flatMap(match =>
        (match[1] ?? match[2] ?? '').split(', '),
      )
      // Prometheus adds these labels.
      for (const label of used) expect(['job', 'instance', ...labels], query).toContain(label)
    }
    expect(named.size).toBeGreaterThan(25)
  })
})
