/**
 * Session state that a stored function can leave, and the resets with which its batch must end so that the
 * next batch finds nothing. All run in one transaction: a function that fails has changed nothing, and
 * after one that succeeds the resets run before any other request.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { uniqueName } from '../../test/support/server.ts'
import { createPool, type Pool, type PoolEvent } from './pool.ts'
import type { Command } from './types.ts'
import { parseUrl } from './url.ts'

const role = uniqueName('worker')
const opened: Pool[] = []
// Declared before the database, so that it runs after the database with the role's privileges is dropped.
afterAll(() => execute(database.adminUrl.replace(database.database, 'postgres'), `drop role ${role}`))

const database = databaseFixture()

beforeAll(() =>
  execute(
    database.adminUrl,
    `create role ${role} nologin; grant ${role} to app;
     grant temporary on database ${database.database} to public;
     create table written (value text); grant all on written to public;
     create sequence counted; grant all on sequence counted to public;
     create function change(name text, value text, local boolean) returns text language plpgsql as
       $$ begin return set_config(name, value, local); end $$;
     create function perform(text) returns void language plpgsql as $$ begin execute $1; end $$;
     create table audited (value text); grant all on audited to public;
     create table audit (tenant text, timeout text); grant all on audit to public;
     create function audit() returns trigger language plpgsql as $$ begin
       insert into audit values (current_setting('app.tenant', true), current_setting('statement_timeout'));
       return null;
     end $$;
     create constraint trigger audits after insert on audited deferrable initially deferred
       for each row execute function audit()`,
  ),
)

afterEach(async () => {
  await Promise.all(opened.splice(0).map(pool => pool.close({ deadlineMs: 1_000 })))
})

function open(options: Readonly<Record<string, string>> = {}): { readonly pool: Pool; readonly events: PoolEvent[] } {
  const events: PoolEvent[] = []
  const target = parseUrl(`${database.url}?${new URLSearchParams(options).toString().replaceAll('+', '%20')}`)
  const pool = createPool({ target, maxConnections: 1, onEvent: event => events.push(event) })
  opened.push(pool)
  return { pool, events }
}

function command(text: string, ...parameters: string[]): Command {
  return { text, parameters }
}

async function one(pool: Pool, text: string, ...parameters: string[]): Promise<string | null | undefined> {
  const [result] = await pool.run([command(text, ...parameters)]).result
  const value = result?.rows[0]?.[0]
  return value === null ? null : value?.toString()
}

/** The settings of a request, all transaction-local. */
const settings = command(
  "select set_config('app.tenant', $1, true), set_config('statement_timeout', $2, true)",
  't',
  '9s',
)
const change = (name: string, value: string, local = 'false'): Command =>
  command('select public.change($1, $2, $3)', name, value, local)
const perform = (sql: string): Command => command('select public.perform($1)', sql)
const RESETS: readonly Command[] = [command('reset all'), command('reset role')]

const HOSTILE: readonly (readonly [name: string, value: string])[] = [
  ['search_path', 'pg_temp, nowhere'],
  ['statement_timeout', '12345'],
  ['lock_timeout', '12345'],
  ['idle_in_transaction_session_timeout', '12345'],
  ['app.tenant', 'another'],
  ['app.new', 'something'],
  ['request.jwt.claims', '{}'],
  ['default_transaction_read_only', 'on'],
  ['default_transaction_isolation', 'serializable'],
  ['row_security', 'off'],
  ['TimeZone', 'Asia/Tokyo'],
  ['DateStyle', 'German'],
  ['IntervalStyle', 'iso_8601'],
  ['client_min_messages', 'error'],
  ['extra_float_digits', '-5'],
  ['bytea_output', 'escape'],
  ['client_encoding', 'LATIN1'],
  ['standard_conforming_strings', 'off'],
  ['application_name', 'somebody else'],
  ['work_mem', '64kB'],
  ['jit', 'off'],
  ['enable_seqscan', 'off'],
  ['plan_cache_mode', 'force_generic_plan'],
  ['check_function_bodies', 'off'],
]

/**
 * All settings of the session, including undeclared ones, and its roles. PL/pgSQL declares its settings
 * when it is loaded.
 */
const SNAPSHOT = `
  select jsonb_object_agg(name, coalesce(current_setting(name, true), ''))
    || jsonb_build_object('current_user', current_user, 'session_user', session_user, 'role', current_setting('role'))
  from (select name from pg_settings where name !~ '^(transaction_|plpgsql[.])'
        union select unnest($1::text[])) names`
const HOSTILE_NAMES = HOSTILE.map(([name]) => name)
const names = `{${HOSTILE_NAMES.join(',')}}`

async function snapshot(pool: Pool): Promise<Readonly<Record<string, string>>> {
  return JSON.parse((await one(pool, SNAPSHOT, names)) ?? '')
}

test.each<[what: string, options: Readonly<Record<string, string>>, otherRole: string]>([
  ['nothing in the URL', {}, role],
  [
    'settings in the URL',
    {
      application_name: 'ours',
      options: '-c search_path=pg_catalog,public -c TimeZone=Europe/Vienna -c statement_timeout=8s -c app.new=given',
    },
    role,
  ],
  ['a role in the URL', { options: `-c role=${role}` }, 'none'],
])(
  'whatever a function sets, the next batch has the original settings of the session (%s)',
  async (_what, options, otherRole) => {
    const { pool, events } = open(options)
    const start = await snapshot(pool)
    const pid = await one(pool, 'select pg_backend_pid()')
    for (const local of ['false', 'true']) {
      const changes = [...HOSTILE, ['role', otherRole] as const].map(([name, value]) => change(name, value, local))
      const results = await pool.run([settings, ...changes, command(SNAPSHOT, names), ...RESETS]).result
      // The snapshot detects changes: within the batch all of it was changed.
      const within = JSON.parse(results[changes.length + 1]?.rows[0]?.[0]?.toString() ?? '')
      expect([...HOSTILE_NAMES, 'role'].filter(name => within[name] === start[name])).toEqual([])
      expect(await snapshot(pool)).toEqual(start)
    }
    expect(await one(pool, 'select pg_backend_pid()')).toBe(pid)
    expect(events.map(event => event.kind)).toEqual(['connected'])
  },
)

test('a function that fails leaves no settings and no rows', async () => {
  const { pool, events } = open()
  const start = await snapshot(pool)
  const changes = HOSTILE.map(([name, value]) => change(name, value))
  const failing = perform("insert into public.written values ('x'); select 1/0")
  await expect(pool.run([settings, ...changes, failing, ...RESETS]).result).rejects.toMatchObject({ sqlstate: '22012' })
  expect(await snapshot(pool)).toEqual(start)
  expect(await one(pool, 'select count(*) from written')).toBe('0')
  expect(events.map(event => event.kind)).toEqual(['connected'])
})

test('without the resets, a reported setting retires the connection, and an unreported one stays', async () => {
  const { pool } = open()
  const pid = await one(pool, 'select pg_backend_pid()')
  await pool.run([settings, change('app.new', 'stays')]).result
  await pool.run([settings, change('role', role)]).result
  expect(await one(pool, "select current_setting('app.new') || ' ' || current_user")).toBe(`stays ${role}`)
  expect(await one(pool, 'select pg_backend_pid()')).toBe(pid)
  await pool.run([settings, change('TimeZone', 'Asia/Tokyo')]).result
  expect(await one(pool, 'select pg_backend_pid()')).not.toBe(pid)
})

test('resets are prepared once for each connection', async () => {
  const { pool, events } = open()
  const prepared = `select string_agg(statement || prepare_time, ',' order by statement) from pg_prepared_statements
    where statement like 'reset%'`
  await pool.run([settings, ...RESETS]).result
  const first = await one(pool, prepared)
  expect(first).toMatch(/^reset all.*,reset role/)
  for (let use = 0; use < 5; use++) {
    const results = await pool.run([settings, ...RESETS]).result
    expect(results.map(result => result.tag)).toEqual(['SELECT 1', 'RESET', 'RESET'])
  }
  expect(await one(pool, prepared)).toBe(first)
  expect(events.map(event => event.kind)).toEqual(['connected'])
})

test('triggers deferred to the commit run after the resets, unless constraints are made immediate', async () => {
  const { pool } = open()
  const write = command("insert into audited values ('x')")
  const seen = async (...ending: readonly Command[]): Promise<string | null | undefined> => {
    await pool.run([settings, write, ...ending]).result
    return one(pool, "with gone as (delete from audit returning *) select tenant || '/' || timeout from gone")
  }
  expect(await seen()).toBe('t/9s')
  expect(await seen(...RESETS)).toBe('/0')
  expect(await seen(command('set constraints all immediate'), ...RESETS)).toBe('t/9s')
})

/** State that RESET does not affect. */
const LEFT = `
  select concat_ws(' ',
    (select 'lock' from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
    (select 'channel' from pg_listening_channels()),
    (select 'table' from pg_class where relname = 'temporary'),
    (select 'cursor' from pg_cursors where name = 'held'),
    (select 'statement' from pg_prepared_statements where from_sql))`

test.each<[left: string, what: string, ending: string, tag: string]>([
  ['lock', 'select pg_advisory_lock(7)', 'select pg_advisory_unlock_all()', 'SELECT 1'],
  ['channel', 'listen somewhere', 'unlisten *', 'UNLISTEN'],
  ['table', 'create temporary table temporary (id int)', 'discard temp', 'DISCARD TEMP'],
  ['cursor', 'declare held cursor with hold for select 1', 'close all', 'CLOSE CURSOR ALL'],
  ['statement', 'prepare theirs as select 1', 'deallocate theirs', 'DEALLOCATE'],
])('a %s survives the resets (%s) and ends with %s', async (left, what, ending, tag) => {
  const { pool, events } = open()
  expect(await one(pool, LEFT)).toBe('')
  await pool.run([settings, perform(what), ...RESETS]).result
  expect(await one(pool, LEFT)).toBe(left)
  const results = await pool.run([settings, command(ending), ...RESETS]).result
  expect(results[1]?.tag).toBe(tag)
  expect(await one(pool, LEFT)).toBe('')
  expect(events.map(event => event.kind)).toEqual(['connected'])
})

test('locks and prepared statements survive a failed batch, because its resets are skipped', async () => {
  const { pool } = open()
  const everything = perform(`select pg_advisory_lock(7); listen somewhere; create temporary table temporary (id int);
    declare held cursor with hold for select 1; prepare theirs as select 1; select 1/0`)
  const ending = [command('select pg_advisory_unlock_all()'), command('deallocate theirs')]
  await expect(pool.run([settings, everything, ...ending]).result).rejects.toMatchObject({ sqlstate: '22012' })
  expect(await one(pool, LEFT)).toBe('lock statement')
  await pool.run(ending).result
  expect(await one(pool, LEFT)).toBe('')
})

test('a command with always runs after a failed batch, before any new request', async () => {
  const { pool, events } = open()
  const unlock: Command = { ...command('select pg_advisory_unlock_all()'), always: true }
  const failing = perform('select pg_advisory_lock(7); select 1/0')
  await expect(pool.run([settings, failing, ...RESETS, unlock]).result).rejects.toMatchObject({ sqlstate: '22012' })
  expect(await one(pool, LEFT)).toBe('')
  const rows = pool.stream([settings], failing, 10, [unlock])
  await expect(rows.next()).rejects.toMatchObject({ sqlstate: '22012' })
  expect(await one(pool, LEFT)).toBe('')
  expect(events.map(event => event.kind)).toEqual(['connected'])
})

test('the commands after a stream run in its transaction, whether or not it is read to its end', async () => {
  const { pool } = open()
  const after = [...RESETS, command('select pg_advisory_unlock_all()'), command('unlisten *')]
  const leaving = command(
    "select public.perform('select pg_advisory_lock(7); set app.new = left; listen somewhere'), n from " +
      'generate_series(1, 5000) n',
  )
  const left = async () => [await one(pool, LEFT), await one(pool, "select current_setting('app.new', true)")]
  let count = 0
  for await (const rows of pool.stream([settings], leaving, 100, after)) count += rows.length
  expect(count).toBe(5_000)
  expect(await left()).toEqual(['', ''])
  for await (const rows of pool.stream([settings], leaving, 100, after)) {
    expect(rows.length).toBeGreaterThan(0)
    break
  }
  expect(await left()).toEqual(['', ''])
})

test('a reset of a channel, a table or a setting is rolled back with its batch, so a retry is safe', async () => {
  const { pool } = open()
  const leave = "listen somewhere; create temporary table temporary (id int); set app.new = 'kept'"
  await pool.run([perform(leave)]).result
  const ending = [command('unlisten *'), command('discard temp'), ...RESETS]
  await expect(pool.run([...ending, command('select 1/0')]).result).rejects.toMatchObject({ sqlstate: '22012' })
  expect(await one(pool, LEFT)).toBe('channel table')
  expect(await one(pool, "select current_setting('app.new')")).toBe('kept')
  await pool.run(ending).result
  expect(await one(pool, LEFT)).toBe('')
})

test('the last value of a sequence survives the resets and ends with DISCARD SEQUENCES', async () => {
  const { pool } = open()
  await pool.run([settings, perform("select nextval('counted')"), ...RESETS]).result
  expect(await one(pool, 'select lastval()')).toBe('1')
  await pool.run([settings, command('discard sequences'), ...RESETS]).result
  await expect(one(pool, 'select lastval()')).rejects.toMatchObject({ sqlstate: '55000' })
})

test.each(['discard all', 'commit', 'begin', 'vacuum'])('a function cannot %s', async sql => {
  const { pool } = open()
  await expect(pool.run([perform(sql)]).result).rejects.toMatchObject({ name: 'DatabaseError' })
  expect(await one(pool, 'select 1')).toBe('1')
})

test('a function that deallocates everything causes one retry of reads and writes, without an error', async () => {
  const { pool, events } = open()
  const read = [settings, command('select count(*) from written'), ...RESETS]
  const write = [settings, command("insert into written values ('y')"), ...RESETS]
  const tries = (): number => events.filter(event => event.kind === 'retried').length
  for (const unit of [read, write]) await pool.run(unit).result
  const before = Number(await one(pool, 'select count(*) from written'))
  for (const [unit, tag] of [
    [read, 'SELECT 1'],
    [write, 'INSERT 0 1'],
  ] as const) {
    await pool.run([perform('deallocate all')]).result
    const already = tries()
    const together = await Promise.all(Array.from({ length: 5 }, () => pool.run(unit).result))
    for (const results of together) expect(results[1]?.tag).toBe(tag)
    expect(tries()).toBeGreaterThan(already)
  }
  // Each write took effect once, however often it was sent.
  expect(Number(await one(pool, 'select count(*) from written'))).toBe(before + 5)
  const own = [settings, perform("deallocate all; insert into written values ('z')"), ...RESETS]
  for (let use = 0; use < 3; use++) expect((await pool.run(own).result).length).toBe(4)
  expect(Number(await one(pool, 'select count(*) from written'))).toBe(before + 8)
  expect(new Set(events.map(event => event.kind))).toEqual(new Set(['connected', 'retried']))
})
