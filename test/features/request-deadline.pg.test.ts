/**
 * `statement_timeout_ms` is one deadline for each request (docs/reference/limits.md). All its transactions,
 * the cost estimate and deferred triggers share it. Statements record or return the timeout under which they
 * run; the full value means that the transaction was the first of its request.
 */
import pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

/** Longer than any statement in this test. */
const TIMEOUT_MS = 60_000

const TABLES = `
create table seen (place text not null, left_ms int not null);
create function see(place text) returns void language sql volatile security definer as
  $$ insert into public.seen select place, extract(epoch from current_setting('statement_timeout')::interval) * 1000 $$;
create function left_ms() returns int language sql volatile as
  $$ select (extract(epoch from current_setting('statement_timeout')::interval) * 1000)::int $$;

create table notes (id int primary key, code text unique, body text not null default '-', author text);
create function note_seen() returns trigger language plpgsql as $$ begin perform see('before'); return new; end $$;
create trigger seen before insert on notes for each row execute function note_seen();

create table shy (id int primary key generated always as identity, body text);
alter table shy enable row level security, force row level security;
create policy reading on shy for select using (body like 'shown%');
create policy writing on shy for insert with check (true);
create function shy_seen() returns trigger language plpgsql as $$ begin
  perform see('before');
  if new.body like '% slow' then perform pg_sleep(1.2); end if;
  return new;
end $$;
create trigger seen before insert on shy for each row execute function shy_seen();

create table entries (id int primary key, kind text not null);
create function entry_seen() returns trigger language plpgsql as $$
begin
  perform see('deferred');
  if new.kind = 'commit' then
    set constraints all deferred;
    insert into entries values (new.id + 1, 'last');
  elsif new.kind = 'last' then
    perform nextval('commits');
    perform pg_advisory_xact_lock_shared(7);
  end if;
  return null;
end $$;
create constraint trigger seen after insert on entries deferrable initially deferred for each row
  execute function entry_seen();
create function add_entry(id int) returns int language sql volatile as $$ insert into entries values (id,
  'call') returning id $$;

create view lefts with (security_invoker = true) as select n as id, left_ms() as left_ms from generate_series(1, 2) n;
create sequence commits;
create table parents (id int primary key);
create table children (id int primary key, parent_id int not null references parents);
insert into parents values (1);
insert into children values (1, 1);
alter table children enable row level security, force row level security;
create policy late on children using (left_ms() < ${TIMEOUT_MS});
grant select, insert, update, delete on notes, shy, entries, parents, children, lefts, seen to app;
grant usage on sequence commits to app;
`

const database = databaseFixture(TABLES)
const gateway = gatewayFixture(database, () => ({ toml: `statement_timeout_ms = ${TIMEOUT_MS}` }))

beforeEach(() => execute(database.adminUrl, 'truncate seen, notes, shy, entries'))

const lefts = async (place: string): Promise<unknown[]> => {
  const rows = await execute(database.adminUrl, `select left_ms from seen where place = '${place}'`)
  return rows.map(row => row.left_ms)
}

/** Earlier transactions of the request have used some of the time. */
function expectLess(left: unknown): void {
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(TIMEOUT_MS)
}

function post(path: string, body: unknown, headers: Record<string, string> = {}, to = gateway): Promise<Reply> {
  const type = { 'Content-Type': 'application/json' }
  return to.get(path, { method: 'POST', headers: { ...type, ...headers }, body: JSON.stringify(body) })
}

async function withTimeout(milliseconds: number, use: (own: TestGateway) => Promise<void>): Promise<void> {
  const own = await testGateway(database.url, { toml: `statement_timeout_ms = ${milliseconds}` })
  try {
    await use(own)
  } finally {
    await own.close()
  }
}

test('a request with one transaction has the whole time', async () => {
  expect((await post('/api/notes', { id: 1 })).status).toBe(201)
  expect(await lefts('before')).toEqual([TIMEOUT_MS])
})

describe('a read has the time that its estimate leaves, even if that took little', () => {
  test.each(['/api/lefts?sort=id', '/api/lefts?sort=-id&stream=true'])('%s', async path => {
    const leftsOf = ({ text }: Reply) => [...text.matchAll(/"left_ms":\s?(\d+)/g)].map(([, left]) => Number(left))
    const first = leftsOf(await gateway.get(path))
    expect(first).toHaveLength(2)
    for (const left of first) expectLess(left)
    // The estimate is cached by now.
    expect(leftsOf(await gateway.get(path))).toEqual([TIMEOUT_MS, TIMEOUT_MS])
  })
})

test('a stream of children has the time that the query for the parent leaves', async () => {
  const read = (query: string) => gateway.get(`/api/parents/1/children${query}`)
  await read('?stream=true')
  // Once its estimate is cached, a list is the first transaction of its request.
  await expect.poll(async () => (await read('')).json.data).toEqual([])
  expect((await read('?stream=true')).text).toBe('{"id":1,"parent_id":1}\n')
})

describe('a write that reads first has less time', () => {
  test('for the keys of an upsert with several column sets', async () => {
    const rows = [
      { id: 1, body: 'a' },
      { id: 1, author: 'b' },
    ]
    expect((await post('/api/notes', rows, { 'X-Upsert': 'ignore' })).status).toBe(201)
    const [left, ...others] = await lefts('before')
    expect(others).toEqual([])
    expectLess(left)
  })
  test('for repeated keys of an upsert', async () => {
    const rows = [
      { id: 1, body: 'a' },
      { id: 2, author: 'b' },
    ]
    expect((await post('/api/notes', rows, { 'X-Upsert': 'true' })).status).toBe(201)
    const found = await lefts('before')
    expect(found).toHaveLength(2)
    for (const left of found) expectLess(left)
  })
})

describe('a row whose key is not readable is inserted again without a Location', () => {
  const MINIMAL = { Prefer: 'return=minimal' }
  test('in the time that the first attempt leaves', async () => {
    expect((await post('/api/shy', { body: 'hidden' }, MINIMAL)).status).toBe(201)
    const [left, ...others] = await lefts('before')
    expect(others).toEqual([])
    expectLess(left)
  })
  test('and not after the deadline', () =>
    withTimeout(2_000, async own => {
      const reply = await post('/api/shy', { body: 'hidden slow' }, MINIMAL, own)
      expect([reply.status, reply.json.error?.code]).toEqual([408, 'TIMEOUT'])
      expect(await execute(database.adminUrl, 'select id from shy')).toEqual([])
    }))
})

describe('deferred triggers', () => {
  test('of a write have the time that it leaves', async () => {
    expect((await post('/api/entries', { id: 1, kind: 'plain' })).status).toBe(201)
    const [left] = await lefts('deferred')
    expectLess(left)
  })
  test('of a function have the time that its call leaves', async () => {
    expect((await post('/api/rpc/add_entry', { id: 1 })).status).toBe(200)
    const [left] = await lefts('deferred')
    expectLess(left)
  })
  test('that PostgreSQL runs at COMMIT, where its timeout does not apply, are cancelled by the gateway', () =>
    withTimeout(2_000, async own => {
      const client = new pg.Client({ connectionString: database.adminUrl })
      await client.connect()
      try {
        await client.query('select pg_advisory_lock(7)')
        const reply = await post('/api/entries', { id: 1, kind: 'commit' }, {}, own)
        expect([reply.status, reply.json.error?.code]).toEqual([408, 'TIMEOUT'])
        expect((await client.query('select is_called from commits')).rows).toEqual([{ is_called: true }])
        expect((await client.query('select id from entries')).rows).toEqual([])
      } finally {
        await client.end()
      }
    }))
})
