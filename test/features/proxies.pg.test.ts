/**
 * docs/guides/deploying.md with nginx and with Caddy, configured by the files of docs/operations: clients
 * receive what the gateway sends.
 */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { Agent, type RequestOptions, request } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { PROXIES, type RunningProxy } from '../support/proxies.ts'
import { openSocket } from '../support/socket.ts'
import { shopDatabase } from './shop.ts'

// Each test starts programs, and the machine may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const BURST = 40

/** Thousands of rows in a stream of 480 MB. */
const ENDLESS_MARKS = 240
const MARKS = `select count(*)::int from pg_locks where locktype = 'advisory' and database = (select oid
  from pg_database where datname = current_database())`
/** Polls of the database without a change: the stream waits for its reader. */
const STILL_LOOKS = 200

const database = databaseFixture(
  shopDatabase,
  `-- Locks may be taken by a transaction that only reads, and are seen by others: how many rows there have been.
   create view endless with (security_invoker) as
     select n as id, repeat('x', 2000) as filler,
       case when n % 1000 = 0 then pg_advisory_xact_lock_shared(n / 1000) end::text as mark
     from (select generate_series(1, ${ENDLESS_MARKS}000) as n) s;
   create view broken with (security_invoker) as
     select n as id, repeat('x', 2000) as filler, 1 / (5001 - n) as share from (select generate_series(1,
       20000) as n) s;
   create view naps with (security_invoker) as select 1 as id, pg_sleep(60)::text as slept;
   grant select on endless, broken, naps to app`,
)
beforeAll(() => installed(database, [{ schema: 'public', table: 'labels' }]))
const activity = fixture(() => watchActivity(database.adminUrl))

interface Answer {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly text: string
}

/** The events of a stream; comments are left out. */
async function* eventsIn(stream: Readable) {
  let received = ''
  for await (const chunk of stream) {
    received += chunk
    for (let end = received.indexOf('\n\n'); end !== -1; end = received.indexOf('\n\n')) {
      const event = received.slice(0, end)
      received = received.slice(end + 2)
      const [, data] = /^data: (.*)$/m.exec(event) ?? []
      const [, id = ''] = /^id: (.*)$/m.exec(event) ?? []
      if (data !== undefined) yield { id, data: JSON.parse(data) as object }
    }
  }
}

/** True if a message of a shape has these columns of a row. */
function has(message: object, columns: object): boolean {
  return 'value' in message && isDeepStrictEqual(message.value, columns)
}

describe.each(PROXIES)('$name', ({ name, missing, passesOnBreaks, start }) => {
  // Tests of a missing program are skipped, with the name of its package.
  let gateway: TestGateway
  let proxy: RunningProxy
  let token: string
  beforeAll(async () => {
    if (missing !== null) return
    gateway = await testGateway(database.url, {
      toml: [
        'trusted_proxies = ["127.0.0.1"]',
        'rate_limit_rate = 0.001',
        `rate_limit_burst = ${BURST}`,
        'max_result_rows = 0',
        'explain_max_cost = 0',
        'explain_max_rows = 0',
        '[shapes]',
        'enabled = true',
      ].join('\n'),
    })
    token = await gateway.token({ tenantId: 't1' })
    proxy = await start(Number(new URL(gateway.url).port))
  })
  afterAll(async () => {
    await proxy?.close()
    await gateway?.close()
  })

  let machines = 1

  /** A client on a separate machine, as far as addresses are concerned. */
  function machine(): Agent {
    machines++
    return new Agent({ ca: proxy.ca, localAddress: `127.0.0.${machines}` })
  }

  function open(path: string, agent: Agent, options: RequestOptions = {}) {
    const headers = { Authorization: `Bearer ${token}`, ...options.headers }
    return request(proxy.url + path, { agent, ...options, headers })
  }

  async function ask(path: string, agent: Agent, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
    const asking = open(path, agent, options)
    asking.end(options.body)
    const [response] = await once(asking, 'response')
    return { status: response.statusCode, headers: response.headers, text: await text(response) }
  }

  test('rows and headers arrive as the gateway sends them', async context => {
    if (missing !== null) return context.skip(missing)
    const agent = machine()
    const { status, headers, text } = await ask('/api/customers?select=id,name&sort=id&limit=2', agent, {
      headers: { 'X-Request-Id': 'mine' },
    })
    expect([status, JSON.parse(text).data]).toEqual([
      200,
      [
        { id: 1, name: 'Acme' },
        { id: 2, name: 'Bolt' },
      ],
    ])
    expect(headers).toMatchObject({ 'x-request-id': 'mine', 'x-cache': 'MISS', 'x-content-type-options': 'nosniff' })
    expect(headers['strict-transport-security']).toContain('max-age=')
    const created = await ask('/api/labels', agent, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: 77, tenant_id: 't1', name }),
    })
    expect([created.status, created.headers.location]).toEqual([201, '/api/labels/77'])
    expect((await ask('/api/labels/77', agent, { method: 'DELETE' })).status).toBe(204)
    expect((await ask('/docs', agent)).status).toBe(200)
  })

  test('the client address is the one that the proxy saw, whatever the client claims', async context => {
    if (missing !== null) return context.skip(missing)
    const [greedy, other] = [machine(), machine()]
    const statuses: (number | undefined)[] = []
    for (let n = 0; n < BURST + 3; n++) {
      const headers = { 'X-Forwarded-For': `198.51.100.${n}` }
      statuses.push((await ask('/api/labels?select=id', greedy, { headers })).status)
    }
    expect(statuses.slice(0, BURST)).toEqual(Array(BURST).fill(200))
    expect(statuses.slice(BURST)).toEqual([429, 429, 429])
    expect((await ask('/api/labels?select=id', other)).status).toBe(200)
  })

  test('only a body that is too large is rejected, with the gateway’s error', async context => {
    if (missing !== null) return context.skip(missing)
    const agent = machine()
    const headers = { 'Content-Type': 'application/json' }
    // The client may not read a response that arrives while it is still sending.
    for (let n = 0; n < 10; n++) {
      const long = await ask('/api/labels', agent, { method: 'POST', headers, body: `"${'x'.repeat(2.5 * 2 ** 20)}"` })
      expect([long.status, JSON.parse(long.text).error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    }
    const whole = await ask('/api/labels', agent, { method: 'POST', headers, body: `"${'x'.repeat(2 ** 21 - 2)}"` })
    expect([whole.status, JSON.parse(whole.text).error.code]).toEqual([400, 'PARSE_ERROR'])
    const wide = await ask(`/api/labels?id=in.(${Array(900).fill('1234567890')})&limit=1`, agent)
    expect([wide.status, wide.text]).toEqual([200, expect.stringContaining('"data":[]')])
  })

  test('a WebSocket can be opened, and receives changes of others', async context => {
    if (missing !== null) return context.skip(missing)
    const agent = machine()
    const socket = await openSocket(proxy.url, { ca: proxy.ca, protocols: ['svc', `svc.bearer.${token}`] })
    expect(socket.socket.protocol).toBe('svc')
    socket.say({ type: 'subscribe', channel: 'svc_table_labels' })
    await socket.nextOf('subscribed')
    const created = await ask('/api/labels', agent, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: 78, tenant_id: 't1', name }),
    })
    expect(created.status).toBe(201)
    expect(await socket.nextOf('notification')).toMatchObject({ operation: 'INSERT', new: { id: 78, name } })
    await socket.close()
    expect((await ask('/api/labels/78', agent, { method: 'DELETE' })).status).toBe(204)
    await expect(openSocket(proxy.url, { ca: proxy.ca, token: 'nobody' })).rejects.toThrow('401')
  })

  test('changes arrive as server-sent events, and continue after the last one, over HTTP/2 as well', async context => {
    if (missing !== null) return context.skip(missing)
    const agent = machine()
    const session = connect(proxy.url, { ca: proxy.ca })
    const path = '/api/labels?live=true'
    const accepted = (last: string) => ({
      Accept: 'text/event-stream',
      ...(last === '' ? {} : { 'Last-Event-ID': last }),
    })
    const overHttp1 = async (last: string): Promise<Readable> => {
      const asking = open(path, agent, { headers: accepted(last) })
      asking.end()
      const [response] = await once(asking, 'response')
      return response
    }
    const overHttp2 = async (last: string): Promise<Readable> =>
      session.request({ ':path': path, authorization: `Bearer ${token}`, ...accepted(last) })
    let id = 90
    const create = () =>
      ask('/api/labels', agent, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ id: ++id, tenant_id: 't1', name }),
      })
    for (const openStream of [overHttp1, overHttp2]) {
      const before = await openStream('')
      before.on('error', () => {})
      const events = eventsIn(before)
      expect((await events.next()).value?.data).toMatchObject({ type: 'subscribed' })
      await create()
      const change = (await events.next()).value
      expect(change?.data).toMatchObject({ operation: 'INSERT', new: { id } })
      before.destroy()
      await create()
      const after = await openStream(change?.id ?? '')
      after.on('error', () => {})
      const missed = eventsIn(after)
      expect((await missed.next()).value?.data).toMatchObject({ type: 'subscribed' })
      expect((await missed.next()).value?.data).toMatchObject({ operation: 'INSERT', new: { id } })
      after.destroy()
    }
    session.close()
    while (id > 90) expect((await ask(`/api/labels/${id--}`, agent, { method: 'DELETE' })).status).toBe(204)
  })

  test('changes of a shape arrive as long polls and as server-sent events, over HTTP/2 as well', async context => {
    if (missing !== null) return context.skip(missing)
    const agent = machine()
    const session = connect(proxy.url, { ca: proxy.ca })
    const shape = '/v1/shape?table=labels&columns=id,name'
    const overHttp1 = async (path: string): Promise<Readable> => {
      const asking = open(path, agent)
      asking.end()
      const [response] = await once(asking, 'response')
      return response
    }
    const overHttp2 = async (path: string): Promise<Readable> =>
      session.request({ ':path': path, authorization: `Bearer ${token}` })
    let id = 110
    const create = async () => {
      const created = await ask('/api/labels', agent, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ id: ++id, tenant_id: 't1', name }),
      })
      expect(created.status).toBe(201)
    }
    const inserted = () => ({ value: { id: String(id), name }, headers: { operation: 'insert' } })
    for (const openStream of [overHttp1, overHttp2]) {
      const first = await ask(`${shape}&offset=-1`, agent)
      expect(first.headers).toMatchObject({ vary: expect.stringContaining('Authorization'), etag: expect.any(String) })
      const at = (offset: unknown) => `${shape}&handle=${first.headers['electric-handle']}&offset=${offset}&live=true`
      const poll = openStream(at(first.headers['electric-offset']))
      await create()
      const polled = JSON.parse(await text(await poll))
      expect(polled).toMatchObject([inserted(), { headers: { control: 'up-to-date' } }])
      const last = `${polled.at(-1).headers.global_last_seen_lsn}_0`
      const events = await openStream(`${at(last)}&live_sse=true`)
      events.on('error', () => {})
      const messages = eventsIn(events)
      // The stream stays open: an event arrives before there is another one. Earlier changes are repeated
      // while a transaction of another database is open.
      for (let n = 0; n < 2; n++) {
        await create()
        let message = (await messages.next()).value?.data
        while (message !== undefined && !has(message, inserted().value)) message = (await messages.next()).value?.data
        expect(message).toMatchObject(inserted())
      }
      events.destroy()
    }
    session.close()
    while (id > 110) expect((await ask(`/api/labels/${id--}`, agent, { method: 'DELETE' })).status).toBe(204)
  })

  test('a stream arrives as it is produced and read, and ends when its reader disconnects', async context => {
    if (missing !== null) return context.skip(missing)
    const asking = open('/api/endless?stream=true', machine())
    asking.end()
    const [response] = await once(asking, 'response')
    const [chunk] = await once(response, 'data')
    response.pause()
    expect(String(chunk)).toMatch(/^\{"id":1,/)
    let marks = -1
    for (let still = 0; still < STILL_LOOKS; still++) {
      const now = Number(await activity.value(MARKS))
      if (now !== marks) still = 0
      marks = now
    }
    // Rows produced and not read fit into the buffers of three sockets, which the system lets grow to about
    // 40 MB each.
    expect(marks).toBeLessThan(ENDLESS_MARKS / 2)
    expect((await activity.statements()).some(({ query }) => /\bendless\b/.test(query))).toBe(true)
    asking.destroy()
    await activity.gone(/\bendless\b/)
  })

  test('a client can detect that a failed stream is incomplete', async context => {
    if (missing !== null) return context.skip(missing)
    const asking = open('/api/broken?stream=true', machine())
    asking.end()
    const [response] = await once(asking, 'response')
    let last = ''
    response.on('data', (chunk: Buffer) => {
      last = (last + chunk).slice(-2_000)
    })
    response.on('error', () => {})
    await new Promise<void>(resolve => response.once('close', resolve))
    // In any case, the last line reports the error.
    expect(last).toContain('division by zero')
    if (passesOnBreaks()) expect(response.complete).toBe(false)
  })

  test('the gateway notices that a client disconnects, over HTTP/2 as well', async context => {
    if (missing !== null) return context.skip(missing)
    const asking = open('/api/naps', machine())
    asking.on('error', () => {})
    asking.end()
    await activity.started(/\bnaps\b/)
    asking.destroy()
    await activity.gone(/\bnaps\b/)

    const session: ClientHttp2Session = connect(proxy.url, { ca: proxy.ca })
    const stream = session.request({ ':path': '/api/naps', authorization: `Bearer ${token}` })
    stream.on('error', () => {})
    stream.end()
    await activity.started(/\bnaps\b/)
    stream.close()
    await activity.gone(/\bnaps\b/)
    session.close()
  })

  test('operator endpoints are not reachable from outside', async context => {
    if (missing !== null) return context.skip(missing)
    const agent = machine()
    for (const path of ['/metrics', '/health/internal', '/internal/webhooks']) {
      expect([path, (await ask(path, agent)).status]).toEqual([path, 404])
      // The text is not the gateway's, which contains more.
      expect((await ask(path, agent)).text).not.toContain('"error"')
    }
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(200)
    expect((await ask('/health', agent)).status).toBe(200)
  })

  test('idle connections are closed by the proxy, not by the gateway', async context => {
    if (missing !== null) return context.skip(missing)
    const { headers } = await fetch(`${gateway.url}/health`)
    const gatewaySeconds = Number(/timeout=(\d+)/.exec(headers.get('keep-alive') ?? '')?.[1])
    expect(gatewaySeconds).toBeGreaterThan(60)
  })

  test('nginx tries another gateway if one fails, except for writes', async context => {
    if (missing !== null || name !== 'nginx') return context.skip(missing ?? 'the page says it of nginx')
    // Accepts a request, and closes the connection instead of answering.
    const asked: string[] = []
    const broken = createServer(socket =>
      socket.once('data', data => {
        asked.push(String(data).split(' ', 1)[0] ?? '')
        socket.destroy()
      }),
    )
    await new Promise<void>(resolve => broken.listen(0, '127.0.0.1', resolve))
    const ports = [(broken.address() as AddressInfo).port, Number(new URL(gateway.url).port)]
    const body = JSON.stringify({ id: 79, tenant_id: 't1', name })
    for (const [method, path, sent, status] of [
      ['GET', '/api/labels/1', '', 200],
      ['POST', '/api/labels', body, 503],
      ['PATCH', '/api/labels/1', '{"name": "changed"}', 503],
      ['DELETE', '/api/labels/79', '', 404],
    ] as const) {
      // A new nginx: a failed gateway is not tried again for a while.
      const several = await start(...ports)
      const headers = {
        Authorization: `Bearer ${token}`,
        ...(sent === '' ? {} : { 'Content-Type': 'application/json' }),
      }
      const asking = request(several.url + path, { ca: several.ca, method, headers })
      asking.end(sent)
      const [response] = await once(asking, 'response')
      await text(response)
      expect([method, response.statusCode]).toEqual([method, status])
      await several.close()
    }
    expect(asked).toEqual(['GET', 'POST', 'PATCH', 'DELETE'])
    broken.close()
  })

  // Last, because afterwards no gateway is running.
  test('while the gateway is stopped, the response is an error in the usual envelope', async context => {
    if (missing !== null) return context.skip(missing)
    await gateway.close()
    const { status, headers, text } = await ask('/api/labels', machine())
    const { error } = JSON.parse(text)
    expect([status, headers['retry-after'], headers['content-type']]).toEqual([503, '1', 'application/json'])
    expect(error).toEqual({
      ...{ code: 'UNAVAILABLE', status: 503, request_id: headers['x-request-id'] },
      ...{ message: expect.stringContaining('try again'), hint: expect.any(String) },
    })
    expect(headers['strict-transport-security']).toContain('max-age=')
  })
})
