/**
 * docs/guides/scaling.md#shared-state: gateways that share a store count limits together, pass on changes and
 * revocations, and count alone while the store is away.
 */
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { publishRevocation } from '../../src/shared/shared-state.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { REDIS_MISSING, redisServer } from '../support/redis.ts'
import { relayTo } from '../support/relay.ts'

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (1, 'first');
  create table revoked (jti text, sub text, iat timestamptz);
  create function wait_for(key int) returns int volatile language sql as
    'select 1 from (select pg_advisory_xact_lock_shared(key)) as waited';
  grant select, insert, update, delete on notes to app;
  grant select on revoked to app
`)

let opened: TestGateway[] = []
let prefixes = 0
let prefix = ''
afterEach(async () => {
  await Promise.all(opened.map(gateway => gateway.close()))
  opened = []
  prefix = ''
})

interface Opened {
  readonly gateway: TestGateway
  readonly events: readonly Event[]
}

// The title names the missing program.
describe.skipIf(REDIS_MISSING !== null)(`shared state (${REDIS_MISSING ?? 'with a server'})`, () => {
  const redis = fixture(redisServer)

  /** A gateway that shares its state with the others of the test. */
  async function open(lines: string, url = redis.url): Promise<Opened> {
    prefix ||= `test-${process.pid}-${++prefixes}`
    const events: Event[] = []
    const gateway = await testGateway(database.url, {
      toml: `${lines}\n[gateway.shared]\nurl = "${url}"\nprefix = "${prefix}"\ntimeout_ms = 500`,
      environment: { SVC_ADMIN_TOKEN: 'admin' },
      emit: event => events.push(event),
    })
    opened.push(gateway)
    await isConnected(gateway, 1)
    return { gateway, events }
  }

  const isConnected = (gateway: TestGateway, value: number) =>
    expect.poll(() => connected(gateway), { timeout: 10_000 }).toBe(value)

  async function connected(gateway: TestGateway): Promise<number> {
    const { text } = await gateway.get('/metrics', { as: null, headers: { Authorization: 'Bearer admin' } })
    return Number(/^svc_shared_connected (\d)$/m.exec(text)?.[1])
  }

  const warnings = (events: readonly Event[]) =>
    events.flatMap(event => (event.kind === 'warning' && event.message.includes('shared state') ? [event.message] : []))

  test('the rate limit of an address counts the requests to all gateways', async () => {
    // Nothing is refilled within the test.
    const lines = 'rate_limit_rate = 0.001\nrate_limit_burst = 60'
    const [first, second] = [await open(lines), await open(lines)]
    const statuses: number[] = []
    for (let request = 0; request < 100; request++)
      statuses.push((await [first, second][request % 2]?.gateway.get('/api/notes'))?.status ?? 0)
    const accepted = statuses.filter(status => status === 200).length
    // Requests for the metrics count too. Each gateway has leased at most 16 tokens in advance.
    expect(accepted).toBeLessThanOrEqual(60)
    expect(accepted).toBeGreaterThanOrEqual(60 - 2 * 16 - 10)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
  })

  test('the permits of a tenant are those of all gateways, and free when their requests have ended', async () => {
    const lines = 'tenant_max_concurrent = 2'
    const [first, second] = [await open(lines), await open(lines)]
    const holder = await holdLock(7)
    const call = (gateway: TestGateway) => gateway.get('/api/rpc/wait_for', callOf(7))
    const calls = [call(first.gateway), call(second.gateway)]
    await expect.poll(() => waiting(7)).toBe(2)
    const refused = await first.gateway.get('/api/notes')
    expect(refused.json.error).toMatchObject({ code: 'CONCURRENCY_LIMIT', status: 429 })
    const other = await second.gateway.get('/api/notes', { as: { tenantId: 't2' } })
    expect(other.status).toBe(200)
    await holder.release()
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200])
    await expect.poll(async () => (await first.gateway.get('/api/notes')).status).toBe(200)
  })

  test('the permits of a gateway that is closed are free at once', async () => {
    const lines = 'tenant_max_concurrent = 1'
    const [first, second] = [await open(lines), await open(lines)]
    expect((await first.gateway.get('/api/notes')).status).toBe(200)
    await first.gateway.close()
    opened = opened.filter(gateway => gateway !== first.gateway)
    expect((await second.gateway.get('/api/notes')).status).toBe(200)
  })

  test('a write invalidates the cached results of the other gateways', async () => {
    const lines = 'cache = { enabled = true, ttl_secs = 3600 }'
    const [first, second] = [await open(lines), await open(lines)]
    const body = async ({ gateway }: Opened) => {
      const reply = await gateway.get('/api/notes/1')
      return { cache: reply.headers.get('x-cache'), body: reply.json.data.body }
    }
    await body(second)
    await expect.poll(() => body(second)).toEqual({ cache: 'HIT', body: 'first' })
    const written = await first.gateway.get('/api/notes/1', {
      ...{ method: 'PATCH', body: '{"body":"second"}', headers: { 'Content-Type': 'application/json' } },
    })
    expect(written.status).toBe(200)
    await expect.poll(async () => (await body(second)).body).toBe('second')
  })

  test('a revocation is in force when its message arrives', async () => {
    const { gateway } = await open('jwt_denylist_table = "revoked"')
    expect((await gateway.get('/api/notes')).status).toBe(200)
    // All tokens that were issued before.
    await execute(database.adminUrl, "insert into revoked values (null, null, now() + interval '1 hour')")
    await publishRevocation(redis.url, prefix, 2_000)
    await expect.poll(async () => (await gateway.get('/api/notes')).status).toBe(401)
  })

  test('while the store is silent, a gateway counts alone and says so once; afterwards it shares again', async () => {
    const relay = await relayTo(redis.port)
    try {
      const lines = 'tenant_max_concurrent = 1'
      const { gateway, events } = await open(lines, `redis://127.0.0.1:${relay.port}`)
      const { gateway: other } = await open(lines)
      relay.silence()
      await isConnected(gateway, 0)
      for (let request = 0; request < 5; request++) expect((await gateway.get('/api/notes')).status).toBe(200)
      const holder = await holdLock(8)
      const call = other.get('/api/rpc/wait_for', callOf(8))
      await expect.poll(() => waiting(8)).toBe(1)
      // The other gateway has the only permit, and this one cannot know.
      expect((await gateway.get('/api/notes')).status).toBe(200)
      relay.restore()
      await isConnected(gateway, 1)
      // On a busy machine the store may answer too late once more.
      await expect.poll(async () => (await gateway.get('/api/notes')).status, { timeout: 10_000 }).toBe(429)
      await holder.release()
      await call
      await expect.poll(async () => (await gateway.get('/api/notes')).status).toBe(200)
      expect(warnings(events).slice(0, 2)).toEqual([AWAY, BACK])
    } finally {
      await relay.close()
    }
  })

  test('a store that answers too late is treated as away', async () => {
    const { gateway, events } = await open('tenant_max_concurrent = 2')
    const operator = new Redis(redis.url)
    try {
      // Three times the timeout of the gateway.
      await operator.call('CLIENT', 'PAUSE', '1500')
      await expect.poll(() => warnings(events)[0], { timeout: 10_000 }).toEqual(AWAY)
      expect((await gateway.get('/api/notes')).status).toBe(200)
      await expect.poll(() => warnings(events)[1], { timeout: 10_000 }).toBe(BACK)
      await isConnected(gateway, 1)
    } finally {
      operator.disconnect()
    }
  })

  test('a gateway starts and serves requests without the store, and uses it when it is there', async () => {
    await redis.kill()
    try {
      prefix = `test-${process.pid}-${++prefixes}`
      const gateway = await testGateway(database.url, {
        toml: `tenant_max_concurrent = 3\n[gateway.shared]\nurl = "${redis.url}"\nprefix = "${prefix}"`,
        environment: { SVC_ADMIN_TOKEN: 'admin' },
        emit: () => {},
      })
      opened.push(gateway)
      expect((await gateway.get('/api/notes')).status).toBe(200)
      expect(await connected(gateway)).toBe(0)
      await redis.start()
      await isConnected(gateway, 1)
      expect((await gateway.get('/api/notes')).status).toBe(200)
    } finally {
      await redis.kill()
      await redis.start()
    }
  })
})

const AWAY = expect.stringMatching(
  /^the store of shared state does not answer: .*; this gateway counts its limits alone$/,
)
const BACK = 'shared state is available again; limits are counted for all gateways'

const callOf = (key: number) => ({
  ...{ method: 'POST', body: JSON.stringify({ key }), headers: { 'Content-Type': 'application/json' } },
})

/** Locks a key, so that calls of `wait_for` wait until it is released. */
async function holdLock(key: number): Promise<{ release(): Promise<void> }> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: database.adminUrl })
  await client.connect()
  await client.query(`select pg_advisory_lock(${key})`)
  return { release: () => client.end() }
}

/** How many sessions wait for the lock. */
async function waiting(key: number): Promise<number> {
  const sql = `select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = ${key} and not granted`
  const [{ n } = { n: 0 }] = await execute(database.adminUrl, sql)
  return Number(n)
}
