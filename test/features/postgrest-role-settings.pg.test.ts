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
   create function wait_long() returns void language sql set statement_timeout = '20s' as 'select pg_sleep(600)';
   alter role :anon set lock_timeout = '7s';
   alter role :author set lock_timeout = '8s';
   alter role :author set search_path = 'elsewhere';
   alter role :author set log_min_messages = 'debug5';
   do $$ begin
     execute format('alter role :author in database %I set lock_timeout = ''9s''', current_database());
     execute format('alter role :author in database %I set work_mem = ''5MB''', current_database());
   end $$;
   grant usage on schema public to :anon, :author;
   grant select on settings, slow, one to :anon, :author;
   grant insert, update, delete on one to :anon`,
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

const prefer = (preferences: string) => ({ headers: { Prefer: preferences } })
const CANCELLED = [500, { code: '57014', message: 'canceling statement due to statement timeout' }]

test('a preferred timeout holds for all statements of the request', async () => {
  const read = await ask('/settings', prefer('handling=strict, timeout=5'))
  expect(read.json[0].statement_timeout).toBe('5s')
  expect(read.headers.get('preference-applied')).toBe('handling=strict, timeout=5')
  // The same headers otherwise, on a connection that has just had the timeout.
  expect((await settings(prefer('handling=strict, timeout=6'))).statement_timeout).toBe('6s')
  expect((await settings()).statement_timeout).toBe('30s')
  const called = await ask('/rpc/wait', { method: 'POST', ...prefer('handling=strict, timeout=1') })
  expect([called.status, called.json]).toMatchObject(CANCELLED)
  const counted = await ask('/slow?limit=0', prefer('handling=strict, timeout=1, count=exact'))
  expect([counted.status, counted.json]).toMatchObject(CANCELLED)
  // The time of a function does not extend it.
  const long = await ask('/rpc/wait_long', { method: 'POST', ...prefer('handling=strict, timeout=1') })
  expect([long.status, long.json]).toMatchObject(CANCELLED)
})

test.each(['handling=lenient, timeout=5', 'timeout=5'])(
  'a timeout without handling=strict is ignored: %s',
  async sent => {
    const { headers, json } = await ask('/settings', prefer(sent))
    expect(json[0].statement_timeout).toBe('30s')
    expect(headers.get('preference-applied') ?? '').not.toContain('timeout')
  },
)

test.each(['0', '-1', '00', '1.5', '1s', ''])('a timeout of "%s" is ignored', async seconds => {
  const { status, headers, json } = await ask('/settings', prefer(`handling=strict, timeout=${seconds}`))
  expect([status, json[0].statement_timeout]).toEqual([200, '30s'])
  expect(headers.get('preference-applied')).toBe('handling=strict')
})

test.each<readonly [string, string, string | undefined]>([
  ['GET', '/one', undefined],
  ['POST', '/one', '{"id":7}'],
  ['PATCH', '/one?id=eq.7', '{"id":8}'],
  ['DELETE', '/one?id=eq.8', undefined],
  ['POST', '/rpc/hoisted', undefined],
  ['GET', '/', undefined],
])('a timeout of up to that of the gateway is applied to %s %s', async (method, path, body) => {
  const send = (timeout: string) =>
    ask(path, {
      method,
      headers: { Prefer: `handling=strict, timeout=${timeout}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    })
  const accepted = await send('30')
  expect(accepted.status).toBeLessThan(300)
  expect(accepted.headers.get('preference-applied')).toContain('timeout=30')
  for (const more of ['31', '9'.repeat(400)]) {
    const refused = await send(more)
    expect([refused.status, refused.json]).toEqual([
      400,
      {
        ...{ code: 'PGRST129', message: 'Timeout preference exceeded maximum allowed' },
        ...{ details: 'The maximum timeout allowed is 30s', hint: 'Reduce the timeout' },
      },
    ])
  }
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
  const preferred = await ask('/settings', { token: token(), ...prefer('handling=strict, timeout=1') })
  expect([preferred.status, preferred.json]).toMatchObject([
    400,
    { code: 'PGRST129', details: 'The maximum timeout allowed is 0s' },
  ])
})
