/**
 * Capture from the write-ahead log on servers that take over without the slot: a promoted standby, and a
 * cluster after pg_upgrade (docs/guides/capture.md#failures).
 */
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { DEBIAN_POSTGRES_MISSING, type DebianServer, startDebianPostgres } from '../support/debian-postgres.ts'
import { fixture, folderFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { PASSWORD, urlOf } from '../support/server.ts'
import { startReplication } from '../support/standby.ts'
import { isReading, readerOf, walDatabase } from '../support/wal-capture.ts'

describe('a promoted standby', () => {
  const servers = fixture(() => startReplication('', { synchronous: true, commonSettings: ['wal_level = logical'] }))

  test('has no slot: a gateway creates it, and subscribers get a resync', async () => {
    const { primary, standby } = servers
    const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`
    let current = primary
    const database = await walDatabase({
      url: `postgres://app:${PASSWORD}@${hosts}/postgres?target_session_attrs=read-write`,
      get adminUrl() {
        return current.adminUrl
      },
    })
    const { gateway, socket } = await database.followed()
    await primary.kill()
    current = standby
    await database.ask('select pg_promote()')
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

const UPGRADED = 'a cluster after pg_upgrade'
const TITLE = DEBIAN_POSTGRES_MISSING === null ? UPGRADED : `${UPGRADED} – skipped: ${DEBIAN_POSTGRES_MISSING}`

describe.skipIf(DEBIAN_POSTGRES_MISSING !== null)(TITLE, () => {
  const folder = folderFixture()
  const servers: DebianServer[] = []
  afterAll(() => Promise.all(servers.map(server => server.close())))

  test('has no slot: a gateway creates it, and the log starts again', async () => {
    const start = async (name: string, upgradeFrom?: string) => {
      const base = join(folder, name)
      await mkdir(base, { mode: 0o755 })
      await chmod(folder, 0o755)
      const server = await startDebianPostgres({
        ...{ folder: base, hba: ['host all all 127.0.0.1/32 scram-sha-256'], settings: { wal_level: 'logical' } },
        ...(upgradeFrom === undefined ? {} : { upgradeFrom }),
      })
      servers.push(server)
      return server
    }
    const before = await start('before')
    await execute(before.adminUrl, `create role app login password '${PASSWORD}'`)
    const open = ({ port, adminUrl }: DebianServer) => ({ url: urlOf(port, 'app', 'postgres'), adminUrl })
    const database = await walDatabase(open(before))
    const gateway = await database.reading()
    await gateway.close()
    await before.stop()
    const after = await start('after', before.dataDirectory)
    expect(await execute(after.adminUrl, 'select from pg_replication_slots')).toEqual([])
    const upgraded = await testGateway(urlOf(after.port, 'app', 'postgres'), { emit() {} })
    await isReading(upgraded)
    expect(await readerOf(upgraded)).toMatchObject({ resyncs: 1 })
    const logged = () =>
      execute(
        after.adminUrl,
        `select operation, key ->> 'id' as id from svc.change
      where "table" = 'notes' order by seq`,
      )
    await execute(after.adminUrl, 'insert into notes values (2)')
    await expect.poll(logged, { timeout: 20_000 }).toEqual([
      { operation: 'B', id: null },
      { operation: 'I', id: '2' },
    ])
    await upgraded.close()
  }, 120_000)
})
