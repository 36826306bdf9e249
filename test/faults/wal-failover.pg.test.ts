/**
 * Capture from the write-ahead log on servers that take over without the slot: a promoted standby, and a
 * cluster after pg_upgrade (docs/guides/capture.md#failures).
 */
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import {
  completePostgres,
  DEBIAN_POSTGRES_MISSING,
  type DebianServer,
  startDebianPostgres,
} from '../support/debian-postgres.ts'
import { fixture, folderFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { POSTGRES_MAJOR } from '../support/postgres-version.ts'
import { PASSWORD, urlOf } from '../support/server.ts'
import { type Replication, startReplication } from '../support/standby.ts'
import { isReading, readerOf, walDatabase } from '../support/wal-capture.ts'

describe('a promoted standby', () => {
  const servers = fixture(() => startReplication('', { synchronous: true, commonSettings: ['wal_level = logical'] }))

  test('has no slot: a gateway creates it, and subscribers get a resync', async () => {
    const { database, failOver } = await openPair(servers)
    const { gateway, socket } = await database.followed()
    await failOver()
    await database.ask('insert into notes values (2)')
    expect(await socket.nextOf('resync')).toMatchObject({ type: 'resync' })
    await isReading(gateway)
    expect(await readerOf(gateway)).toMatchObject({ resyncs: 1 })
    expect(await database.ask('select active from pg_replication_slots')).toEqual([{ active: true }])
    await database.ask('insert into notes values (3)')
    while ((await socket.nextOf('notification')).key.id !== 3);
    await database.close()
  }, 120_000)
})

const SINCE_17 = POSTGRES_MAJOR >= 17

describe.skipIf(!SINCE_17)(
  SINCE_17 ? 'a promoted standby to which slots are synchronized' : 'since PostgreSQL 17',
  () => {
    const servers = fixture(() =>
      startReplication(`select pg_create_physical_replication_slot('standby')`, {
        synchronous: true,
        commonSettings: ['wal_level = logical'],
        settings: [`primary_slot_name = 'standby'`, 'hot_standby_feedback = on', 'sync_replication_slots = on'],
      }),
    )

    test('has the slot: a gateway continues, and nothing is lost', async () => {
      const { database, failOver } = await openPair(servers)
      const gateway = await database.reading()
      const before = await database.bulkEntries()
      const isSynchronized = `select from pg_replication_slots where synced and not temporary
      and confirmed_flush_lsn >= (select stored from svc.wal)`
      await expect.poll(() => execute(servers.standby.adminUrl, isSynchronized), { timeout: 60_000 }).toHaveLength(1)
      await database.ask('insert into notes values (2)')
      await failOver()
      await database.ask('insert into notes values (3)')
      await expect.poll(database.inserted, { timeout: 60_000 }).toEqual([1, 2, 3])
      expect(await database.bulkEntries()).toBe(before)
      expect(await readerOf(gateway)).toMatchObject({ resyncs: 0 })
      expect(
        await database.ask('select active, failover from pg_replication_slots where slot_type = $$logical$$'),
      ).toEqual([{ active: true, failover: true }])
      await database.close()
    }, 180_000)
  },
)

/** The database of a primary, whose users follow it to the standby. */
async function openPair({ primary, standby }: Replication) {
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`
  let current = primary
  const database = await walDatabase({
    url: `postgres://app:${PASSWORD}@${hosts}/postgres?target_session_attrs=read-write`,
    get adminUrl() {
      return current.adminUrl
    },
  })
  /** Kills the primary, and promotes the standby. */
  const failOver = async () => {
    await primary.kill()
    current = standby
    await database.ask('select pg_promote()')
  }
  return { database, failOver }
}

/** Starts servers, and upgrades one to another. */
function upgradeFixture() {
  const folder = folderFixture()
  const servers: DebianServer[] = []
  afterAll(() => Promise.all(servers.map(server => server.close())))

  async function start(name: string, programs?: string, upgradeFrom?: DebianServer): Promise<DebianServer> {
    const base = join(folder, name)
    await mkdir(base, { mode: 0o755 })
    await chmod(folder, 0o755)
    const server = await startDebianPostgres({
      ...{ folder: base, hba: ['host all all 127.0.0.1/32 scram-sha-256'], settings: { wal_level: 'logical' } },
      ...(programs === undefined ? {} : { programs }),
      ...(upgradeFrom === undefined ? {} : { upgradeFrom }),
    })
    servers.push(server)
    return server
  }

  return {
    /** Reads and stores a row with the old version, runs `sql` without a gateway, and upgrades. */
    async upgraded(sql: string, from?: string, to?: string): Promise<DebianServer> {
      const before = await start('before', from)
      await execute(before.adminUrl, `create role app login password '${PASSWORD}'`)
      const { adminUrl, port } = before
      const database = await walDatabase({ url: urlOf(port, 'app', 'postgres'), adminUrl })
      const gateway = await database.reading()
      await gateway.close()
      const isFree = async () => (await database.ask('select from pg_replication_slots where active')).length === 0
      await expect.poll(isFree, { timeout: 20_000 }).toBe(true)
      await database.ask(sql)
      await before.stop()
      return start('after', to, before)
    },
  }
}

/** A gateway reads the upgraded server: everything from before is one loss, and what follows is logged. */
async function continues({ port, adminUrl }: DebianServer): Promise<void> {
  const gateway = await testGateway(urlOf(port, 'app', 'postgres'), { emit() {} })
  await isReading(gateway)
  expect(await readerOf(gateway)).toMatchObject({ resyncs: 1 })
  await execute(adminUrl, 'insert into notes values (2)')
  const logged = () =>
    execute(
      adminUrl,
      `select operation, key ->> 'id' as id from svc.change
      where "table" = 'notes' order by seq`,
    )
  await expect.poll(logged, { timeout: 20_000 }).toEqual([
    { operation: 'B', id: null },
    { operation: 'I', id: '2' },
  ])
  expect(await execute(adminUrl, 'select active from pg_replication_slots')).toEqual([{ active: true }])
  await gateway.close()
}

/** A title that names what is missing. */
const unless = (missing: string | null, title: string) => (missing === null ? title : `${title} – skipped: ${missing}`)

describe.skipIf(DEBIAN_POSTGRES_MISSING !== null)(unless(DEBIAN_POSTGRES_MISSING, 'a cluster after pg_upgrade'), () => {
  const upgrades = upgradeFixture()

  test('has no slot: a gateway creates it, and the log starts again', async () => {
    const after = await upgrades.upgraded('')
    expect(await execute(after.adminUrl, 'select from pg_replication_slots')).toEqual([])
    await continues(after)
  }, 120_000)
})

const [from, to] = [completePostgres(17), completePostgres(18)]
const MISSING = from === null || to === null ? '.cache/postgresql-complete (.ci/programs installs it)' : null

describe.skipIf(MISSING !== null)(unless(MISSING, 'a cluster after pg_upgrade from 17 to 18'), () => {
  const upgrades = upgradeFixture()

  test('has the slot: a gateway reads it, and the log starts again', async () => {
    const advance = 'select pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) from pg_replication_slots'
    const after = await upgrades.upgraded(advance, from ?? '', to ?? '')
    const slots = 'select active, failover, invalidation_reason from pg_replication_slots'
    expect(await execute(after.adminUrl, slots)).toEqual([{ active: false, failover: true, invalidation_reason: null }])
    await continues(after)
  }, 120_000)
})
