/** Describe requests against real PostgreSQL: their results, and that nothing is run or left behind. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { watchActivity } from '../../test/support/activity.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { createPool, type Pool, type PoolEvent } from './pool.ts'
import type { Command } from './types.ts'
import { parseUrl } from './url.ts'

const database = databaseFixture()
let pool: Pool
const events: PoolEvent[] = []

beforeAll(async () => {
  await execute(
    database.adminUrl,
    `create table things (id int primary key, name text); grant all on things to public;
     create sequence runs; grant all on sequence runs to public;
     create function runs() returns int language plpgsql as $$ begin return nextval('runs'); end $$;
     create function add(a int, b int default 1) returns bigint language sql as 'select a + b';
     create function same(a int) returns int language sql as 'select a';
     create function same(a boolean) returns boolean language sql as 'select a';
     create schema hidden; create table hidden.things (secret text); grant all on hidden.things to public`,
  )
  const onEvent = (event: PoolEvent): unknown => events.push(event)
  pool = createPool({ target: parseUrl(database.url), maxConnections: 1, onEvent })
  await pool.ready()
})

// After each test the connection is still the first one.
afterEach(() =>
  expect(events.filter(event => event.kind !== 'cancel-requested').map(event => event.kind)).toEqual(['connected']),
)

afterAll(async () => {
  await pool.close({ deadlineMs: 1_000 })
})

function command(text: string, ...parameters: string[]): Command {
  return { text, parameters }
}

async function one(text: string): Promise<string | undefined> {
  const [result] = await pool.run([command(text)]).result
  return result?.rows[0]?.[0]?.toString()
}

test.each<[string, number[], [string, number][]]>([
  ['select add(a => $1, b => $2)', [23, 23], [['add', 20]]],
  ['select add(a => $1)', [23], [['add', 20]]],
  [
    'select same($1::boolean) as one, same($2::int) as other',
    [16, 23],
    [
      ['one', 16],
      ['other', 23],
    ],
  ],
  [
    'select * from things where id = $1',
    [23],
    [
      ['id', 23],
      ['name', 25],
    ],
  ],
  ['insert into things values ($1, $2) returning name', [23, 25], [['name', 25]]],
  ['delete from things', [], []],
  ['select', [], []],
  ['', [], []],
  ['begin', [], []],
  ['copy things from stdin', [], []],
])('a statement is described without running it: %s', async (text, parameterTypeOids, fields) => {
  expect(await pool.describe([], text).result).toEqual({
    parameterTypeOids,
    fields: fields.map(([name, typeOid]) => ({ name, typeOid })),
  })
})

test('no part of the statement runs', async () => {
  await pool.describe([], 'select runs()').result
  await pool.describe([], "insert into things values (1, 'x')").result
  expect(await one('select is_called from runs')).toBe('f')
  expect(await one('select count(*) from things')).toBe('0')
})

test.each<[string, string, number | null, RegExp]>([
  ['select add(c => 1)', '42883', 8, /function add\(c => integer\) does not exist/],
  ['select same($1)', '42725', 8, /is not unique/],
  ['select nonsense from things', '42703', 8, /column "nonsense" does not exist/],
  ['select 1; drop table things', '42601', null, /cannot insert multiple commands/],
  ['selec', '42601', 1, /syntax error/],
  ['select $1 is null', '42P18', null, /could not determine data type of parameter/],
])('%s is rejected with PostgreSQL’s error', async (text, sqlstate, position, message) => {
  const outcome = await pool.describe([], text).result.catch(reason => reason)
  expect(outcome).toMatchObject({ name: 'DatabaseError', sqlstate, position })
  expect(outcome.message).toMatch(message)
  expect(await one('select 1')).toBe('1')
})

test('names are resolved under the settings before it, which end with it', async () => {
  const path = command("select set_config('search_path', $1, true)", 'hidden')
  await expect(pool.describe([path], 'select secret from things').result).rejects.toMatchObject({ sqlstate: '42P01' })
  await execute(database.adminUrl, 'grant usage on schema hidden to public')
  const { fields } = await pool.describe([path], 'select secret from things').result
  expect(fields).toEqual([{ name: 'secret', typeOid: 25 }])
  await expect(pool.describe([], 'select secret from things').result).rejects.toMatchObject({ sqlstate: '42703' })
})

test('waiting for a lock ends at the statement_timeout set before it, or when it is cancelled', async () => {
  const timeout = command("select set_config('statement_timeout', $1, true)", '30')
  const activity = watchActivity(database.adminUrl)
  try {
    const locking = activity
      .value('begin; lock table things in access exclusive mode; select pg_sleep(60)')
      .catch(() => {})
    await activity.started(/pg_sleep/)
    await expect(pool.describe([timeout], 'select * from things').result).rejects.toMatchObject({ sqlstate: '57014' })
    const waiting = pool.describe([], 'select * from things')
    await activity.until("select count(*) from pg_stat_activity where wait_event_type = 'Lock'", count => count === '1')
    waiting.cancel()
    await expect(waiting.result).rejects.toMatchObject({ name: 'CancelledError' })
    await activity.value("select pg_cancel_backend(pid) from pg_stat_activity where query like 'begin; lock%'")
    await locking
  } finally {
    await activity.close()
  }
  expect((await pool.describe([], 'select * from things').result).fields.length).toBe(2)
})

test('a description between batches affects no other request, and leaves only the cached statements', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 300 }, async (_, index) => {
      if (index % 3 === 0) return (await pool.describe([], `select ${index} as c${index}`).result).fields[0]?.name
      if (index % 3 === 1) return pool.describe([], `select c${index}`).result.catch(reason => reason.sqlstate)
      return String((await pool.run([command('select $1::text', `v${index}`)]).result)[0]?.rows[0]?.[0])
    }),
  )
  expect(outcomes).toEqual(
    Array.from({ length: 300 }, (_, index) =>
      index % 3 === 0 ? `c${index}` : index % 3 === 1 ? '42703' : `v${index}`,
    ),
  )
  expect(await one("select count(*) from pg_prepared_statements where statement ~ 'c[0-9]'")).toBe('0')
})
