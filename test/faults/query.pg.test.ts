/**
 * Attacks on `POST /api/_query` by a caller with a valid token of one tenant: reading or changing data of
 * others, and denial of service.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { shopDatabase } from '../features/shop.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

const database = databaseFixture(
  shopDatabase,
  // The role can read the hidden tables; only the gateway protects them. Functions in its search path match
  // calls better than PostgreSQL's own.
  `create schema hidden;
   create table hidden.secrets (id int, word text);
   create type hidden.mood as enum ('glad');
   insert into hidden.secrets values (1, 'treasure');
   grant usage on schema hidden to app;
   grant select on hidden.secrets to app;
   create function public.md5(int) returns text language plpgsql volatile as $$
     begin perform set_config('app.current_tenant_id', 't2', true); return 'taken over'; end $$;
   create domain public.row_of_secret as hidden.secrets;
   create type public.envelope as (n int, inner_row hidden.secrets[]);
   create type public.pair as (a int, b text);
   create function public.about_secret(hidden.secrets, row_of_secret, envelope[], users, pair)
     returns int immutable language sql as 'select 1';
   create function public.lower(email) returns text language plpgsql volatile as $$
     begin perform set_config('app.current_tenant_id', 't2', true); return 'taken over'; end $$;
   grant execute on all functions in schema public to app;`,
)
// Without the cost guard, so that the other limits have to hold.
const gateway = gatewayFixture(database, {
  toml: 'statement_timeout_ms = 1500\nmax_connections = 2\nexplain_max_cost = 0\nexplain_max_rows = 0',
})

const FOREIGN = /treasure|Zoe|Zinc|secret|99999|taken over|"t2"/

async function ask(query: string, parameters: unknown = []): Promise<Reply> {
  const reply = await gateway.get('/api/_query', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, parameters }),
  })
  expect(reply.status).not.toBe(500)
  return reply
}

describe('data of others cannot be read', () => {
  test.each<[string, string]>([
    // Functions that run text as SQL; the first looks like a computation.
    [
      'FORBIDDEN',
      `get users fields ts_rewrite('a'::tsquery, 'select ''a''::tsquery, plainto_tsquery(word) from hidden.secrets')`,
    ],
    [
      'FORBIDDEN',
      "get orders where ts_rewrite('a'::tsquery, " +
        "'select ''a''::tsquery, set_config(''app.current_tenant_id'', ''t2'', true)::tsquery') is null",
    ],
    ['FORBIDDEN', `get users fields query_to_xml('select * from hidden.secrets', true, true, '')`],
    ['FORBIDDEN', `get users fields pg_catalog.\`ts_stat\`('select 1')`],
    // Session settings.
    ['FORBIDDEN', `get users fields set_config('app.current_tenant_id', 't2', true)`],
    ['FORBIDDEN', 'get users fields `pg_catalog`.`set_config`("app.current_tenant_id", "t2", true)'],
    ['FORBIDDEN', `get users fields SET_CONFIG('role', 'postgres', true)`],
    ['FORBIDDEN', `get users where current_setting('app.current_tenant_id') = 't1'`],
    ['FORBIDDEN', 'get users fields current_user()'],
    ['PARSE_ERROR', 'get users fields current_user'],
    // Tables that are not resources.
    ['NOT_FOUND', 'get hidden.secrets'],
    ['NOT_FOUND', 'get pg_catalog.pg_authid'],
    ['NOT_FOUND', 'get pg_stat_activity'],
    ['NOT_FOUND', 'get information_schema.tables'],
    ['NOT_FOUND', 'get plain_view'],
    ['NOT_FOUND', 'get users nest many secrets on true'],
    ['NOT_FOUND', 'with recursive pg_roles as (get users), x as (get pg_shadow) get x'],
    ['NOT_FOUND', 'with a as (get pg_class), pg_class as (get users) get a'],
    ['NOT_FOUND', 'get `hidden.secrets`'],
    ['NOT_FOUND', 'get `users; select 1`'],
    // Numbers and texts that are converted to names.
    ['FORBIDDEN', 'get users fields 1259::regclass::text'],
    ['FORBIDDEN', "get users fields 'hidden.secrets'::regclass::oid"],
    ['FORBIDDEN', 'get users fields 10::pg_catalog.regrole'],
    ['FORBIDDEN', "get users fields '{1259}'::pg_catalog.`_regclass`"],
    // Types that reveal the columns of hidden tables. A nonexistent type gets the same answer.
    ...[
      ...[
        'hidden.secrets',
        '`secrets`',
        'hidden.`_secrets`',
        'hidden.secrets[]',
        'public.users',
        '`users`',
        '`_users`',
      ],
      ...[
        'pg_catalog.pg_authid',
        '`pg_class`',
        'pg_catalog.`_pg_class`',
        'information_schema.columns',
        'hidden.nothing',
      ],
      ...[
        'information_schema.sql_identifier',
        'svc.change',
        'nowhere.nothing',
        '`nothing`',
        'public.nothing',
        'hidden.mood',
        'public.row_of_secret',
        'public.row_of_secret[]',
        'public.envelope',
        'public.envelope[]',
      ],
    ].map((type): [string, string] => ['FORBIDDEN', `get users fields ('(1)'::${type})::text as v`]),
    ['FORBIDDEN', "get users fields coalesce(nullif(pg_typeof(1), pg_typeof(1)), '83')"],
    // System columns of a row.
    ['PARSE_ERROR', 'get users fields users'],
    ['PARSE_ERROR', 'get users fields users.tableoid'],
    ['PARSE_ERROR', 'get users where xmin is not null'],
    ['PARSE_ERROR', 'get users fields count(*) as ctid having max(ctid) is not null'],
    ['PARSE_ERROR', 'get users fields id as users group by id having count(users) > 0'],
    ['PARSE_ERROR', 'get users u where exists (get orders u where name is null)'],
    // Statements inside other statements.
    ['FORBIDDEN', 'get users for update'],
    ['PARSE_ERROR', 'copy users'],
    ['PARSE_ERROR', 'get users; del users where all'],
    ['PARSE_ERROR', "get users where id = 1; select set_config('a', 'b', true)"],
  ])('%s: %s', async (code, query) => {
    const reply = await ask(query)
    expect(reply.json.error?.code).toBe(code)
    expect(reply.json.error.message).not.toMatch(/treasure/)
  })

  test.each([
    'get users where true or tenant_id = "t2"',
    'get users where name = "x" or 1 = 1 -- " ',
    'with pg_class as (get users) get pg_class',
    'with users as (get public.users) get users',
    'get users public join orders users on users.created_by = public.id',
    "get customers fields meta.`a'; select word from hidden.secrets --` as x",
    'get customers fields id as `x" from hidden.words --`',
    'get customers fields meta #> ["a", "0"] as x',
    'get customers fields count(*) over (order by id rows between unbounded preceding and unbounded following) as n',
    'get users full join customers on false',
    'get orders right join customers on true fields customers.name',
    'get order_items nest orders nest products',
    'get product_labels nest products nest labels',
    'get safe_view',
    'explain get users',
    "get users fields lower('A@b'::public.email::text) as l",
  ])("%s returns the caller's own rows", async query => {
    const reply = await ask(query)
    expect([query, reply.status]).toEqual([query, 200])
    expect(reply.text.replaceAll('"t2\\"', '')).not.toMatch(FOREIGN)
  })

  test('a hidden type and a nonexistent type are answered alike', async () => {
    const messageFor = async (type: string) =>
      (await ask(`get users fields 'x'::${type} as v`)).json.error.message.replaceAll(type.replaceAll('`', ''), 'TYPE')
    const [first, ...others] = await Promise.all(
      ['hidden.secrets', 'hidden.mood', 'hidden.nothing', 'nowhere.nothing', 'public.users', '`users`'].map(messageFor),
    )
    expect(first).toContain('cannot cast to TYPE')
    for (const other of others) expect(other).toBe(first)
  })

  test('values can be cast to types of columns, also by unqualified name', async () => {
    for (const type of ['public.status', '`status`', 'public.email', 'public.status[]', 'int4range', 'timestamptz']) {
      const value = type.endsWith('[]')
        ? '{paid}'
        : type.includes('email')
          ? 'a@b'
          : type === 'int4range'
            ? '[1,2)'
            : 'paid'
      const text = `get users fields '${type === 'timestamptz' ? '2026-01-01' : value}'::${type} as v where id = 1`
      expect([text, (await ask(text)).status]).toEqual([text, 200])
    }
    expect((await ask("get users fields '(1,x)'::public.pair as v where id = 1")).status).toBe(200)
  })

  test('a function of the search path never replaces one of PostgreSQL', async () => {
    expect((await ask('get users fields md5(1)')).json.error.message).toContain(
      'function pg_catalog.md5(integer) does not exist',
    )
    const reply = await ask("get customers fields lower('A@b'::public.email) as l limit 1")
    expect(reply.json.data).toEqual([{ l: 'a@b' }])
    expect((await ask('get users fields `md5`(id::text), public.md5(id)')).status).toBe(403)
  })

  test('text in a value is never executed as SQL', async () => {
    for (const value of [
      "'; drop table users; --",
      '"',
      '\\',
      '$1',
      ':a',
      "' or '1'='1",
      '{"a": "\'"}',
      '\u202e',
      '/*',
    ]) {
      const text = `get users fields :v as v, 'x${value.replaceAll("'", "''")}' as l where id = 1`
      const reply = await ask(text, { v: value })
      expect([reply.text, reply.json.data]).toEqual([reply.text, [{ v: value, l: `x${value}` }]])
    }
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const body = `{"query": "get users fields :${name} as v where id = 1", "parameters": {"${name}": "x"}}`
      const reply = await gateway.get('/api/_query', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      })
      expect(reply.json.data).toEqual([{ v: 'x' }])
      expect((await ask(`get users fields :${name} as v`)).json.error.code).toBe('PARSE_ERROR')
    }
  })

  // The scope of `returning` contains only the target, so `meta.name`, a column of the joined table, is
  // printed as a path into customers.meta.
  test('in returning, a joined table is referenced by its alias', async () => {
    const change =
      "set customers inner join users meta on meta.id = customers.id values zip = '1' where customers.id = 1"
    expect((await ask(`${change} returning meta.name`)).json.data).toEqual([{ name: 'Ann' }])
  })
})

describe('data of others cannot be changed', () => {
  const before = 'select (select count(*) from users)::int as users, (select count(*) from journal)::int as journal'
  let counts: unknown
  beforeEach(async () => {
    counts = await execute(database.adminUrl, before)
  })
  test.each<[string, string]>([
    ['FORBIDDEN', "add journal values 't2', 1, 'x'"],
    ['FORBIDDEN', "set journal values tenant_id = 't2' where all"],
    ['FORBIDDEN', "add users values 9, 't1', 'x', null conflict (id) update name = 'mine'"],
    ['NOT_FOUND', 'del hidden.secrets where all'],
    ['NOT_FOUND', 'with x as (del hidden.secrets where all returning id) get x'],
    ['FORBIDDEN', 'del journal where ts_rewrite("a"::tsquery, "select 1") is null'],
    ['FORBIDDEN', 'get users where id in (get journal fields at for update)'],
    ['PARSE_ERROR', 'get (with x as (del journal where all returning at) get x) d'],
    ['PARSE_ERROR', 'with x as (del journal where all returning at) export x'],
  ])('%s: %s', async (code, query) => {
    expect((await ask(query)).json.error?.code).toBe(code)
    expect(await execute(database.adminUrl, before)).toEqual(counts)
  })
  test('an explain of a write changes nothing', async () => {
    expect((await ask('explain del journal where all')).status).toBe(200)
    expect((await ask('explain with x as (del journal where all returning *) get x')).status).toBe(200)
    expect(await execute(database.adminUrl, before)).toEqual(counts)
  })
  test("a deletion of all rows deletes the tenant's rows only", async () => {
    await ask('del journal where all')
    expect(await execute(database.adminUrl, 'select tenant_id from journal')).toEqual([{ tenant_id: 't2' }])
  })
})

describe('no query blocks the service', () => {
  const repeated = (times: number, one: (index: number) => string, separator = ' ') =>
    Array.from({ length: times }, (_, index) => one(index)).join(separator)
  test.each<[string, string]>([
    [
      'series joined to each other',
      'get (get users fields generate_series(1, 1000000) as n) d ' +
        'cross join (get users fields generate_series(1, 1000000) as m) e fields count(*) as c',
    ],
    [
      'endless recursion',
      'with recursive a as (get users fields 1 as n union all get a fields n + 1) get a fields count(*) as c',
    ],
    [
      'a cartesian product',
      `get users a0 ${repeated(16, index => `cross join users a${index + 1}`)} fields count(*) as c`,
    ],
  ])('%s ends with the statement timeout', async (_, query) => {
    const reply = await ask(query)
    expect([reply.status, reply.json.error.code]).toEqual([408, 'TIMEOUT'])
  })
  test.each<[string, string]>([
    ['wide answers', "get users fields repeat('x', 30000000) as r"],
    [
      'stars over joins',
      `get users ${repeated(200, index => `join users a${index} on true`)} fields ${repeated(2000, () => '*', ', ')}`,
    ],
    // PostgreSQL plans such a query for minutes, and checks no timeout during that time.
    [
      'a chain of common tables',
      `with c0 as (get users), ${repeated(1_000, index => `c${index + 1} as (get c${index})`, ', ')} get c1000`,
    ],
    [
      'a thousand joins',
      `get users ${repeated(1_000, index => `join users a${index} on a${index}.id = users.id`)} fields users.id`,
    ],
    ['a text with too many bytes', `get users where name = '${'x'.repeat(65_536)}'`],
    ['a text with too many tokens', `get users where ${repeated(6_000, () => 'id = 1', ' or ')}`],
    ['nesting', `get users where ${'not '.repeat(200)}true`],
    ['nested queries', Array.from({ length: 129 }).reduce<string>(inner => `get (${inner}) d`, 'get users')],
    // Texts of one kilobyte that would print more SQL than fits into memory.
    [
      'aliases of aliases',
      Array.from({ length: 9 }).reduce<string>(
        inner => `get users fields (${inner}) as m having ${repeated(7, () => 'm > 1', ' or ')}`,
        'get users fields max(id) as m',
      ),
    ],
    [
      'groups of groups',
      Array.from({ length: 60 }).reduce<string>(
        inner => `get users fields (${inner}) + count(*) as m`,
        'get users fields max(id) as m',
      ),
    ],
    ['a huge number', `get users where id = 1${'0'.repeat(60_000)}`],
    ['a huge duration', `get orders where placed_at > now() - 9${'0'.repeat(1_000)}y`],
  ])('%s is rejected', async (_, query) => {
    const reply = await ask(query)
    expect([400, 408, 200]).toContain(reply.status)
    if (reply.status === 200) expect(reply.json.count).toBe(0)
  })
  test('the largest allowed texts are answered', async () => {
    expect((await ask(`get users fields id where ${repeated(4_000, () => 'id=1', ' or ')}`)).json.data).toEqual([
      { id: 1 },
    ])
    const steps = repeated(60, index => `c${index + 1} as (get c${index})`, ', ')
    expect((await ask(`with c0 as (get users fields id), ${steps} get c60`)).json.count).toBe(3)
    const parameters = Array.from({ length: 1_000 }, (_, index) => index)
    const list = repeated(1_000, index => `$${index + 1}`, ', ')
    expect((await ask(`get users where id in (${list})`, parameters)).json.count).toBe(3)
  })
  test('afterwards the next caller is served under their own session settings', async () => {
    const reply = await gateway.get('/api/users', { as: { tenantId: 't2' } })
    expect(reply.json.data).toEqual([{ id: 9, tenant_id: 't2', name: 'Zoe', boss_id: null }])
  })
})
