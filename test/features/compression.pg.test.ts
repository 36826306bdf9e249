/**
 * docs/reference/rest-api.md#compression: responses above a threshold, and streams, are compressed for
 * clients that accept it.
 */
import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { brotliDecompressSync, createGunzip, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'

let gateway: TestGateway
let token: string
const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes select n, 'note ' || n || repeat(' – ünïcödé', 5) from generate_series(1, 2000) n;
  create view gates with (security_invoker) as
    select id, body, case when id > 300 then pg_sleep(60)::text end as slept from notes;
  grant select, insert, delete on all tables in schema public to app
`)

beforeAll(async () => {
  gateway = await testGateway(database.url)
  token = await gateway.token({ tenantId: 't1' })
})
afterAll(() => gateway.close())

/** Sends the requests of `check` to a gateway with other settings. */
async function withGateway(toml: string, check: () => Promise<void>): Promise<void> {
  const usual = gateway
  gateway = await testGateway(database.url, { toml })
  try {
    await check()
  } finally {
    await gateway.close()
    gateway = usual
  }
}

interface Found {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** The body as sent, because `fetch` would decompress it. */
async function ask(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
  body: string | null = null,
): Promise<Found> {
  const agent = new Agent()
  const type = body === null ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  const asking = request(gateway.url + path, {
    ...{ method, agent },
    headers: { Authorization: `Bearer ${token}`, ...type, ...headers },
  })
  asking.end(body)
  const [response] = (await once(asking, 'response')) as [import('node:http').IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  agent.destroy()
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }
}

const GZIP = { 'Accept-Encoding': 'gzip' }
const LIST = '/api/notes?limit=100'
const LARGE = '/api/notes?limit=2000'

describe('a body above the threshold', () => {
  test.each([
    ['gzip', LIST, gunzipSync],
    ['br', LIST, brotliDecompressSync],
    ['gzip', LARGE, gunzipSync],
    ['br', LARGE, brotliDecompressSync],
  ] as const)('is compressed with %s and otherwise identical: %s', async (coding, path, decode) => {
    const plain = await ask(path)
    const coded = await ask(path, { 'Accept-Encoding': coding })
    expect(coded.headers['content-encoding']).toBe(coding)
    expect(coded.headers['content-length']).toBe(String(coded.body.length))
    expect(coded.body.length).toBeLessThan(plain.body.length / 3)
    expect(decode(coded.body).equals(plain.body)).toBe(true)
    expect([plain, coded].map(({ headers }) => headers.vary)).toEqual([
      'Accept, Accept-Encoding',
      'Accept, Accept-Encoding',
    ])
    expect([coded.headers['content-type'], coded.headers['x-cache']]).toEqual([
      plain.headers['content-type'],
      plain.headers['x-cache'],
    ])
    expect(plain.headers['content-encoding']).toBeUndefined()
    expect(plain.headers['content-length']).toBe(String(plain.body.length))
  })

  test('is not compressed with an encoding that the client rejects', async () => {
    for (const accepted of ['identity', 'gzip;q=0, br;q=0', 'deflate']) {
      expect((await ask(LIST, { 'Accept-Encoding': accepted })).headers['content-encoding']).toBeUndefined()
    }
  })

  test('is not transformed if the request forbids it', async () => {
    const { headers } = await ask(LIST, { ...GZIP, 'Cache-Control': 'no-transform' })
    expect([headers['content-encoding'], headers.vary]).toEqual([undefined, 'Accept, Accept-Encoding'])
    const page = await ask('/docs', { ...GZIP, 'Cache-Control': 'no-transform' })
    expect(page.headers['content-encoding']).toBeUndefined()
  })

  test('varies by origin as well if CORS is configured', async () => {
    await withGateway('cors_allowed_origins = ["https://app.example"]', async () => {
      const { headers } = await ask(LIST, { ...GZIP, Origin: 'https://app.example' })
      expect(headers.vary?.split(/,\s*/).toSorted()).toEqual(['Accept', 'Accept-Encoding', 'Origin'])
    })
  })

  test('can belong to a write, a query, a document or an error', async () => {
    const text = JSON.stringify({ query: 'get notes limit 100' })
    const query = await ask('/api/_query', GZIP, 'POST', text)
    const rows = JSON.stringify(Array.from({ length: 50 }, (_, n) => ({ id: -1 - n, body: 'x'.repeat(50) })))
    const write = await ask('/api/notes', GZIP, 'POST', rows)
    const document = await ask('/api/_openapi', GZIP)
    const metrics = await ask('/metrics', GZIP)
    expect([query, write, document, metrics].map(({ status }) => status)).toEqual([200, 201, 200, 200])
    for (const { headers, body } of [query, write, document, metrics]) {
      expect(headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(body).length).toBeGreaterThan(body.length)
    }
  })

  test('has the same headers for HEAD', async () => {
    const get = await ask(LIST, GZIP)
    const head = await ask(LIST, GZIP, 'HEAD')
    expect(varying(head.headers)).toEqual(varying(get.headers))
    expect(head.body.length).toBe(0)
    const plain = await ask(LIST, {}, 'HEAD')
    expect(plain.headers['content-length']).toBe(String((await ask(LIST)).body.length))
    const stream = await ask(`${LIST}&stream=true`, GZIP, 'HEAD')
    expect(stream.headers['content-encoding']).toBe('gzip')
  })
})

/** The headers without those that differ in every response. */
function varying(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { date, 'x-request-id': id, 'x-response-time': time, ...rest } = headers
  return rest
}

describe('a response is not compressed', () => {
  test.each(['/api/notes/1', '/health', '/api/notes/0'])('if it is small: %s', async path => {
    const { headers } = await ask(path, GZIP)
    expect([headers['content-encoding'], headers.vary]).toEqual([undefined, undefined])
  })

  test('without a body', async () => {
    const { status, headers, body } = await ask('/api/notes/2000', GZIP, 'DELETE')
    expect([status, headers['content-encoding'], body.length]).toEqual([204, undefined, 0])
  })

  test('if compression is disabled, or the threshold is higher', async () => {
    await withGateway('compress_min_bytes = 0', async () => {
      expect((await ask(LARGE, GZIP)).headers['content-encoding']).toBeUndefined()
    })
    await withGateway('compress_min_bytes = 100000', async () => {
      expect((await ask(LIST, GZIP)).headers['content-encoding']).toBeUndefined()
      expect((await ask(LARGE, GZIP)).headers['content-encoding']).toBe('gzip')
    })
  })
})

describe('a compressed stream', () => {
  test.each([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const)('is compressed with %s and otherwise identical', async (coding, decode) => {
    const plain = await ask(`${LARGE}&stream=true`)
    const coded = await ask(`${LARGE}&stream=true`, { 'Accept-Encoding': coding })
    expect([coded.headers['content-encoding'], coded.headers.vary]).toEqual([coding, 'Accept, Accept-Encoding'])
    expect(coded.headers['content-length']).toBeUndefined()
    expect(decode(coded.body).equals(plain.body)).toBe(true)
    expect(coded.body.length).toBeLessThan(plain.body.length / 3)
  })

  test('can be decompressed as far as it has arrived', async () => {
    const agent = new Agent()
    const asking = request(`${gateway.url}/api/gates?stream=true`, {
      agent,
      headers: { Authorization: `Bearer ${token}`, ...GZIP },
    })
    asking.end()
    const [response] = (await once(asking, 'response')) as [import('node:http').IncomingMessage]
    let text = ''
    // The remaining rows would take five hours.
    for await (const chunk of response.pipe(createGunzip())) {
      text += chunk
      if (text.includes('"id":1,')) break
    }
    expect(text).toContain('"id":1,')
    asking.destroy()
    agent.destroy()
  })
})
