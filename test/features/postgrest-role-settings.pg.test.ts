/** docs/guides/coming-from-postgrest.md: settings that the database stores for the roles of callers. */
import { expect, test } from 'vitest'
import { SECRET } from '../support/gateway.ts'
import { postgrestFixture } from '../support/postgrest.ts'
import { signed } from '../support/postgrest-token.ts'

const { ask, run, author } = postgrestFixture(
  `create view settings as select
     current_setting('lock_timeout') as lock_timeout, current_setting('work_mem') as work_mem,
     current_setting('statement_timeout') as statement_timeout, current_setting('search_path') as path,
     current_setting('log_min_messages') as log_min_messages;
   create view slow as select id, pg_sleep(600)::text as nap from (values (1)) v(id);
   create function wait() returns void language sql as 'select pg_sleep(600)';
   create table one (id int); insert into one values (1);
   create function seen(one) returns text stable language sql as $$
     select concat_ws(' ', current_setting('lock_timeout'), current_setting('work_mem'), current_setting('search_path'))
   $$;
   create function hoisted() returns setof one stable language sql
     set lock_timeout = '3s' set work_mem = '6MB' set search_path = 'elsewhere' as 'select * from public.one';
   create function wait_shortly() returns void language sql set statement_timeout = '90ms' as 'select pg_sleep(600)';
   alter role :anon set lock_timeout = '7s';
   alter role :author set lock_timeout = '8s';
   alter role :author set search_path = 'elsewhere';
   alter role :author set log_min_messages = 'debug5';
   do $$ begin
     execute format('alter role :author in database %I set lock_timeout = ''9s''', current_database());
     execute format('alter role :author in database %I set work_mem = ''5MB''', current_database());
   end $$;
   grant usage on schema public to :anon, :author;
   grant select on settings, slow, one to :anon, :author`,
  'hoisted_tx_settings = ["statement_timeout", "LOCK_TIMEOUT", "search_path"]',
)

const token = () => signed({ role: author }, SECRET)
const settings = async (options: Parameters<typeof ask>[1] = {}) => (await ask('/settings', options)).json[0]

test('apply to the transactions of their role', async () => {
  const mine = await settings({ token: token() })
  expect(mine).toMatchObject({ lock_timeout: '9s', work_mem: '5MB', path: '"public", "public"' })
  const anonymous = await settings()
  expect(anonymous).toMatchObject({ lock_timeout: '7s', path: '"public", "public"' })
  // A caller could not make this setting.
  expect(mine.log_min_messages).toBe(anonymous.log_min_messages)
})

test('listed settings of a called function hold for its transaction instead of those of the role', async () => {
  const called = await ask('/rpc/hoisted?select=seen', { token: token() })
  expect(called.json).toEqual([{ seen: '3s 5MB "public", "public"' }])
  const waited = await ask('/rpc/wait_shortly', { method: 'POST' })
  expect([waited.status, waited.json]).toMatchObject([500, { code: '57014' }])
})

test('are read again after a notification, and cancel statements that take too long', async () => {
  await run("alter role :author set statement_timeout = '100ms'; notify svc_schema")
  const timeout = async () => (await ask('/settings', { token: token() })).json[0]?.statement_timeout
  await expect.poll(timeout, { timeout: 15_000 }).toBe('100ms')
  const message = 'canceling statement due to statement timeout'
  const refusal = [500, { code: '57014', details: null, hint: null, message }]
  const called = await ask('/rpc/wait', { token: token(), method: 'POST' })
  expect([called.status, called.json]).toEqual(refusal)
  // Only the second statement, which counts, evaluates the column.
  const counted = await ask('/slow?limit=0', { token: token(), headers: { Prefer: 'count=exact' } })
  expect([counted.status, counted.json]).toEqual(refusal)
})
