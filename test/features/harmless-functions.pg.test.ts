/**
 * Only functions that can leave something in the session are followed by a reset
 * (docs/decisions/0044-functions-that-leave-nothing.md). There is one connection, whose last command
 * PostgreSQL shows.
 */
import { expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { AskOptions, Reply } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

const OWN = "nullif(current_setting('app.current_tenant_id', true), '')"

const database = databaseFixture(`
create function tenant() returns text stable language sql as $$ select ${OWN} $$;
create table notes (id int primary key, tenant_id text default tenant(), body text, changed int default 0);
alter table notes enable row level security; alter table notes force row level security;
create policy p on notes using (tenant_id = (select tenant()));
create function touched() returns trigger language plpgsql as $$
  begin new.changed := new.changed + 1; return new; end $$;
create trigger t before insert or update on notes for each row execute function touched();
create function add(a int, b int) returns int volatile language sql return a + b;
create function counted() returns bigint stable security definer language plpgsql as $$
  begin return (select count(*) from public.notes); end $$;
create function noted(body text) returns int volatile language sql as $$
  insert into public.notes (id, body) values (100, body) returning id $$;
create function remembers(x text) returns text volatile language sql as $$
  select set_config('app.remembered', x, false) $$;
create function replaced(x text) returns text volatile language sql as $$ select x $$;
create view remembered with (security_invoker = true) as
  select 1 as id, current_setting('app.remembered', true) as value;
create table marks (id int primary key); insert into marks values (1);
alter table marks enable row level security; create policy p on marks using (remembers('left') is not null);
grant select, insert, update, delete on notes, marks to app; grant select on remembered to app;
`)

const gateway = gatewayFixture(database, {
  toml: [
    'explain_max_cost = 0',
    'explain_max_rows = 0',
    'max_connections = 1',
    'schema_poll_secs = 3600',
    'exposed_views = ["remembered"]',
    '[postgrest]',
    'enabled = true',
    'anon_role = "app"',
    'jwt_role_claim = { value = "app" }',
  ].join('\n'),
})

/** The last command of the gateway's session that requests use. */
async function lastCommand(): Promise<string> {
  const idle = () =>
    execute(
      database.adminUrl,
      `select query from pg_stat_activity where usename = 'app' and datname = current_database() and state = 'idle'
        and query !~* '^listen'`,
    )
  // A response can arrive before PostgreSQL shows the session as idle.
  let sessions: Awaited<ReturnType<typeof idle>> = []
  await expect.poll(async () => (sessions = await idle())).toHaveLength(1)
  return String(sessions[0]?.query)
}

async function send(path: string, options: AskOptions = {}): Promise<Reply> {
  const reply = await gateway.get(path, { as: { tenantId: 't1' }, ...options })
  expect([path, reply.status, reply.status < 300 ? '' : reply.text]).toEqual([path, expect.any(Number), ''])
  return reply
}

const json = (method: string, body: unknown): AskOptions => ({
  method,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

const RESETS = /^(RESET|UNLISTEN|DISCARD|SELECT pg_advisory_unlock_all|SET CONSTRAINTS)/

test.each<[string, string, AskOptions?]>([
  ['a call', '/api/rpc/add', json('POST', { a: 1, b: 2 })],
  ['a call that reads a table as another role', '/api/rpc/counted', json('POST', {})],
  ['a read whose policy calls one', '/api/notes'],
  ['an insert with a policy, a default and a trigger', '/api/notes', json('POST', { id: 1, body: 'one' })],
  ['an update', '/api/notes/1', json('PATCH', { body: 'two' })],
  ['a call below /rest/v1', '/rest/v1/rpc/add', json('POST', { a: 1, b: 2 })],
  ['a read below /rest/v1', '/rest/v1/notes'],
  ['a query', '/api/_query', json('POST', { query: 'get notes' })],
])('a harmless function is not followed by a reset: %s', async (_, path, options) => {
  await send(path, options)
  expect(await lastCommand()).not.toMatch(RESETS)
})

test.each<[string, string, AskOptions?]>([
  ['a call', '/api/rpc/remembers', json('POST', { x: 'left' })],
  ['a call of one that writes', '/api/rpc/noted', json('POST', { body: 'x' })],
  ['a read whose policy calls one', '/api/marks'],
  ['a deletion whose policy calls one', '/api/marks/1', { method: 'DELETE' }],
  ['a call below /rest/v1', '/rest/v1/rpc/remembers', json('POST', { x: 'left' })],
])('any other function is: %s', async (_, path, options) => {
  await send(path, options)
  expect(await lastCommand()).toMatch(RESETS)
  expect((await send('/api/remembered')).json.data[0].value ?? '').toBe('')
})

test('a function that is no longer harmless is followed by a reset, and what it left before is gone', async () => {
  const call = (x: string) => send('/api/rpc/replaced', json('POST', { x }))
  await call('one')
  expect(await lastCommand()).not.toMatch(RESETS)
  await execute(
    database.adminUrl,
    `create or replace function replaced(x text) returns text volatile language sql as
      $$ select set_config('app.remembered', x, false) $$`,
  )
  // The gateway has not heard of it.
  await call('two')
  expect((await send('/api/remembered')).json.data[0].value).toBe('two')
  await gateway.gateway.reload()
  expect((await send('/api/remembered')).json.data[0].value ?? '').toBe('')
  await call('three')
  expect(await lastCommand()).toMatch(RESETS)
  expect((await send('/api/remembered')).json.data[0].value ?? '').toBe('')
})
