/**
 * docs/guides/tracing.md: the context of a trace reaches the log, errors and webhooks; with OpenTelemetry, a
 * request and its parts are spans.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { type CollectedSpan, type Collector, openCollector } from '../support/collector.ts'
import { databaseFixture, fixture, folderFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { receiver } from '../support/receiver.ts'
import { CAPTURE } from '../support/server.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const RECORDED = { traceparent: `00-${TRACE}-${SPAN}-01` }
const NOT_RECORDED = { traceparent: `00-${TRACE}-${SPAN}-00` }

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  create table kept (id int primary key, body text);
  create function slow() returns int volatile language sql as 'select 1 from pg_sleep(0.2)';
  grant select, insert, update, delete on notes, kept to app
`)
const folder = folderFixture()
const hook = fixture(receiver)
let file = ''

beforeAll(async () => {
  await installed(database, [{ schema: 'public', table: 'kept' }])
  file = join(folder, 'triggers.yaml')
  const triggers = ['notes', 'kept'].map(table => ({
    ...{ name: table, table, operations: ['create'], webhook_url: hook.url },
  }))
  await writeFile(file, JSON.stringify(triggers))
})

interface Traced {
  readonly gateway: Awaited<ReturnType<typeof testGateway>>
  readonly events: readonly Event[]
}

/** Runs with a gateway that has webhooks, and the lines of `[gateway.tracing]`. */
async function withGateway<T>(tracing: string, run: (traced: Traced) => Promise<T>, more = ''): Promise<T> {
  const events: Event[] = []
  const gateway = await testGateway(database.url, {
    toml: `webhook_allow = ["127.0.0.0/8"]\nevents_path = ${JSON.stringify(file)}\n${more}\n${tracing}`,
    environment: { SVC_ADMIN_TOKEN: 'admin' },
    emit: event => events.push(event),
  })
  try {
    return await run({ gateway, events })
  } finally {
    await gateway.close()
  }
}

const JSON_BODY = { 'Content-Type': 'application/json' }

async function create(gateway: Traced['gateway'], table: string, id: number, headers: Record<string, string> = {}) {
  const body = JSON.stringify({ id, body: 'a' })
  const reply = await gateway.get(`/api/${table}`, { method: 'POST', headers: { ...JSON_BODY, ...headers }, body })
  expect(reply.status).toBe(201)
}

describe('without OpenTelemetry, the gateway', () => {
  test('adds the trace of a request to its events, and to no other request', async () => {
    await withGateway('', async ({ gateway, events }) => {
      await gateway.get('/api/notes', { headers: { ...RECORDED, tracestate: 'vendor=1' } })
      await gateway.get('/api/notes')
      await gateway.get('/api/notes', { headers: { traceparent: `00-${TRACE}-${SPAN}-01-more` } })
      const traces = events.flatMap(event => (event.kind === 'request' ? [event.trace] : []))
      expect(traces).toEqual([{ traceId: TRACE, spanId: SPAN, flags: '01', state: 'vendor=1' }, null, null])
    })
  })

  test('names the trace in an error, also of a request that is refused before its body is read', async () => {
    await withGateway('', async ({ gateway }) => {
      const unknown = await gateway.get('/api/nothing', { headers: RECORDED })
      expect(unknown.json.error).toMatchObject({ code: 'NOT_FOUND', trace_id: TRACE })
      const refused = await gateway.get('/api/notes', {
        ...{ as: null, method: 'POST', body: '{}' },
        headers: { ...RECORDED, Authorization: 'Bearer no' },
      })
      expect(refused.json.error).toMatchObject({ code: 'UNAUTHORIZED', trace_id: TRACE })
      expect((await gateway.get('/api/nothing')).json.error).not.toHaveProperty('trace_id')
    })
  })

  test.each([
    ['memory', 'notes', 1],
    ['the outbox', 'kept', 1],
  ])('sends the trace with a webhook from %s', async (_, table, id) => {
    await withGateway('', async ({ gateway }) => {
      const before = hook.received.length
      await create(gateway, table, id, RECORDED)
      await create(gateway, table, id + 1)
      const received = (await hook.until(before + 2)).slice(before)
      const byId = new Map(received.map(({ json, headers }) => [json.data.new.id, headers.traceparent]))
      expect(byId).toEqual(
        new Map([
          [id, RECORDED.traceparent],
          [id + 1, undefined],
        ]),
      )
    })
  })

  test('ignores what the SQL of a request sets as the trace', async () => {
    await execute(
      database.adminUrl,
      `create or replace function set_trace() returns trigger language plpgsql as
         $$ begin perform set_config('svc.traceparent', repeat('x', 100), true); return new; end $$;
       create trigger set_trace before insert on kept for each row execute function set_trace()`,
    )
    await withGateway('', async ({ gateway }) => {
      const before = hook.received.length
      await create(gateway, 'kept', 5, RECORDED)
      const [received] = (await hook.until(before + 1)).slice(before)
      // The write-ahead log has the trace from before.
      expect(received?.headers.traceparent).toBe(CAPTURE === 'wal' ? RECORDED.traceparent : undefined)
    })
    await execute(database.adminUrl, 'drop trigger set_trace on kept')
  })
})

describe('with OpenTelemetry, the gateway', () => {
  /** The spans that a collector receives until the gateway is closed. */
  async function spansOf(
    run: (traced: Traced) => Promise<void>,
    { lines = '', more = '', status = 200 }: { lines?: string; more?: string; status?: number } = {},
  ): Promise<{ readonly collector: Collector; readonly events: readonly Event[] }> {
    const collector = await openCollector(status)
    let all: readonly Event[] = []
    try {
      const tracing = `[gateway.tracing]\nenabled = true\notlp_endpoint = "${collector.url}"\n${lines}`
      await withGateway(
        tracing,
        async traced => {
          all = traced.events
          await run(traced)
        },
        more,
      )
    } finally {
      await collector.close()
    }
    return { collector, events: all }
  }

  const one = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
    const found = spans.filter(span => span.name === name)
    expect(found, name).toHaveLength(1)
    return found[0] as CollectedSpan
  }

  test('makes a span of a request within its caller’s trace, and spans of its parts in order', async () => {
    const { collector, events } = await spansOf(
      async ({ gateway }) => void (await gateway.get('/api/notes?body=secret&limit=3', { headers: RECORDED })),
      { lines: 'service_name = "orders-api"\notlp_headers = { x-key = "k" }' },
    )
    const { spans } = collector
    const request = one(spans, 'GET /api/{table}')
    expect(request).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: 2, status: 0 })
    expect(request.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.route': '/api/{table}',
      'http.response.status_code': 200,
      'url.path': '/api/notes',
      'svc.table': 'notes',
      'svc.rows': 0,
      'svc.statements': 1,
    })
    expect(request.attributes['svc.tenant']).toMatch(/^[0-9a-f]{8}$/)
    expect(request.resource).toMatchObject({ 'service.name': 'orders-api' })
    expect(collector.requests[0]).toHaveProperty('x-key', 'k')
    const parts = ['authenticate', 'compile', 'SELECT', 'respond'].map(name => one(spans, name))
    for (const part of parts) expect(part).toMatchObject({ traceId: TRACE, parentSpanId: request.spanId })
    const times = [request.start, ...parts.flatMap(({ start, end }) => [start, end]), request.end]
    // Each part begins after the one before; a microsecond is lost when times are rounded.
    for (const [index, time] of times.entries()) expect(time).toBeGreaterThanOrEqual((times[index - 1] ?? 0n) - 2_000n)
    const statement = parts[2]
    expect(statement).toMatchObject({ kind: 3, attributes: { 'db.system.name': 'postgresql' } })
    expect(statement?.attributes['db.query.text']).toContain('notes')
    expect(JSON.stringify(spans, (_, value) => (typeof value === 'bigint' ? 0 : value))).not.toContain('secret')
    const [event] = events.filter(({ kind }) => kind === 'request')
    expect(event).toMatchObject({ trace: { traceId: TRACE, spanId: request.spanId } })
  })

  test('begins a trace for a request without one, and sends its own span with a webhook', async () => {
    const before = hook.received.length
    const { collector } = await spansOf(async ({ gateway }) => {
      await create(gateway, 'kept', 20)
      await hook.until(before + 1)
    })
    const request = one(collector.spans, 'POST /api/{table}')
    expect(request.parentSpanId).toBeUndefined()
    expect(hook.received[before]?.headers).toMatchObject({
      traceparent: `00-${request.traceId}-${request.spanId}-01`,
    })
  })

  test('makes no spans for a caller who does not record its trace, and passes it on', async () => {
    const before = hook.received.length
    const { collector } = await spansOf(async ({ gateway }) => {
      await create(gateway, 'kept', 21, NOT_RECORDED)
      await hook.until(before + 1)
    })
    expect(collector.spans).toEqual([])
    expect(hook.received[before]?.headers.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
  })

  test('records the fraction of the new traces that sample_ratio sets', async () => {
    const { collector } = await spansOf(async ({ gateway }) => void (await gateway.get('/api/notes')), {
      lines: 'sample_ratio = 0.0',
    })
    expect(collector.spans).toEqual([])
  })

  test('shows the wait for a connection', async () => {
    const { collector } = await spansOf(
      async ({ gateway }) => {
        const slow = () => gateway.get('/api/rpc/slow', { method: 'POST', headers: JSON_BODY, body: '{}' })
        await Promise.all([slow(), slow()])
      },
      { more: 'max_connections = 1' },
    )
    const waited = collector.spans.filter(({ name }) => name === 'wait').map(({ start, end }) => end - start)
    // The second call waits while the first sleeps for 200 ms.
    expect(waited.some(nanoseconds => nanoseconds > 100_000_000n)).toBe(true)
  })

  test('marks failed statements and failed requests', async () => {
    const { collector } = await spansOf(async ({ gateway }) => {
      await gateway.get('/api/notes', { method: 'POST', headers: JSON_BODY, body: '{"id":1,"body":null}' })
    })
    const request = one(collector.spans, 'POST /api/{table}')
    expect(request.attributes).toMatchObject({ 'http.response.status_code': 400, 'error.type': 'QUERY_ERROR' })
    const failed = collector.spans.filter(({ status }) => status === 2)
    expect(failed.map(({ attributes }) => attributes['db.response.status_code'])).toEqual(['23502'])
  })

  test('makes a span of a request that is refused before the pipeline', async () => {
    const { collector } = await spansOf(async ({ gateway }) => {
      const headers = { ...RECORDED, Authorization: 'Bearer no' }
      await gateway.get('/api/notes', { as: null, method: 'POST', headers, body: '{}' })
    })
    expect(one(collector.spans, 'POST none')).toMatchObject({
      ...{ traceId: TRACE, parentSpanId: SPAN },
      attributes: { 'http.response.status_code': 401, 'error.type': 'UNAUTHORIZED' },
    })
  })

  test('makes the operations of a batch parts of its span', async () => {
    const operations = [{ method: 'GET', path: '/api/notes' }, { query: 'get kept' }]
    const { collector } = await spansOf(async ({ gateway }) => {
      const reply = await gateway.get('/api/_batch', {
        method: 'POST',
        headers: JSON_BODY,
        body: JSON.stringify({ operations }),
      })
      expect(reply.status).toBe(200)
    })
    const batch = one(collector.spans, 'POST /api/_batch')
    for (const name of ['GET /api/{table}', 'POST /api/_query'])
      expect(one(collector.spans, name)).toMatchObject({ kind: 1, parentSpanId: batch.spanId })
    const statements = collector.spans.filter(({ kind }) => kind === 3)
    expect(new Set(statements.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([batch.spanId]))
  })

  test('adds the trace to the latency histogram, in the format of OpenMetrics', async () => {
    await spansOf(async ({ gateway }) => {
      await gateway.get('/api/notes', { headers: RECORDED })
      const scrape = async (accept: string) =>
        gateway.get('/metrics', { as: null, headers: { Authorization: 'Bearer admin', Accept: accept } })
      const open = await scrape('application/openmetrics-text;version=1.0.0,text/plain;q=0.2')
      expect(open.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
      expect(open.text).toMatch(
        new RegExp(`svc_http_request_duration_seconds_bucket.* # .trace_id="${TRACE}",span_id="[0-9a-f]{16}". `),
      )
      expect(open.text.endsWith('# EOF\n')).toBe(true)
      const plain = await scrape('text/plain')
      expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
      expect(plain.text).not.toContain('trace_id')
    })
  })

  test('reports once that a receiver does not accept spans, and serves requests', async () => {
    const { events } = await spansOf(
      async ({ gateway }) => {
        expect((await gateway.get('/api/notes')).status).toBe(200)
      },
      { status: 400 },
    )
    const warnings = events.filter(event => event.kind === 'warning' && event.message.includes('spans cannot be sent'))
    expect(warnings).toHaveLength(1)
  })
})
