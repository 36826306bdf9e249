/**
 * One tenant cannot starve the others (docs/reference/limits.md#shares-of-the-connection-pool): while its
 * slow calls occupy all the connections that it can get, other tenants are served without waiting for them.
 */
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { parseExposition } from '../support/exposition.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, testGateway } from '../support/gateway.ts'
import { openRaw } from '../support/raw-http.ts'

const LOCK = 18

let floods: Promise<Reply>[] = []
let holder: pg.Client | null = null
const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes select n, 'note ' || n from generate_series(1, 100) n;
  -- Fast, or as slow as the test wants: until the lock is released.
  create function work(slow boolean) returns int volatile language plpgsql as
    $$ begin if slow then perform pg_advisory_xact_lock_shared(${LOCK}); end if; return 1; end $$;
  create view endless with (security_invoker) as
    select n as id, repeat('x', 2000) as filler from (select generate_series(1, 1000000) as n) s;
  grant select, insert on notes, endless to app
`)
const activity = fixture(() => watchActivity(database.adminUrl))
// The limits have their default values.
const gateway = gatewayFixture(database, {
  toml: 'tenant_max_concurrent = 32\nacquire_timeout_ms = 60000\nmax_result_rows = 0\nexplain_max_rows = 0',
})

afterEach(async () => {
  await holder?.end()
  await Promise.all(floods)
  floods = []
  holder = null
})

async function hold(): Promise<void> {
  const client = new pg.Client({ connectionString: database.adminUrl })
  client.on('error', () => {})
  await client.connect()
  await client.query(`select pg_advisory_lock(${LOCK})`)
  holder = client
}

function work(tenantId: string, slow: boolean): Promise<Reply> {
  return gateway.get('/api/rpc/work', {
    ...{ as: { tenantId }, method: 'POST', body: JSON.stringify({ slow }) },
    headers: { 'Content-Type': 'application/json' },
  })
}

/** Starts calls that outlast the test, until `connections` calls of all tenants are running. */
async function flood(tenantId: string, connections: number, calls = 40): Promise<void> {
  for (let n = 0; n < calls; n++) floods.push(work(tenantId, true))
  await stuck(connections)
}

function stuck(connections: number): Promise<void> {
  return activity.until(
    `select count(*)::int from pg_locks where locktype = 'advisory' and objid = ${LOCK} and not granted`,
    count => count === connections,
  )
}

async function metric(name: string): Promise<number | undefined> {
  return parseExposition((await gateway.get('/metrics', { as: null })).text).get(name)?.samples[0]?.value
}

async function expectServed(tenantId: string): Promise<void> {
  const read = (n: number) => gateway.get(`/api/notes/${n}`, { as: { tenantId } })
  expect((await read(1)).json).toEqual({ data: { id: 1, body: 'note 1' } })
  const replies = await Promise.all(Array.from({ length: 30 }, (_, n) => read(n + 1)))
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
  expect((await work(tenantId, false)).status).toBe(200)
  expect((await gateway.get('/api/notes?stream=true&limit=5', { as: { tenantId } })).status).toBe(200)
}

test('40 slow calls of one tenant occupy half of the pool, and other tenants do not wait for them', async () => {
  await hold()
  await flood('noisy', 5, 5)
  // The tenant has used up its share when the others arrive.
  await flood('noisy', 5, 35)
  await expectServed('quiet')
  expect((await gateway.get('/health')).status).toBe(200)
  // All of them are still running.
  await stuck(5)
  expect(await metric('svc_pool_waiting_tenants')).toBe(1)
  expect(await metric('svc_pool_share_waits_total')).toBeGreaterThan(0)
})

test('a call that was fast a hundred times and is then slow does not delay other tenants', async () => {
  for (let n = 0; n < 100; n++) expect((await work('noisy', false)).status).toBe(200)
  await hold()
  // A pool that trusted its latency estimates would send many of them on one connection, ahead of other
  // tenants' reads.
  const reads: Promise<Reply>[] = []
  for (let n = 0; n < 32; n++) {
    floods.push(work('noisy', true))
    reads.push(gateway.get(`/api/notes/${n + 1}`, { as: { tenantId: 'quiet' } }))
  }
  expect((await Promise.all(reads)).map(({ status }) => status)).toEqual(reads.map(() => 200))
  await expectServed('quiet')
})

test('while four tenants do the same, a fifth tenant is served', async () => {
  await hold()
  const taken = [5, 7, 8, 9]
  for (const [index, connections] of taken.entries()) await flood(`noisy ${index}`, connections)
  await expectServed('quiet')
  await stuck(9)
})

test('users without a tenant are isolated from each other in the same way', async () => {
  await hold()
  const as = { userId: 'ann' }
  const headers = { 'Content-Type': 'application/json' }
  for (let n = 0; n < 40; n++) {
    floods.push(gateway.get('/api/rpc/work', { as, method: 'POST', body: '{"slow":true}', headers }))
  }
  await stuck(5)
  expect((await gateway.get('/api/notes/1', { as: { userId: 'bob' } })).status).toBe(200)
})

test("slow streams of one tenant leave connections for other tenants' streams and for its own reads", async () => {
  const token = await gateway.token({ tenantId: 'noisy' })
  const connections = await Promise.all(Array.from({ length: 9 }, () => openRaw(gateway.url)))
  try {
    let begun = 0
    for (const connection of connections) {
      connection.send('/api/endless?stream=true', token)
      connection.until(/"id":1,/).then(
        () => {
          begun++
          connection.socket.pause()
        },
        () => {},
      )
    }
    await expect.poll(() => begun).toBe(4)
    expect(await metric('svc_pool_streams')).toBe(4)
    await expectServed('quiet')
    expect((await gateway.get('/api/notes/1', { as: { tenantId: 'noisy' } })).status).toBe(200)
    await expect.poll(() => metric('svc_pool_stream_waits_total')).toBe(5)
    expect(begun).toBe(4)
  } finally {
    for (const { socket } of connections) socket.destroy()
  }
})

test('with a pool of two connections, a stream occupies only its own tenant’s connection', async () => {
  const small = await testGateway(database.url, {
    toml: 'max_connections = 2\nacquire_timeout_ms = 300\nmax_result_rows = 0\nexplain_max_rows = 0',
  })
  const connection = await openRaw(small.url)
  try {
    connection.send('/api/endless?stream=true', await small.token({ tenantId: 'noisy' }))
    await connection.until(/"id":1,/)
    connection.socket.pause()
    const read = async (tenantId: string, path: string) => (await small.get(path, { as: { tenantId } })).status
    expect(await read('quiet', '/api/notes/1')).toBe(200)
    expect(await read('noisy', '/api/notes/1')).toBe(503)
    // Start-up warns about this: the limit allows only one stream.
    expect(await read('quiet', '/api/notes?stream=true&limit=5')).toBe(503)
    expect(await read('quiet', '/api/notes/1')).toBe(200)
  } finally {
    connection.socket.destroy()
    await small.close()
  }
})
