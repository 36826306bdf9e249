/**
 * docs/guides/deploying.md#start-reload-stop: on SIGTERM or SIGINT the gateway stops accepting connections,
 * waits for requests in progress, drains the pool, and exits. At start-up it waits for the database with
 * increasing pauses, and logs that.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { watchActivity } from '../support/activity.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'
import { connectTo, openRaw, type RawConnection } from '../support/raw-http.ts'

let token: string
const database = databaseFixture(`
  create table notes (id int primary key, body text);
  insert into notes select n, 'note ' || n from generate_series(1, 20000) n;
  create view naps with (security_invoker) as select id, pg_sleep(1.5)::text as slept from notes;
  create view drops with (security_invoker) as
    select n as id, pg_sleep(0.01)::text as slept from (select generate_series(1, 1000000) as n) s;
  create view floods with (security_invoker) as select id, repeat('x', 2000) as filler from notes;
  create view swamps with (security_invoker) as select id, pg_sleep(60)::text as slept from notes;
  grant select on all tables in schema public to app
`)
const activity = fixture(() => watchActivity(database.adminUrl))

beforeAll(async () => {
  token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 600 }, Date.now())
})
afterAll(async () => {
  killSvc()
})

async function serve(toml: string): Promise<Svc & { readonly url: string }> {
  const svc = startSvc(['serve'], await environment({ SVC_CONFIG: await configFile(toml) }))
  return { ...svc, url: await svc.says(LISTENING) }
}

const LISTENING = /"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/

async function environment(more: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  return { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0', ...more }
}

/** The messages of the log, line by line, without times. */
function messages(svc: Svc): string[] {
  return svc.said.out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).msg)
}

async function refused(url: string): Promise<boolean> {
  const socket = connectTo(url)
  return once(socket, 'connect').then(
    () => false,
    error => error.code === 'ECONNREFUSED',
  )
}

/** Reads only the head of the response. */
async function readHead(connection: RawConnection): Promise<void> {
  await connection.until(/^HTTP\/1\.1 200 OK\r\n/)
  connection.socket.pause()
}

test.concurrent('SIGTERM finishes responses in progress, closes idle connections and accepts no new ones', async () => {
  const svc = await serve('drain_timeout_ms = 20000\nmax_result_rows = 0')
  const untouched = await openRaw(svc.url)
  const idle = await openRaw(svc.url)
  idle.send('/api/notes/1', token)
  await idle.until(/"note 1"/)
  const slowReader = await openRaw(svc.url)
  slowReader.send('/api/floods?limit=10000', token)
  await readHead(slowReader)
  const stream = await openRaw(svc.url)
  stream.send('/api/drops?stream=true&limit=120', token)
  await stream.until(/"id":1,/)
  const query = await openRaw(svc.url)
  query.send('/api/naps?limit=1', token)
  await activity.started(/\bnaps\b/)

  svc.child.kill('SIGTERM')
  await Promise.all([untouched.closed, idle.closed])
  expect(await refused(svc.url)).toBe(true)
  expect(query.received()).toBe('')
  // Connections in use can still send requests.
  stream.send('/health')
  query.send('/api/notes/1', token)

  await Promise.all([query.closed, stream.closed])
  const [slept, late] = query.received().split(/(?=HTTP\/1\.1 )/)
  expect(slept).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(slept).toContain('{"data":[{"id":1,"slept":""}],"count":1,')
  expect(late).toMatch(/^HTTP\/1\.1 503 /)
  expect(late).toMatch(/\r\nConnection: close\r\n/)
  expect(late).toContain(
    '{"error":{"code":"UNAVAILABLE","message":"the gateway is shutting down; try again","status":503,',
  )
  expect(stream.received().match(/"slept":""}\n/g)?.length).toBe(120)
  const [, health] = stream.received().split('\r\n0\r\n\r\n')
  expect(health).toMatch(/^HTTP\/1\.1 503 /)
  expect(health).toMatch(/\r\nConnection: close\r\n/)
  expect(health).toMatch(/\r\n\r\n{"status":"unavailable"}$/)

  slowReader.socket.resume()
  await slowReader.closed
  const [head = '', body = ''] = slowReader.received().split('\r\n\r\n')
  expect(body.length).toBe(Number(/Content-Length: (\d+)/i.exec(head)?.[1]))
  expect(body.length).toBeGreaterThan(20e6)

  expect(await svc.exited).toEqual([0, null])
  expect(svc.said.error).toBe('')
  const said = messages(svc)
  expect(said[0]).toBe('database: connected')
  const end = said.slice(said.indexOf('closing'))
  expect(end.filter(message => message === 'request').length).toBe(4)
  expect(end.at(-1)).toBe('closed')
})

test.concurrent('SIGHUP reads the schema again; SIGINT also cancels statements after drain_timeout_ms', async () => {
  const svc = await serve('drain_timeout_ms = 300\nmax_result_rows = 0\nschema_poll_secs = 86400')
  const before = await openRaw(svc.url)
  before.send('/api/fresh', token)
  await before.until(/404 Not Found/)
  await execute(database.adminUrl, 'create table fresh (id int primary key); grant select on fresh to app')
  svc.child.kill('SIGHUP')
  await svc.says(/("msg":"catalog: loaded".*\n.*){2}|"reason":"asked to"/)
  before.send('/api/fresh', token)
  await before.until(/{"data":\[\],"count":0,/)

  const [query, stream] = await Promise.all([openRaw(svc.url), openRaw(svc.url)])
  stream.send('/api/floods?stream=true', token)
  await readHead(stream)
  query.send('/api/swamps', token)
  await activity.started(/\bswamps\b/)
  const began = performance.now()
  svc.child.kill('SIGINT')
  await query.closed
  expect(query.received()).toBe('')
  expect(await svc.exited).toEqual([0, null])
  const tookMs = performance.now() - began
  expect(tookMs).toBeGreaterThan(300)
  expect(tookMs).toBeLessThan(5_000)
  await activity.gone(/\bswamps\b|\bfloods\b/)
  stream.socket.resume()
  await stream.closed
  expect(stream.received()).not.toContain('\r\n0\r\n\r\n')
  expect(svc.said.error).toBe('')
  expect(messages(svc)).toContain('closed')
})

describe.concurrent('the start of a gateway', () => {
  test('waits for an unreachable database, logs that, and then serves', async () => {
    const away = await freePort()
    const svc = startSvc(['serve'], await environment({ DATABASE_URL: database.url.replace(/:\d+\//, `:${away}/`) }))
    await svc.says(
      /"error":"ConnectError: [^"]*ECONNREFUSED[^"]*","failures":2,"retry_in_ms":\d+,"msg":"database: connect-failed"/,
    )
    expect(svc.said.out).not.toMatch(LISTENING)
    const proxy = await forward(away, database.port)
    const connection = await openRaw(await svc.says(LISTENING))
    connection.send('/api/notes/1', token)
    await connection.until(/"note 1"/)
    svc.child.kill('SIGTERM')
    expect(await svc.exited).toEqual([0, null])
    proxy.close()
  })

  test('can be interrupted by a signal while it waits', async () => {
    const svc = startSvc(['serve'], await environment({ DATABASE_URL: 'postgres://app:x@127.0.0.1:1/app' }))
    await svc.says(/connect-failed/)
    svc.child.kill('SIGTERM')
    expect(await svc.exited).toEqual([143, null])
  })

  test.each([
    [
      'a wrong password',
      (url: string) => url.replace(/:[^:@]+@/, ':wrong@'),
      /password authentication failed for user "app"/,
    ],
    ['a database that does not exist', (url: string) => `${url}_not`, /database "\w+_not" does not exist/],
    [
      'a server that offers no encryption where it is required',
      (url: string) => `${url}?sslmode=require`,
      /TLS|SSL|encrypt/,
    ],
  ])('fails with a message after %s', async (_, change, expected) => {
    const svc = startSvc(['serve'], await environment({ DATABASE_URL: change(database.url) }))
    expect(await svc.exited).toEqual([1, null])
    expect(svc.said.error).toMatch(expected)
    expect(svc.said.error.trimEnd().split('\n').length).toBe(1)
    expect(svc.said.error).not.toContain('wrong@')
  })
})

/** A port without a listener. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Forwards bytes in both directions. */
async function forward(from: number, to: number): Promise<Server> {
  const server = createServer((near: Socket) => {
    const far = connect(to, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => {})
  }).listen(from, '127.0.0.1')
  await once(server, 'listening')
  return server
}
