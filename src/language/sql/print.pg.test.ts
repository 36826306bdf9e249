/** The SQL of each construct, compared with the expected text and prepared by PostgreSQL. */
import { beforeAll, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../../test/support/postgres-version.ts'
import { testSince } from '../../../test/support/test-since.ts'
import type { Add, Del, Expression, Get, Join, Merge, Nest, Set as SetStatement, Statement } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  and,
  arithmetic,
  array,
  between,
  call,
  cast,
  column,
  compare,
  exists,
  field,
  get,
  inQuery,
  inSet,
  integer,
  inValues,
  isNull,
  jsonStep,
  like,
  literal,
  named,
  negate,
  nest,
  not,
  or,
  order,
  position,
  row,
  star,
  subquery,
  tableName,
  text,
} from '../tree/build.ts'
import { printSql } from './print.ts'

const SCHEMA = `
  create table users (
    id int primary key, name text, email text unique, role text, active boolean, a int, b int, c int, n int,
    created_at timestamptz, score numeric(10, 2), tags text[], company_id int);
  create table companies (id int primary key, name text, parent_id int);
  create table posts (id int primary key, user_id int, title text, created_at timestamptz);
  create table orders (id int primary key, user_id int, total numeric, status text);
  create table sessions (id int primary key, user_id int, expired boolean);
  create table docs (id int primary key, meta jsonb, words tsvector, body text);
  create table "order" ("user" int, "group" int, "table" int);
  create table "Order Details" (id int, "from" int, "__proto__" int, "a""b" int, "تست" int);
  create table n (id int primary key, n int, user_id int);
  create schema sales;
  create table sales.targets (id int primary key, meta jsonb);
  create type place as (street varchar(20), since date);
  create table shops (id int primary key, name text, place place);
  create procedure archive(before date, hard boolean default false) language sql as 'select 1';
  insert into companies values (1, 'Acme', null), (2, 'Branch', 1);
  insert into users (id, name, email, role, active, a, b, c, n, created_at, score, tags, company_id) values
    (1, 'Ann', 'ann@x.io', 'admin', true, 1, 2, 3, 0, now(), 1.5, '{x,y}', 1),
    (2, 'Bob', 'bob@x.io', 'owner', true, 1, 3, 4, 0, now() - interval '2 days', 2.5, '{}', 2),
    (3, '50%_\\', 'c@x.io', 'owner', false, 2, 2, 5, 0, null, null, null, null);
  insert into posts values (1, 1, 'one', now()), (2, 1, 'two', now()), (3, 2, 'three', now());
  insert into orders values (1, 1, 11, 'paid'), (2, 1, 5, 'new'), (3, 2, 20, 'paid');
  insert into docs
    values (1, '{"a": 1, "theme": "dark", "x": {"y": "z"}, "list": [1, 2]}',
      to_tsvector('english', 'running dogs'), 'Running dogs');
  insert into n values (1, 7, 1), (2, 8, 1);
`

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() => client.query(SCHEMA))

/** Has PostgreSQL parse and analyze the text, with its parameters. */
async function prepare(sql: string): Promise<void> {
  if (/^(BEGIN|COMMIT|ROLLBACK|CREATE|CALL|EXPLAIN)/.test(sql)) {
    await client.query('begin')
    await client.query(sql.replace(/\$\d+/g, 'null')).finally(() => client.query('rollback'))
    return
  }
  await client.query(`prepare p as ${sql}`)
  await client.query('deallocate p')
}

async function rows(statement: Statement, values: readonly unknown[] = []): Promise<unknown[]> {
  const result = await client.query({ text: printSql(statement).text, values: [...values] })
  return result.rows
}

// ---- trees ------------------------------------------------------------------------------------------------

const users = { schema: null, name: 'users' }
const from = (name: string): { readonly schema: null; readonly name: string } => ({ schema: null, name })
const yes = literal('boolean', 'true')
const nothing = literal('null', '')
const name = (value: string) => ({ kind: 'name', text: value, span: NOWHERE }) as const
const assign = (to: string, value: Expression) =>
  ({ kind: 'assignment', column: name(to), value, span: NOWHERE }) as const
const count = call('count', [], { star: true })

function source(table: string, alias: string | null = null): Get['source'] & { readonly kind: 'table source' } {
  return { kind: 'table source', table: tableName(from(table)), alias, condition: null, span: NOWHERE }
}

function join(table: string, on: Expression | null, parts: Partial<Join> = {}): Join {
  return { kind: 'join', type: 'left', lateral: false, source: source(table), on, span: NOWHERE, ...parts }
}

function add(table: string, parts: Partial<Add>): Add {
  return {
    kind: 'add',
    with: null,
    table: tableName(from(table)),
    columns: [],
    rows: { kind: 'defaults', span: NOWHERE },
    conflict: null,
    returning: null,
    span: NOWHERE,
    ...parts,
  }
}

function set(table: string, parts: Partial<SetStatement>): SetStatement {
  return {
    kind: 'set',
    with: null,
    table: tableName(from(table)),
    alias: null,
    joins: [],
    assignments: [],
    where: 'all',
    returning: null,
    span: NOWHERE,
    ...parts,
  }
}

function del(table: string, parts: Partial<Del>): Del {
  return {
    kind: 'del',
    with: null,
    table: tableName(from(table)),
    alias: null,
    joins: [],
    where: 'all',
    returning: null,
    span: NOWHERE,
    ...parts,
  }
}

function withTable(table: string, statement: Statement, recursive = false): Get['with'] {
  return {
    kind: 'with',
    recursive,
    tables: [{ kind: 'cte', name: name(table), columns: [], statement, span: NOWHERE }],
    span: NOWHERE,
  }
}

function where(condition: Expression): Get {
  return get({ table: users, fields: [field(column('id'))], where: condition })
}

const values = (...items: readonly Expression[]) => ({ kind: 'values', rows: [items], span: NOWHERE }) as const
const equal = (left: string, right: string): Expression => compare('=', column(left), integer(right))

/** The condition alone. */
function condition(expression: Expression): string {
  return printSql(where(expression)).text.replace('SELECT id FROM users WHERE ', '')
}

// ---- the table --------------------------------------------------------------------------------------------

const merge: Merge = {
  kind: 'merge',
  with: null,
  table: tableName(users),
  alias: 'u',
  using: source('orders', 'o'),
  on: compare('=', column('u', 'id'), column('o', 'user_id')),
  whens: [
    {
      kind: 'when',
      match: 'matched',
      and: compare('>', column('o', 'total'), integer('10')),
      action: { kind: 'merge update', assignments: [assign('n', column('o', 'id'))], span: NOWHERE },
      span: NOWHERE,
    },
    { kind: 'when', match: 'matched', and: null, action: { kind: 'merge delete', span: NOWHERE }, span: NOWHERE },
    {
      kind: 'when',
      match: 'not matched',
      and: null,
      action: { kind: 'merge insert', columns: [name('id')], values: [column('o', 'user_id')], span: NOWHERE },
      span: NOWHERE,
    },
    {
      kind: 'when',
      match: 'not matched by source',
      and: null,
      action: { kind: 'merge nothing', span: NOWHERE },
      span: NOWHERE,
    },
  ],
  span: NOWHERE,
}

const recent = get({
  table: from('posts'),
  fields: [field(column('title'))],
  where: compare('=', column('user_id'), column('users', 'id')),
  limit: integer('1'),
})

const examples: readonly (readonly [string, Statement, string])[] = [
  ['get users', get({ table: users }), 'SELECT * FROM users'],
  [
    'get users fields id, email where active = true order by created_at desc limit 10',
    get({
      table: users,
      fields: [field(column('id')), field(column('email'))],
      where: compare('=', column('active'), yes),
      orderBy: [order(column('created_at'), { descending: true })],
      limit: integer('10'),
    }),
    'SELECT id, email FROM users WHERE active = true ORDER BY created_at DESC LIMIT 10',
  ],
  [
    'get distinct on (role) users fields id, role order by role',
    {
      ...get({ table: users, fields: [field(column('id')), field(column('role'))], orderBy: [order(column('role'))] }),
      distinct: { kind: 'distinct', on: [column('role')], span: NOWHERE },
    },
    'SELECT DISTINCT ON (role) id, role FROM users ORDER BY role',
  ],
  [
    'get users fields role, count(*) as n having count(*) > 5',
    {
      ...get({ table: users, fields: [field(column('role')), field(count, 'n')] }),
      having: compare('>', count, integer('5')),
    },
    'SELECT role, COUNT(*) AS n FROM users GROUP BY role HAVING COUNT(*) > 5',
  ],
  [
    'get users where a = 1 and (b = 2 or not c = 3)',
    get({ table: users, where: and(equal('a', '1'), or(equal('b', '2'), not(equal('c', '3')))) }),
    'SELECT * FROM users WHERE a = 1 AND (b = 2 OR NOT c = 3)',
  ],
  [
    'get users[active = true] fields id order by id limit 5',
    {
      ...get({ table: users, fields: [field(column('id'))], orderBy: [order(column('id'))], limit: integer('5') }),
      source: { ...source('users'), condition: compare('=', column('active'), yes) },
    },
    'SELECT id FROM users WHERE active = true ORDER BY id LIMIT 5',
  ],
  [
    'get users join posts on users.id = posts.user_id',
    {
      ...get({ table: users }),
      joins: [join('posts', compare('=', column('users', 'id'), column('posts', 'user_id')))],
    },
    'SELECT * FROM users LEFT JOIN posts ON users.id = posts.user_id',
  ],
  [
    'get users where id in (get orders fields user_id where total > 10)',
    get({
      table: users,
      where: inQuery(
        column('id'),
        get({
          table: from('orders'),
          fields: [field(column('user_id'))],
          where: compare('>', column('total'), integer('10')),
        }),
      ),
    }),
    'SELECT * FROM users WHERE id IN (SELECT user_id FROM orders WHERE total > 10)',
  ],
  [
    'get users where created_at > now() - 24h',
    get({
      table: users,
      where: compare('>', column('created_at'), arithmetic('-', call('now', []), literal('duration', '24h'))),
    }),
    "SELECT * FROM users WHERE created_at > NOW() - INTERVAL '24 hours'",
  ],
  [
    'get docs where meta @> {"a": 1}',
    get({ table: from('docs'), where: compare('@>', column('meta'), literal('json', '{"a": 1}')) }),
    `SELECT * FROM docs WHERE meta @> '{"a": 1}'::jsonb`,
  ],
  [
    'get order fields user, group where table = 1',
    get({ table: from('order'), fields: [field(column('user')), field(column('group'))], where: equal('table', '1') }),
    'SELECT "user", "group" FROM "order" WHERE "table" = 1',
  ],
  [
    'cnt users where a = 1',
    { ...get({ table: users, where: equal('a', '1') }), purpose: 'count' },
    'SELECT COUNT(*) FROM users WHERE a = 1',
  ],
  [
    "add users fields name, email values 'A', 'a@x.io' conflict (email) update name = excluded.name",
    add('users', {
      columns: [name('name'), name('email')],
      rows: values(text('A'), text('a@x.io')),
      conflict: {
        kind: 'conflict',
        target: [name('email')],
        update: { assignments: [assign('name', column('excluded', 'name'))], where: null },
        span: NOWHERE,
      },
    }),
    "INSERT INTO users (name, email) VALUES ('A', 'a@x.io') ON CONFLICT (email) DO UPDATE SET name = " +
      'excluded.name RETURNING *',
  ],
  [
    'set users values n = n + 1 where id = $1',
    set('users', {
      assignments: [assign('n', arithmetic('+', column('n'), integer('1')))],
      where: compare('=', column('id'), position(1)),
    }),
    'UPDATE users SET n = n + 1 WHERE id = $1',
  ],
  [
    'del sessions where user_id = $1 or expired = true',
    del('sessions', { where: or(compare('=', column('user_id'), position(1)), compare('=', column('expired'), yes)) }),
    'DELETE FROM sessions WHERE user_id = $1 OR expired = true',
  ],
  [
    'with x as (del sessions where id = 1 returning *) get x',
    {
      ...get({ table: from('x') }),
      with: withTable('x', del('sessions', { where: equal('id', '1'), returning: [star()] })),
    },
    'WITH x AS (DELETE FROM sessions WHERE id = 1 RETURNING *) SELECT * FROM x',
  ],
]

const further: readonly (readonly [string, Statement, string])[] = [
  ['an alias', get({ table: users, alias: 'u', fields: [star('u')] }), 'SELECT u.* FROM users AS u'],
  ['an alias that is the name', get({ table: users, alias: 'users' }), 'SELECT * FROM users'],
  ['a schema', get({ table: { schema: 'sales', name: 'targets' } }), 'SELECT * FROM sales.targets'],
  [
    'a qualified column of a table with a schema, and a path behind it',
    get({
      table: { schema: 'sales', name: 'targets' },
      fields: [field(column('sales', 'targets', 'id')), field(column('sales', 'targets', 'meta', 'a'), 'a')],
    }),
    "SELECT sales.targets.id, sales.targets.meta->>'a' AS a FROM sales.targets",
  ],
  [
    'unusual names',
    get({ table: from('Order Details'), fields: ['from', '__proto__', 'a"b', 'تست'].map(one => field(column(one))) }),
    'SELECT "from", __proto__, "a""b", "تست" FROM "Order Details"',
  ],
  [
    'distinct',
    get({ table: users, distinct: true, fields: [field(column('role'))] }),
    'SELECT DISTINCT role FROM users',
  ],
  [
    'all kinds of joins, by the names of a foreign key where nothing is said',
    {
      ...get({ table: from('companies'), fields: [star('companies')] }),
      joins: [
        join('users', null, { type: 'inner' }),
        join('orders', compare('=', column('orders', 'user_id'), column('users', 'id')), { type: 'right' }),
        join('posts', literal('boolean', 'true'), { type: 'inner' }),
        join('docs', null, { type: 'cross' }),
      ],
    },
    'SELECT companies.* FROM companies INNER JOIN users ON users.company_id = companies.id RIGHT JOIN ' +
      'orders ON orders.user_id = users.id INNER JOIN posts ON true CROSS JOIN docs',
  ],
  [
    'a lateral join sees the sources to its left',
    {
      ...get({ table: users, fields: [field(column('users', 'id')), field(column('p', 'title'))] }),
      joins: [
        join('', null, { lateral: true, source: { kind: 'query source', query: recent, alias: 'p', span: NOWHERE } }),
      ],
    },
    'SELECT users.id, p.title FROM users LEFT JOIN LATERAL (SELECT title FROM posts WHERE user_id = ' +
      'users.id LIMIT 1) AS p ON true',
  ],
  [
    'a derived table',
    {
      ...get({ table: users, fields: [field(column('x', 'id'))] }),
      source: { kind: 'query source', query: get({ table: users }), alias: 'x', span: NOWHERE },
    },
    'SELECT x.id FROM (SELECT * FROM users) AS x',
  ],
  [
    'compounds, with what belongs to one part in parentheses',
    {
      ...get({ table: users, fields: [field(column('id'))], orderBy: [order(integer('1'))], limit: integer('3') }),
      compounds: [
        {
          kind: 'compound',
          operator: 'union',
          all: true,
          query: get({ table: from('posts'), fields: [field(column('id'))], limit: integer('1') }),
          span: NOWHERE,
        },
        {
          kind: 'compound',
          operator: 'except',
          all: false,
          query: get({ table: from('orders'), fields: [field(column('id'))] }),
          span: NOWHERE,
        },
      ],
    },
    'SELECT id FROM users UNION ALL (SELECT id FROM posts LIMIT 1) EXCEPT SELECT id FROM orders ORDER BY 1 LIMIT 3',
  ],
  [
    'a recursive common table',
    {
      ...get({ table: from('tree') }),
      with: withTable(
        'tree',
        {
          ...get({ table: from('companies'), fields: [field(column('id'))], where: isNull(column('parent_id')) }),
          compounds: [
            {
              kind: 'compound',
              operator: 'union',
              all: true,
              query: {
                ...get({ table: from('companies'), fields: [field(column('companies', 'id'))] }),
                joins: [
                  join('tree', compare('=', column('companies', 'parent_id'), column('tree', 'id')), { type: 'inner' }),
                ],
              },
              span: NOWHERE,
            },
          ],
        },
        true,
      ),
    },
    'WITH RECURSIVE tree AS (SELECT id FROM companies WHERE parent_id IS NULL UNION ALL SELECT ' +
      'companies.id FROM companies INNER JOIN tree ON companies.parent_id = tree.id) SELECT * FROM tree',
  ],
  [
    'a common table called recursive',
    { ...get({ table: from('recursive') }), with: withTable('recursive', get({ table: users })) },
    'WITH "recursive" AS (SELECT * FROM users) SELECT * FROM recursive',
  ],
  [
    'groups implied by what stands outside of aggregates',
    get({
      table: users,
      fields: [
        field(call('lower', [column('role')]), 'r'),
        field(arithmetic('+', column('a'), call('sum', [column('b')])), 'total'),
        field(text('x'), 'label'),
        field(call('sum', [column('n')], { filter: compare('=', column('active'), yes) })),
      ],
    }),
    "SELECT LOWER(role) AS r, a + SUM(b) AS total, 'x' AS label, SUM(n) FILTER (WHERE active = true) FROM " +
      'users GROUP BY LOWER(role), a',
  ],
  [
    'an alias in having stands for its expression, but not inside an aggregate',
    {
      ...get({ table: users, fields: [field(column('role')), field(call('sum', [column('a')]), 'a')] }),
      having: and(compare('>', column('a'), integer('1')), compare('>', call('max', [column('a')]), integer('0'))),
    },
    'SELECT role, SUM(a) AS a FROM users GROUP BY role HAVING SUM(a) > 1 AND MAX(a) > 0',
  ],
  [
    'group by a row',
    { ...get({ table: users, fields: [field(count)] }), groupBy: [row([column('a'), column('b')])] },
    'SELECT COUNT(*) FROM users GROUP BY ROW(a, b)',
  ],
  [
    'windows',
    {
      ...get({
        table: users,
        fields: [
          field(call('rank', [], { over: 'w' }), 'rank'),
          field(
            call('sum', [column('n')], {
              over: {
                kind: 'window',
                base: 'rows',
                partitionBy: [],
                orderBy: [],
                frame: {
                  kind: 'frame',
                  unit: 'rows',
                  start: { kind: 'preceding', offset: integer('2'), span: NOWHERE },
                  end: { kind: 'current row', span: NOWHERE },
                  span: NOWHERE,
                },
                span: NOWHERE,
              },
            }),
            'moving',
          ),
        ],
      }),
      windows: [
        {
          kind: 'named window',
          name: name('w'),
          body: {
            kind: 'window',
            base: null,
            partitionBy: [column('role')],
            orderBy: [order(column('id'), { descending: true, nulls: 'last' })],
            frame: null,
            span: NOWHERE,
          },
          span: NOWHERE,
        },
        {
          kind: 'named window',
          name: name('rows'),
          body: {
            kind: 'window',
            base: null,
            partitionBy: [],
            orderBy: [order(column('id'))],
            frame: null,
            span: NOWHERE,
          },
          span: NOWHERE,
        },
      ],
    },
    'SELECT RANK() OVER w AS rank, SUM(n) OVER ("rows" ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ' +
      'moving FROM users WINDOW w AS (PARTITION BY role ORDER BY id DESC NULLS LAST), rows AS (ORDER BY id)',
  ],
  [
    'a lock',
    {
      ...get({ table: users, limit: named('n') }),
      lock: { kind: 'lock', strength: 'update', wait: 'skip locked', span: NOWHERE },
    },
    'SELECT * FROM users LIMIT $1 FOR UPDATE SKIP LOCKED',
  ],
  [
    'functions with special syntax',
    get({
      table: users,
      fields: [
        field(call('extract', [text('year'), column('created_at')])),
        field(call('substring', [column('name'), integer('1'), integer('2')])),
        field(call('current_date', [])),
        field(call('string_agg', [column('name'), text(',')], { distinct: true, orderBy: [order(column('name'))] })),
        field(call('Coalesce', [column('name'), text('')])),
        field(call('lower', [column('name')], { schema: 'pg_catalog' })),
      ],
    }),
    'SELECT EXTRACT(YEAR FROM created_at), SUBSTRING(name, 1, 2), CURRENT_DATE, string_agg(DISTINCT name, ' +
      "',' ORDER BY name), COALESCE(name, ''), pg_catalog.lower(name) FROM users GROUP BY EXTRACT(YEAR FROM " +
      "created_at), SUBSTRING(name, 1, 2), COALESCE(name, ''), pg_catalog.lower(name)",
  ],
  [
    'add several rows and nothing on conflict',
    add('users', {
      columns: [name('id'), name('name')],
      rows: {
        kind: 'values',
        rows: [
          [integer('8'), text('H')],
          [integer('9'), nothing],
        ],
        span: NOWHERE,
      },
      conflict: { kind: 'conflict', target: [], update: null, span: NOWHERE },
      returning: [field(column('id'), 'key')],
    }),
    "INSERT INTO users (id, name) VALUES (8, 'H'), (9, NULL) ON CONFLICT DO NOTHING RETURNING id AS key",
  ],
  ['add defaults', add('docs', { returning: [] }), 'INSERT INTO docs DEFAULT VALUES'],
  [
    'add from a query, update on conflict under a condition',
    add('orders', {
      columns: [name('id')],
      rows: {
        kind: 'from',
        query: {
          ...get({ table: users, fields: [field(column('users', 'id'))] }),
          joins: [join('docs', null, { type: 'cross' })],
        },
        span: NOWHERE,
      },
      conflict: {
        kind: 'conflict',
        target: [name('id')],
        update: {
          assignments: [assign('total', arithmetic('+', column('orders', 'total'), column('excluded', 'total')))],
          where: compare('<>', column('orders', 'status'), text('paid')),
        },
        span: NOWHERE,
      },
    }),
    'INSERT INTO orders (id) SELECT users.id FROM users CROSS JOIN docs ON CONFLICT (id) DO UPDATE SET ' +
      "total = orders.total + excluded.total WHERE orders.status <> 'paid' RETURNING *",
  ],
  [
    'set with joins',
    set('users', {
      alias: 'u',
      joins: [
        join('orders', compare('=', column('orders', 'user_id'), column('u', 'id')), { type: 'inner' }),
        join('posts', compare('=', column('posts', 'user_id'), column('orders', 'user_id'))),
      ],
      assignments: [assign('n', column('orders', 'id')), assign('name', column('posts', 'title'))],
      where: compare('=', column('orders', 'status'), text('paid')),
      returning: [field(column('u', 'id'))],
    }),
    'UPDATE users AS u SET n = orders.id, name = posts.title FROM orders LEFT JOIN posts ON posts.user_id ' +
      "= orders.user_id WHERE orders.user_id = u.id AND orders.status = 'paid' RETURNING u.id",
  ],
  [
    'del with a join by name, and a source with a condition',
    del('posts', {
      joins: [
        join('users', compare('=', column('posts', 'user_id'), column('users', 'id')), {
          type: 'inner',
          source: { ...source('users'), condition: or(equal('a', '1'), equal('b', '2')) },
        }),
      ],
    }),
    'DELETE FROM posts USING users WHERE posts.user_id = users.id AND (a = 1 OR b = 2)',
  ],
  ['set all', set('users', { assignments: [assign('n', nothing)] }), 'UPDATE users SET n = NULL'],
  [
    'merge',
    merge,
    'MERGE INTO users AS u USING orders AS o ON u.id = o.user_id WHEN MATCHED AND o.total > 10 THEN ' +
      'UPDATE SET n = o.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (o.user_id) ' +
      'WHEN NOT MATCHED BY SOURCE THEN DO NOTHING',
  ],
  [
    'merge from a source with a condition',
    {
      ...merge,
      using: { ...source('orders', 'o'), condition: compare('>', column('o', 'total'), integer('1')) },
      whens: merge.whens.slice(0, 1),
    },
    'MERGE INTO users AS u USING (SELECT * FROM orders AS o WHERE o.total > 1) AS o ON u.id = o.user_id ' +
      'WHEN MATCHED AND o.total > 10 THEN UPDATE SET n = o.id',
  ],
  [
    'make',
    {
      kind: 'make',
      table: tableName(from('made')),
      columns: [
        columnOf('id', 'int8', { primaryKey: true }),
        columnOf('price', 'numeric', {
          default: arithmetic('+', integer('1'), integer('2')),
          check: compare('>', column('price'), integer('0')),
        }),
        columnOf('flags', 'text', { nullable: true, unique: true, default: or(yes, yes) }),
        columnOf('user_id', 'integer', { nullable: true, references: { table: tableName(users), column: 'id' } }),
      ],
      constraints: [{ kind: 'unique', columns: [name('price'), name('user_id')], span: NOWHERE }],
      span: NOWHERE,
    },
    'CREATE TABLE made (id int8 PRIMARY KEY, price numeric NOT NULL DEFAULT 1 + 2 CHECK (price > 0), ' +
      'flags text UNIQUE DEFAULT (true OR true), user_id integer REFERENCES users (id), UNIQUE (price, ' +
      'user_id))',
  ],
  [
    'make, of columns whose names open other syntax before their types',
    {
      kind: 'make',
      table: tableName(from('made')),
      columns: [columnOf('format', 'json', {}), columnOf('without', 'time', {}), columnOf('nulls', 'int', {})],
      constraints: [],
      span: NOWHERE,
    },
    'CREATE TABLE made ("format" json NOT NULL, "without" time NOT NULL, "nulls" int NOT NULL)',
  ],
  [
    'index',
    {
      kind: 'index',
      name: name('by_role'),
      table: tableName(users),
      columns: [name('role'), name('id')],
      unique: true,
      where: equal('a', '1'),
      span: NOWHERE,
    },
    'CREATE UNIQUE INDEX by_role ON users (role, id) WHERE a = 1',
  ],
  [
    'call',
    {
      kind: 'call',
      function: tableName({ schema: 'public', name: 'archive' }),
      arguments: [cast(text('2020-01-01'), 'date')],
      span: NOWHERE,
    },
    "CALL public.archive('2020-01-01'::date)",
  ],
  ['begin', { kind: 'begin', span: NOWHERE }, 'BEGIN'],
  ['explain', { kind: 'explain', statement: get({ table: users }), span: NOWHERE }, 'EXPLAIN SELECT * FROM users'],
]

function columnOf(column: string, type: string, parts: object) {
  return {
    kind: 'column definition',
    name: name(column),
    type: { kind: 'type', schema: null, name: type, modifiers: [], dimensions: 0, span: NOWHERE },
    primaryKey: false,
    unique: false,
    nullable: false,
    default: null,
    check: null,
    references: null,
    span: NOWHERE,
    ...parts,
  } as const
}

/** "Not matched by source" requires PostgreSQL 17. */
const STATEMENTS = [...examples, ...further].filter(([, { kind }]) => kind !== 'merge' || POSTGRES_MAJOR >= 17)

describe('statements', () => {
  test.each(STATEMENTS)('a statement is printed and PostgreSQL accepts it: %s', async (_, statement, sql) => {
    expect(printSql(statement, { parameters: 'keep' }).text).toBe(sql)
    await prepare(sql)
  })

  test.each(STATEMENTS)('a statement with every literal lifted is accepted by PostgreSQL: %s', async (_, statement) => {
    const { text: sql, parameters } = printSql(statement, { parameters: 'all' })
    await prepare(sql)
    const numbers = [...sql.matchAll(/\$(\d+)/g)].map(match => Number(match[1]))
    const firstUses = [...new Set(numbers)]
    expect(firstUses).toEqual(parameters.map((_parameter, index) => index + 1))
  })
})

describe('conditions', () => {
  const meta = subquery(get({ table: from('docs'), fields: [field(column('meta'))], limit: integer('1') }))
  test.each<[string, Expression, string]>([
    ['in', inValues(column('id'), [integer('1'), integer('2')], 'negated'), 'id NOT IN (1, 2)'],
    ['in a list parameter', inSet(column('id'), named('ids')), 'id = ANY($1)'],
    ['not in a list parameter', inSet(column('id'), position(7), 'negated'), 'id <> ALL($1)'],
    ['between', between(column('active'), yes, or(yes, yes)), 'active BETWEEN true AND (true OR true)'],
    ['like', like('ilike', column('name'), text('A%'), 'negated'), "name NOT ILIKE 'A%'"],
    ['similar to', like('similar to', column('name'), text('(A|B)%')), "name SIMILAR TO '(A|B)%'"],
    ['contains', compare('~', column('name'), text('50%_\\')), "name ILIKE '%50\\%\\_\\\\%'"],
    [
      'contains a parameter',
      compare('~', column('name'), position(1)),
      "name ILIKE '%' || replace(replace(replace($1, '\\', '\\\\'), '%', '\\%'), '_', '\\_') || '%'",
    ],
    [
      'regular expressions',
      and(compare('regex', column('name'), text('^A')), compare('~*', column('name'), text('^a'))),
      "name ~ '^A' AND name ~* '^a'",
    ],
    [
      'text search',
      compare('@@', column('name'), text('ann')),
      "to_tsvector('english', COALESCE(name, '')) @@ websearch_to_tsquery('english', 'ann')",
    ],
    ['is', { kind: 'is', what: 'true', negated: true, operand: column('active'), span: NOWHERE }, 'active IS NOT TRUE'],
    [
      'distinct from',
      { kind: 'distinct from', negated: true, left: column('a'), right: nothing, span: NOWHERE },
      'a IS NOT DISTINCT FROM NULL',
    ],
    [
      'exists',
      not(
        exists(get({ table: from('posts'), where: compare('=', column('posts', 'user_id'), column('users', 'id')) })),
      ),
      'NOT EXISTS (SELECT * FROM posts WHERE posts.user_id = users.id)',
    ],
    [
      'json steps',
      compare('=', jsonStep('->>', jsonStep('->', meta, text('x')), text('y')), text('z')),
      "(SELECT meta FROM docs LIMIT 1) -> 'x' ->> 'y' = 'z'",
    ],
    [
      'json_exists',
      { kind: 'json test', test: 'json_exists', operand: meta, path: '$.a', span: NOWHERE },
      "jsonb_path_exists((SELECT meta FROM docs LIMIT 1), '$.a')",
    ],
    [
      'json_query',
      { kind: 'json test', test: 'json_query', operand: meta, path: '$.a', span: NOWHERE },
      "jsonb_path_query_first((SELECT meta FROM docs LIMIT 1), '$.a') IS NOT NULL",
    ],
    [
      'json_value',
      { kind: 'json test', test: 'json_value', operand: meta, path: '$.a', span: NOWHERE },
      "jsonb_path_query_first((SELECT meta FROM docs LIMIT 1), '$.a') #>> '{}' IS NOT NULL",
    ],
    [
      'two minus signs do not start a comment',
      compare('=', negate(negate(column('a'))), arithmetic('-', integer('5'), integer('-1'))),
      '-(-a) = 5 - -1',
    ],
    ['a cast of a negative number', compare('=', cast(integer('-1'), 'text'), text('-1')), "(-1)::text = '-1'"],
    [
      'arrays',
      and(compare('&&', column('tags'), array([text('x')])), compare('=', column('tags'), array([]))),
      "tags && ARRAY['x'] AND tags = '{}'",
    ],
    ['rows', inValues(row([column('a'), column('b')]), [row([integer('1'), integer('2')])]), '(a, b) IN ((1, 2))'],
    [
      'a type with modifiers',
      compare(
        '=',
        {
          ...cast(column('score'), 'x'),
          type: { kind: 'type', schema: null, name: 'numeric', modifiers: [10, 2], dimensions: 0, span: NOWHERE },
        },
        literal('decimal', '1.50'),
      ),
      'score::numeric(10, 2) = 1.50',
    ],
    [
      'a quote in a text',
      compare('=', column('name'), text("x'; drop table users; --\\")),
      "name = 'x''; drop table users; --\\'",
    ],
  ])('a condition is printed and PostgreSQL accepts it: %s', async (_, expression, sql) => {
    expect(condition(expression)).toBe(sql)
    await prepare(`SELECT id FROM users WHERE ${sql}`)
    const lifted = printSql(where(expression), { parameters: 'all' })
    await prepare(lifted.text)
  })

  test('a substring search takes the text literally, as a literal and as a parameter', async () => {
    for (const wanted of ['50%_\\', '%_', '\\', 'NN']) {
      const expected = wanted === 'NN' ? [{ id: 1 }] : [{ id: 3 }]
      expect(await rows(where(compare('~', column('name'), text(wanted))))).toEqual(expected)
      expect(await rows(where(compare('~', column('name'), position(1))), [wanted])).toEqual(expected)
    }
  })

  test('dotted names are columns of sources in scope, otherwise paths into JSON', async () => {
    const path = get({
      table: from('docs'),
      fields: [field(column('meta', 'theme'), 'a'), field(column('docs', 'meta', 'x', 'y'), 'b')],
    })
    expect(printSql(path).text).toBe("SELECT meta->>'theme' AS a, docs.meta->'x'->>'y' AS b FROM docs")
    expect(await rows(path)).toEqual([{ a: 'dark', b: 'z' }])
  })

  test('durations of every unit are printed as intervals', async () => {
    for (const [value, printed] of [
      ['1s', '1 second'],
      ['90m', '90 minutes'],
      ['24h', '24 hours'],
      ['7d', '7 days'],
      ['2w', '2 weeks'],
      ['6mo', '6 months'],
      ['1y', '1 year'],
    ] as const) {
      expect(condition(compare('=', literal('duration', value), literal('duration', value)))).toContain(
        `INTERVAL '${printed}'`,
      )
      await prepare(`SELECT INTERVAL '${printed}'`)
    }
  })
})

describe('parameters', () => {
  test('named and numbered parameters are numbered by first use, once each, among lifted literals', () => {
    const query = get({
      table: users,
      fields: [field(column('id'))],
      where: and(
        compare('=', column('a'), position(7)),
        compare('=', column('name'), text('A')),
        compare('=', column('b'), position(7)),
        compare('=', column('c'), named('x')),
      ),
      limit: named('x'),
    })
    expect(printSql(query, { parameters: 'keep' })).toEqual({
      text: "SELECT id FROM users WHERE a = $1 AND name = 'A' AND b = $1 AND c = $2 LIMIT $2",
      parameters: [
        { kind: 'position', n: 7 },
        { kind: 'name', name: 'x' },
      ],
    })
    expect(printSql(query, { parameters: 'all' })).toEqual({
      text: 'SELECT id FROM users WHERE a = $1 AND name = $2 AND b = $1 AND c = $3 LIMIT $3',
      parameters: [
        { kind: 'position', n: 7 },
        { kind: 'literal', value: 'A', type: 'text' },
        { kind: 'name', name: 'x' },
      ],
    })
  })

  test('a lifted literal has a cast where PostgreSQL would infer another type', () => {
    const lifted = (expression: Expression): string =>
      printSql(where(expression), { parameters: 'all' }).text.replace('SELECT id FROM users WHERE ', '')
    expect(lifted(equal('a', '1'))).toBe('a = $1')
    expect(lifted(equal('a', '3000000000'))).toBe('a = $1::int8')
    expect(lifted(equal('a', '99999999999999999999999'))).toBe('a = $1::numeric')
    expect(lifted(compare('>', column('a'), literal('decimal', '1.5')))).toBe('a > $1::numeric')
    expect(
      lifted(compare('>', column('created_at'), arithmetic('-', call('now', []), literal('duration', '1d')))),
    ).toBe('created_at > NOW() - $1::interval')
    expect(lifted(compare('=', arithmetic('+', column('a'), integer('1')), integer('2')))).toBe('a + $1::int4 = $2')
    expect(lifted(compare('=', integer('1'), integer('1')))).toBe('$1::int4 = $2::int4')
    expect(lifted(isNull(text('x')))).toBe('$1::text IS NULL')
    expect(lifted(compare('=', column('name'), nothing))).toBe('name = NULL')
    expect(lifted(compare('=', call('concat', [text('x')]), text('y')))).toBe('concat($1::text) = $2')
    expect(lifted(compare('@>', cast(text('{}'), 'jsonb'), literal('json', '{"a": 1}')))).toBe('$1::jsonb @> $2::jsonb')
  })

  test('a lifted literal in a row has an inferred type only where items are compared individually', async () => {
    const both = (): Expression => row([column('name'), column('a')])
    const given = (): Expression => row([text('x'), integer('1')])
    const query = subquery(get({ table: from('posts'), fields: [field(column('created_at')), field(column('id'))] }))
    for (const [expression, expected] of [
      [compare('=', both(), given()), '(name, a) = ($1, $2)'],
      [inValues(both(), [given()]), '(name, a) IN (($1, $2))'],
      [
        compare('=', row([both(), column('b')]), row([given(), integer('2')])),
        '((name, a), b) = (($1::text, $2::int4), $3)',
      ],
      [compare('=', column('users'), given()), 'users = ($1::text, $2::int4)'],
      [compare('=', row([text('2026-01-31'), integer('1')]), query), '($1, $2) = (SELECT created_at, id FROM posts)'],
      [inSet(row([text('2026-01-31'), integer('1')]), query), '($1, $2) IN (SELECT created_at, id FROM posts)'],
    ] as const) {
      const { text: sql } = printSql(where(expression), { parameters: 'all' })
      expect(sql).toBe(`SELECT id FROM users WHERE ${expected}`)
      await prepare(sql)
    }
  })

  test('a row that is assigned to a column keeps its constants, since the column determines their types', async () => {
    const place = row([text('Main St'), text('2026-01-31')])
    const added = printSql(add('shops', { rows: values(integer('1'), place, place) }), { parameters: 'all' })
    expect(added).toEqual({
      text: "INSERT INTO shops VALUES ($1, ('Main St', '2026-01-31'), ('Main St', '2026-01-31')) RETURNING *",
      parameters: [{ kind: 'literal', value: '1', type: 'integer' }],
    })
    const { rows: shops } = await client.query(`${added.text.replace('*', 'name, (place).street')}`, ['1'])
    expect(shops).toEqual([{ name: '("Main St",2026-01-31)', street: 'Main St' }])

    const moved = printSql(set('shops', { assignments: [assign('place', row([text('Side St'), nothing]))] }), {
      parameters: 'all',
    })
    expect(moved).toEqual({ text: "UPDATE shops SET place = ('Side St', NULL)", parameters: [] })
    expect((await client.query(`${moved.text} RETURNING (place).street`)).rows).toEqual([{ street: 'Side St' }])
  })

  testSince(15, 'MERGE')('a literal as the condition of a merge says its type', async () => {
    const { text: sql } = printSql(
      {
        kind: 'merge',
        with: null,
        table: tableName(from('users')),
        alias: null,
        using: source('posts'),
        on: text('true'),
        whens: [
          {
            kind: 'when',
            match: 'matched',
            and: null,
            action: { kind: 'merge delete', span: NOWHERE },
            span: NOWHERE,
          },
        ],
        span: NOWHERE,
      },
      { parameters: 'all' },
    )
    expect(sql).toBe('MERGE INTO users USING posts ON $1::text WHEN MATCHED THEN DELETE')
    await prepare(sql)
  })

  test('expressions that PostgreSQL compares with each other keep the same parameter', async () => {
    const day = (): Expression => call('date_trunc', [text('day'), column('created_at')])
    const query: Get = {
      ...get({ table: users, fields: [field(day(), 'day'), field(count, 'n')], orderBy: [order(column('day'))] }),
      groupBy: [day()],
      having: compare('>', column('day'), call('now', [])),
    }
    const { text: sql } = printSql(query, { parameters: 'all' })
    expect(sql).toBe(
      'SELECT date_trunc($1, created_at) AS day, COUNT(*) AS n FROM users GROUP BY date_trunc($1, ' +
        'created_at) HAVING date_trunc($1, created_at) > NOW() ORDER BY day',
    )
    await prepare(sql)
    const distinct: Get = {
      ...get({ table: users, fields: [field(day())], orderBy: [order(day())] }),
      distinct: { kind: 'distinct', on: [], span: NOWHERE },
    }
    await prepare(printSql(distinct, { parameters: 'all' }).text)
  })
})

describe('nests', () => {
  const posts = (parts: Partial<Nest> = {}): Nest => ({ ...nest({ many: true, table: from('posts') }), ...parts })

  test('a nest of many rows is joined by the names of the foreign key', async () => {
    const query = get({
      table: users,
      fields: [field(column('id'))],
      nests: [
        posts({
          fields: [field(column('title'))],
          orderBy: [order(column('id'))],
          limit: integer('1'),
          offset: integer('1'),
        }),
      ],
      orderBy: [order(column('id'))],
    })
    expect(printSql(query).text).toBe(
      "SELECT id, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT title FROM posts WHERE " +
        'posts.user_id = users.id ORDER BY id LIMIT 1 OFFSET 1) AS n) AS posts FROM users ORDER BY id',
    )
    expect(await rows(query)).toEqual([
      { id: 1, posts: [{ title: 'two' }] },
      { id: 2, posts: [] },
      { id: 3, posts: [] },
    ])
  })

  test('a nest of one row can contain another nest beside all columns', async () => {
    const parent = nest({
      many: false,
      table: from('companies'),
      alias: 'p',
      name: 'parent',
      on: compare('=', column('p', 'id'), column('companies', 'parent_id')),
      fields: [field(column('name'))],
    })
    const query = get({
      table: users,
      nests: [nest({ many: false, table: from('companies'), fields: [field(column('name'))], nests: [parent] })],
      where: equal('id', '2'),
    })
    expect(printSql(query).text).toBe(
      'SELECT *, (SELECT row_to_json(n.*) FROM (SELECT name, (SELECT row_to_json(n.*) FROM (SELECT name ' +
        'FROM companies AS p WHERE p.id = companies.parent_id) AS n) AS parent FROM companies WHERE ' +
        'users.company_id = companies.id) AS n) AS companies FROM users WHERE id = 2',
    )
    expect(await rows(query)).toEqual([
      expect.objectContaining({ id: 2, companies: { name: 'Branch', parent: { name: 'Acme' } } }),
    ])
  })

  test('tables and columns with the name n hide nothing', async () => {
    const inner = nest({
      many: true,
      table: users,
      alias: 'u',
      on: compare('=', column('u', 'id'), column('n', 'user_id')),
      fields: [field(column('u', 'id')), field(column('n', 'n'))],
    })
    const query = get({
      table: from('n'),
      fields: [field(column('n', 'n')), field(column('n', 'id'))],
      nests: [
        inner,
        nest({ many: false, table: from('n'), alias: 'm', on: compare('=', column('m', 'id'), column('n', 'id')) }),
      ],
      orderBy: [order(column('id'))],
    })
    expect(await rows(query)).toEqual([
      { n: 7, id: 1, u: [{ id: 1, n: 7 }], m: { id: 1, n: 7, user_id: 1 } },
      { n: 8, id: 2, u: [{ id: 1, n: 8 }], m: { id: 2, n: 8, user_id: 1 } },
    ])
  })

  test('a nest of one row takes the first if an order is given; otherwise several rows are an error', async () => {
    const latest = nest({
      many: false,
      table: from('posts'),
      on: compare('=', column('posts', 'user_id'), column('users', 'id')),
      fields: [field(column('title'))],
      orderBy: [order(column('posts', 'id'), { descending: true })],
    })
    const query = (one: Nest): Get =>
      get({ table: users, fields: [field(column('id'))], nests: [one], where: equal('id', '1') })
    expect(await rows(query(latest))).toEqual([{ id: 1, posts: { title: 'two' } }])
    await expect(rows(query({ ...latest, orderBy: [] }))).rejects.toMatchObject({ code: '21000' })
  })

  test('aggregates in nests are supported', async () => {
    const totals = nest({
      many: true,
      table: from('orders'),
      fields: [field(column('status')), field(call('sum', [column('total')]), 'sum')],
      orderBy: [order(column('status'))],
    })
    expect(
      await rows(get({ table: users, fields: [field(column('id'))], nests: [totals], where: equal('id', '1') })),
    ).toEqual([
      {
        id: 1,
        orders: [
          { status: 'new', sum: 5 },
          { status: 'paid', sum: 11 },
        ],
      },
    ])
  })
})
