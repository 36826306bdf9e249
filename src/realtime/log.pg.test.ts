/** When the change log is read. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { feedFixture } from '../../test/support/install.ts'
import { execute } from '../../test/support/postgres.ts'
import { ChangeLog } from './log.ts'

const database = databaseFixture('create table notes (id int primary key)')
const pool = feedFixture(database)

beforeEach(async () => {
  await pool.ready()
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
