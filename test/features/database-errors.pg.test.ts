/**
 * docs/reference/errors.md: a database error keeps its message, with `details` {sqlstate, table, column,
 * constraint} and no data of rows that the caller cannot see. An error that the request did not cause is
 * `UNAVAILABLE` with `Retry-After`, and the gateway never repeats the request.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { ANONYMOUS } from '../../src/identity/authenticate.ts'
import { createPool } from '../../src/postgres/pool.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { createRunner } from '../../src/run/run.ts'
import { createSessionReset } from '../../src/run/session-reset.ts'
import { createSettings } from '../../src/run/settings.ts'
import { watchActivity } from '../support/activity.ts'
import { error, fakePostgres, READY } from '../support/fake-postgres.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, testGateway } from '../support/gateway.ts'
import { catalogOf } from '../support/model.ts'
import { execute, testDatabase } from '../support/postgres.ts'

/** The key of the advisory lock that suspends triggers. */
const GATE = 4712

const SCHEMA = `
create type mood as enum ('sad', 'glad');
create domain percent as int check (value between 0 and 100);
create extension if not exists btree_gist;
create table owners (id int primary key, tenant_id text not null, email text constraint one_email unique);
create table things (
  id int primary key, tenant_id text not null, owner_id int constraint its_owner references owners,
  price numeric(6, 2) constraint not_negative check (price >= 0), amount int, code varchar(3),
  name text not null default 'x', mood mood, share percent, day date, during int4range, big text,
  double int generated always as (amount * 2) stored, position int,
  constraint no_overlap exclude using gist (tenant_id with =, during with &&),
  constraint one_position unique (position) deferrable initially deferred
);
create index on things (big);
insert into owners values (1, 't1', 'ann@own.example'), (9, 't2', 'zoe@hidden.example');
insert into things (id, tenant_id, owner_id, during, position) values (1, 't1', 1, '[1,5)', 1), (9, 't2', 9,
  '[1,5)', 9);
insert into things (id, tenant_id, owner_id) values (8, 't2', 1);
create function add_owner(id int) returns void volatile language sql as $$ insert into owners values (id, 't1',
  null) $$;
create table seals (code text primary key, how text);
create view cheap with (security_invoker = true) as select id, tenant_id, price from things
  where price < 10 with check option;
create view joined with (security_invoker = true) as select t.id, o.email from things t join owners o
  on o.id = t.owner_id;

-- Fails with the given error.
create table raises (id int primary key, code text not null, note text);
create function raise_it() returns trigger language plpgsql as $$ begin
  raise exception 'the message' using errcode = new.code, hint = 'the hint', detail = 'the detail',
    column = 'the_column', constraint = 'the_constraint', table = 'the_table';
end $$;
create trigger raise_it before insert on raises for each row execute function raise_it();

-- Its triggers wait for the gate; an update of one row then needs the other. Tries are counted outside of transactions.
create table pairs (id int primary key, other int not null, n int not null default 0);
insert into pairs values (1, 2), (2, 1), (3, 3);
create sequence tries;
create function count_tries() returns trigger language plpgsql as $$ begin perform nextval('tries'); return null;
  end $$;
create function hold() returns trigger language plpgsql as $$ begin
  perform pg_advisory_xact_lock_shared(${GATE});
  if new.other <> new.id then update pairs set n = n + 10 where id = new.other; end if;
  return null;
end $$;
create trigger count_tries before update on pairs for each statement when (pg_trigger_depth() = 0)
  execute function count_tries();
create trigger hold after update on pairs for each row when (pg_trigger_depth() = 0) execute function hold();

create table deep (id int primary key);
create function dig() returns trigger language plpgsql as $$ begin insert into deep values (new.id + 1);
  return new; end $$;
create trigger dig before insert on deep for each row execute function dig();
create table recursive (id int primary key);
alter table recursive enable row level security;
create policy itself on recursive using (exists (select from recursive));
create view slow_rows with (security_invoker = true) as select n as id from generate_series(1, 1) n
  where pg_sleep(0.3) is not null;
create table naps (id int primary key);
create function nap() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
create trigger nap before insert on naps for each row execute function nap();
create table locked (id int primary key, n int);
insert into locked values (1, 0);
create table giants (id int primary key, body text not null default repeat('x', 100000));

do $$ declare name text; begin
  foreach name in array array['owners', 'things'] loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format(
      'create policy own on %I using (tenant_id = (select current_setting(''app.current_tenant_id'', true)))', name);
  end loop;
end $$;
grant select, insert, update, delete on all tables in schema public to app;
revoke insert on seals from app;
grant usage on sequence tries to app;
`

const database = databaseFixture(SCHEMA)

beforeAll(async () => {
  await execute(
    database.adminUrl,
    `alter role app in database ${database.database} set deadlock_timeout = '20ms';
     alter role app in database ${database.database} set default_transaction_isolation = 'serializable'`,
  )
})
const gateway = gatewayFixture(database, { toml: 'statement_timeout_ms = 15000' })
const activity = fixture(() => watchActivity(database.adminUrl))

function send(method: string, path: string, body?: unknown, options: AskOptions = {}, to = gateway): Promise<Reply> {
  return to.get(path, {
    ...options,
    method,
    headers: { 'content-type': 'application/json', ...options.headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

interface Details {
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
  readonly kind?: string
  readonly columns?: readonly string[]
}

/** The complete body of an error, so that nothing else can be in it. */
function envelope(
  reply: Reply,
  code: string,
  sqlstate: string,
  message: unknown,
  details: Details = {},
  hint?: string,
) {
  return {
    error: {
      code,
      message,
      status: reply.status,
      request_id: reply.headers.get('x-request-id'),
      details: { sqlstate, table: null, column: null, constraint: null, ...details },
      ...(hint === undefined ? {} : { hint }),
    },
  }
}

describe('the constraint is named, and no other row is revealed', () => {
  test.each<[string, string, string, unknown, string, string, Details]>([
    [
      ...([
        'unique, and the other row is one’s own',
        'POST',
        '/api/owners',
        { id: 2, tenant_id: 't1', email: 'ann@own.example' },
      ] as const),
      ...([
        '23505',
        'duplicate key value violates unique constraint "one_email"',
        { table: 'owners', constraint: 'one_email', kind: 'unique', columns: ['email'] },
      ] as const),
    ],
    [
      ...([
        'unique, and the other row is another tenant’s',
        'POST',
        '/api/owners',
        { id: 2, tenant_id: 't1', email: 'zoe@hidden.example' },
      ] as const),
      ...([
        '23505',
        'duplicate key value violates unique constraint "one_email"',
        { table: 'owners', constraint: 'one_email', kind: 'unique', columns: ['email'] },
      ] as const),
    ],
    [
      ...(['unique, in a change', 'PATCH', '/api/things/1', { id: 9 }] as const),
      ...([
        '23505',
        'duplicate key value violates unique constraint "things_pkey"',
        { table: 'things', constraint: 'things_pkey', kind: 'unique', columns: ['id'] },
      ] as const),
    ],
    [
      ...(['unique, found at the commit', 'POST', '/api/things', { id: 2, tenant_id: 't1', position: 9 }] as const),
      ...([
        '23505',
        'duplicate key value violates unique constraint "one_position"',
        { table: 'things', constraint: 'one_position', kind: 'unique', columns: ['position'] },
      ] as const),
    ],
    [
      ...(['a foreign key without its row', 'POST', '/api/things', { id: 2, tenant_id: 't1', owner_id: 77 }] as const),
      ...([
        '23503',
        'insert or update on table "things" violates foreign key constraint "its_owner"',
        { table: 'things', constraint: 'its_owner', kind: 'foreign_key', columns: ['owner_id'] },
      ] as const),
    ],
    [
      ...(['a row that others need', 'DELETE', '/api/owners/1', undefined] as const),
      ...([
        '23503',
        'update or delete on table "owners" violates foreign key constraint "its_owner" on table "things"',
        { table: 'things', constraint: 'its_owner', kind: 'foreign_key', columns: ['owner_id'] },
      ] as const),
    ],
    [
      ...(['check', 'POST', '/api/things', { id: 2, tenant_id: 't1', price: -1 }] as const),
      ...([
        '23514',
        'new row for relation "things" violates check constraint "not_negative"',
        { table: 'things', constraint: 'not_negative', kind: 'check', columns: ['price'] },
      ] as const),
    ],
    [
      ...(['not null', 'POST', '/api/things', { id: 2, tenant_id: 't1', name: null }] as const),
      ...([
        '23502',
        'null value in column "name" of relation "things" violates not-null constraint',
        { table: 'things', column: 'name', kind: 'not_null', columns: ['name'] },
      ] as const),
    ],
    [
      ...(['exclusion', 'POST', '/api/things', { id: 2, tenant_id: 't1', during: '[4,6)' }] as const),
      ...([
        '23P01',
        'conflicting key value violates exclusion constraint "no_overlap"',
        { table: 'things', constraint: 'no_overlap', kind: 'exclusion', columns: ['tenant_id', 'during'] },
      ] as const),
    ],
    [
      ...(['a domain’s check', 'POST', '/api/things', { id: 2, tenant_id: 't1', share: 101 }] as const),
      ...([
        '23514',
        'value for domain percent violates check constraint "percent_check"',
        { constraint: 'percent_check', kind: 'check', columns: [] },
      ] as const),
    ],
    [
      ...(['a view’s check option', 'POST', '/api/cheap', { id: 2, tenant_id: 't1', price: 11 }] as const),
      ...(['44000', 'new row violates check option for view "cheap"', {}] as const),
    ],
  ])('%s', async (_, method, path, body, sqlstate, message, details) => {
    const before = await execute(database.adminUrl, 'select count(*)::int as rows from things')
    const reply = await send(method, path, body)
    expect(reply.status).toBe(400)
    expect(reply.json).toEqual(envelope(reply, 'QUERY_ERROR', sqlstate, message, details))
    expect(reply.text).not.toContain('example')
    expect(reply.headers.get('retry-after')).toBeNull()
    expect(await execute(database.adminUrl, 'select count(*)::int as rows from things')).toEqual(before)
  })
})

test('a violation in a partition names the partitioned table and the names of its columns', async () => {
  await execute(
    database.adminUrl,
    `create table visits (place int not null, at int, id int, note text, primary key (id, place)) partition by
      list (place);
     alter table visits add constraint late check (at > 0), add unique (note, place);
     create table visits_north (id int not null, note text, at int check (at < 100), place int not null);
     create schema elsewhere;
     create table elsewhere.south partition of visits for values in (2, 3) partition by list (place);
     create table elsewhere.far_south partition of elsewhere.south for values in (3);
     create unique index early on elsewhere.far_south (at);
     alter table visits_north add constraint late check (at > 0);
     alter table visits attach partition visits_north for values in (1);
     insert into visits (place, at, id, note) values (1, 1, 1, 'hush'), (3, 3, 3, 'hush');
     grant select, insert on visits to app`,
  )
  await gateway.gateway.reload()
  const details = async (row: object) => {
    const reply = await send('POST', '/api/visits', row)
    expect(reply.text).not.toContain('hush')
    return [reply.status, reply.json.error?.details]
  }
  const visits = { column: null, table: 'visits' }
  const row = { place: 1, at: 5, id: 5 }
  expect(await details({ ...row, id: 1 })).toEqual([
    400,
    { ...visits, sqlstate: '23505', constraint: 'visits_north_pkey', kind: 'unique', columns: ['id', 'place'] },
  ])
  expect(await details({ ...row, at: 500 })).toMatchObject([400, { ...visits, kind: 'check', columns: ['at'] }])
  expect(await details({ ...row, at: -1 })).toMatchObject([400, { ...visits, constraint: 'late', columns: ['at'] }])
  expect(await details({ ...row, place: 3, at: 3 })).toMatchObject([
    400,
    { ...visits, constraint: 'early', columns: ['at'] },
  ])
  expect(await details({ ...row, place: 3, note: 'hush' })).toMatchObject([
    400,
    { ...visits, kind: 'unique', columns: ['note', 'place'] },
  ])
  expect(await details({ ...row, id: null })).toMatchObject([
    400,
    { table: 'visits', column: 'id', kind: 'not_null', columns: ['id'] },
  ])
  expect(await details({ ...row, place: 9 })).toMatchObject([400, { ...visits, kind: 'check', columns: [] }])
  // The gateway has not read this partition, nor the later index.
  await execute(
    database.adminUrl,
    `create table visits_west (id int not null, note text, at int constraint noon check (at < 12), place int not null);
     alter table visits_west add constraint late check (at > 0);
     alter table visits attach partition visits_west for values in (9);
     insert into visits (place, at, id, note) values (9, 1, 1, 'hush')`,
  )
  const west = { ...row, place: 9 }
  expect(await details({ ...west, id: 1 })).toEqual([
    400,
    { ...visits, sqlstate: '23505', constraint: 'visits_west_pkey', kind: 'unique', columns: ['id', 'place'] },
  ])
  expect(await details({ ...west, at: 20 })).toMatchObject([400, { ...visits, constraint: 'noon', columns: ['at'] }])
  expect(await details({ ...west, id: null })).toMatchObject([400, { ...visits, column: 'id', columns: ['id'] }])
  const batch = await send('POST', '/api/_query', { query: "add visits values (9, 1, 1, 'hush')" })
  expect(batch.status).toBe(400)
})

test('only readable columns of a violated constraint are named', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-violations-'))
  const path = join(folder, 'policy.json')
  const entry = { operations: ['read', 'create'], read_columns: { only: ['id', 'tenant_id'] } }
  await writeFile(path, JSON.stringify({ default_decision: 'deny', tables: { things: entry, owners: entry } }))
  const narrow = await testGateway(database.url, { toml: `[access]\nenabled = true\npath = ${JSON.stringify(path)}` })
  try {
    const details = async (table: string, row: object) => {
      const reply = await send('POST', `/api/${table}`, { id: 3, tenant_id: 't1', ...row }, {}, narrow)
      expect([reply.status, reply.json.error.code]).toEqual([400, 'QUERY_ERROR'])
      expect(reply.text).not.toMatch(/example|t2/)
      return reply.json.error.details
    }
    expect(await details('owners', { email: 'zoe@hidden.example' })).toMatchObject({ kind: 'unique', columns: [] })
    expect(await details('things', { during: '[4,6)' })).toMatchObject({ kind: 'exclusion', columns: ['tenant_id'] })
    expect(await details('things', { id: 1 })).toMatchObject({ kind: 'unique', columns: ['id'] })
  } finally {
    await narrow.close()
    await rm(folder, { recursive: true })
  }
})

test('a violation in a query text or in a function has the same details', async () => {
  const query = (text: string) => send('POST', '/api/_query', { query: text })
  const added = await query("add owners fields id, tenant_id, email values (4, 't1', 'ann@own.example')")
  expect(added.json.error.details).toMatchObject({ kind: 'unique', columns: ['email'], constraint: 'one_email' })
  const set = await query('set things values price = -1 where id = 1')
  expect(set.json.error.details).toMatchObject({ kind: 'check', columns: ['price'] })
  const called = await send('POST', '/api/rpc/add_owner', { id: 1 })
  expect(called.json.error.details).toMatchObject({ kind: 'unique', columns: ['id'], table: 'owners' })
})

describe('row-level security and privileges', () => {
  test.each([
    ['a row for another tenant', 'POST', '/api/things', { id: 2, tenant_id: 't2' }],
    ['a row given to another tenant', 'PATCH', '/api/things/1', { tenant_id: 't2' }],
  ])('%s is FORBIDDEN', async (_, method, path, body) => {
    const reply = await send(method, path, body)
    expect(reply.status).toBe(403)
    const message = 'new row violates row-level security policy for table "things"'
    expect(reply.json).toEqual(envelope(reply, 'FORBIDDEN', '42501', message))
  })
  test('an upsert of another tenant’s row is FORBIDDEN and changes nothing', async () => {
    const reply = await send(
      'POST',
      '/api/owners',
      { id: 9, tenant_id: 't1', email: 'x' },
      { headers: { 'x-upsert': 'true' } },
    )
    expect(reply.status).toBe(403)
    expect(reply.json.error.details.sqlstate).toBe('42501')
    expect(reply.text).not.toMatch(/zoe|t2/)
    const rows = await execute(database.adminUrl, 'select tenant_id, email from owners where id = 9')
    expect(rows).toEqual([{ tenant_id: 't2', email: 'zoe@hidden.example' }])
  })
  test('an upsert that ignores existing rows also ignores a hidden row, and does not reveal it', async () => {
    const ignore = (id: number) =>
      send('POST', '/api/owners', { id, tenant_id: 't1', email: 'x' }, { headers: { 'x-upsert': 'ignore' } })
    const [own, hidden] = [await ignore(1), await ignore(9)]
    expect([hidden.status, hidden.text]).toEqual([200, '{"data":null}'])
    expect(own.text).toBe(hidden.text)
  })
  test.each([
    ['PATCH', '/api/things/9', { name: 'y' }],
    ['DELETE', '/api/things/9', undefined],
  ])('%s %s: a hidden row is reported as missing', async (method, path, body) => {
    const [hidden, missing] = [await send(method, path, body), await send(method, path.replace('9', '7'), body)]
    expect([hidden.status, missing.status]).toEqual([404, 404])
    expect(hidden.json.error.message).toBe(missing.json.error.message.replace('7', '9'))
  })
  test('a table without write privilege is FORBIDDEN', async () => {
    const reply = await send('POST', '/api/seals', { code: 'x' })
    expect(reply.status).toBe(403)
    expect(reply.json).toEqual(envelope(reply, 'FORBIDDEN', '42501', 'permission denied for table seals'))
  })
})

describe('values that a type cannot hold', () => {
  test.each<[string, unknown, string, string]>([
    ['price', '1e400', '22003', 'numeric field overflow'],
    ['price', 10_000, '22003', 'numeric field overflow'],
    ['amount', 2_000_000_000, '22003', 'integer out of range'],
    ['code', 'four', '22001', 'value too long for type character varying(3)'],
    ['during', '[5,1)', '22000', 'range lower bound must be less than or equal to range upper bound'],
  ])('%s: %j is rejected with the database’s message', async (column, value, sqlstate, message) => {
    const reply = await send('POST', '/api/things', { id: 2, tenant_id: 't1', [column]: value })
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', message, details: { sqlstate } })
  })
  test.each<[string, unknown, string, string]>([
    ['amount', 2_147_483_648, '22003', 'value "2147483648" is out of range for type integer'],
    ['amount', 'x', '22P02', 'invalid input syntax for type integer: "x"'],
    ['amount', 1.5, '22P02', 'invalid input syntax for type integer: "1.5"'],
    ['amount', { a: 1 }, '22P02', 'invalid input syntax for type integer'],
    ['mood', 'furious', '22P02', 'invalid input value for enum mood: "furious"'],
    ['day', '2026-02-30', '22008', 'date/time field value out of range: "2026-02-30"'],
    ['day', 'soon', '22007', 'invalid input syntax for type date: "soon"'],
  ])(
    '%s: %j, which the database quotes, is rejected with its column as well',
    async (column, value, sqlstate, message) => {
      const reply = await send('POST', '/api/things', { id: 2, tenant_id: 't1', [column]: value })
      expect(reply.status).toBe(400)
      expect(reply.json.error).toMatchObject({
        code: 'PARSE_ERROR',
        message: expect.stringContaining(message),
        details: { sqlstate },
      })
      expect(reply.json.error.message).toMatch(new RegExp(`^column "${column}" is .* and cannot hold "`))
    },
  )
  test('a value too long for an index is rejected', async () => {
    // Compression would make it fit.
    const big = randomBytes(10_000).toString('hex')
    const reply = await send('POST', '/api/things', { id: 2, tenant_id: 't1', big })
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({
      code: 'QUERY_ERROR',
      message: expect.stringMatching(/^index row (?:requires|size)/),
      details: { sqlstate: '54000' },
    })
  })
  test('a generated column is rejected before the database is queried', async () => {
    expect((await send('PATCH', '/api/things/1', { double: 4 })).json.error).toMatchObject({
      code: 'PARSE_ERROR',
      status: 400,
    })
  })
  test('a read-only view is answered with 405, whatever the database would report', async () => {
    expect((await send('POST', '/api/joined', { id: 5 })).status).toBe(405)
  })
})

describe('an exception raised in the database', () => {
  const told = { table: 'the_table', column: 'the_column', constraint: 'the_constraint' }
  const raise = (code: string) => send('POST', '/api/raises', { id: 1, code })

  test.each([
    ['P0001', 400, 'QUERY_ERROR'],
    ['ABC12', 400, 'QUERY_ERROR'],
    ['22023', 400, 'QUERY_ERROR'],
    ['02000', 400, 'QUERY_ERROR'],
    ['42501', 403, 'FORBIDDEN'],
    ['28000', 403, 'FORBIDDEN'],
  ])('%s keeps its message: %i', async (code, status, as) => {
    const reply = await raise(code)
    expect(reply.status).toBe(status)
    expect(reply.json).toEqual(envelope(reply, as, code, 'the message', told, 'the hint'))
  })

  test.each(['53100', '53200', '53300', '57P01', '57P03', '58030', '08001', '25006'])(
    '%s is UNAVAILABLE',
    async code => {
      const reply = await raise(code)
      expect(reply.status).toBe(503)
      expect(reply.headers.get('retry-after')).toBe('1')
      expect(reply.json).toEqual(envelope(reply, 'UNAVAILABLE', code, expect.not.stringContaining('the message'), told))
    },
  )

  test.each(['40001', '40P01', '55P03', '55006'])('%s is a conflict: UNAVAILABLE with its message', async code => {
    const reply = await raise(code)
    expect(reply.status).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('1')
    const message = 'the message; nothing was changed, try again'
    expect(reply.json).toEqual(envelope(reply, 'UNAVAILABLE', code, message, told, 'the hint'))
  })

  test.each(['08007', '40003'])('%s reports an unknown outcome', async code => {
    const reply = await raise(code)
    expect(reply.status).toBe(503)
    expect(reply.json.error.hint).toMatch(/may or may not have been made/)
  })

  test.each(['XX000', 'XX001', 'P0004', '39P01'])('%s is INTERNAL, and its message is only logged', async code => {
    const reply = await raise(code)
    expect(reply.status).toBe(500)
    expect(reply.json.error).toEqual({
      ...{ code: 'INTERNAL', status: 500, request_id: reply.headers.get('x-request-id') },
      message: `the database reported an internal error (${code})`,
    })
  })

  test('57014 is TIMEOUT, whatever raised it', async () => {
    const reply = await raise('57014')
    expect([reply.status, reply.json.error.code]).toEqual([408, 'TIMEOUT'])
  })
})

describe('limits of the server', () => {
  test('a trigger that recurses endlessly makes the statement too complex: 400', async () => {
    const reply = await send('POST', '/api/deep', { id: 1 })
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({
      code: 'QUERY_ERROR',
      message: 'stack depth limit exceeded',
      details: { sqlstate: '54001' },
    })
    // PL/pgSQL lists every level in the context.
    expect(reply.text.length).toBeLessThan(1_000)
  })
  test('a policy that refers to itself is a defect of the database: 500 without its message', async () => {
    const reply = await send('PATCH', '/api/recursive/1', { id: 2 })
    expect(reply.json.error).toMatchObject({ code: 'INTERNAL', message: expect.stringContaining('42P17') })
    expect(reply.text).not.toContain('recursion')
  })
  test('a full disk is UNAVAILABLE, without details about the machine', async () => {
    let units = 0
    const server = await fakePostgres(async session => {
      if (!(await session.welcome())) return
      for (;;) {
        await session.until('sync')
        units++
        session.send(
          error('53100', 'could not extend file "base/16384/24601": No space left on device', {
            R: 'mdextend',
            H: 'Check free disk space.',
          }),
          READY,
        )
      }
    })
    const pool = createPool({ target: parseUrl(`${server.url}?sslmode=disable`) })
    try {
      const runner = createRunner({
        database: pool,
        settings: createSettings({ statementTimeoutMs: 1_000 }),
        reset: createSessionReset(() => catalogOf()),
        onStaleSchema: () => {},
        announcements: null,
      })
      const failure = await runner.write(ANONYMOUS, [], { ms: 0 }).result.catch(reason => reason)
      expect(failure).toMatchObject({
        code: 'UNAVAILABLE',
        status: 503,
        headers: { 'Retry-After': '1' },
        details: { sqlstate: '53100' },
      })
      expect(JSON.stringify([failure.message, failure.details, failure.hint])).not.toMatch(/base\/|disk/)
      expect(units).toBe(1)
    } finally {
      await pool.close({ deadlineMs: 0 })
      await server.close()
    }
  })
  test('a change whose result is too large to return is made, and not reported as a failure', async () => {
    const rows = Array.from({ length: 700 }, (_, id) => ({ id }))
    const reply = await send('POST', '/api/giants', rows)
    expect(reply.status).toBe(503)
    expect(reply.json.error).toMatchObject({
      code: 'UNAVAILABLE',
      hint: expect.stringMatching(/may or may not have been made.*return=minimal/),
    })
    expect(await activity.value('select count(*)::int from giants')).toBe(700)
    expect(
      (await send('PATCH', '/api/giants?id.gte=0', { body: 'y' }, { headers: { prefer: 'return=minimal' } })).status,
    ).toBe(204)
  })
})

describe('timeouts in the database', () => {
  test('a write beyond statement_timeout_ms is answered with 408 and rolled back', async () => {
    const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 100' })
    try {
      const reply = await send('POST', '/api/naps', { id: 1 }, {}, hasty)
      expect(reply.status).toBe(408)
      const message = 'the query took longer than statement_timeout_ms allows and was cancelled'
      expect(reply.json).toEqual(envelope(reply, 'TIMEOUT', '57014', message))
      expect(await activity.value('select count(*)::int from naps')).toBe(0)
    } finally {
      await hasty.close()
    }
  })
  test('the statements of one request share the timeout: a list and its total', async () => {
    const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 500' })
    try {
      expect((await send('GET', '/api/slow_rows', undefined, {}, hasty)).status).toBe(200)
      const reply = await send('GET', '/api/slow_rows', undefined, { headers: { prefer: 'count=exact' } }, hasty)
      expect([reply.status, reply.json.error?.code]).toEqual([408, 'TIMEOUT'])
    } finally {
      await hasty.close()
    }
  })
  test('a statement that an administrator cancels is answered with 408 as well', async () => {
    const asking = send('POST', '/api/naps', { id: 1 })
    await activity.started(/\bnaps\b/)
    await activity.value(
      `select pg_cancel_backend(pid) from pg_stat_activity where query ~ '\\mnaps\\M' and usename = 'app'
        and datname = current_database()`,
    )
    const reply = await asking
    expect([reply.status, reply.json.error.code, reply.json.error.details.sqlstate]).toEqual([408, 'TIMEOUT', '57014'])
  })
})

describe('conflicts with other transactions', () => {
  /** The gateway's statements that wait for a lock. */
  const WAITING = `select count(*)::int from pg_stat_activity where datname = current_database()
    and wait_event_type = 'Lock'`
  const waiting = (many: number) => activity.until(WAITING, count => count === many)

  /** Suspends the triggers of `pairs` until the callback has finished. */
  async function behindGate<T>(work: () => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: database.adminUrl })
    await client.connect()
    try {
      await client.query('select pg_advisory_lock($1)', [GATE])
      return await work()
    } finally {
      await client.end()
    }
  }
  const tries = () =>
    activity.value(`select case when is_called then last_value else 0 end::int from tries`) as Promise<number>

  test('in a deadlock, one of two requests is advised to try again, and the other succeeds', async () => {
    const before = await tries()
    const asked = await behindGate(async () => {
      const first = send('PATCH', '/api/pairs/1', { n: 1 })
      await waiting(1)
      const second = send('PATCH', '/api/pairs/2', { n: 1 })
      await waiting(2)
      return [first, second]
    })
    const replies = await Promise.all(asked)
    const [good, bad] = replies.toSorted((a, b) => a.status - b.status) as [Reply, Reply]
    expect([good.status, bad.status]).toEqual([200, 503])
    expect(bad.headers.get('retry-after')).toBe('1')
    const message = 'deadlock detected; nothing was changed, try again'
    expect(bad.json).toEqual(envelope(bad, 'UNAVAILABLE', '40P01', message, {}, 'See server log for query details.'))
    expect(bad.text).not.toMatch(/process|transaction \d/i)
    const rows = await execute(database.adminUrl, 'select sum(n)::int as sum from pairs where id < 3')
    expect(rows).toEqual([{ sum: 11 }])
    expect(await tries()).toBe(before + 2)
  })

  test('a serialization failure is answered with the advice to try again, and not repeated', async () => {
    const before = await tries()
    const [first, second] = await behindGate(async () => {
      const one = send('PATCH', '/api/pairs/3', { n: 1 })
      await waiting(1)
      const two = send('PATCH', '/api/pairs/3', { n: 2 })
      await waiting(2)
      return [one, two] as const
    })
    expect((await first).status).toBe(200)
    const reply = await second
    expect(reply.status).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('1')
    const message = 'could not serialize access due to concurrent update; nothing was changed, try again'
    expect(reply.json).toEqual(envelope(reply, 'UNAVAILABLE', '40001', message))
    expect(await tries()).toBe(before + 2)
    expect((await send('GET', '/api/pairs/3')).json.data.n).toBe(1)
  })

  test('a lock that is not available in time is UNAVAILABLE', async () => {
    const url = `${database.url}?options=-c%20lock_timeout%3D50ms`
    const impatient = await testGateway(url)
    const client = new pg.Client({ connectionString: database.adminUrl })
    await client.connect()
    try {
      await client.query('begin; select from locked for update')
      const reply = await send('PATCH', '/api/locked/1', { n: 1 }, {}, impatient)
      expect(reply.status).toBe(503)
      const message = 'canceling statement due to lock timeout; nothing was changed, try again'
      expect(reply.json).toEqual(envelope(reply, 'UNAVAILABLE', '55P03', message))
    } finally {
      await client.end()
      await impatient.close()
    }
  })
})

test('on a read-only server, such as a hot standby, reads succeed and writes are UNAVAILABLE', async () => {
  const standby = await testGateway(`${database.url}?options=-c%20default_transaction_read_only%3Don`)
  try {
    expect((await send('GET', '/api/owners', undefined, {}, standby)).status).toBe(200)
    const reply = await send('POST', '/api/owners', { id: 3, tenant_id: 't1' }, {}, standby)
    expect(reply.status).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('1')
    expect(reply.json).toEqual(
      envelope(reply, 'UNAVAILABLE', '25006', 'the database is read-only at the moment; try again later'),
    )
  } finally {
    await standby.close()
  }
})

test('a missing connection slot for the role is UNAVAILABLE, without the role’s name', async () => {
  // Limits on roles apply to the whole server, so this one is on the database.
  const crowded = await testDatabase()
  await execute(crowded.adminUrl, 'create table t (id int primary key); grant select, insert on t to app')
  const other = await testGateway(crowded.url, { toml: 'acquire_timeout_ms = 200' })
  try {
    await execute(
      crowded.adminUrl,
      `alter database ${crowded.database} connection limit 0;
       select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = 'app'`,
    )
    let reply = await send('POST', '/api/t', { id: 1 }, {}, other)
    // The first request can be sent to a backend that is about to end.
    if (reply.json.error.hint !== undefined) reply = await send('POST', '/api/t', { id: 1 }, {}, other)
    expect(reply.json.error).toMatchObject({ code: 'UNAVAILABLE', status: 503 })
    expect(reply.headers.get('retry-after')).toBe('1')
    expect(reply.text).not.toMatch(/app|database ".*"|53300/)
    await execute(
      crowded.adminUrl.replace(crowded.database, 'postgres'),
      `alter database ${crowded.database} connection limit -1`,
    )
    await expect.poll(async () => (await send('POST', '/api/t', { id: 2 }, {}, other)).status).toBe(201)
  } finally {
    await other.close()
    await crowded.drop()
  }
})
