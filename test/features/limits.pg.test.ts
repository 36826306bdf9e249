/**
 * docs/reference/limits.md: requests per address, concurrent requests of a tenant, and rejections under high
 * load.
 */
import { request } from 'node:http'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { LATE_PROBES, LOOP_DELAY_MS_MAX } from '../../src/limits/load.ts'
import { watchActivity } from '../support/activity.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, testGateway } from '../support/gateway.ts'
import { openRaw } from '../support/raw-http.ts'

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes select n, repeat('x', 1000) from generate_series(1, 20000) n;
  -- Waits until the test lets go of the lock.
  create view gates with (security_invoker) as select id, pg_advisory_xact_lock_shared(7)::text as passed from notes;
  create view naps with (security_invoker) as select id, pg_sleep(60)::text as slept from notes;
  create view faults with (security_invoker) as select id, 1 / (id - id) as broken from notes;
  create function twice(n int) returns int volatile language sql return n * 2;
  grant select, insert on all tables in schema public to app
`)
const activity = fixture(() => watchActivity(database.adminUrl))

describe('the rate limit of an address', () => {
  const BURST = 3

  const gateway = gatewayFixture(database, {
    // One token per quarter of an hour, so the clock does not affect the test.
    toml: `rate_limit_rate = 0.001\nrate_limit_burst = ${BURST}\ntrusted_proxies = ["127.0.0.0/8"]
             cors_allowed_origins = ["https://app.example"]`,
  })

  const from = (address: string, path = '/api/notes/1', options: AskOptions = {}): Promise<Reply> =>
    gateway.get(path, { ...options, headers: { ...options.headers, 'X-Forwarded-For': address } })

  async function statuses(count: number, ask: () => Promise<Reply>): Promise<number[]> {
    const found: number[] = []
    for (let i = 0; i < count; i++) found.push((await ask()).status)
    return found
  }

  test('answers 429 in the usual envelope once the burst is used up, and only for this address', async () => {
    expect(await statuses(BURST, () => from('192.0.2.1'))).toEqual([200, 200, 200])
    const refused = await from('192.0.2.1')
    expect(refused.status).toBe(429)
    expect(refused.json).toEqual({
      error: {
        code: 'RATE_LIMITED',
        message: expect.stringMatching(/^too many requests/),
        status: 429,
        request_id: refused.headers.get('x-request-id'),
      },
    })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(refused.headers.get('x-response-time')).toMatch(/ms$/)
    expect(refused.headers.get('x-content-type-options')).toBe('nosniff')
    expect((await from('192.0.2.2')).status).toBe(200)
  })

  test('applies before authentication, and counts rejected requests', async () => {
    const ask = () => from('192.0.2.3', '/api/notes', { as: null })
    expect(await statuses(BURST + 1, ask)).toEqual([401, 401, 401, 429])
  })

  test('counts every kind of request', async () => {
    const sorts: (readonly [string, AskOptions])[] = [
      ['/health', {}],
      ['/nowhere', {}],
      ['/api/%zz', {}],
      ['/api/notes', { method: 'PUT' }],
      ['/api/notes', { method: 'POST', body: 'x'.repeat(3_000_000) }],
      ['/api/notes', { method: 'OPTIONS' }],
      [
        '/api/notes',
        { method: 'OPTIONS', headers: { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' } },
      ],
    ]
    for (const [index, [path, options]] of sorts.entries()) {
      const ask = () => from(`192.0.2.${20 + index}`, path, options)
      const [first, ...others] = await statuses(BURST + 1, ask)
      expect(first).not.toBe(429)
      expect(others, `${options.method} ${path}`).toEqual([first, first, 429])
    }
  })

  test('sends CORS headers, so a page of an allowed origin can read the error', async () => {
    const ask = () => from('192.0.2.4', '/api/notes/1', { headers: { Origin: 'https://app.example' } })
    expect(await statuses(BURST, ask)).toEqual([200, 200, 200])
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(refused.headers.get('retry-after')).toBe('1')
  })

  test('answers without waiting for the body', async () => {
    await statuses(BURST, () => from('192.0.2.5'))
    const { hostname, port } = new URL(gateway.url)
    const headers = { 'X-Forwarded-For': '192.0.2.5', 'Content-Length': '1000', 'Content-Type': 'application/json' }
    const status = await new Promise(resolve => {
      const asking = request({ hostname, port, path: '/api/notes', method: 'POST', headers }, response => {
        resolve(response.statusCode)
        asking.destroy()
      })
      asking.write('[')
    })
    expect(status).toBe(429)
  })

  test('counts a client that forges the header as the same client', async () => {
    let forged = 0
    const ask = () => from(`198.51.100.${forged++}, 192.0.2.6`)
    expect(await statuses(BURST + 1, ask)).toEqual([200, 200, 200, 429])
  })

  test('counts the addresses of one IPv6 network as one client', async () => {
    let host = 1
    const ask = () => from(`[2001:db8:1:2::${host++}]:4711`)
    expect(await statuses(BURST + 1, ask)).toEqual([200, 200, 200, 429])
    expect((await from('2001:db8:1:3::1')).status).toBe(200)
  })

  test('ignores the header without trusted proxies', async () => {
    const direct = await testGateway(database.url, { toml: 'rate_limit_rate = 0.001\nrate_limit_burst = 2' })
    try {
      const ask = (n: number) => direct.get('/health', { headers: { 'X-Forwarded-For': `192.0.2.${n}` } })
      expect([(await ask(1)).status, (await ask(2)).status, (await ask(3)).status]).toEqual([200, 200, 429])
    } finally {
      await direct.close()
    }
  })

  test('refills its tokens', async () => {
    const single = await testGateway(database.url, { toml: 'rate_limit_rate = 1\nrate_limit_burst = 1' })
    const status = async () => (await single.get('/health')).status
    try {
      // One of two simultaneous requests is rejected, unless a whole second passes between them.
      await expect.poll(() => Promise.all([status(), status()]), { timeout: 20_000 }).toContain(429)
      await expect.poll(status, { timeout: 20_000 }).toBe(200)
    } finally {
      await single.close()
    }
  })
})

describe('the limit on concurrent requests of a tenant', () => {
  const PERMITS = 2

  let token: string
  const gateway = gatewayFixture(database, {
    toml: `tenant_max_concurrent = ${PERMITS}\nmax_connections = 8\nrequire_auth = false\nexplain_max_cost = 0`,
  })

  beforeAll(async () => {
    token = await gateway.token({ tenantId: 't1' })
  })

  const note = (as: NonNullable<AskOptions['as']> | null = { tenantId: 't1' }): Promise<Reply> =>
    gateway.get('/api/notes/1', { as })

  /** Runs while the maximum number of requests wait for a lock. Then they are released and must succeed. */
  async function whileBusy(as: NonNullable<AskOptions['as']> | null, check: () => Promise<void>): Promise<void> {
    const holder = new pg.Client({ connectionString: database.adminUrl })
    // A failed test may drop the database first.
    holder.on('error', () => {})
    await holder.connect()
    await holder.query('select pg_advisory_lock(7)')
    const running = Array.from({ length: PERMITS }, (_, i) => gateway.get(`/api/gates?id=eq.${i + 1}`, { as }))
    await activity.until(
      `select count(*)::int from pg_locks where locktype = 'advisory' and objid = 7 and not granted`,
      count => count === PERMITS,
    )
    try {
      await check()
    } finally {
      await holder.end()
    }
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200])
  }

  /** All permits are available: the maximum can be held at once, and again afterwards. */
  async function expectFree(): Promise<void> {
    await whileBusy({ tenantId: 't1' }, async () => {
      expect((await note()).status).toBe(429)
    })
    expect((await note()).status).toBe(200)
  }

  test('rejects one more at once, in the usual envelope, and does not affect other tenants', async () => {
    await whileBusy({ tenantId: 't1' }, async () => {
      const refused = await note({ tenantId: 't1', userId: 'somebody else' })
      expect(refused.status).toBe(429)
      expect(refused.json.error).toEqual({
        code: 'CONCURRENCY_LIMIT',
        message: expect.stringContaining('tenant_max_concurrent'),
        status: 429,
        request_id: refused.headers.get('x-request-id'),
      })
      expect(refused.headers.get('retry-after')).toBe('1')
      expect((await note({ tenantId: 't2' })).status).toBe(200)
      expect((await note(null)).status).toBe(200)
    })
    await expectFree()
  })

  test('applies to every kind of request that needs the database', async () => {
    const kinds: (readonly [string, AskOptions])[] = [
      ['/api/notes', {}],
      ['/api/notes?stream=true', {}],
      ['/api/notes/aggregate?fn=count', {}],
      ['/api/notes/_explain', {}],
      [
        '/api/notes',
        { method: 'POST', body: '{"id": -1, "body": "x"}', headers: { 'Content-Type': 'application/json' } },
      ],
      ['/api/rpc/twice', { method: 'POST', body: '[1]', headers: { 'Content-Type': 'application/json' } }],
    ]
    await whileBusy({ tenantId: 't1' }, async () => {
      for (const [path, options] of kinds) {
        const { status, json } = await gateway.get(path, options)
        expect([path, status, json.error.code]).toEqual([path, 429, 'CONCURRENCY_LIMIT'])
      }
    })
    expect((await gateway.get('/api/notes?id=eq.-1')).json.count).toBe(0)
  })

  test('does not apply to requests without the database', async () => {
    await whileBusy({ tenantId: 't1' }, async () => {
      expect((await gateway.get('/health')).status).toBe(200)
      expect((await gateway.get('/api/_schema')).status).toBe(200)
      expect((await gateway.get('/api/nothing')).status).toBe(404)
      expect((await gateway.get('/api/notes?nothing=1')).status).toBe(400)
    })
  })

  test('counts users without a tenant separately, and those without an id together', async () => {
    await whileBusy({ userId: 'ann' }, async () => {
      expect((await note({ userId: 'ann', role: 'other' })).status).toBe(429)
      expect((await note({ userId: 'bob' })).status).toBe(200)
      expect((await note({ tenantId: 'ann' })).status).toBe(200)
    })
    await whileBusy(null, async () => {
      expect((await note(null)).status).toBe(429)
      expect((await note({ role: 'nameless' })).status).toBe(429)
      expect((await note({ userId: 'bob' })).status).toBe(200)
    })
  })

  test('returns the permit after an error', async () => {
    for (let i = 0; i < 5 * PERMITS; i++) expect((await gateway.get('/api/faults')).status).toBe(400)
    for (let i = 0; i < 5 * PERMITS; i++) expect((await gateway.get('/api/faults?stream=true')).status).toBe(400)
    await expectFree()
  })

  test.each(['/api/naps', '/api/naps?stream=true'])(
    'returns the permit when the client of %s disconnects',
    async path => {
      const connections = await Promise.all(Array.from({ length: PERMITS }, () => openRaw(gateway.url)))
      for (const connection of connections) connection.send(path, token)
      await activity.until(
        `select count(*)::int from pg_stat_activity
       where datname = current_database() and state = 'active' and query like '%naps%' and pid <> pg_backend_pid()`,
        count => count === PERMITS,
      )
      expect((await note()).status).toBe(429)
      for (const { socket } of connections) socket.destroy()
      while ((await note()).status !== 200);
      await activity.gone(/\bnaps\b/)
      await expectFree()
    },
  )

  test('keeps the permit of a stream until its end', async () => {
    const connections = await Promise.all(Array.from({ length: PERMITS }, () => openRaw(gateway.url)))
    for (const connection of connections) {
      connection.send('/api/notes?stream=true&limit=10000', token)
      await connection.until(/"id":1,/)
      connection.socket.pause()
    }
    expect((await note()).status).toBe(429)
    for (const { socket } of connections) socket.resume()
    await Promise.all(connections.map(connection => connection.until(/\r\n0\r\n\r\n$/)))
    await expectFree()
    for (const { socket } of connections) socket.destroy()
  })

  test('returns the permit of a stream when its client disconnects, and of HEAD at once', async () => {
    for (let i = 0; i < 2 * PERMITS; i++) {
      const connection = await openRaw(gateway.url)
      connection.send('/api/notes?stream=true&limit=10000', token)
      await connection.until(/"id":1,/)
      connection.socket.destroy()
      while ((await note()).status !== 200);
      expect((await gateway.get('/api/notes?stream=true', { method: 'HEAD' })).status).toBe(200)
    }
    await expectFree()
  })
})

test('a process whose event loop is delayed rejects what it can, and logs it; health is always answered', async () => {
  const gateway = await testGateway(database.url)
  try {
    const token = await gateway.token({ tenantId: 't1' })
    const [api, health] = [await openRaw(gateway.url), await openRaw(gateway.url)]
    // A second request, because the first can end before the timers are checked.
    for (let pauses = 0; pauses <= LATE_PROBES; pauses++) {
      await new Promise(setImmediate)
      const until = performance.now() + LOOP_DELAY_MS_MAX + 200
      while (performance.now() < until);
    }
    api.send('/api/notes/1', token)
    health.send('/health')
    await api.until(/^HTTP\/1\.1 503 .*\r\nRetry-After: 1\r\n.*"UNAVAILABLE"/s)
    await health.until(/^HTTP\/1\.1 200 /)
    while ((await gateway.get('/api/notes/1')).status !== 200);
    for (const { socket } of [api, health]) socket.destroy()
  } finally {
    await gateway.close()
  }
})
