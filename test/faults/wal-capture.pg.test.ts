/**
 * Capture from the write-ahead log when the server or a role does not allow it, and when the slot is lost
 * (docs/guides/capture.md#failures).
 */
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { openReplication } from '../../src/postgres/replication/session.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { fixture, fixtureOfEach } from '../support/fixtures.ts'
import { SECRET, type TestGateway } from '../support/gateway.ts'
import { createDatabase, privateServer } from '../support/postgres.ts'
import { uniqueName, urlOf } from '../support/server.ts'
import { isReading, readerOf, walDatabase } from '../support/wal-capture.ts'

const server = fixture(() =>
  privateServer({
    settings: [
      ...['wal_level = logical', 'max_replication_slots = 1', 'max_wal_senders = 1'],
      'max_slot_wal_keep_size = 16MB',
    ],
  }),
)
const created = fixtureOfEach(
  () => createDatabase(server.port, 'template1'),
  opened => opened.drop(),
)
const database = fixtureOfEach(
  () => walDatabase(created),
  async opened => {
    await opened.close()
    await opened.dropSlot()
  },
)

/** A write and a read by requests. */
async function served(gateway: TestGateway, id: number): Promise<void> {
  const written = await gateway.get('/api/notes', {
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
    body: JSON.stringify({ id, body: 'by a request' }),
  })
  expect(written.status).toBe(201)
  expect((await gateway.get(`/api/notes/${id}`)).json.data).toMatchObject({ id })
}

const isLogged = (id: number) => expect.poll(database.inserted, { timeout: 20_000 }).toContain(id)

/** A gateway that cannot read says why, serves requests, and reads once the cause is gone. */
async function servesUntilRepaired(gateway: TestGateway, fix: string, repair: () => Promise<unknown>): Promise<void> {
  const problem = expect.stringContaining(fix)
  await expect.poll(() => readerOf(gateway), { timeout: 20_000 }).toMatchObject({ reading: false, problem })
  const prefix = 'Changes are not read from the write-ahead log: '
  expect(database.warnings.filter(({ message }) => message.startsWith(prefix)).at(-1)).toMatchObject({ fix })
  await served(gateway, 1_001)
  expect((await database.svc(['check'], { JWT_SECRET: SECRET })).out).toContain(
    `warning: Changes cannot be read from the write-ahead log.\n  ${fix}`,
  )
  await repair()
  await isReading(gateway)
  await served(gateway, 1_002)
  await isLogged(1_002)
}

describe('a feed role without REPLICATION', () => {
  const FIX =
    'Role "app_feed", which reads the write-ahead log, does not have REPLICATION: run ALTER ROLE "app_feed" ' +
    'REPLICATION as a superuser (RDS: GRANT rds_replication TO "app_feed").'

  test('is reported by svc install, which changes nothing', async () => {
    const creator = uniqueName('creator')
    await database.ask(`create role ${creator} login createrole password 'for-tests-only';
      grant create on database ${created.database} to ${creator}; alter table notes owner to ${creator};
      do $$ begin if exists (select from pg_roles where rolname = 'app_feed') then
        alter role app_feed noreplication; end if; end $$`)
    const url = urlOf(server.port, creator, created.database)
    const refused = await database.svc(['install', '--capture', 'wal', '--admin-url', url])
    expect([refused.code, refused.error]).toEqual([1, FIX])
    expect(await database.ask(`select from pg_namespace where nspname = 'svc'`)).toEqual([])
    expect(await database.ask('select from pg_replication_slots')).toEqual([])
    const captured = await database.svc(['install', '--admin-url', url])
    expect([captured.code, captured.error]).toEqual([0, ''])
    expect(captured.out).toContain(
      `Changes are captured by triggers. The write-ahead log cannot be read instead: ${FIX}`,
    )
    expect((await database.svc(['uninstall', '--admin-url', url])).code).toBe(0)
    await database.ask(`alter table notes owner to postgres; drop owned by ${creator}; drop role ${creator}`)
  })

  test('does not keep a gateway from serving, and loses nothing', async () => {
    await database.install()
    await database.ask('alter role app_feed noreplication; insert into notes values (1)')
    const gateway = await database.open()
    await servesUntilRepaired(gateway, FIX, () => database.ask('alter role app_feed replication'))
    expect(await database.inserted()).toEqual([1, 1_001, 1_002])
    expect(await readerOf(gateway)).toMatchObject({ resyncs: 0 })
  })

  test('cannot create a slot that was lost: subscribers get one resync when it can', async () => {
    const gateway = await database.reading()
    const socket = await database.subscribe(gateway)
    await database.ask('alter role app_feed noreplication')
    await database.ask(`select pg_terminate_backend(active_pid) from pg_replication_slots where active`)
    await database.dropSlot()
    await servesUntilRepaired(gateway, FIX, () => database.ask('alter role app_feed replication'))
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'bulk' })
    expect(await readerOf(gateway)).toMatchObject({ resyncs: 1 })
  })
})

test('an owner of the tables without REPLICATION installs, and a gateway creates the slot', async () => {
  const creator = uniqueName('creator')
  await database.install()
  await database.svc(['uninstall'])
  await database.ask(`create role ${creator} login createrole password 'for-tests-only';
      grant create on database ${created.database} to ${creator}; grant trigger on notes to ${creator}`)
  const url = urlOf(server.port, creator, created.database)
  const argv = ['install', '--admin-url', url]
  expect((await database.svc([...argv, '--dry-run'])).out).toContain(
    '-- Changes are captured by triggers. The write-ahead log cannot be read instead: ' +
      'Publishing "public.notes" requires the owner.',
  )
  expect(await database.svc([...argv, '--capture', 'wal'])).toMatchObject({
    code: 1,
    error: expect.stringContaining('Publishing "public.notes" requires the owner.'),
  })
  await database.ask(`alter table notes owner to ${creator}`)
  const { code, error, out } = await database.svc(argv)
  expect([code, error]).toEqual([0, ''])
  expect(out).toContain('Changes are read from the write-ahead log, so writes run no trigger.')
  expect(await database.ask('select from pg_replication_slots')).toEqual([])
  await isReading(await database.open())
  await database.ask('insert into notes values (1)')
  await expect.poll(database.inserted, { timeout: 20_000 }).toEqual([1])
  await database.close()
  await database.ask(`alter table notes owner to postgres; drop owned by ${creator}; drop role ${creator}`)
})

describe('a server without a free slot or WAL sender', () => {
  const NO_SLOT =
    'No replication slot is free: run ALTER SYSTEM SET max_replication_slots = 2 and restart PostgreSQL, ' +
    'or drop one that is not used.'
  const NO_SENDER = 'No WAL sender is free: run ALTER SYSTEM SET max_wal_senders = 2 and restart PostgreSQL.'
  const takeSlot = () => database.ask(`select pg_create_physical_replication_slot('other')`)
  const freeSlot = () => database.ask(`select pg_drop_replication_slot('other')`)
  const takeSender = () => openReplication({ target: parseUrl(created.adminUrl) })

  test('is reported by svc install, which changes nothing', async () => {
    await takeSlot()
    const sender = await takeSender()
    const { code, error } = await database.svc(['install', '--capture', 'wal'])
    sender.close()
    expect([code, error]).toEqual([1, `${NO_SLOT}\n${NO_SENDER}`])
    expect(await database.ask(`select from pg_namespace where nspname = 'svc'`)).toEqual([])
  })

  test('leaves a gateway without a slot serving requests', async () => {
    await database.install()
    await database.dropSlot()
    await takeSlot()
    const before = await database.bulkEntries()
    await servesUntilRepaired(await database.open(), NO_SLOT, freeSlot)
    expect(await database.bulkEntries()).toBe(before + 1)
  })

  test('leaves a gateway without a WAL sender serving requests, and nothing is lost', async () => {
    await database.install()
    const sender = await takeSender()
    await servesUntilRepaired(await database.open(), NO_SENDER, async () => sender.close())
    expect(await database.inserted()).toEqual([1_001, 1_002])
  })
})

test('a server that is restarted without logical decoding is served, and read again when it has it', async () => {
  const gateway = await database.reading()
  await database.ask('alter role app_feed noreplication')
  await database.ask(`select pg_terminate_backend(active_pid) from pg_replication_slots where active`)
  // With a logical slot, the server would not start.
  await database.dropSlot()
  await database.ask('alter role app_feed replication')
  await database.ask(`alter system set wal_level = 'replica'`)
  await server.restart()
  const fix =
    `wal_level is "replica": run ALTER SYSTEM SET wal_level = 'logical' and restart PostgreSQL ` +
    '(managed services: docs/guides/capture.md).'
  await servesUntilRepaired(gateway, fix, async () => {
    await database.ask('alter system reset wal_level')
    await server.restart()
  })
  expect(await readerOf(gateway)).toMatchObject({ resyncs: 1 })
}, 60_000)

test('a slot that the server has invalidated is created again, and subscribers get a resync', async () => {
  const { gateway, socket } = await database.followed()
  const holder = new pg.Client({ connectionString: created.adminUrl })
  await holder.connect()
  await holder.query('begin; select from svc.wal for update')
  await database.ask('insert into notes values (2)')
  for (let segment = 0; segment < 4; segment++) {
    await database.ask(`select pg_logical_emit_message(false, '', '')`)
    await database.ask('select pg_switch_wal()')
  }
  const status = async () => (await database.ask('select wal_status from pg_replication_slots'))[0]
  await expect.poll(() => database.ask('checkpoint').then(status), { timeout: 20_000 }).toEqual({ wal_status: 'lost' })
  await holder.query('commit')
  await holder.end()
  expect(await socket.nextOf('resync')).toMatchObject({ reason: 'bulk' })
  await isReading(gateway)
  await database.ask('insert into notes values (3)')
  const next = async () => (await socket.nextOf('notification')).key.id
  while ((await next()) !== 3);
  expect(await readerOf(gateway)).toMatchObject({ resyncs: 1 })
  expect(database.warnings.map(({ message }) => message)).toContainEqual(
    expect.stringContaining('Changes were lost: the replication slot was dropped or invalidated.'),
  )
}, 60_000)
