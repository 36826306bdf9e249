/** When the result cache learns which tables have changed. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { feedFixture } from '../../test/support/install.ts'
import { execute } from '../../test/support/postgres.ts'
import { watchChangedTables } from './changed-tables.ts'
import { IDLE_READ_INTERVAL_MS, READ_INTERVAL_MS } from './log.ts'

const database = databaseFixture('create table notes (id int primary key)')
const pool = feedFixture(database)

beforeEach(async () => {
  await pool.ready()
  // Time does not pass, so nothing is polled.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => vi.useRealTimers())

/** Unlike `vi.waitFor`, lets no time pass. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(resolve => setImmediate(resolve))
}

/** Watches; `changed` has the tables of each read that found some. */
async function watch() {
  let reads = 0
  const changed: (readonly string[])[] = []
  const watched = watchChangedTables({
    database: {
      run(commands) {
        reads++
        return pool.run(commands)
      },
    },
    ...{ now: () => Date.now(), shareRead: null, isUsable: () => true, onDoubt() {} },
    onChanged: tables => changed.push(tables),
  })
  // No test ends during a read: the next one would wait in the pool, whose timer counts too.
  const isWaiting = () => until(() => vi.getTimerCount() === 1)
  await isWaiting()
  return { watched, changed, isWaiting, reads: () => reads }
}

const store = (id: number) =>
  execute(
    database.adminUrl,
    `insert into svc.change ("schema", "table", operation, key, new)
      values ('public', 'notes', 'I', '{"id": ${id}}', '{"id": ${id}}')`,
  )

test('changes from the write-ahead log are known when they have been stored, and are polled slowly', async () => {
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const { watched, changed, isWaiting, reads } = await watch()
  for (let times = 1; times <= 2; times++) {
    await store(times)
    watched.wake()
    vi.advanceTimersByTime(10)
    await until(() => changed.length === times)
    await isWaiting()
  }
  expect(changed).toEqual([['public.notes'], ['public.notes']])
  const before = reads()
  vi.advanceTimersByTime(IDLE_READ_INTERVAL_MS - 1)
  expect(reads()).toBe(before)
  vi.advanceTimersByTime(1)
  expect(reads()).toBe(before + 1)
  await isWaiting()
  watched.close()
})

test('without notifications, changes are found by polls, which are then more frequent', async () => {
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const { watched, changed, isWaiting, reads } = await watch()
  await store(3)
  vi.advanceTimersByTime(IDLE_READ_INTERVAL_MS)
  await until(() => changed.length === 1)
  await isWaiting()
  const before = reads()
  vi.advanceTimersByTime(READ_INTERVAL_MS)
  expect(reads()).toBe(before + 1)
  await isWaiting()
  watched.close()
})

test('a notification does not affect reads of a log that triggers write, nor a watch that was closed', async () => {
  await execute(database.adminUrl, 'delete from svc.wal')
  const { watched, reads } = await watch()
  watched.wake()
  vi.advanceTimersByTime(IDLE_READ_INTERVAL_MS - 1)
  expect(reads()).toBe(1)
  watched.close()
  await execute(database.adminUrl, 'insert into svc.wal default values on conflict do nothing')
  const other = await watch()
  other.watched.close()
  other.watched.wake()
  expect(vi.getTimerCount()).toBe(0)
})
