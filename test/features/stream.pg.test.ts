/**
 * docs/reference/reading.md#streams: `stream=true` returns `application/x-ndjson`, one row per line as
 * PostgreSQL produces it, with bounded memory for any size and backpressure from the client to the database.
 * `max_result_rows` applies. A failure after the first byte ends with a line `{"error": …}` and a closed
 * connection.
 */
import { once } from 'node:events'
import { Agent } from 'node:http'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { configFile, SECRET, type TestGateway, testGateway } from '../support/gateway.ts'
import { killSvc, residentBytes, startSvc } from '../support/process.ts'
import { ask, openRaw } from '../support/raw-http.ts'
import { shopDatabase } from './shop.ts'

const CAP = 1_500
const ENDLESS_ROW_BYTES = 2_000
/** In the endless view, one in this many rows sends a notification. */
const MARK_EVERY = 1_000

let token: string
const database = databaseFixture(
  shopDatabase,
  `create table numbers (id int primary key);
   insert into numbers select n from generate_series(1, 2000) n;
   -- A series in the select list is produced row by row; in FROM it would be gathered first.
   create view slow with (security_invoker) as
     select n as id, pg_sleep(0.01)::text as slept from (select generate_series(1, 1000000) as n) s;
   create view stuck with (security_invoker) as
     select n as id, case when n = 1001 then pg_sleep(60) end::text as slept from (select generate_series(1,
       2000) as n) s;
   create view broken with (security_invoker) as
     select n as id, 1 / (1001 - n) as share from (select generate_series(1, 2000) as n) s;
   create view broken_at_once with (security_invoker) as select 1 / (id - 1) as share from numbers;
   -- Locks may be taken by a transaction that only reads, and are seen by others.
   create view endless with (security_invoker) as
     select n as id, repeat('x', ${ENDLESS_ROW_BYTES}) as filler,
       case when n % ${MARK_EVERY} = 0 then pg_advisory_xact_lock_shared(n / ${MARK_EVERY}) end::text as mark
     from (select generate_series(1, 120000) as n) s;
   grant select on numbers, slow, stuck, broken, broken_at_once, endless to app`,
)
const activity = fixture(() => watchActivity(database.adminUrl))
const gateway = gatewayFixture(database, { toml: `max_result_rows = ${CAP}` })

beforeAll(async () => {
  token = await gateway.token({ tenantId: 't1' })
})

function url(path: string): string {
  return `${gateway.url}/api/${path}`
}

describe('a streamed response', () => {
  test('is chunked NDJSON, one complete line per row', async () => {
    const reply = await gateway.get('/api/customers?stream=true&select=id,name&sort=-id')
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    expect(reply.headers.get('transfer-encoding')).toBe('chunked')
    expect(reply.headers.get('x-cache')).toBe('MISS')
    expect(reply.headers.get('x-request-id')).toMatch(/./)
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
    expect(reply.text).toBe('{"id":3,"name":"Cord"}\n{"id":2,"name":"Bolt"}\n{"id":1,"name":"Acme"}\n')
  })

  test('applies filters, sort, select and expand, and row-level security', async () => {
    const { text } = await gateway.get(
      '/api/orders?stream=true&status=paid&total.gt=50&sort=-total' +
        '&select=id&expand=customers,nested:order_items.products',
    )
    expect(
      text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line)),
    ).toMatchObject([
      { id: 2, customers: { name: 'Acme' }, order_items: [{ line: 1, products: { name: 'Red bicycle' } }] },
      { id: 1, customers: { name: 'Acme' }, order_items: [{ line: 1 }, { line: 2, products: { name: 'Blue lamp' } }] },
    ])
  })

  test('applies search, distinct and offset', async () => {
    expect((await gateway.get('/api/products?stream=true&search=bicycle&select=id&sort=id')).text).toBe(
      '{"id":1}\n{"id":2}\n',
    )
    expect((await gateway.get('/api/orders?stream=true&distinct=status')).text).toBe(
      '{"status":"draft"}\n{"status":"paid"}\n{"status":"shipped"}\n',
    )
    expect((await gateway.get('/api/numbers?stream=true&offset=1998&sort=id')).text).toBe('{"id":1999}\n{"id":2000}\n')
  })

  test('can contain the children of an existing parent', async () => {
    expect((await gateway.get('/api/orders/1/order_items?stream=true&select=line&sort=line')).text).toBe(
      '{"line":1}\n{"line":2}\n',
    )
    const missing = await gateway.get('/api/orders/99/order_items?stream=true')
    expect(missing.status).toBe(404)
    expect(missing.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  test('is a list with stream=false', async () => {
    expect((await gateway.get('/api/labels?stream=false&select=id')).json).toMatchObject({ count: 2, limit: 50 })
  })
})

describe('the number of streamed rows', () => {
  test.each([
    ['without a limit is max_result_rows', '', CAP],
    ['is the limit', '&limit=10', 10],
    ['is max_result_rows when the limit is higher', '&limit=1900', CAP],
    ['is zero for limit=0', '&limit=0', 0],
    ['is that of the filter where it is lower', '&id.gt=1990', 10],
  ])('is limited: %s', async (_, query, count) => {
    const asked = await ask(url(`numbers?stream=true${query}`), token)
    expect(asked.response.statusCode).toBe(200)
    expect((await asked.lines()).length).toBe(count)
    expect(asked.complete).toBe(true)
  })
})

test('the first rows arrive while PostgreSQL produces the others', async () => {
  const asked = await ask(url('slow?stream=true'), token)
  // At a hundredth of a second per row, the others take many seconds.
  expect(await asked.line()).toBe('{"id":1,"slept":""}')
  expect((await activity.statements()).some(({ query }) => /\bslow\b/.test(query))).toBe(true)
  asked.abort()
  await activity.gone(/\bslow\b/)
})

describe('a HEAD request for a stream', () => {
  test('has the headers of GET without rows, and holds no connection', async () => {
    const single = await testGateway(database.url, { toml: 'max_connections = 1\nacquire_timeout_ms = 2000' })
    const own = await single.token({ tenantId: 't1' })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      for (let i = 0; i < 3; i++) {
        const { response, lines } = await ask(`${single.url}/api/slow?stream=true`, own, { method: 'HEAD', agent })
        expect(response.statusCode).toBe(200)
        expect(response.headers['content-type']).toBe('application/x-ndjson; charset=utf-8')
        expect(await lines()).toEqual([])
      }
      expect((await ask(`${single.url}/api/nowhere?stream=true`, own, { method: 'HEAD' })).response.statusCode).toBe(
        404,
      )
    } finally {
      agent.destroy()
      await single.close()
    }
  })
})

describe('a stream on the only connection', () => {
  const withSingle = async (toml: string, work: (single: TestGateway, own: string) => Promise<void>) => {
    const single = await testGateway(database.url, { toml: `max_connections = 1\nmax_result_rows = 0\n${toml}` })
    try {
      await work(single, await single.token({ tenantId: 't1' }))
    } finally {
      await single.close()
    }
  }
  const OTHERS = [
    '/api/labels?select=id',
    '/api/customers?select=name',
    '/api/numbers?stream=true&limit=3',
    '/api/users/1?select=name',
  ]
  const others = (single: TestGateway) =>
    Promise.all(
      OTHERS.map(path => single.get(path, { as: { tenantId: path.startsWith('/api/customers') ? 't2' : 't1' } })),
    )

  test('makes other requests wait until it ends, and then each is answered', async () => {
    await withSingle('acquire_timeout_ms = 20000', async (single, own) => {
      const asked = await ask(`${single.url}/api/slow?stream=true&limit=30&select=id`, own)
      expect(await asked.line()).toBe('{"id":1}')
      let ended = false
      const early = others(single).then(replies => ({ replies, ended }))
      const rows = await asked.lines()
      ended = true
      expect(rows).toEqual(Array.from({ length: 29 }, (_, n) => `{"id":${n + 2}}`))
      const { replies, ended: streamFirst } = await early
      expect(streamFirst).toBe(true)
      const [labels, customers, numbers, user] = replies
      expect(labels?.json.count).toBe(2)
      expect(customers?.json.data).toEqual([{ name: 'Zinc' }])
      expect(numbers?.text).toBe('{"id":1}\n{"id":2}\n{"id":3}\n')
      expect(user?.json).toEqual({ data: { name: 'Ann' } })
    })
  })

  test('whose reader stops makes others wait until their timeout, and not longer than its connection', async () => {
    await withSingle('acquire_timeout_ms = 300', async (single, own) => {
      const asked = await ask(`${single.url}/api/endless?stream=true`, own)
      expect(await asked.line()).toContain('"id":1,')
      for (const reply of await others(single)) {
        expect([reply.status, reply.json.error.code]).toEqual([503, 'UNAVAILABLE'])
        expect(reply.headers.get('retry-after')).toMatch(/^\d+$/)
      }
      asked.abort()
      await activity.gone(/\bendless\b/)
      // The connection may have to be opened again, which can take longer than the acquire timeout.
      await expect.poll(async () => (await single.get('/api/labels')).status, { timeout: 20_000 }).toBe(200)
      for (const path of OTHERS) expect((await single.get(path)).status, path).toBe(200)
    })
  })

  test('is followed by other streams, each of them complete', async () => {
    await withSingle('acquire_timeout_ms = 20000', async single => {
      const streams = await Promise.all(
        Array.from({ length: 8 }, (_, n) => single.get(`/api/numbers?stream=true&sort=id&id.gt=${n}&limit=1500`)),
      )
      for (const [n, { text }] of streams.entries()) {
        const ids = text
          .trimEnd()
          .split('\n')
          .map(line => JSON.parse(line).id)
        expect(ids).toEqual(Array.from({ length: 1_500 }, (_, at) => n + 1 + at))
      }
    })
  })
})

describe('the speed of the reader', () => {
  const impatient = (bytesPerSec: number) =>
    testGateway(database.url, {
      toml: `max_result_rows = 0\nstream_min_bytes_per_sec = ${bytesPerSec}\nstream_min_rate_window_secs = 1`,
    })

  test('has a minimum, below which the stream ends with an error line and its connection is released', async () => {
    const limited = await impatient(10_000)
    try {
      const raw = await openRaw(limited.url)
      raw.send('/api/endless?stream=true', await limited.token({ tenantId: 't1' }))
      await raw.until(/"id":1,/)
      // The buffers of both sockets fill up, and then no bytes are transferred.
      raw.socket.pause()
      await activity.gone(/\bendless\b/)
      raw.socket.resume()
      await once(raw.socket, 'close')
      const error = JSON.parse(/\{"error":.*\}/.exec(raw.received())?.[0] ?? '').error
      expect(error).toMatchObject({ code: 'TIMEOUT', status: 408 })
      expect(error.message).toContain('stream_min_bytes_per_sec')
      expect(raw.received()).not.toMatch(/\r\n0\r\n\r\n$/)
      expect((await limited.get('/metrics', { as: null })).text).toContain('svc_http_slow_streams_total 1\n')
    } finally {
      await limited.close()
    }
  })

  test('does not include waiting for a slow statement', async () => {
    const limited = await impatient(1_000_000)
    try {
      const { text } = await limited.get('/api/slow?stream=true&limit=250')
      expect(text.trimEnd().split('\n').length).toBe(250)
    } finally {
      await limited.close()
    }
  })
})

describe('an error in a stream', () => {
  test.each([
    ['of the request', 'numbers?stream=true&select=nothing', 'PARSE_ERROR'],
    ['of the first row', 'broken_at_once?stream=true&limit=1', 'QUERY_ERROR'],
  ])('is an ordinary response: %s', async (_, path, code) => {
    const reply = await gateway.get(`/api/${path}`)
    expect(reply.status).toBe(400)
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(reply.json.error.code).toBe(code)
  })

  test('after the first row is the last line, and the connection is closed', async () => {
    const asked = await ask(url('broken?stream=true'), token)
    expect(asked.response.statusCode).toBe(200)
    const lines = await asked.lines()
    const rows = lines.slice(0, -1)
    expect(rows[0]).toBe('{"id":1,"share":0}')
    expect(rows.length).toBeGreaterThan(100)
    expect(rows.length).toBeLessThan(1_001)
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({
      error: {
        code: 'QUERY_ERROR',
        message: 'division by zero',
        status: 400,
        request_id: asked.response.headers['x-request-id'],
        details: { sqlstate: '22012', table: null, column: null, constraint: null },
      },
    })
    expect(asked.complete).toBe(false)
  })

  test('by timeout after the first row is reported in the same way', async () => {
    const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 1000' })
    const asked = await ask(`${hasty.url}/api/stuck?stream=true`, token)
    const lines = await asked.lines()
    await hasty.close()
    expect(lines[0]).toBe('{"id":1,"slept":null}')
    expect(JSON.parse(lines.at(-1) ?? '').error).toMatchObject({ code: 'TIMEOUT', status: 408 })
    expect(asked.complete).toBe(false)
  })

  test('cuts off only its own response: earlier pipelined responses are complete', async () => {
    const connection = await openRaw(gateway.url)
    connection.send('/api/labels/1', token)
    connection.send('/api/slow?limit=5&select=id', token)
    connection.send('/api/broken?stream=true', token)
    await connection.closed
    const [one, list, stream] = connection.received().split(/(?=HTTP\/1\.1 )/)
    expect(one).toContain('{"data":{"id":1,"tenant_id":"t1","name":"sport"}}')
    expect(list).toContain('"count":5')
    expect(stream).toContain('division by zero')
    expect(stream).not.toMatch(/\r\n0\r\n\r\n$/)
  })
})

describe('a client that disconnects from a stream', () => {
  test('after the first row frees the connection and ends the query', async () => {
    const single = await testGateway(database.url, { toml: 'max_connections = 1\nmax_result_rows = 0' })
    const own = await single.token({ tenantId: 't1' })
    const asked = await ask(`${single.url}/api/slow?stream=true`, own)
    await asked.line()
    asked.abort()
    // All rows would take hours.
    await activity.gone(/\bslow\b/)
    expect((await single.get('/api/labels/1')).status).toBe(200)
    await single.close()
  })

  test('before the first row ends the query', async () => {
    const connection = await openRaw(gateway.url)
    connection.send('/api/stuck?stream=true&id=1001', token)
    await activity.started(/\bstuck\b/)
    connection.socket.destroy()
    // The statement would take a minute.
    await activity.gone(/\bstuck\b/)
  })

  test('before its turn on the connection ends all of its queries', async () => {
    const connection = await openRaw(gateway.url)
    connection.send('/api/slow?stream=true', token)
    connection.send('/api/endless?stream=true', token)
    await connection.until(/"id":1,/)
    await activity.started(/\bendless\b/)
    connection.socket.destroy()
    expect(await activity.gone(/\bslow\b|\bendless\b/)).toBeLessThan(1_000)
  })
})

test('a client that reads nothing for a minute loses its stream and its connection', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const patient = await testGateway(database.url, { toml: 'max_result_rows = 0\nmax_connections = 1' })
    const connection = await openRaw(patient.url)
    connection.send('/api/endless?stream=true', await patient.token({ tenantId: 't1' }))
    await connection.until(/"id":1,/)
    connection.socket.pause()
    let isGone = false
    const gone = activity.gone(/\bendless\b/).then(() => {
      isGone = true
    })
    // On a busy machine, a stream without progress may only be slow, with no timer running: then another
    // minute passes.
    while (!isGone) {
      await standsStill()
      vi.advanceTimersByTime(60_000)
      await Promise.race([gone, standsStill()])
    }
    expect((await patient.get('/api/labels/1')).status).toBe(200)
    connection.socket.resume()
    await connection.closed
    expect(connection.received()).not.toMatch(/\r\n0\r\n\r\n$/)
    await patient.close()
  } finally {
    vi.useRealTimers()
  }
})

test('on the only connection, a stream makes others wait, and after acquire_timeout_ms they get an error', async () => {
  const single = await testGateway(database.url, { toml: 'max_connections = 1\nacquire_timeout_ms = 200' })
  const own = await single.token({ tenantId: 't1' })
  const asked = await ask(`${single.url}/api/slow?stream=true`, own)
  await asked.line()
  for (const path of ['/api/labels', '/api/labels?stream=true']) {
    const reply = await single.get(path)
    expect(reply.status).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('1')
    expect(reply.json.error.code).toBe('UNAVAILABLE')
  }
  asked.abort()
  await single.close()
})

test('a waiting request is served if the stream ends before acquire_timeout_ms', async () => {
  const single = await testGateway(database.url, { toml: 'max_connections = 1\nacquire_timeout_ms = 20000' })
  const asked = await ask(`${single.url}/api/slow?stream=true`, await single.token({ tenantId: 't1' }))
  await asked.line()
  const waiting = single.get('/api/labels')
  asked.abort()
  expect((await waiting).status).toBe(200)
  await single.close()
})

describe('a stream of 240 MB', () => {
  afterEach(killSvc)

  test('to a client that pauses makes the database wait, and memory is stable', async () => {
    const svc = startSvc(['serve'], {
      DATABASE_URL: database.url,
      JWT_SECRET: SECRET,
      SVC_BIND: '127.0.0.1:0',
      SVC_CONFIG: await configFile('max_result_rows = 0'),
    })
    const base = await svc.says(/"url":"(http:\/\/[^"]+)"/)
    const pid = svc.child.pid ?? 0
    // The streaming code is loaded and compiled by now.
    await (await ask(`${base}/api/endless?stream=true&limit=5000`, token)).lines()
    const before = await residentBytes(pid)
    let most = before

    const { response } = await ask(`${base}/api/endless?stream=true`, token)
    let bytes = 0
    let nextPause = 20e6
    for await (const chunk of response) {
      bytes += chunk.length
      if (bytes < nextPause) continue
      nextPause += 100e6
      most = Math.max(most, await residentBytes(pid))
      if (bytes > 100e6) continue
      const produced = await standsStill()
      expect(produced * ENDLESS_ROW_BYTES).toBeGreaterThanOrEqual(20e6 - MARK_EVERY * ENDLESS_ROW_BYTES)
      // The buffers of four sockets and at most two batches are in transit.
      expect(produced * ENDLESS_ROW_BYTES).toBeLessThan(60e6)
      most = Math.max(most, await residentBytes(pid))
    }
    most = Math.max(most, await residentBytes(pid))
    expect(response.complete).toBe(true)
    expect(bytes).toBeGreaterThan(240e6)
    expect(most - before).toBeLessThan(64e6)
    svc.child.kill('SIGTERM')
    await once(svc.child, 'exit')
  })
})

const MARKS = `
  select count(*) from pg_locks
  where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`

/**
 * Resolves with the number of rows produced by the endless view, once it has produced none for half a second.
 */
async function standsStill(): Promise<number> {
  const produced = async () => Number(await activity.value(MARKS))
  let last = await produced()
  for (let since = performance.now(); performance.now() - since < 500; ) {
    const now = await produced()
    if (now !== last) since = performance.now()
    last = now
  }
  return last * MARK_EVERY
}
