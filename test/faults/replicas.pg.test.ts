/**
 * A replica that lags, ends reads, stops, is promoted or belongs to another server
 * (docs/operations/replicas.md#what-can-happen-to-a-replica): every read is answered, and never with less
 * than its caller has written.
 */
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { checkDatabase } from '../../src/cli/check-database.ts'
import { loadConfig } from '../../src/config/load.ts'
import { fixture, gatewayFixture } from '../support/fixtures.ts'
import { configFile, type Reply, SECRET, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { forThisVersion } from '../support/postgres-version.ts'
import { relayTo } from '../support/relay.ts'
import { PASSWORD } from '../support/server.ts'
import { type Replication, startReplication } from '../support/standby.ts'

const SCHEMA = forThisVersion(`
create table counters (id int primary key, value int not null);
insert into counters select n, 0 from generate_series(1, 8) n;
grant select, insert, update, delete on counters to app;
create view placed with (security_invoker = true) as select id, value, pg_is_in_recovery() as standby from counters;
grant select on placed to app;
create function slow() returns text stable language plpgsql as $$
declare found int;
begin
  select count(*) into found from counters;
  if pg_is_in_recovery() then perform pg_sleep(20); end if;
  return found::text;
end $$;
`)

const replicaAt = (port: number, lagMs = 60_000, more = '') =>
  `replica_max_lag_ms = ${lagMs}\n[[gateway.replicas]]\n` +
  `url = "postgres://app:${PASSWORD}@127.0.0.1:${port}/postgres"\n${more}`

const user = (userId: string) => ({ as: { tenantId: 't1', userId } })
const JSON_BODY = { 'content-type': 'application/json' }

const put = (gateway: TestGateway, userId: string, id: number, value: number): Promise<Reply> =>
  gateway.get(`/api/counters/${id}`, {
    ...user(userId),
    method: 'PATCH',
    headers: JSON_BODY,
    body: JSON.stringify({ value }),
  })

const stateOf = async (gateway: TestGateway): Promise<string> =>
  (await gateway.get('/health/internal', { as: null })).json.replicas[0].state

const inState = (gateway: TestGateway, state: string) =>
  expect.poll(() => stateOf(gateway), { timeout: 20_000 }).toBe(state)

async function isOnStandby(gateway: TestGateway, userId = 'reader'): Promise<boolean> {
  const { status, text, json } = await gateway.get('/api/placed?id=1', user(userId))
  expect(status, text).toBe(200)
  return json.data[0].standby
}

const onStandby = (gateway: TestGateway, is: boolean) =>
  expect.poll(() => isOnStandby(gateway, `probe${Math.random()}`), { timeout: 20_000 }).toBe(is)

async function figure(gateway: TestGateway, name: string): Promise<number> {
  const { text } = await gateway.get('/metrics', { as: null })
  return Number(
    text
      .split('\n')
      .find(line => line.startsWith(`${name} `))
      ?.split(' ')[1],
  )
}

const CONFLICT = '40001'

/** A statement on a standby that ends whatever conflicts with recovery, also statements of this test. */
async function onStandbyItself({ standby }: Replication, sql: string): Promise<readonly Record<string, unknown>[]> {
  for (;;) {
    try {
      return await execute(standby.adminUrl, sql)
    } catch (error) {
      if ((error as { readonly code?: string }).code !== CONFLICT) throw error
    }
  }
}

async function pause(servers: Replication): Promise<void> {
  await onStandbyItself(servers, 'select pg_wal_replay_pause()')
  await expect
    .poll(async () => {
      await execute(servers.primary.adminUrl, 'select pg_switch_wal()')
      return (await onStandbyItself(servers, 'select pg_get_wal_replay_pause_state() as state'))[0]?.state
    })
    .toBe('paused')
}

const resume = (servers: Replication) => onStandbyItself(servers, 'select pg_wal_replay_resume()')

describe('a standby', () => {
  const servers = fixture(() =>
    startReplication(SCHEMA, { synchronous: false, settings: ["max_standby_streaming_delay = '0'"] }),
  )
  const database = {
    get url() {
      return servers.primary.url
    },
  }
  afterEach(() => resume(servers))

  describe('with a limit on the lag', () => {
    const gateway = gatewayFixture(database, () => ({ toml: replicaAt(servers.standby.port, 400) }))

    test('is left when it lags, and used again when it has caught up', { timeout: 60_000 }, async () => {
      await onStandby(gateway, true)
      await pause(servers)
      await put(gateway, 'writer', 8, 1)
      await onStandby(gateway, false)
      expect(await figure(gateway, 'svc_replica_primary_reads_total{reason="lag"}')).toBeGreaterThan(0)
      // From now on no read may see the value before the write.
      expect((await gateway.get('/api/counters/8', user('other'))).json.data.value).toBe(1)
      await resume(servers)
      await onStandby(gateway, true)
    })
  })

  describe('with the result cache', () => {
    const gateway = gatewayFixture(database, () => ({
      toml: replicaAt(servers.standby.port, 60_000, '[gateway.cache]\nenabled = true\nttl_secs = 600'),
    }))
    const read = (userId: string) => gateway.get('/api/counters/7', user(userId))

    test('never fills the cache with rows older than a known write', { timeout: 60_000 }, async () => {
      await onStandby(gateway, true)
      await read('reader')
      expect((await read('reader')).headers.get('x-cache')).toBe('HIT')
      await pause(servers)
      await put(gateway, 'writer', 7, 1)
      const after = await read('reader')
      expect([after.headers.get('x-cache'), after.json.data.value]).toEqual(['MISS', 1])
      const again = await read('reader')
      expect([again.headers.get('x-cache'), again.json.data.value]).toEqual(['HIT', 1])
    })

    test('a required position, and strong consistency, are not answered from the cache', async () => {
      await read('reader')
      for (const headers of [{ prefer: 'consistency=strong' }, { 'x-svc-lsn': '0/1' }]) {
        const { headers: answered } = await gateway.get('/api/counters/7', { ...user('reader'), headers })
        expect(answered.get('x-cache')).toBe('MISS')
      }
    })
  })

  describe('while it works', () => {
    const gateway = gatewayFixture(database, () => ({ toml: replicaAt(servers.standby.port) }))

    test('a read that is ended for recovery is answered by the primary', { timeout: 60_000 }, async () => {
      await onStandby(gateway, true)
      const reading = gateway.get('/api/rpc/slow', user('reader'))
      await expect
        .poll(
          async () => {
            const text = `select 1 from pg_stat_activity where query ilike '%slow%' and wait_event = 'PgSleep'`
            return (await onStandbyItself(servers, text)).length
          },
          { timeout: 20_000 },
        )
        .toBe(1)
      await execute(servers.primary.adminUrl, 'begin; lock table counters in access exclusive mode; commit')
      expect(await reading).toMatchObject({ status: 200, text: expect.stringContaining('8') })
      expect(await figure(gateway, 'svc_replica_fallbacks_total{reason="conflict"}')).toBe(1)
    })

    test('every caller reads what it has written, while the standby stops and returns', {
      timeout: 120_000,
    }, async () => {
      await onStandby(gateway, true)
      const problems: string[] = []
      let rounds = 0
      let isRunning = true
      const writers = Array.from({ length: 4 }, async (_, index) => {
        const id = index + 1
        for (let value = 1; isRunning; value++) {
          const written = await put(gateway, `user${id}`, id, value)
          if (written.status >= 300) problems.push(`write: ${written.status} ${written.text}`)
          for (let reads = 0; reads < 3; reads++) {
            const { status, text } = await gateway.get(`/api/counters/${id}`, user(`user${id}`))
            if (status !== 200) problems.push(`read: ${status} ${text}`)
            else if (JSON.parse(text).data.value !== value) problems.push(`user${id} wrote ${value} and read ${text}`)
          }
          rounds += 1
        }
      })
      const more = async (count: number) => {
        const before = rounds
        await expect.poll(() => rounds - before, { timeout: 30_000 }).toBeGreaterThanOrEqual(count)
      }
      await more(20)
      for (let count = 0; count < 3; count++) {
        await pause(servers)
        await more(10)
        await resume(servers)
        await more(10)
      }
      await servers.standby.stop('kill')
      await more(20)
      await inState(gateway, 'unreachable')
      await servers.standby.start()
      await inState(gateway, 'available')
      await more(20)
      isRunning = false
      await Promise.all(writers)
      expect(problems).toEqual([])
      await onStandby(gateway, true)
    })
  })
})

describe('a standby behind a network that stops forwarding', () => {
  const servers = fixture(() => startReplication(SCHEMA, { synchronous: false }))
  const relay = fixture(
    () => relayTo(servers.standby.port),
    opened => opened.close(),
  )
  const database = {
    get url() {
      return servers.primary.url
    },
  }
  const gateway = gatewayFixture(database, () => ({ toml: replicaAt(relay.port) }))
  const direct = () => replicaAt(servers.standby.port).slice(replicaAt(0).indexOf('[[gateway.replicas]]'))
  const gatewayWithTwo = gatewayFixture(database, () => ({ toml: `${replicaAt(relay.port, 500)}${direct()}` }))

  afterEach(() => relay.restore())

  test('leaves its reads to another that answers', { timeout: 60_000 }, async () => {
    await inState(gatewayWithTwo, 'available')
    relay.silence()
    await inState(gatewayWithTwo, 'unreachable')
    const [opened, reads] = [relay.accepted, [] as boolean[]]
    while (relay.accepted < opened + 3) reads.push(await isOnStandby(gatewayWithTwo))
    expect(reads.filter(Boolean).length).toBeGreaterThan(reads.length / 2)
  })

  test('has its reads in progress answered by the primary, and gets reads again when it answers', {
    timeout: 60_000,
  }, async () => {
    await onStandby(gateway, true)
    relay.silence()
    const reads = await Promise.all(Array.from({ length: 20 }, (_, index) => isOnStandby(gateway, `reader${index}`)))
    expect(reads).toEqual(reads.map(() => false))
    await inState(gateway, 'unreachable')
    await put(gateway, 'writer', 2, 7)
    expect((await gateway.get('/api/counters/2', user('writer'))).json.data.value).toBe(7)
    relay.restore()
    await inState(gateway, 'available')
    await onStandby(gateway, true)
  })
})

describe('a server that is not a standby of the primary', () => {
  const servers = fixture(() => startReplication(SCHEMA, { synchronous: false }))
  const other = fixture(async () => {
    const server = await privateServer()
    await execute(server.adminUrl, SCHEMA)
    return server
  })
  const gatewayWith = (port: number) => testGateway(servers.primary.url, { toml: replicaAt(port) })

  test('is found by svc check', async () => {
    const file = await configFile(
      [servers.standby.port, servers.primary.port, other.port, 1]
        .map(port => replicaAt(port).split('\n').slice(1).join('\n'))
        .join(''),
    )
    const environment = { DATABASE_URL: servers.primary.url, JWT_SECRET: SECRET }
    const { config } = loadConfig({ file, environment, workingDirectory: dirname(file) })
    const { findings } = await checkDatabase(config, {}, { postgrest: false })
    await rm(dirname(file), { recursive: true })
    const about = findings.filter(({ message }) => message.startsWith('The replica '))
    expect(about.map(({ level, message }) => [level, message.replace(/^The replica 127\.0\.0\.1:\d+ /, '')])).toEqual([
      ['note', expect.stringContaining('ends reads that conflict with recovery after 30s')],
      ['error', 'is not a standby, so it gets no reads.'],
      ['error', 'is not a standby, so it gets no reads.'],
      ['warning', expect.stringContaining('cannot be reached, so the primary answers its reads')],
    ])
  })

  test('gets no reads: the primary itself', async () => {
    const gateway = await gatewayWith(servers.primary.port)
    await inState(gateway, 'not a standby')
    expect(await isOnStandby(gateway)).toBe(false)
    await gateway.close()
  })

  test('gets no reads: a standby of another primary', async () => {
    const foreign = await startReplication(SCHEMA, { synchronous: false })
    await execute(foreign.primary.adminUrl, 'create database another')
    const gateway = await testGateway(servers.primary.url, {
      toml: replicaAt(foreign.standby.port).replace('/postgres"', '/another"'),
    })
    await inState(gateway, 'another database')
    expect(await isOnStandby(gateway)).toBe(false)
    await gateway.close()
    await foreign.close()
  })

  test('gets no reads once it is promoted', { timeout: 60_000 }, async () => {
    const gateway = await gatewayWith(servers.standby.port)
    await onStandby(gateway, true)
    await execute(servers.standby.adminUrl, 'select pg_promote()')
    expect(await isOnStandby(gateway)).toBe(false)
    await inState(gateway, 'not a standby')
    await put(gateway, 'writer', 1, 5)
    expect((await gateway.get('/api/counters/1', user('writer'))).json.data.value).toBe(5)
    await gateway.close()
  })

  test('a replica that is not there delays nothing', async () => {
    const gateway = await gatewayWith(1)
    await inState(gateway, 'unreachable')
    expect(await isOnStandby(gateway)).toBe(false)
    await gateway.close()
  })
})
