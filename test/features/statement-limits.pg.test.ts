/**
 * Limits on what PostgreSQL has to plan and build for one statement (docs/reference/limits.md): joins,
 * relations, merged expressions, built values, patterns, products of long numbers, and series. Neither
 * planning nor building a value can be interrupted, so statements above a limit are rejected in advance.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { POSTGRES_MAJOR } from '../support/postgres-version.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(shopDatabase)

beforeAll(async () => {
  await execute(
    database.adminUrl,
    `create table sizes (id int primary key, tenant_id text not null, times int, word text, at timestamptz not
      null default '2026-01-01');
     insert into sizes values (1, 't1', 3, 'ab'), (2, 't1', 1000000000, 'ab'), (3, 't1', null, null);
     alter table sizes enable row level security, force row level security;
     create policy own on sizes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
     create view staffed with (security_invoker = true) as
       select o.id, u.name, c.name as customer from orders o join users u on u.id = o.created_by join customers c
         on c.id = o.customer_id;
     create view selves with (security_invoker = true) as
       select t0.id from staffed t0 ${times(39, index => `join users t${index + 1} on t${index + 1}.id = t0.id`)};
     create view twice with (security_invoker = true) as select a.id from selves a join selves b using (id);
     create view pairs with (security_invoker = true) as select a.id from staffed a join staffed b using (id);
     create view fours with (security_invoker = true) as select a.id from pairs a join pairs b using (id);
     create view eights with (security_invoker = true) as select a.id from fours a join fours b using (id);
     create table guarded (id int primary key);
     insert into guarded values (1);
     alter table guarded enable row level security, force row level security;
     create policy seen on guarded for select
       using (${times(20, index => `exists (select from sizes where times = ${index})`, ' or ')} or true);
     create policy made on guarded for insert
       with check (${times(70, index => `exists (select from sizes where times = ${index})`, ' or ')} or true);
     create table amounts (id int primary key, n numeric, price numeric(20, 4), quantity int, rate float8,
       pattern text, note text);
     insert into amounts values (1, 2.5, 10, 3, 0.5, '%b%', 'abc'), (2, null, null, null, null, repeat('a',
       2000), 'abc');
     create index on amounts (note text_pattern_ops);
     create function joined() returns setof int stable begin atomic
       select u0.id from users u0 ${times(9, index => `join users u${index + 1} on u${index + 1}.id = u0.id`)}; end;
     create function joined_twice() returns setof int stable begin atomic
       select a.id from joined() a (id) join joined() b (id) on a.id = b.id; end;
     create function changing() returns setof int volatile begin atomic
       select u0.id from users u0 ${times(9, index => `join users u${index + 1} on u${index + 1}.id = u0.id`)}; end;
     create function in_steps() returns setof int stable begin atomic
       select count(*)::int
         from users u0 ${times(9, index => `join users u${index + 1} on u${index + 1}.id = u0.id`)};
       select id from users; end;
     create function written() returns setof int stable language sql as
       'select u0.id from users u0 ${times(9, index => `join users u${index + 1} on u${index + 1}.id = u0.id`)}';
     create function written_twice() returns setof int stable language sql as
       'select a.a from public.written() a join (select * from Written() w) b on a.a = b.w';
     create function written_commas() returns setof int immutable language sql as
       'with w as (select 1) select u0.id
        from users u0 ${times(9, index => `, only "public"."users" u${index + 1}`)}';
     create function written_closely() returns setof int stable language sql as $$
       select/* ' */u0.id /* users */ from--
       users u0 ${times(9, index => `join/**/users u${index + 1} on u${index + 1}.id = u0.id`)}
       where u0.name <> '--' $$;
     create table "odd table-ä" (id int);
     create function written_oddly() returns setof int stable language sql as
       'select u0.id from "users" u0
        ${times(3, index => `join U&"\\0070ublic".U&"us!0065rs" UESCAPE ''!'' u${index + 1} using (id)`)}
        ${times(3, index => `, U&"\\0075s\\+000065rs" v${index}`)}
        ${times(3, index => `, "odd table-ä" w${index}`)}, u&"odd table-\\00e4" x';
     create function agreed(boolean) returns boolean immutable language sql as 'select $1 and ($1 or $1)';
     create function three(t text) returns text immutable return coalesce(t, t, t);
     create function nine(text) returns text immutable language sql as 'select public.three(Three($1))';
     create function joined_text(a text, b text) returns text immutable language sql as 'select a || b';
     create function kept(t text) returns text immutable language plpgsql as 'begin return t || t || t; end';
     create view over_written with (security_invoker = true) as select a.a as id from written() a;
     create function written_strictly(n int = 1) returns setof int stable strict language sql as
       'select u0.id from users u0 ${times(9, index => `join users u${index + 1} on u${index + 1}.id = u0.id`)}';
     create view over_function with (security_invoker = true) as select a.id from joined() a (id)
       join joined_twice() b (id) on a.id = b.id;
     create table asks (id int primary key);
     insert into asks values (1);
     alter table asks enable row level security, force row level security;
     create policy seen on asks for select using (exists (select from joined()) or true);
     create table texts (id int primary key, ${times(300, index => `t${index} text`, ', ')});
     insert into texts (id, t7, t299) values (1, 'red', 'blue'), (2, 'red', 'green');
     grant select on over_function, texts, over_written, asks, "odd table-ä" to app;
     grant select on sizes, amounts, staffed, selves, twice, pairs, fours, eights, guarded to app;
     grant insert on guarded to app`,
  )
})
const gateway = gatewayFixture(database, { toml: 'explain_max_cost = 0\nexplain_max_rows = 0' })

function ask(query: string, parameters: unknown = []): Promise<Reply> {
  return gateway.get('/api/_query', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, parameters }),
  })
}

async function expectRefused(query: string, limit: string, parameters: unknown = []): Promise<void> {
  const reply = await ask(query, parameters)
  expect([query, reply.status, reply.json.error?.code]).toEqual([query, 400, 'PARSE_ERROR'])
  expect(reply.json.error.message).toContain(limit)
}

async function expectRows(query: string, rows: unknown, parameters: unknown = []): Promise<void> {
  const reply = await ask(query, parameters)
  expect([query, reply.text, reply.json.data]).toEqual([query, reply.text, rows])
}

const times = (count: number, one: (index: number) => string, separator = ' ') =>
  Array.from({ length: count }, (_, index) => one(index)).join(separator)
const joins = (count: number) => times(count, index => `inner join users a${index} on a${index}.id = users.id`)

describe('the joins of one query level', () => {
  test('are accepted up to 16, and 17 are rejected with the position', async () => {
    expect((await ask(`get users ${joins(16)} fields users.id`)).json.count).toBe(3)
    const reply = await ask(`get users ${joins(17)} fields users.id`)
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toContain('joins 17 tables at one level, more than the 16 of max_joins')
    expect(reply.json.error.details).toMatchObject({ line: 1 })
  })
  test('include those of writes and of subqueries', async () => {
    await expectRefused(`set users ${joins(17)} values name = 'x' where users.id = 1`, 'max_joins')
    await expectRefused(`get orders where exists (get users ${joins(17)} fields users.id)`, 'max_joins')
  })
})

describe('the relations of one statement', () => {
  const deriveds = (count: number, each: number) =>
    times(count, index => `inner join (get users ${joins(each)} fields users.id) d${index} on d${index}.id = users.id`)
  test('are counted through subqueries: 225 with fewer than 16 joins per level are rejected', async () => {
    await expectRefused(`get users ${deriveds(14, 15)} fields users.id`, 'max_relations')
    expect((await ask(`get users ${deriveds(5, 10)} fields users.id`)).json.count).toBe(3)
  })
  test('include common tables, each time they are read', async () => {
    const chain = (count: number) => {
      const steps = times(count, index => `c${index + 1} as (get c${index})`, ', ')
      return `with c0 as (get users fields id), ${steps} get c${count}`
    }
    expect((await ask(chain(60))).json.count).toBe(3)
    await expectRefused(chain(64), 'max_relations')
  })
  test('include expansions and the tables in their policies', async () => {
    const tight = await testGateway(database.url, { toml: 'max_relations = 3' })
    try {
      const expanded = await tight.get('/api/products?expand=nested:labels')
      expect([expanded.status, expanded.json.error?.code]).toEqual([400, 'PARSE_ERROR'])
      expect(expanded.json.error.message).toContain('max_relations')
      // products, labels, and product_labels, whose policy reads products.
      expect((await tight.get('/api/order_items?expand=orders,products')).status).toBe(200)
      expect((await tight.get('/api/product_labels?expand=products')).status).toBe(200)
    } finally {
      await tight.close()
    }
  })
  test('include those of a view', async () => {
    const tight = await testGateway(database.url, { toml: 'max_relations = 3' })
    try {
      const reply = await tight.get('/api/staffed')
      expect([reply.status, reply.json.error?.code]).toEqual([400, 'PARSE_ERROR'])
    } finally {
      await tight.close()
    }
    expect((await gateway.get('/api/staffed')).json.count).toBe(5)
  })
  const limited = [1, 2, 4, 8, 16, 32, 64].map(most => ({
    most,
    own: gatewayFixture(database, { toml: `explain_max_cost = 0\nexplain_max_rows = 0\nmax_relations = ${most}` }),
  }))
  /** The lowest limit under which the path is answered. */
  const countOf = async (path: string): Promise<number | undefined> => {
    for (const { most, own } of limited) if ((await own.get(path)).status === 200) return most
  }
  test('include a table that a view joins 40 times, 40 times', async () => {
    // The view, what it joins, and the four of the view among these: 44, and 89 for a view of two of them.
    expect((await gateway.get('/api/selves?limit=1')).status).toBe(200)
    const reply = await gateway.get('/api/twice?limit=1')
    expect([reply.status, reply.json.error?.code]).toEqual([400, 'PARSE_ERROR'])
    expect(reply.json.error.message).toContain('more than 64 relations (max_relations)')
    await expectRefused(`get selves inner join selves b on b.id = selves.id fields selves.id`, 'max_relations')
  })
  test('include everything behind each mention in views of views', async () => {
    // 4, 9, 19 and 39 relations.
    expect(await countOf('/api/staffed')).toBe(4)
    expect(await countOf('/api/pairs')).toBe(16)
    expect(await countOf('/api/fours')).toBe(32)
    expect(await countOf('/api/eights')).toBe(64)
  })
  test('include each relation in a policy; those of write policies only for writes', async () => {
    expect(await countOf('/api/guarded')).toBe(32)
    const reply = await gateway.get('/api/guarded', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"id": 2}',
    })
    expect([reply.status, reply.json.error?.code]).toEqual([400, 'PARSE_ERROR'])
    expect(reply.json.error.message).toContain('max_relations')
  })
  test('include those in a function that PostgreSQL inlines, in calls, views and policies', async () => {
    // 11, 23, 35, 12, 11, 24, 12, 11, 12 and 12: a function counts in addition to the relations of its body,
    // which can be a string. The last three are not inlined.
    const paths = [
      ...['/api/rpc/joined', '/api/rpc/joined_twice', '/api/over_function', '/api/asks', '/api/rpc/written'],
      ...['/api/rpc/written_twice', '/api/rpc/written_commas', '/api/rpc/written_closely', '/api/over_written'],
      ...['/api/rpc/written_oddly', '/api/rpc/in_steps', '/api/rpc/written_strictly', '/api/rpc/changing'],
    ]
    const headers = { 'Content-Type': 'application/json' }
    const statuses = async (maxRelations: number) => {
      const own = await testGateway(database.url, { toml: `max_relations = ${maxRelations}` })
      try {
        return await Promise.all(
          paths.map(async path =>
            path.includes('/rpc/')
              ? (await own.get(path, { method: 'POST', headers, body: '{}' })).status
              : (await own.get(path)).status,
          ),
        )
      } finally {
        await own.close()
      }
    }
    expect(await statuses(36)).toEqual([200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200])
    expect(await statuses(25)).toEqual([200, 200, 400, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200])
    expect(await statuses(14)).toEqual([200, 400, 400, 200, 200, 400, 200, 200, 200, 200, 200, 200, 200])
    expect(await statuses(9)).toEqual([400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 200, 200, 200])
  })
  test('include subqueries in a computed column at each mention', async () => {
    const inner = 'get users fields id, (get orders fields count(*) as n) as n'
    const sum = (count: number) => `get (${inner}) d fields ${times(count, () => 'n', ' + ')} as total`
    expect((await ask(sum(50))).status).toBe(200)
    await expectRefused(sum(70), 'max_relations')
  })
  test('are counted in a metric by the key of the limit', async () => {
    await expectRefused(`get users ${joins(17)} fields users.id`, 'max_joins')
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_joins"\} [1-9]/m)
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_series_rows"\} \d+$/m)
  })
  test('are unlimited if the limit is 0', async () => {
    const open = await testGateway(database.url, { toml: 'max_joins = 0\nmax_relations = 0' })
    try {
      const reply = await open.get('/api/_query', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query: `get users ${joins(20)} fields users.id` }),
      })
      expect(reply.json.count).toBe(3)
    } finally {
      await open.close()
    }
  })
})

describe('calls of SQL functions in expressions', () => {
  const nested = (name: string, depth: number, argument: string) =>
    `${`${name}(`.repeat(depth)}${argument}${')'.repeat(depth)}`
  test('count as the body: three mentions are accepted at six levels, and rejected at twelve', async () => {
    await expectRows(`get sizes fields ${nested('agreed', 6, 'id = 1')} as v where id = 1`, [{ v: true }])
    await expectRefused(`get sizes fields ${nested('agreed', 12, 'id = 1')} as v`, 'max_expressions')
    await expectRefused(`get sizes where ${nested('agreed', 12, 'id = 1')}`, 'max_expressions')
    await expectRefused(`get sizes fields ${nested('three', 12, 'word')} as v`, 'max_expressions')
    await expectRefused(`get sizes fields ${nested('nine', 6, 'word')} as v`, 'max_expressions')
  })
  test('count through subqueries, and with their parameters', async () => {
    const levels = (depth: number): string =>
      depth === 0 ? 'get sizes' : `get (${levels(depth - 1)}) s${depth} fields id, three(three(word)) as word`
    await expectRows(`get (${levels(2)}) d fields word where id = 1`, [{ word: 'ab' }])
    await expectRefused(levels(6), 'max_expressions')
    await expectRefused(`get sizes fields ${nested('nine', 3, '$1')} as v`, 'max_built_value_bytes', [
      'x'.repeat(500_000),
    ])
  })
  test('count as one if PostgreSQL keeps the call', async () => {
    await expectRows(`get sizes fields length(${nested('kept', 3, 'word')}) as v where id = 1`, [{ v: 54 }])
    await expectRows(
      `get sizes fields ${nested('joined_text', 12, "'x'").replaceAll(')', ", 'y')")} as v where id = 1`,
      [{ v: `x${'y'.repeat(12)}` }],
    )
  })
})

describe('expressions merged from subqueries', () => {
  const doubled = (levels: number, one: string, twice: (name: string) => string) => {
    let query = `get users fields ${one} as a`
    for (let level = 0; level < levels; level++) query = `get (${query}) d fields ${twice('a')} as a`
    return query
  }
  test('are accepted up to a limit, and rejected above it', async () => {
    expect((await ask(doubled(8, 'id', name => `${name} + ${name}`))).json.data[0]).toEqual({ a: 256 })
    await expectRefused(
      doubled(20, 'id', name => `${name} + ${name}`),
      'expressions',
    )
    await expectRefused(
      doubled(20, '1', name => `${name} + ${name}`),
      'expressions',
    )
    await expectRefused(
      doubled(20, 'name', name => `concat(${name}, ${name})`),
      'max_copied_values',
    )
    const source = (level: number) => (level === 0 ? 'users fields id' : `c${level - 1} fields a + a`)
    await expectRefused(
      `with ${times(20, level => `c${level} as (get ${source(level)} as a)`, ', ')} get c19`,
      'expressions',
    )
  })
  test('include the other parts of a compound query', async () => {
    let query = 'get users fields id as a'
    for (let level = 0; level < 20; level++) {
      query = `get (get users fields 1 as a union all get (${query}) d fields a + a as a) e`
    }
    await expectRefused(query, 'expressions')
  })
})

describe('a value built by a function', () => {
  test.each<[string, unknown[]?]>([
    ["get sizes fields repeat('x', 1000000000) as v"],
    ["get sizes fields length(repeat('x', 2000000)) as v"],
    ['get sizes fields repeat(word, 1000000000) as v'],
    ['get sizes fields repeat(word, $1) as v', [1_000_000_000]],
    ["get sizes fields repeat('x', $1) as v", [1_000_000_000]],
    ['get sizes fields repeat($1, $2) as v', ['x', 1_000_000_000]],
    ["get sizes fields repeat('x', times) as v"],
    ['get sizes fields repeat(word, times) as v'],
    ["get sizes where length(repeat('x', times)) > 3"],
    ["get sizes fields id order by repeat('x', times)"],
    ["get sizes fields repeat(repeat('x', 1000000), 1000) as v"],
    ['get sizes fields repeat(repeat(word, 1000), 1000) as v'],
    ["get sizes fields lpad('x', 1000000000) as v"],
    ["get sizes fields rpad(word, times, 'ab') as v"],
    ["get sizes fields lpad('x', $1) as v", [1_000_000_000]],
    ["get sizes fields format('%1000000000s', word) as v"],
    ["get sizes fields format('%*s', times, word) as v"],
    ['get sizes fields format($1, word) as v', ['%1000000000s']],
    ['get sizes fields format($1, word) as v', ['%*s']],
    ['get sizes fields format($1, repeat(word, 1000)) as v', ['%1$s'.repeat(100_000)]],
    ["get sizes fields format(repeat('%1$s', 100000), repeat(word, 1000)) as v"],
    ['get sizes fields array_fill(1, [100000000]) as v'],
    ['get sizes fields array_fill(1, [10000, 10000]) as v'],
    ['get sizes fields array_fill(1, [$1]) as v', [100_000_000]],
    ['get sizes fields array_fill(1, [times]) as v'],
    ['get sizes fields array_fill(word, [times]) as v'],
    ['get sizes fields array_fill(1, $1) as v', [[100_000_000]]],
    ["get sizes fields 'x'::char(10000000) as v"],
    ["get sizes fields '1'::bit(80000000) as v"],
    ["get sizes fields replace(repeat('x', 1000000), 'x', repeat('y', 1000000)) as v"],
    ["get sizes fields regexp_replace(repeat('x', 1000000), 'x', repeat('y', 1000000), 'g') as v"],
    ["get sizes fields array_to_string(array_fill(1, [100000]), repeat('y', 100000)) as v"],
    [`get sizes fields concat(${Array(70).fill("repeat('x', 1000000)").join(', ')}) as v`],
    [`get (get sizes fields repeat('x', 1000000) as a) d fields concat(${Array(70).fill('a').join(', ')}) as v`],
    [`get sizes fields concat(${Array(200).fill('$1').join(', ')}) as v`, ['x'.repeat(500_000)]],
    ["get customers fields ts_headline('english'::regconfig, name, to_tsquery('acme'), $1) as v", ['StartSel=x']],
    [
      "with recursive a as (get users fields 'x' as v where id = 1 " +
        'union all get a fields v || v) get a fields length(v) as n',
    ],
  ])('is rejected: %s', async (query, parameters = []) => {
    await expectRefused(query, 'max_built_value_bytes', parameters)
  })
  test.each<[string, unknown, unknown[]?]>([
    ["get sizes fields repeat('x', 3) as v where id = 1", [{ v: 'xxx' }]],
    ['get sizes fields repeat(word, times) as v where id = 1', [{ v: 'ababab' }]],
    ['get sizes fields repeat(word, $1) as v where id = 1', [{ v: 'abab' }], [2]],
    ['get sizes fields repeat($1, $2) as v where id = 1', [{ v: 'zz' }], ['z', 2]],
    ['get sizes fields repeat(repeat(word, 2), times) as v where id = 1', [{ v: 'abababababab' }]],
    ['get sizes fields repeat(word, times) as v where id = 3', [{ v: null }]],
    ["get sizes fields repeat('x', -1) as v where id = 1", [{ v: '' }]],
    ["get sizes fields lpad(word, times, '-') as v where id = 1", [{ v: '-ab' }]],
    ["get sizes fields rpad(word, 4, '-') as v where id = 1", [{ v: 'ab--' }]],
    ["get sizes fields format('%-4s|%s', word, times) as v where id = 1", [{ v: 'ab  |3' }]],
    ['get sizes fields format($1, word) as v where id = 1', [{ v: '<ab 12345>' }], ['<%s 12345>']],
    ['get sizes fields format(word, times) as v where id = 1', [{ v: 'ab' }]],
    ['get sizes fields array_fill(7, [times]) as v where id = 1', [{ v: [7, 7, 7] }]],
    ['get sizes fields array_fill(word, [1, $1]) as v where id = 1', [{ v: [['ab', 'ab']] }], [2]],
    ["get sizes fields replace(word, 'a', 'xyz') as v where id = 1", [{ v: 'xyzb' }]],
    ["get sizes fields replace(word, 'a', $1) as v where id = 1", [{ v: '-b' }], ['-']],
    ["get sizes fields regexp_replace(word, '[a-z]', 'Xx', 'g') as v where id = 1", [{ v: 'XxXx' }]],
    ["get customers fields array_to_string(tags, ', ') as v where id = 1", [{ v: 'big, old' }]],
    ['get customers fields array_to_string(tags, $1) as v where id = 1', [{ v: 'big+old' }], ['+']],
    [
      "get customers fields ts_headline('english'::regconfig, name, to_tsquery('acme'), " +
        "'StartSel=[, StopSel=]') as v where id = 1",
      [{ v: '[Acme]' }],
    ],
    ["get sizes fields 'x'::char(3) as v where id = 1", [{ v: 'x  ' }]],
    [
      'with recursive a as (get users fields id, name::text as path where boss_id is null ' +
        "union all get users u inner join a on u.boss_id = a.id fields u.id, a.path || '/' || u.name) " +
        'get a fields path order by path',
      [{ path: 'Ann' }, { path: 'Ann/Bob' }, { path: 'Ann/Cyd' }],
    ],
    [
      'with recursive a as (get users fields 1 as n where id = 1 ' +
        'union all get a fields n + 1 where n < 4) get a fields sum(n) as n',
      [{ n: 10 }],
    ],
  ])('is accepted: %s', async (query, rows, parameters = []) => {
    await expectRows(query, rows, parameters)
  })
})

describe('a function that compares each character with each other', () => {
  const LONG = "repeat('x', 1000000)"
  test.each<[string, unknown[]?]>([
    [`get sizes fields strpos(${LONG}, 'y' || repeat('x', 300000)) as v`],
    [`get sizes fields position(${LONG}, $1) as v`, [`y${'x'.repeat(300_000)}`]],
    [`get sizes fields split_part(${LONG}, 'y' || repeat('x', 300000), 1) as v`],
    [`get sizes fields cardinality(string_to_array(${LONG}, $1)) as v`, [`y${'x'.repeat(300_000)}`]],
    [`get sizes fields replace(${LONG}, 'y' || repeat('x', 300000), '') as v`],
    [`get sizes fields translate(${LONG}, repeat('y', 200000), 'z') as v`],
    [`get sizes fields ltrim(${LONG}, repeat('y', 200000) || 'x') as v`],
    [`get sizes fields rtrim(${LONG}, repeat(word, 200000)) as v where id = 1`],
    [`get sizes fields trim(${LONG}, repeat('y', times * 30000) || 'x') as v where id = 1`],
  ])('is rejected: %s', async (query, parameters = []) => {
    await expectRefused(query, 'max_built_value_bytes', parameters)
  })
  test.each<[string, unknown, unknown[]?]>([
    ["get sizes fields strpos(word, 'b') as v where id = 1", [{ v: 2 }]],
    ['get sizes fields strpos(word, $1) as v where id = 1', [{ v: 2 }], ['b']],
    ["get sizes fields position(word, 'b') as v where id = 1", [{ v: 2 }]],
    ['get sizes fields position(word, $1) as v where id = 1', [{ v: 1 }], ['a']],
    ['get sizes fields split_part(word, $1, 2) as v where id = 1', [{ v: 'b' }], ['a']],
    ['get sizes fields string_to_array(word, $1) as v where id = 1', [{ v: ['', 'b'] }], ['a']],
    ["get sizes fields replace(word, $1, '') as v where id = 1", [{ v: 'b' }], ['a']],
    ['get sizes fields translate(word, $1, $2) as v where id = 1', [{ v: 'xb' }], ['a', 'x']],
    ['get sizes fields trim(word, $1) as v where id = 1', [{ v: 'b' }], ['a']],
    ['get sizes fields ltrim(word, word) as v where id = 1', [{ v: '' }]],
    ['get sizes fields rtrim(word, null) as v where id = 1', [{ v: null }]],
    ['get sizes fields trim(word) as v where id = 1', [{ v: 'ab' }]],
    ['get sizes fields exp($1) > 2.7 as v where id = 1', [{ v: true }], [1]],
    ['get sizes fields round(exp(times::numeric), 2) as v where id = 1', [{ v: 20.09 }]],
    ['get sizes fields exp(0) as v where id = 1', [{ v: 1 }]],
  ])('is accepted: %s', async (query, rows, parameters = []) => {
    await expectRows(query, rows, parameters)
  })
})

test('is limited if a column determines the width', async () => {
  const query = "get sizes fields format('%' || times || 's', word) as v where id ="
  await expectRows(`${query} 1`, [{ v: ' ab' }])
  await expectRefused(`${query} 2`, 'max_built_value_bytes')
})

test('such as a factorial ends with the timeout', async () => {
  const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 500\nexplain_max_cost = 0' })
  try {
    const reply = await hasty.get('/api/_query', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: 'get sizes fields factorial(32000) as v where id = 1' }),
    })
    // It was PostgreSQL's own timeout: the gateway did not have to close the connection.
    expect([reply.status, reply.json.error?.details?.sqlstate]).toEqual([408, '57014'])
  } finally {
    await hasty.close()
  }
})

describe('a power of numbers', () => {
  test.each<[string, unknown[]?]>([
    ['get sizes fields power(9.99, 130000) as v'],
    ['get sizes fields power(9.99, times) as v'],
    ['get sizes fields power(9.99, $1) as v', [130_000]],
    ['get sizes fields power(power(times::numeric, 90), 90) as v'],
    ['get sizes fields exp(5999.999) as v'],
    ['get sizes fields exp($1) as v', [5_000]],
    ['get sizes fields exp(times::numeric) as v'],
  ])('is rejected above 1 000 digits: %s', async (query, parameters = []) => {
    const reply = await ask(query, parameters)
    expect([query, reply.status]).toEqual([query, 400])
  })
  test.each<[string, unknown, unknown[]?]>([
    ['get sizes fields power(2, 10) as v where id = 1', [{ v: 1024 }]],
    ['get sizes fields power(times, 2) as v where id = 1', [{ v: 9 }]],
    ['get sizes fields power(times::numeric, 2)::int as v where id = 1', [{ v: 9 }]],
    ['get sizes fields power(times, $1) as v where id = 1', [{ v: 27 }], [3]],
    ['get sizes fields power(0.5, times) as v where id = 1', [{ v: 0.125 }]],
    ['get sizes fields power(0, 20) + power(1, 100000) as v where id = 1', [{ v: 1 }]],
    ['get sizes fields power(times, 2) as v where id = 3', [{ v: null }]],
  ])('is accepted: %s', async (query, rows, parameters = []) => {
    const reply = await ask(query, parameters)
    const data = reply.json.data?.map(({ v }: { v: unknown }) => ({ v: v === null ? null : Number(v) }))
    expect([query, reply.text, data]).toEqual([query, reply.text, rows])
  })
})

describe('elements of arrays and documents that are compared', () => {
  beforeAll(async () => {
    await execute(
      database.adminUrl,
      `create table bags (id int primary key, tags int[], data jsonb, words text[]);
       insert into bags values (1, '{1,2,3}', '["a","b",{"c":[1]}]', '{a,"b,c"}');
       create index on bags using gin (tags);
       grant select on bags to app`,
    )
    await gateway.gateway.reload()
  })
  const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
  const listed = (count: number) => numbers(count).join(', ')
  const series = (count: number) => `get (get bags fields generate_series(1, ${count}) as n) d fields array_agg(d.n)`
  test.each<[string, string, unknown[]?]>([
    ['a list', `get bags where tags @> [${listed(1_001)}]`],
    ['a list on the left', `get bags where [${listed(1_001)}] && tags`],
    ['a literal', `get bags where tags <@ '{${listed(1_001)}}'`],
    ['a cast literal', `get bags where tags <@ '{${listed(1_001)}}'::int[]`],
    ['a parameter', 'get bags where tags && $1', [numbers(1_001)]],
    ['a parameter in text form', 'get bags where tags && $1', [`{${listed(1_001)}}`]],
    ['a document', 'get bags where data @> $1', [numbers(1_001)]],
    ['a document in a document', 'get bags where data @> $1', [[[[numbers(1_001)]]]]],
    ['keys', 'get bags where data ?| $1', [numbers(1_001).map(String)]],
    ['all keys', 'get bags where data ?& $1', [numbers(1_001).map(String)]],
    ['a built array', 'get bags where tags && array_fill(1, [1001])'],
    ['a joined array', `get bags where tags && (tags || '{${listed(1_001)}}'::int[])`],
    ['joined parameters', 'get bags where tags && ($1::int[] || $2::int[])', [numbers(600), numbers(600)]],
    ['a subquery', `get bags where tags && (${series(2_000)})`],
    ['a computed column', 'get (get bags fields id, array_fill(1, [1001]) as made, tags) d where d.made @> d.tags'],
  ])('%s: refused beyond the limit', async (_, query, parameters = []) => {
    await expectRefused(query, 'max_contained_elements', parameters)
  })
  test.each<[string, string, unknown[]?]>([
    ['a list', `get bags fields id where tags && [${listed(1_000)}]`],
    ['a parameter', 'get bags fields id where tags && $1', [numbers(1_000)]],
    ['commas in texts', 'get bags fields id where words && $1', [['b,c', ',"\\'.repeat(2_000)]]],
    ['columns', 'get bags b fields b.id where b.tags <@ b.tags and b.data @> b.data and b.data->2 @> b.data->2'],
    ['a column or a value', "get bags fields id where coalesce(tags, '{1}') && [id, 2]"],
    ['computed', "get bags fields id where tags && array_append(tags, 5) and data @> to_jsonb('a'::text)"],
    ['a subquery', `get bags fields id where tags && (${series(900)})`],
    ['nothing', 'get bags fields id where (tags && $1) is null', [null]],
    ['a range', "get bags fields id where int4range(1, 5) @> id and int4range(1, 5) && '[1,2]'::int4range"],
  ])('%s: answered', async (_, query, parameters = []) => {
    await expectRows(query, [{ id: 1 }], parameters)
  })
  test('in filters of a URL', async () => {
    const many = await gateway.get(`/api/bags?tags=contains.(${numbers(1_001).join(',')})`)
    expect([many.status, many.json.error?.message]).toEqual([400, expect.stringContaining('max_contained_elements')])
    const document = await gateway.get(`/api/bags?data=contains.[${numbers(1_001).join(',')}]`)
    expect(document.status).toBe(400)
    expect((await gateway.get('/api/bags?tags=overlaps.(1,9)&select=id')).json.data).toEqual([{ id: 1 }])
    expect((await gateway.get('/api/bags?tags=contained.(1,2,3)&select=id')).json.data).toEqual([{ id: 1 }])
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_contained_elements"\} [1-9]/m)
  })
  test('the limit is configurable, and an index serves what is within it', async () => {
    const tight = await testGateway(database.url, {
      toml: 'max_contained_elements = 2\nmax_parameters = 1\nmax_expressions = 60',
    })
    const askTight = (query: string, parameters: unknown) =>
      tight.get('/api/_query', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query, parameters }),
      })
    try {
      expect((await askTight('get bags where tags @> $1', [[1, 2]])).status).toBe(200)
      expect((await askTight('get bags where tags @> $1', [[1, 2, 3]])).status).toBe(400)
      for (const parameters of [[1, 2], { a: 1, b: 2 }]) {
        const { json } = await askTight('get bags', parameters)
        expect(json.error?.message).toBe('the query has more than 1 parameters (max_parameters)')
      }
      const wide = await askTight(`get bags fields ${times(30, index => `id + ${index} as f${index}`, ', ')}`, [])
      expect(wide.json.error?.message).toContain('(max_expressions)')
      const { text } = await tight.get('/metrics', { as: null })
      for (const limit of ['max_parameters', 'max_expressions']) {
        expect(text).toMatch(new RegExp(`^svc_statements_refused_total\\{limit="${limit}"\\} [1-9]`, 'm'))
      }
    } finally {
      await tight.close()
    }
    const [plan] = await execute(
      database.adminUrl,
      `set enable_seqscan = off; explain select from bags where tags @>
         case when case when cardinality(string_to_array(('{1}'::int[] || 2)::text, ',')) > 9
           then concat('x')::bool else true end
         then '{1}'::int[] || 2 end`,
    )
    expect(JSON.stringify(plan)).toContain('Bitmap')
  })
})

describe('the patterns of like and ilike', () => {
  const long = `%${'a'.repeat(2_049)}b%`
  const half = `%${'a'.repeat(1_100)}b%`
  test.each<[string, string, unknown[]?]>([
    ['like', `get amounts where note like '${long}'`],
    ['ilike', `get amounts where note ilike '${long}'`],
    ['a text that is contained', `get amounts where note ~ '${long}'`],
    ['two literals', `get amounts where note like '${half}' or note not ilike '${half}'`],
    ['a subquery', `get amounts where note like '${half}' and exists (get users where name like '${half}')`],
    ['a parameter', 'get amounts where note like $1', [long]],
    ['a parameter that is contained', 'get amounts where note ~ $1', [long]],
    ['a parameter of two patterns', 'get amounts where note like $1 or note ilike $1', [half]],
    ['two parameters', 'get amounts where note like $1 or note ilike $2', [half, half]],
    ['a joined parameter', "get amounts where note like '%' || $1 || '%'", [long]],
    ['a changed one', "get amounts where note like concat('%', lower($1), '%') or note like $1", [half]],
    ['a column', "get amounts where 'aaa' like pattern"],
    ['a built value', "get amounts where note like repeat('a', 300) || pattern"],
    ['an aggregate', "get amounts where note like (get amounts a fields string_agg(a.pattern, ''))"],
    ['a merged literal', `get (get amounts fields id, note like '${half}' as found) d where found order by found`],
    ['a merged parameter', 'get (get amounts fields note like $1 as found) d where found order by found', [half]],
    ['17 columns', `get amounts where id = 1 and (${times(17, () => 'note like pattern', ' or ')})`],
  ])('are rejected above the limit: %s', async (_, query, parameters = []) => {
    await expectRefused(query, 'max_pattern_bytes', parameters)
  })
  test.each<[string, string, unknown, unknown[]?]>([
    ['a literal', "get amounts fields id where note like '%b%' and id = 1", [{ id: 1 }]],
    ['a parameter', 'get amounts fields id where note like $1 and id = 1', [{ id: 1 }], ['%b%']],
    ['a joined one', "get amounts fields id where note ilike '%' || $1 || '%' and id = 1", [{ id: 1 }], ['B']],
    ['one that is contained', 'get amounts fields id where note ~ $1 and id = 1', [{ id: 1 }], ['b']],
    ['a long one', 'get amounts fields id where note ~ $1', [], ['a'.repeat(2_000)]],
    ['a column', 'get amounts fields id where note like pattern and id = 1', [{ id: 1 }]],
    ['a changed column', 'get amounts fields id where note like lower(pattern) and id = 1', [{ id: 1 }]],
    ['a beginning', `get amounts fields id where not note like '${'a'.repeat(9_000)}%' and id = 1`, [{ id: 1 }]],
    ['similar to', 'get amounts fields id where note similar to $1', [], [half]],
    ['a regular expression', 'get amounts fields id where note regex $1', [], ['a'.repeat(4_200)]],
    [
      'many short ones',
      `get amounts fields id where ${times(40, () => 'note ilike $1', ' or ')}`,
      [{ id: 1 }, { id: 2 }],
      ['%b%'],
    ],
  ])('are accepted: %s', async (_, query, rows, parameters = []) => {
    await expectRows(query, rows, parameters)
  })
  test('are limited in filters, for the whole request', async () => {
    const list = (filters: string) => gateway.get(`/api/amounts?select=id&${filters}`)
    expect((await list(`note=like.*${'a'.repeat(2_000)}*`)).status).toBe(200)
    expect((await list(`note=like.${'a'.repeat(8_000)}*`)).status).toBe(200)
    for (const filters of [
      `note=like.*${'a'.repeat(2_100)}`,
      `note=not.ilike.*${'a'.repeat(2_100)}`,
      `note=like.*${'a'.repeat(1_100)}&pattern=ilike.*${'a'.repeat(1_100)}`,
    ]) {
      const reply = await list(filters)
      expect([filters, reply.status, reply.json.error?.code]).toEqual([filters, 400, 'PARSE_ERROR'])
      expect(reply.json.error.message).toContain('max_pattern_bytes')
    }
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_pattern_bytes"\} [1-9]/m)
  })
  test('computed from constants are constants for the planner, so they can use an index', async () => {
    const { text } = await ask("explain get amounts fields id where note like initcap($1) || '%'", ['ab'])
    expect(text).toContain("(note ~~ 'Ab%'::text)")
  })
  test('are limited by the configuration', async () => {
    const tight = await testGateway(database.url, { toml: 'max_pattern_bytes = 5' })
    try {
      expect((await tight.get('/api/amounts?note=like.*abcde*')).status).toBe(200)
      expect((await tight.get('/api/amounts?note=like.*abcdef*')).status).toBe(400)
    } finally {
      await tight.close()
    }
    const open = await testGateway(database.url, { toml: 'max_pattern_bytes = 0' })
    try {
      expect((await open.get(`/api/amounts?note=like.*${'a'.repeat(5_000)}*`)).status).toBe(200)
    } finally {
      await open.close()
    }
  })
})

describe('the products of long numbers', () => {
  /** Each of these is a separate field that PostgreSQL may have to compute. */
  const many = (count: number, one: string) => `coalesce(${times(count, () => one, ', ')})`
  test.each<[string, string, unknown[]?]>([
    ['products of a column', `get amounts fields ${many(65, 'n * n')} as v`],
    ['quotients', `get amounts fields ${many(65, 'n / n')} as v`],
    ['remainders', `get amounts fields ${many(65, 'n % n')} as v`],
    ['remainders by a function', `get amounts fields ${many(65, 'mod(n, n)')} as v`],
    ['products of literals', `get amounts fields ${many(65, "'1e60000'::numeric * 1e60000")} as v`],
    ['products of a text', `get amounts fields ${many(65, '$1::numeric * $1::numeric')} as v`, ['1e60000']],
    ['products of a parameter', `get amounts fields ${many(65, '$1 * $1')} as v`, [1.5]],
    ['a product that is mentioned', `get (get amounts fields n * n as a) d fields ${many(65, 'a')} as v`],
    [
      'products of a compound whose first part is short',
      `get (get amounts fields id as a union all get amounts fields n as a) d fields ${many(65, 'a * a')} as v`,
    ],
    ['products in conditions', `get amounts where ${times(65, () => 'n * n * n > 1', ' or ')}`],
    ['products of sums', `get amounts fields ${many(65, 'sum(n) * sum(n)')} as v`],
  ])('are rejected above the limit: %s', async (_, query, parameters = []) => {
    await expectRefused(query, 'max_numeric_products', parameters)
  })
  test.each<[string, string, number, unknown[]?]>([
    ['a column', `get amounts fields ${many(60, 'n * n')} as v where id = 1`, 6.25],
    ['columns of so many digits', `get amounts fields ${many(300, 'price * price')} as v where id = 1`, 100],
    ['a column and short ones', `get amounts fields ${many(300, 'n * quantity * 1.5')} as v where id = 1`, 11.25],
    ['floating point numbers', `get amounts fields ${many(300, 'rate * rate')} as v where id = 1`, 0.25],
    ['casts', `get amounts fields ${many(300, 'n::numeric(20, 4) * n::float8')} as v where id = 1`, 6.25],
    ['a sum and a number of rows', `get amounts fields ${many(300, 'sum(n) / count(*)')} as v where id = 1`, 2.5],
    ['an integer parameter', `get amounts fields ${many(300, 'n * $1')} as v where id = 1`, 5, [2]],
    ['lengths', `get amounts fields ${many(100, 'length(note) * length(note)')} as v where id = 1`, 9],
  ])('are accepted: %s', async (_, query, value, parameters = []) => {
    const reply = await ask(query, parameters)
    expect(reply.text.slice(0, 1_000)).toContain('"data"')
    expect(Number(reply.json.data[0].v)).toBe(value)
  })
  test('are counted in a metric by the key of the limit, which the configuration sets', async () => {
    await expectRefused(`get amounts fields ${many(65, 'n * n')} as v`, 'max_numeric_products')
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_numeric_products"\} [1-9]/m)
    const tight = await testGateway(database.url, { toml: 'max_numeric_products = 1' })
    try {
      const reply = await tight.get('/api/_query', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query: 'get amounts fields n * n + n * n as v' }),
      })
      expect([reply.status, reply.json.error?.message]).toEqual([400, expect.stringContaining('more than 1 times')])
    } finally {
      await tight.close()
    }
  })
})

describe('the characters that the printed SQL repeats', () => {
  const query =
    `get users fields concat(${times(7_000, () => 'id', ', ')}) as x ` +
    `group by id having ${times(60, () => "x = 'a'", ' or ')}`
  test('are rejected above the limit, which a metric counts', async () => {
    await expectRefused(query, 'more than 65536 characters')
    await expectRefused(query, 'max_repeated_characters')
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_repeated_characters"\} [1-9]/m)
  })
  test('are limited by the configuration', async () => {
    const short = `get users fields concat(id, id) as x group by id having ${times(4, () => "x = 'a'", ' or ')}`
    expect((await ask(short)).status).toBe(200)
    const strict = await testGateway(database.url, { toml: 'max_repeated_characters = 40' })
    try {
      const reply = await strict.get('/api/_query', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query: short }),
      })
      expect([reply.status, reply.json.error?.message]).toEqual([
        400,
        expect.stringContaining('more than 40 characters'),
      ])
    } finally {
      await strict.close()
    }
  })
})

describe('requests', () => {
  const tight = gatewayFixture(database, {
    toml: `max_repetitions = 3
      max_query_parameters = 5
      max_text_form_bytes = 1000
      [postgrest]
      enabled = true
      anon_role = "app"`,
  })
  const query = (text: string, parameters: object = {}) =>
    tight.get('/api/_query', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: text, parameters }),
    })
  const having = (count: number) =>
    query(`get users fields concat(id) as x group by id having ${times(count, () => "x = 'a'", ' or ')}`)
  const list = (count: number) => query('get users fields :x::text[] as v limit 1', { x: Array(count).fill('"') })
  const filtered = (count: number) => tight.get(`/api/users?${times(count, () => 'id=gt.0', '&')}`)

  test.each([
    ['max_repetitions', having, 3, 4, 400, 'more than 3 times'],
    ['max_query_parameters', filtered, 5, 6, 400, 'has 6 parameters; at most 5 are allowed (max_query_parameters)'],
    ['max_text_form_bytes', list, 100, 250, 413, 'more than 1000 bytes in the text form that PostgreSQL reads'],
  ] as const)('above %s are refused and counted', async (limit, ask, most, more, status, message) => {
    expect((await ask(most)).status).toBe(200)
    const refused = await ask(more)
    expect([refused.status, refused.json.error.message]).toEqual([status, expect.stringContaining(message)])
    const { text } = await tight.get('/metrics', { as: null })
    expect(text).toMatch(new RegExp(`^svc_statements_refused_total\\{limit="${limit}"\\} 1$`, 'm'))
  })

  test('in the dialect of PostgREST have max_query_parameters too', async () => {
    const ask = (count: number) => tight.get(`/rest/v1/users?${times(count, () => 'id=gt.0', '&')}`, { as: null })
    expect((await ask(5)).status).toBe(200)
    expect((await ask(6)).json).toMatchObject({
      code: 'PGRST100',
      message: expect.stringContaining('max_query_parameters'),
    })
  })
})

test('a result above max_result_bytes is refused and counted, and can be streamed', async () => {
  const tight = await testGateway(database.url, { toml: 'max_result_bytes = 65536\nexplain_max_cost = 0' })
  const query = (bytes: number, verb = 'get') => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: `${verb} sizes fields repeat('x', ${bytes}) as v where id = 1` }),
  })
  try {
    expect((await tight.get('/api/_query', query(60_000))).status).toBe(200)
    const { status, json } = await tight.get('/api/_query', query(100_000))
    expect([status, json.error.code, json.error.details.sqlstate]).toEqual([400, 'QUERY_ERROR', '54000'])
    expect(json.error.message).toMatch(/^the result exceeds 65536 bytes .*\(max_result_bytes\)$/)
    const { text } = await tight.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_result_bytes"\} 1$/m)
    const stream = await tight.get('/api/_query', query(100_000, 'export'))
    expect([stream.status, stream.text.length > 100_000]).toEqual([200, true])
  } finally {
    await tight.close()
  }
})

describe('the bytes that aggregates collect', () => {
  const series = 'get (get users fields generate_series(1, 1000000) as n where id = 1) d'
  test.each<[string, unknown?]>([
    ["cardinality(array_agg(repeat('x', 1000000))) as v where n <= 2000"],
    ["length(string_agg(repeat('x', 100000), '')) as v where n <= 10000"],
    ["length(string_agg('', repeat('x', 1000))) as v"],
    ["length(string_agg(distinct repeat(n::text, 10000), '')) as v"],
    ["length(string_agg(repeat('x', 1000), '') filter (where n > 10)) as v"],
    ["length(string_agg(repeat('x', 1000), '' order by n)) as v"],
    ["n % 1000 as g, length(string_agg(repeat('x', 1000), '')) as v"],
    ["length(string_agg(repeat('x', 100000), '') over ()) as v"],
    ["n, cardinality(array_agg(max(repeat('x', 100000))) over ()) as v where n <= 2000"],
    ['length(json_agg(repeat(chr(1), 100000))::text) as v'],
    ["length(jsonb_agg(['x', repeat('x', 100000)])::text) as v"],
    ["length(json_object_agg(n, repeat('x', 100000))::text) as v"],
    ['length(jsonb_object_agg(repeat(n::text, 10000), 1)::text) as v'],
    ["length((get users u fields string_agg(repeat('x', 500000 + d.n % 2), ''))) as v"],
    ['cardinality(array_agg(:p::text)) as v', { p: 'x'.repeat(100_000) }],
    ['length(json_agg(:p::text)::text) as v', { p: 'x'.repeat(100_000) }],
  ])('are bounded: %s', async (fields, parameters = {}) => {
    await expectRefused(`${series} fields ${fields}`, 'max_collected_bytes', parameters)
  })
  test('include those of joined columns, and of common tables', async () => {
    const long = "(get users fields repeat('x', 1000000) as word where id = 1) w"
    await expectRefused(
      `${series} inner join ${long} on true fields length(string_agg(w.word, '')) as v`,
      'max_collected_bytes',
    )
    const collected = `${series} fields string_agg(repeat('x', 100), '') as v where n <= 300000`
    await expectRows(`with a as (${collected}) get a fields length(v) as v`, [{ v: 30_000_000 }])
    await expectRefused(
      `with a as (${collected}), b as (${collected}) get a cross join b fields length(a.v) + length(b.v) as v`,
      'max_collected_bytes',
    )
  })
  test('leave the results of aggregates unchanged', async () => {
    const few = series.replace('1000000', '4')
    const rows: [string, unknown][] = [
      ["string_agg(distinct n::text, ',' order by n::text desc)", '4,3,2,1'],
      ["string_agg(n::text, ',' order by n desc) filter (where n > 2)", '4,3'],
      ['array_agg(case when n > 2 then n end order by n)', [null, null, 3, 4]],
      ['json_agg(n > 3 order by n)', [false, false, false, true]],
      ["json_object_agg(n, 'x') filter (where n = 1)", { 1: 'x' }],
      ['array_agg(n) filter (where n > 9)', null],
      ["string_agg('a', '-')", 'a-a-a-a'],
      ['array_agg(:p::int)', [7, 7, 7, 7]],
    ]
    for (const [field, v] of rows) {
      await expectRows(`${few} fields ${field} as v`, [{ v }], field.includes(':p') ? { p: 7 } : {})
    }
    await expectRows(`${few} fields n, array_agg(n) over (order by n rows between 1 preceding and current row) as v`, [
      { n: 1, v: [1] },
      { n: 2, v: [1, 2] },
      { n: 3, v: [2, 3] },
      { n: 4, v: [3, 4] },
    ])
    await expectRows(`${few} fields n % 2 as g, array_agg(sum(n)) over (order by n % 2) as v`, [
      { g: 0, v: [6] },
      { g: 1, v: [6, 4] },
    ])
  })
  test('are counted for each statement, and not at all if the limit is 0', async () => {
    const query = `${series} fields length(string_agg(repeat('x', 10000), '')) as v where n <= 5000`
    for (const _ of [1, 2, 3]) await expectRows(query, [{ v: 50_000_000 }])
    const open = await testGateway(database.url, { toml: 'max_collected_bytes = 0' })
    try {
      const body = JSON.stringify({ query: query.replace('5000', '9000') })
      const headers = { 'Content-Type': 'application/json' }
      const reply = await open.get('/api/_query', { method: 'POST', headers, body })
      expect([reply.status, reply.json.data]).toEqual([200, [{ v: 90_000_000 }]])
    } finally {
      await open.close()
    }
  })
  test('are counted in a metric', async () => {
    await expectRefused(`${series} fields array_agg(repeat('x', 1000000)) as v`, 'max_collected_bytes')
    const { text } = await gateway.get('/metrics', { as: null })
    expect(text).toMatch(/^svc_statements_refused_total\{limit="max_collected_bytes"\} [1-9]/m)
  })
})

describe('the copies of large values in one row', () => {
  const chain = (count: number, of = 'word') => times(count, () => of, ' || ')
  const built = "(get sizes fields id, repeat('x', 1000000) as r) d"
  const collected = "(get sizes fields string_agg(word, ',') as w) d"
  test.each([
    `get sizes fields ${chain(24)} as v`,
    `get sizes fields id where ${chain(24)} = 'a'`,
    `get sizes fields id order by ${chain(24)}`,
    `get ${built} fields length(${chain(24, 'r')}) as v`,
    `get (get sizes fields ${chain(6)} as w) d fields ${chain(6, 'w')} as v`,
    `with a as (get sizes fields ${chain(6)} as w) get a fields ${chain(6, 'w')} as v`,
    `get ${collected} fields ${chain(4, 'w')} as v`,
    `get sizes fields ${times(40, index => `upper(word) as c${index}`, ', ')}`,
    `get sizes fields ${times(70, index => `to_json(word)::text as c${index}`, ', ')}`,
    `get sizes fields ${times(70, index => `word as c${index}`, ', ')}`,
    `get sizes fields id where ${times(260, index => `word like 'a${index}'`, ' or ')}`,
    `set sizes values word = ${chain(24)} where id = 1`,
  ])('are bounded: %#', async query => {
    await expectRefused(query, 'max_copied_values')
  })
  test.each([
    `get sizes fields ${chain(20)} as v`,
    `get sizes fields ${times(100, () => 'id', ' + ')} as v`,
    `get sizes fields ${times(100, index => `id * ${index} as c${index}`, ', ')}`,
    `get sizes fields id where ${times(200, index => `word = 'a${index}'`, ' or ')}`,
    `get sizes fields concat(${times(90, () => 'word', ', ')}) as v`,
    `get ${collected} fields coalesce(w, '') as v, length(w) as l`,
    `get sizes fields ${times(80, index => `coalesce(word, '${index}') = 'a' as c${index}`, ', ')}`,
  ])('are accepted: %#', async query => {
    const reply = await ask(query)
    expect([reply.status, reply.json.error]).toEqual([200, undefined])
  })
  test('of a search are free, however many columns it has; those of a filter like it are not', async () => {
    expect((await gateway.get('/api/texts?search=red+blue&select=id')).json.data).toEqual([{ id: 1 }])
    const document = times(30, index => `t${index}`, ' || ')
    await expectRefused(`get texts where (${document}) @@ 'red'`, 'max_copied_values')
  })
  test('are unlimited if the limit is 0', async () => {
    const open = await testGateway(database.url, { toml: 'max_copied_values = 0' })
    try {
      const body = JSON.stringify({ query: `get sizes fields length(${chain(100)}) as v where id = 1` })
      const headers = { 'Content-Type': 'application/json' }
      const reply = await open.get('/api/_query', { method: 'POST', headers, body })
      expect([reply.status, reply.json.data]).toEqual([200, [{ v: 200 }]])
    } finally {
      await open.close()
    }
  })
})

describe('the rows of a series', () => {
  test.each<[string, unknown[]?]>([
    ['get users fields generate_series(1, 2000000000) as n'],
    ['get users fields generate_series(1, $1) as n', [2_000_000_000]],
    ['get sizes fields generate_series(1, times) as n'],
    ['get sizes fields generate_series(times, 1, -1) as n'],
    ['get sizes fields generate_series(1, times, id) as n'],
    ['get sizes fields generate_series(at, at + 100000d, 1s) as n'],
    ['get sizes fields generate_series(at, $1, $2) as n', ['2126-01-01', '1 second']],
    ["get (get users fields generate_series(1, 100000000) as g) d fields string_agg(g::text, '') as v"],
  ])('are rejected: %s', async (query, parameters = []) => {
    await expectRefused(query, 'max_series_rows', parameters)
  })
  test('are rejected if the series is infinite; before PostgreSQL 17, by PostgreSQL itself', async () => {
    const reply = await ask("get sizes fields generate_series('2026-01-01'::date, 'infinity', 1d) as n")
    expect([reply.status, reply.json.error.code]).toEqual([400, POSTGRES_MAJOR < 17 ? 'QUERY_ERROR' : 'PARSE_ERROR'])
  })
  test.each<[string, unknown, unknown[]?]>([
    ['get sizes fields generate_series(1, times) as n where id = 1', [{ n: 1 }, { n: 2 }, { n: 3 }]],
    ['get sizes fields generate_series(1, $1) as n where id = 1', [{ n: 1 }, { n: 2 }], [2]],
    ['get sizes fields generate_series(times, 1, -1) as n where id = 1', [{ n: 3 }, { n: 2 }, { n: 1 }]],
    ['get sizes fields generate_series(5, 1) as n where id = 1', []],
    [
      "get sizes fields generate_series('2026-01-01'::date, '2026-01-02'::date, 1d)::date as n where id = 1",
      [{ n: '2026-01-01' }, { n: '2026-01-02' }],
    ],
    [
      'get sizes fields generate_series(at, at + 1d, $1)::date as n where id = 1',
      [{ n: '2026-01-01' }, { n: '2026-01-02' }],
      ['1 day'],
    ],
  ])('are accepted: %s', async (query, rows, parameters = []) => {
    await expectRows(query, rows, parameters)
  })
})
