/** When the change log is read. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { clientFixture, databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { feedFixture } from '../../test/support/install.ts'
import { execute } from '../../test/support/postgres.ts'
import { createPool } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'
import { ChangeLog, READ_INTERVAL_MS } from './log.ts'
import type { LogEntry } from './log-statements.ts'

const database = databaseFixture('create table notes (id int primary key)')
const pool = feedFixture(database)
const admin = fixture(
  () => createPool({ target: parseUrl(database.adminUrl), maxConnections: 1 }),
  opened => opened.close({ deadlineMs: 0 }),
)
const other = clientFixture(() => database.adminUrl)

beforeEach(async () => {
  await pool.ready()
  await admin.ready()
  // Time does not pass, so nothing is polled.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => vi.useRealTimers())

/** Listens to the table; `keys` are those of its changes. */
async function listen() {
  let now = 0
  const log = new ChangeLog({ database: pool, now: () => now, onBroken() {}, shareRead: null })
  const keys: unknown[] = []
  const { ready } = log.listen('public.notes', {
    changed: changes => keys.push(...changes.map(({ key }) => JSON.parse(key))),
    invalidate() {},
    unavailable() {},
    routeBy: () => null,
  })
  vi.advanceTimersByTime(0)
  await ready
  now = 1_000
  return { log, keys }
}

const store = (id: number) =>
  execute(
    database.adminUrl,
    `insert into svc.change ("schema", "table", operation, key, new)
      values ('public', 'notes', 'I', '{"id": ${id}}', '{"id": ${id}}')`,
  )

test('changes from the write-ahead log are read when they have been stored, without an interval', async () => {
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const { log, keys } = await listen()
  await store(1)
  log.wake()
  vi.advanceTimersByTime(0)
  await vi.waitFor(() => expect(keys).toEqual([{ id: 1 }]))
  // Notifications cannot cause one read after another.
  const { reads } = log.stats()
  log.wake()
  vi.advanceTimersByTime(2)
  expect(log.stats().reads).toBe(reads)
  log.close()
})

test('a notification does not affect reads of a log that triggers write', async () => {
  await execute(database.adminUrl, 'delete from svc.wal')
  const { log } = await listen()
  const timers = vi.getTimerCount()
  log.wake()
  expect(vi.getTimerCount()).toBe(timers)
  vi.advanceTimersByTime(10)
  expect(log.stats().reads).toBe(1)
  log.close()
})

/** A transaction that stores an entry and is joined by the log. */
async function storing(log: ChangeLog, id: number) {
  const transaction = admin.begin(undefined, null)
  const [stored] = await transaction.run([
    {
      text: `INSERT INTO svc.change ("schema", "table", operation, key, writer) VALUES ('public', 'notes', 'I', $1, '3')
        RETURNING xid::text`,
      parameters: [`{"id": ${id}}`],
    },
  ])
  const xid = stored?.rows[0]?.[0]?.toString() ?? ''
  let joined = log.join()
  // A read may be in progress.
  for (; joined === null; joined = log.join()) await new Promise(setImmediate)
  const entry: LogEntry = {
    ...{ txid: '3', storedBy: xid, at: '2026-01-01T00:00:00+00:00', table: 'public.notes', operation: 'I' },
    ...{ key: `{"id": ${id}}`, oldKey: null, old: null, routes: [null, null] },
  }
  return { transaction, joined, own: { xid: BigInt(xid), entries: [entry] } }
}

test('changes arrive with the commit that stores them, and are not read again', async () => {
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const { log, keys } = await listen()
  const from = log.token()
  for (const id of [2, 3]) {
    const { transaction, joined, own } = await storing(log, id)
    joined.committed((await transaction.commit(joined.commands)).slice(0, -1), own)
  }
  expect(keys).toEqual([{ id: 2 }, { id: 3 }])
  const { reads } = log.stats()
  await store(4)
  log.wake()
  vi.advanceTimersByTime(10)
  await vi.waitFor(() => expect(keys).toEqual([{ id: 2 }, { id: 3 }, { id: 4 }]))
  expect(log.stats().reads).toBe(reads + 1)
  // A client that returns misses the same changes, from memory or from the database.
  const nobody = { own: null, guards: new Map() }
  for (const reach of ['now', 'the last read'] as const) {
    const missed = await log.since('public.notes', from, new Map(), nobody, reach)
    expect(missed?.changes.map(({ key }) => JSON.parse(key).id)).toEqual([2, 3, 4])
  }
  log.close()
})

test('what others have stored arrives with the commit too', async () => {
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const { log, keys } = await listen()
  await other.query('begin; select pg_current_xact_id()')
  const { transaction, joined, own } = await storing(log, 5)
  await store(6)
  // The order within a table is known only to the database.
  joined.committed((await transaction.commit(joined.commands)).slice(0, -1), own)
  expect(keys).toEqual([])
  vi.advanceTimersByTime(3)
  await vi.waitFor(() => expect(keys).toEqual([{ id: 5 }, { id: 6 }]))
  await other.query(`insert into svc.change ("schema", "table", operation, key)
    values ('public', 'notes', 'I', '{"id": 7}'); commit`)
  const next = await storing(log, 8)
  next.joined.committed((await next.transaction.commit(next.joined.commands)).slice(0, -1), {
    ...next.own,
    entries: [],
  })
  expect(keys.slice(2)).toEqual([{ id: 7 }])
  log.close()
})

test('after a failure, or with entries that are not known, the log is read', async () => {
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const { log, keys } = await listen()
  const lost = await storing(log, 9)
  expect(log.join()).toBeNull()
  await lost.transaction.commit([])
  lost.joined.failed()
  expect(log.join()).toBeNull()
  vi.advanceTimersByTime(READ_INTERVAL_MS)
  await vi.waitFor(() => expect(keys).toEqual([{ id: 9 }]))
  const unknown = await storing(log, 10)
  unknown.joined.committed((await unknown.transaction.commit(unknown.joined.commands)).slice(0, -1), null)
  vi.advanceTimersByTime(READ_INTERVAL_MS)
  await vi.waitFor(() => expect(keys).toEqual([{ id: 9 }, { id: 10 }]))
  log.close()
  expect(log.join()).toBeNull()
})
