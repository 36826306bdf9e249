/**
 * No request sees session settings of another, whatever code in the database does: functions, triggers,
 * defaults, policies and constraints that change settings for the rest of the session, change the role, or
 * take locks. There is one connection, so the next request sees anything left behind, whether it is sent with
 * the first one or later.
 */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { uniqueName, urlOf } from '../support/server.ts'

/** `mess()` acts according to the caller's user id, and does nothing for other ids. */
type Way = 'session' | 'reported' | 'local' | 'role' | 'local role' | 'locks' | 'listens' | 'makes'

/** Settings and roles, for the rest of the session. */
const SETTINGS: readonly Way[] = ['session', 'reported', 'role']

/** Settings and roles, for the transaction. */
const ALL_SETTINGS: readonly Way[] = [...SETTINGS, 'local', 'local role']

/** Session state other than settings: an advisory lock, LISTEN, a temporary table. */
const THINGS: readonly Way[] = ['locks', 'listens', 'makes']

/** Roles belong to the whole server. */
const OTHER_ROLE = uniqueName('other')

/**
 * Unique names and values. PostgreSQL reports the last two to its clients, so the pool would notice them
 * without a reset.
 */
const QUIET: readonly (readonly [name: string, value: string])[] = [
  ['my.mark', 'left'],
  ['app.current_tenant_id', 't9'],
  ['app.current_agent_id', 'a9'],
  ['app.is_super_admin', 'true'],
  ['work_mem', '1MB'],
  ['lock_timeout', '7'],
  ['statement_timeout', '19000'],
]
const REPORTED: typeof QUIET = [
  ['search_path', 'elsewhere'],
  ['default_transaction_read_only', 'on'],
]

const setAll = (settings: typeof QUIET, local: boolean) =>
  settings.map(([name, value]) => `set_config('${name}', '${value}', ${local})`).join(', ')

const SEEN_SETTINGS = [...QUIET, ...REPORTED].map(
  ([name], index) => `nullif(current_setting('${name}', true), '') as s${index}`,
)

const SCHEMA = `
create schema elsewhere;
-- A trigger that runs after a statement runs as who queued it, and may not be another from then on.
create function become(local bool) returns void language plpgsql volatile as $$
  begin perform set_config('role', '${OTHER_ROLE}', local); exception when insufficient_privilege then null; end $$;
create function mess() returns text language plpgsql volatile as $$
  begin
    case current_setting('app.current_user_id', true)
      when 'session' then perform ${setAll(QUIET, false)};
      when 'reported' then perform ${setAll(REPORTED, false)};
      when 'local' then perform ${setAll([...QUIET, ...REPORTED], true)};
      when 'role' then perform public.become(false);
      when 'local role' then perform public.become(true);
      when 'locks' then perform pg_advisory_lock(7);
      when 'listens' then listen mess;
      when 'makes' then create temp table if not exists left_behind (id int);
      else null;
    end case;
    return 'x';
  end $$;
create function mess_and_fail() returns text language plpgsql volatile as $$ begin perform public.mess();
  raise exception 'done'; end $$;
create function mess_and_catch() returns text language plpgsql volatile as $$
  begin
    perform public.mess();
    begin perform public.mess_and_fail(); exception when others then null; end;
    return 'x';
  end $$;
create function mess_stable() returns text language plpgsql stable as $$ begin return public.mess(); end $$;
create function mess_rows() returns setof text language plpgsql volatile as $$ begin return next public.mess(); end $$;
-- Says that it is what it is not, as constraints and generated columns want it.
create function mess_immutable(x text) returns text language plpgsql immutable as $$ begin return public.mess(); end $$;
create function mess_is_fine(x text) returns bool language plpgsql immutable as $$ begin
  return public.mess() is not null; end $$;
create function mess_before() returns trigger language plpgsql as $$ begin perform public.mess();
  return coalesce(new, old); end $$;
create function mess_before_and_fail() returns trigger language plpgsql as $$ begin perform public.mess();
  raise exception 'done'; end $$;
create function mess_instead() returns trigger language plpgsql as $$ begin perform public.mess();
  return coalesce(new, old); end $$;

${['before_row', 'after_row', 'before_all', 'at_the_end', 'fails', 'by_default', 'by_policy', 'by_check', 'generated']
  .map(
    name =>
      `create table ${name} (id int primary key, body text);
        insert into ${name} select n, 'x' from generate_series(1, 3) n;`,
  )
  .join('\n')}
create trigger t before insert or update or delete on before_row for each row execute function mess_before();
create trigger t after insert or update or delete on after_row for each row execute function mess_before();
create trigger t before insert or update or delete on before_all for each statement execute function mess_before();
create constraint trigger t after insert or update or delete on at_the_end deferrable initially deferred
  for each row execute function mess_before();
create trigger t before insert or update or delete on fails for each row execute function mess_before_and_fail();
alter table by_default add column made text default mess();
alter table by_policy enable row level security;
create policy p on by_policy using (mess() is not null) with check (mess() is not null);
alter table by_check add check (mess_is_fine(body));
alter table generated add column made text generated always as (mess_immutable(body)) stored;
create view by_view with (security_invoker = true) as select id, body from before_row;
create view reading with (security_invoker = true) as select 1 as id, mess() as made;
create view instead with (security_invoker = true) as select id, body from before_all;
create trigger t instead of insert or update or delete on instead for each row execute function mess_instead();
create view over_reading with (security_invoker = true) as select id, made from reading;
create view setting with (security_invoker = true) as select 1 as id,
  case current_setting('app.current_user_id', true) when 'session' then set_config('my.mark', 'left', false)
    when 'locks' then pg_advisory_lock(7)::text end as made;
create view failing with (security_invoker = true) as select 1 as id, mess_and_fail() as made;
create view long with (security_invoker = true) as select n as id, mess() as made, repeat('x', 1000) as filler
  from generate_series(1, 9000) n;
create table by_other (id int primary key); insert into by_other values (1);
alter table by_other enable row level security;
create policy p on by_other using (exists (select from by_policy));
create type temper as enum ('mild');
create function temper_as_json(temper) returns json language plpgsql as $$ begin perform public.mess();
  return 'null'; end $$;
create cast (temper as json) with function temper_as_json(temper);
create table by_cast (id int primary key, temper temper); insert into by_cast values (1, 'mild');
create type mood as enum ('calm', 'cross');
create function mood_equals(mood, text) returns boolean language plpgsql as $$ begin return public.mess() is not
  null; end $$;
create function moods_equal(mood, mood) returns boolean language plpgsql as $$ begin return public.mess() is not
  null; end $$;
create operator = (leftarg = mood, rightarg = text, function = mood_equals);
create operator = (leftarg = mood, rightarg = mood, function = moods_equal);
create table by_operator (id int primary key, mood mood); insert into by_operator values (1, 'calm');
create table heirs (id int primary key); create table heir (made text default 'x') inherits (heirs);
  insert into heir values (1);
alter table heirs enable row level security; create policy p on heirs using (mess() is not null);
create table referred (id int primary key);
create table cascaded (id int primary key, referred_id int references referred on delete cascade);
create trigger t before delete on cascaded for each row execute function mess_before();
create domain word as text check (mess_is_fine(value));
create table by_domain (id int primary key, word word);
create table parents (id int primary key, body text);
insert into parents select n, 'x' from generate_series(1, 3) n;
alter table by_policy add parent_id int references parents default 1;

create view seen with (security_invoker = true) as select
  ${SEEN_SETTINGS.join(', ')},
  current_user::text as who, current_setting('role') as role, current_setting('transaction_read_only') as read_only,
  (select count(*)::int from pg_listening_channels()) as channels,
  (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
  (select count(*)::int from pg_class where relpersistence = 't') as tables;

create role ${OTHER_ROLE};
grant ${OTHER_ROLE} to app;
grant usage on schema public, elsewhere to ${OTHER_ROLE};
grant select, insert, update, delete on all tables in schema public to app, ${OTHER_ROLE};
`

// Declared before the database, so it runs after the database that holds the role's privileges has been
// dropped.
afterAll(() => execute(urlOf(database.port, 'postgres', 'postgres'), `drop role if exists ${OTHER_ROLE}`))

let clean: unknown
const database = databaseFixture(SCHEMA)
const gateway = gatewayFixture(database, {
  // Without estimates, which take their time from the statement timeout, one of the compared settings.
  toml: [
    'explain_max_cost = 0',
    'explain_max_rows = 0',
    'max_connections = 1',
    'schema_poll_secs = 3600',
    'exposed_views = ["reading"]',
    'max_result_rows = 9000',
  ].join('\n'),
})

beforeAll(async () => {
  clean = (await seen()).json
  expect(clean).toMatchObject({ data: [{ who: 'app', role: 'none', channels: 0, locks: 0, tables: 0 }] })
})

/** The state that the next request of another tenant sees. */
function seen(): Promise<Reply> {
  return gateway.get('/api/seen', { as: { tenantId: 't2' } })
}

interface Action {
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

function act({ method = 'GET', path, body, headers = {} }: Action, way: Way): Promise<Reply> {
  return gateway.get(path, {
    ...{ method, as: { tenantId: 't1', userId: way }, headers: { 'Content-Type': 'application/json', ...headers } },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

function differences(answer: { readonly data?: readonly object[] }): readonly string[] {
  if (isDeepStrictEqual(answer, clean)) return []
  const [row] = answer.data ?? []
  const usual = Object.entries((clean as { readonly data: readonly object[] }).data[0] ?? {})
  return row === undefined
    ? [JSON.stringify(answer)]
    : Object.entries(row)
        .filter((entry, index) => !isDeepStrictEqual(entry, usual[index]))
        .map(entry => entry.join(' = '))
}

/** Performs the action in each way, and returns the ways in which another request saw something. */
async function expectNothingLeft(action: () => Action, status: number, ways: readonly Way[] = SETTINGS): Promise<void> {
  const left: Record<string, unknown> = {}
  for (const way of ways) {
    const [done, beside] = await Promise.all([act(action(), way), seen()])
    expect(done.status, `${way}: ${done.text}`).toBe(status)
    const met = { beside, after: await seen() }
    for (const [when, { text }] of Object.entries(met)) {
      const differing = differences(JSON.parse(text))
      if (differing.length > 0) left[`${way} ${when}`] = differing
    }
  }
  // A call leaves nothing behind and removes what earlier requests left, so that the next test starts clean.
  if (Object.keys(left).length > 0) await gateway.get('/api/rpc/mess', { method: 'POST' })
  expect(left).toEqual({})
}

let lastId = 100
const nextId = () => ++lastId

const TABLES = [
  'before_row',
  'after_row',
  'before_all',
  'at_the_end',
  'by_default',
  'by_policy',
  'by_check',
  'generated',
]
const VIEWS = ['by_view', 'instead']
/** The places where a change, or a deletion, executes user code. */
const CHANGED = TABLES.filter(table => table !== 'by_default')
const DELETED = ['before_row', 'after_row', 'before_all', 'at_the_end', 'by_policy']

const create = (table: string, body: unknown, headers = {}): Action => ({
  ...{ method: 'POST', path: `/api/${table}`, body, headers },
})

async function newRows(table: string): Promise<number[]> {
  const ids = ALL_SETTINGS.map(nextId)
  const rows = ids.map(id => `(${id}, 'x')`).join(', ')
  await execute(
    database.adminUrl,
    `set session_replication_role = replica; insert into ${table} (id, body) values ${rows}`,
  )
  return ids
}

describe('calls', () => {
  const call =
    (name: string, method = 'POST') =>
    () => ({ method, path: `/api/rpc/${name}` })
  test.each(['mess', 'mess_rows', 'mess_and_catch'])('a function leaves nothing behind: %s', async name => {
    await expectNothingLeft(call(name), 200, [...ALL_SETTINGS, ...THINGS])
  })
  // A read-only transaction creates no tables.
  const READING: readonly Way[] = [...ALL_SETTINGS, 'locks']
  test.each(['POST', 'GET'])('a function declared stable leaves nothing behind, by %s', async method => {
    await expectNothingLeft(call('mess_stable', method), 200, READING)
  })
  test.each(['mess_immutable?x=1', 'mess_is_fine?x=1'])('%s, declared immutable, leaves nothing behind', async path => {
    await expectNothingLeft(call(path, 'GET'), 200, READING)
  })
  test('leave nothing behind if they fail', async () => {
    await expectNothingLeft(call('mess_and_fail'), 400, [...ALL_SETTINGS, 'listens', 'makes'])
  })
  // A rollback does not release advisory locks of the session. The next statement on the connection releases
  // them; requests already in the pipeline can see them.
  test('a failed call leaves no lock for the next request', async () => {
    expect((await act(call('mess_and_fail')(), 'locks')).status).toBe(400)
    expect((await seen()).json).toEqual(clean)
  })
  test('leave nothing behind with binary results', async () => {
    await expectNothingLeft(() => ({ ...call('mess')(), headers: { 'x-svc-result-format': 'binary' } }), 200)
  })
  // Its transaction is read-only, and yet it can execute LISTEN.
  test('a function declared stable that listens leaves nothing behind', async () => {
    await expectNothingLeft(call('mess_stable'), 200, ['listens'])
  })
})

describe('writes', () => {
  test.each([...TABLES, ...VIEWS])('leave nothing behind: POST to %s', async table => {
    await expectNothingLeft(() => create(table, { id: nextId() }), 201, ALL_SETTINGS)
    await expectNothingLeft(() => create(table, { id: nextId() }, { prefer: 'return=minimal' }), 201)
    await expectNothingLeft(() => create(table, [{ id: nextId() }, { id: nextId(), body: 'y' }, { id: nextId() }]), 201)
  })
  test.each(TABLES)('leave nothing behind: upserts to %s', async table => {
    await expectNothingLeft(() => create(table, { id: 1, body: 'z' }, { 'x-upsert': 'true' }), 200)
    const ignore = { 'x-upsert': 'ignore' }
    await expectNothingLeft(() => create(table, [{ id: nextId() }, { id: 1, body: 'i' }], ignore), 201)
  })
  test.each(CHANGED)('a PATCH of a row of %s leaves nothing behind', async table => {
    await expectNothingLeft(() => ({ method: 'PATCH', path: `/api/${table}/1`, body: { body: 'p' } }), 200)
  })
  test.each([...CHANGED, ...VIEWS])('leave nothing behind: filtered PATCH of %s', async table => {
    await expectNothingLeft(() => ({ method: 'PATCH', path: `/api/${table}?id=in.(1,2)`, body: { body: 'q' } }), 200)
  })
  test.each(DELETED)('leave nothing behind: DELETE from %s', async table => {
    const ids = await newRows(table)
    await expectNothingLeft(() => ({ method: 'DELETE', path: `/api/${table}/${ids.pop()}` }), 204)
    const others = await newRows(table)
    await expectNothingLeft(() => ({ method: 'DELETE', path: `/api/${table}?id=${others.pop()}&returning=*` }), 200)
  })
  test('a write that a trigger rejects leaves nothing behind', async () => {
    await expectNothingLeft(() => create('fails', { id: nextId() }), 400, ALL_SETTINGS)
    await expectNothingLeft(() => create('fails', [{ id: nextId() }, { body: 'x', id: nextId() }]), 400)
    await expectNothingLeft(() => ({ method: 'PATCH', path: '/api/fails/1', body: { body: 'y' } }), 400)
    await expectNothingLeft(() => ({ method: 'DELETE', path: '/api/fails?id=gt.0' }), 400)
  })
  test.each<[string, Action]>([
    [
      'of more rows than allowed',
      {
        ...{ method: 'PATCH', path: '/api/before_row?id=in.(1,2,3)', body: { body: 'x' } },
        headers: { 'x-max-affected': '1' },
      },
    ],
    ['of an existing row', create('before_row', { id: 1 })],
    ['of a batch with an invalid last row', create('before_row', [{ id: 999, body: 'x' }, { id: 1 }])],
  ])('a write leaves nothing behind: %s', async (_, action) => {
    await expectNothingLeft(() => action, 400, [...ALL_SETTINGS, 'listens', 'makes'])
  })
  test.each(THINGS)('a trigger that %s leaves nothing behind', async way => {
    await expectNothingLeft(() => create('before_row', { id: nextId() }), 201, [way])
  })
})

/**
 * Settings that reads leave behind. If PostgreSQL reports a setting to its clients, the pool closes the
 * session.
 */
const LASTING: readonly Way[] = ['session', 'role', 'locks']

describe('reads', () => {
  const READS = [
    ...['/api/by_policy', '/api/by_policy/1', '/api/by_policy?id=2&sort=-id', '/api/parents/1/by_policy'],
    ...['/api/by_policy/aggregate?fn=count', '/api/by_policy/_explain', '/api/by_policy?stream=true', '/api/reading'],
  ]
  test.each(READS)('a read of %s leaves nothing behind for the transaction', async path => {
    await expectNothingLeft(() => ({ path }), 200, ['local', 'local role'])
  })
  test.each(READS.flatMap(path => LASTING.map(way => [path, way] as const)))(
    'leave nothing behind: %s, %s',
    async (path, way) => {
      await expectNothingLeft(() => ({ path }), 200, [way])
    },
  )
})

describe('the ways in which a read executes a function', () => {
  test.each([
    ['a view over a view', '/api/over_reading'],
    ['a view that calls set_config itself', '/api/setting'],
    ['a policy that reads a table with such a policy', '/api/by_other'],
    ['a column whose type has a cast to json', '/api/by_cast'],
    ['an operator of the column’s type', '/api/by_operator?mood=calm'],
    ['a forward relation', '/api/by_policy?expand=parents'],
    ['a reverse relation', '/api/parents?expand=nested:by_policy'],
    ['an inherited table', '/api/heirs'],
  ])('%s', async (_, path) => {
    await expectNothingLeft(() => ({ path }), 200, LASTING)
  })
  test('a failed read leaves no lock for the next request', async () => {
    expect((await act({ path: '/api/failing' }, 'locks')).status).toBe(400)
    expect((await seen()).json).toEqual(clean)
  })
  test('a stream whose client disconnects leaves nothing behind', async () => {
    for (const way of LASTING) {
      const controller = new AbortController()
      const response = await fetch(`${gateway.url}/api/long?stream=true`, {
        headers: { 'x-tenant-id': 't1', 'x-user-id': way },
        signal: controller.signal,
      })
      await response.body?.getReader().read()
      controller.abort()
      expect((await seen()).json, way).toEqual(clean)
    }
  })
  test.each(THINGS)('a deletion that cascades to a table whose trigger %s leaves nothing behind', async way => {
    const id = nextId()
    await execute(
      database.adminUrl,
      `set session_replication_role = replica; insert into referred values (${id}); ` +
        `insert into cascaded values (${id}, ${id})`,
    )
    await expectNothingLeft(() => ({ method: 'DELETE', path: `/api/referred/${id}` }), 204, [way])
  })
  test.each(THINGS)(
    'a write to a column whose domain check calls a function that %s leaves nothing behind',
    async way => {
      await expectNothingLeft(() => create('by_domain', { id: nextId(), word: 'w' }), 201, [way])
    },
  )
})

describe('queries', () => {
  const query = (text: string): Action => ({ method: 'POST', path: '/api/_query', body: { query: text } })
  const READS = [
    ...['get by_policy', 'get reading', 'export by_policy', 'count by_policy'],
    ...['get parents fields mess_immutable(body) as m', 'export parents fields mess_immutable(body) as m'],
  ]
  test.each(READS)('%s leaves nothing behind for the transaction', async text => {
    await expectNothingLeft(() => query(text), 200, ['local', 'local role'])
  })
  test.each(READS.flatMap(text => LASTING.map(way => [text, way] as const)))(
    'leave nothing behind: %s, %s',
    async (text, way) => {
      await expectNothingLeft(() => query(text), 200, [way])
    },
  )
  test.each(TABLES)('leave nothing behind: writes to %s', async table => {
    const set = `set ${table} values body = 'x' where id = 1`
    await expectNothingLeft(() => query(`add ${table} fields id values ${nextId()}`), 200)
    await expectNothingLeft(() => query(set), 200)
    await expectNothingLeft(() => query(`with w as (${set} returning id) get w`), 200)
  })
  test('leave nothing behind if they fail', async () => {
    await expectNothingLeft(() => query('del fails where all'), 400, ALL_SETTINGS)
    await expectNothingLeft(() => query('get reading where 1 / (id - 1) = 1'), 400, ALL_SETTINGS)
  })
  test.each(['mess', 'mess_and_fail', 'mess_stable', 'mess_rows'])('%s is not called', async name => {
    for (const text of [`get parents fields ${name}()`, `add parents values (${nextId()}, ${name}())`]) {
      const reply = await act(query(text), 'session')
      expect(reply.json.error).toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('not IMMUTABLE') })
    }
  })
})
