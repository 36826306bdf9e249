/** Query-language texts through the check: the SQL that they become, and the errors. */
import { describe, expect, test } from 'vitest'
import { arrayOf, baseType, catalogOf, tableOf } from '../../test/support/model.ts'
import type { Catalog, DatabaseFunction, Relation } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import { printSql } from '../language/sql/print.ts'
import { parse } from '../language/syntax/parse.ts'
import type { Get, Parameter } from '../language/tree/ast.ts'
import { type StatementLimits, UNLIMITED } from '../statement-limits.ts'
import { type CheckedQuery, checkRead, checkWrite, type Write } from './check.ts'
import { EVERYTHING } from './rights.ts'

const status = { ...baseType('status'), schema: 'public', kind: 'enum' as const }

function relation(parts: Pick<Relation, 'table' | 'cardinality' | 'columns' | 'targetColumns'>): Relation {
  return { name: parts.table, shortName: null, junction: null, constraints: [], ...parts }
}

const tables = catalogOf(
  tableOf(
    'users',
    { id: 'int4', name: 'text', meta: 'jsonb', tags: arrayOf(baseType('text')) },
    {
      primaryKey: ['id'],
      relations: [relation({ table: 'orders', cardinality: 'many', columns: ['id'], targetColumns: ['user_id'] })],
    },
  ),
  tableOf(
    'orders',
    { id: 'int8', user_id: 'int4', total: 'numeric', status },
    {
      primaryKey: ['id'],
      relations: [relation({ table: 'users', cardinality: 'one', columns: ['user_id'], targetColumns: ['id'] })],
    },
  ),
  tableOf('targets', { id: 'int4' }, { schema: 'sales' }),
)

function called(name: string, volatility: DatabaseFunction['volatility'], schema = 'public'): DatabaseFunction {
  const resource = schema === 'public' ? name : `${schema}.${name}`
  return {
    ...{
      oid: 1,
      schema,
      name,
      resource,
      comment: null,
      example: null,
      volatility,
      returnsSet: false,
      strict: false,
      executable: true,
      variadic: false,
    },
    ...{ identityArgs: '', resultText: 'text', inputs: [], outputs: [], result: { kind: 'void' } },
  }
}

const catalog: Catalog = {
  ...tables,
  functions: new Map([
    ['rate', [called('rate', 'immutable')]],
    ['sales.rate', [called('rate', 'immutable', 'sales')]],
    ['secret', [called('secret', 'immutable')]],
    ['bump', [called('bump', 'immutable'), called('bump', 'stable')]],
    ['lower', [called('lower', 'volatile')]],
  ]),
}

/** The types of parameters without a typed context: numbers are integers, names are texts. */
const parameterType = (parameter: Parameter) => (parameter.kind === 'position' ? 'int4' : 'text')
const context = {
  catalog,
  rights: EVERYTHING,
  searchLanguage: 'english',
  parameterType,
  isCallable: ({ name }: DatabaseFunction) => name !== 'secret',
}

function check(text: string, limits?: StatementLimits): CheckedQuery<Get | Write> {
  const tree = parse(text)
  const limited = limits === undefined ? context : { ...context, limits }
  return tree.kind === 'get' ? checkRead(tree, limited) : checkWrite(tree as Write, limited)
}

function sql(text: string): string {
  return printSql(check(text).query).text
}

describe('a text becomes a statement with every name resolved', () => {
  test.each<[string, string]>([
    ['get targets', 'there is no table "targets"'],
    ['get sales.targets', 'SELECT targets.id FROM sales.targets'],
    ['get public.users fields public.users.id', 'SELECT users.id FROM public.users'],
    ['get users u fields u.id', 'SELECT u.id FROM public.users AS u'],
    [
      'get users fields users.*, 1 as one',
      'SELECT users.id, users.name, users.meta, users.tags, 1 AS one FROM public.users',
    ],
    [
      'get orders o join users u fields o.id, name',
      'SELECT o.id, u.name FROM public.orders AS o LEFT JOIN public.users AS u ON o.user_id = u.id',
    ],
    [
      'get users u inner join orders o fields o.id',
      'SELECT o.id FROM public.users AS u INNER JOIN public.orders AS o ON u.id = o.user_id',
    ],
    [
      'get users u inner join orders o[total > u.id] on true fields o.id',
      'SELECT o.id FROM public.users AS u INNER JOIN public.orders AS o ON true WHERE o.total > u.id',
    ],
    [
      'get users nest many orders { fields id } fields name',
      "SELECT users.name, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT orders.id FROM " +
        'public.orders WHERE orders.user_id = users.id) AS n) AS orders FROM public.users',
    ],
    ['get users fields meta.theme', "SELECT users.meta->>'theme' AS theme FROM public.users"],
    [
      'with users as (get orders fields id as x) get users',
      'WITH users AS (SELECT orders.id AS x FROM public.orders) SELECT users.x FROM users',
    ],
    [
      'with users as (get orders fields id as x) get public.users fields id',
      'WITH users AS (SELECT orders.id AS x FROM public.orders) SELECT users.id FROM public.users',
    ],
    [
      'with a (x) as (get users fields 1, id) get a fields x, id',
      'WITH a (x) AS (SELECT 1, users.id FROM public.users) SELECT a.x, a.id FROM a',
    ],
    [
      'with recursive t as (get orders fields id union get t fields id + 1) get t',
      'WITH RECURSIVE t AS (SELECT orders.id FROM public.orders UNION SELECT t.id + 1 FROM t) SELECT t.id FROM t',
    ],
    // Without `recursive` a common table cannot refer to itself.
    [
      'with orders as (get orders fields id) get orders',
      'WITH orders AS (SELECT orders.id FROM public.orders) SELECT orders.id FROM orders',
    ],
    [
      'get (get users fields count(*) as n) d fields d.n where n > 1',
      'SELECT d.n FROM (SELECT pg_catalog.count(*) AS n FROM public.users) AS d WHERE d.n > 1',
    ],
    [
      'get orders fields status, sum(total) as total having total > 5 and min(total) > 1',
      'SELECT orders.status, pg_catalog.sum(orders.total) AS total FROM public.orders GROUP BY orders.status ' +
        'HAVING pg_catalog.sum(orders.total) > 5 AND pg_catalog.min(orders.total) > 1',
    ],
    [
      'get users fields coalesce(name, $1), trim(name), rank() over (order by id), extract(day from now())',
      'SELECT COALESCE(users.name, $1::int4), pg_catalog.btrim(users.name), pg_catalog.rank() OVER (ORDER BY ' +
        'users.id), EXTRACT(DAY FROM pg_catalog.now()) FROM public.users',
    ],
    [
      'get orders fields percentile_cont(0.5 order by total), mode(order by status), rank(5 order by id)',
      'SELECT pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY orders.total), pg_catalog.mode() WITHIN ' +
        'GROUP (ORDER BY orders.status), pg_catalog.rank(5) WITHIN GROUP (ORDER BY orders.id) FROM public.orders',
    ],
    ['get users fields rate(), sales.rate() as r', 'SELECT public.rate(), sales.rate() AS r FROM public.users'],
    ['get users fields LOWER(name) as l', 'SELECT pg_catalog.lower(users.name) AS l FROM public.users'],
    [
      "add users fields id, name values 1, 'x' conflict (id) update name = excluded.name || name returning id",
      "INSERT INTO public.users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name " +
        '|| users.name RETURNING users.id',
    ],
    [
      'set orders values total = :t where id = $1',
      'UPDATE public.orders SET total = $1::numeric WHERE orders.id = $2::int8',
    ],
    [
      'del orders o inner join users u where u.name = :n',
      'DELETE FROM public.orders AS o USING public.users AS u WHERE o.user_id = u.id AND u.name = $1::text',
    ],
  ])('%s', (text, expected) => {
    if (expected.startsWith('there is')) expect(() => sql(text)).toThrow(expected)
    else expect(sql(text)).toBe(expected)
  })
})

describe('a parameter takes the type of its context', () => {
  test.each<[string, string]>([
    ['status = :s', 'orders.status = $1::public.status'],
    [':s = status', '$1::public.status = orders.status'],
    ['status::public.status = :s', 'orders.status::public.status = $1::public.status'],
    ['[total]::numeric[] = :s', 'ARRAY[orders.total]::numeric[] = $1::numeric[]'],
    ['id in :s', 'orders.id = ANY($1::int8[])'],
    ['id in :s::int[]', 'orders.id = ANY($1::int[])'],
    ['id + 1 in :s', 'orders.id + 1 = ANY($1)'],
    [':s is null or id = :s', '$1::text IS NULL OR orders.id = $1::int8'],
    ['concat(:s, total) = :t', 'pg_catalog.concat($1::text, orders.total) = $2'],
    ['total > $1 + 1', 'orders.total > $1::int4 + 1'],
  ])('%s', (condition, expected) => {
    expect(sql(`get orders fields id where ${condition}`)).toBe(`SELECT orders.id FROM public.orders WHERE ${expected}`)
  })
  test('all uses of a parameter must agree', () => {
    expect(() => check('get users where meta = :x or name = :x')).toThrow(
      'JSON in one place and a plain value in another',
    )
    expect(() => check('get users where id in :x or id = :x')).toThrow(
      'a list in one place and a plain value in another',
    )
    expect(() => check('get users where :x is null or meta = :x')).not.toThrow()
  })
})

describe('a field never replaces another field of the same name', () => {
  const joined = 'get users u inner join orders o'
  test.each<[string, string]>([
    [`${joined} fields u.id, o.id`, 'SELECT u.id, o.id AS "o.id" FROM'],
    [`${joined} fields o.id, u.*`, 'SELECT o.id, u.id AS "u.id", u.name, u.meta, u.tags FROM'],
    [`${joined} fields u.*, o.id`, 'SELECT u.id, u.name, u.meta, u.tags, o.id AS "o.id" FROM'],
    [
      `${joined} fields u.*, o.*`,
      'SELECT u.id, u.name, u.meta, u.tags, o.id AS "o.id", o.user_id, o.total, o.status FROM',
    ],
    [
      `${joined} fields *, o.id`,
      'SELECT u.id, u.name, u.meta, u.tags, o.user_id, o.total, o.status, o.id AS "o.id" FROM',
    ],
    [`get (${joined} fields u.id, o.id) d`, 'SELECT d.id, d."o.id" FROM'],
    // The same column, or a field renamed to it on purpose, appears once.
    ['get users fields id, *', 'SELECT users.id, users.name, users.meta, users.tags FROM'],
    ['get users fields *, 1 as id', 'SELECT users.name, users.meta, users.tags, 1 AS id FROM'],
    ['del orders o inner join users u where o.id = 1 returning o.id, u.id', 'RETURNING o.id, u.id AS "u.id"'],
  ])('%s', (text, expected) => {
    expect(sql(text)).toContain(expected)
  })
  test.each([
    'get users fields id as x, name as x',
    'get orders fields sum(id), sum(total)',
    'get users fields meta.a.b, meta.c.b',
    'get users nest many orders { fields sum(id), sum(total) } fields id',
    'del orders where id = 1 returning lower(status::text), lower(id::text)',
  ])('%s is rejected', text => {
    expect(() => check(text)).toThrow(/^two fields of the result are named "(x|sum|b|lower)"/)
  })
  test('duplicate names inside a nested query are allowed', () => {
    expect(() => check('get users where (id, id) in (get orders fields max(id), max(user_id))')).not.toThrow()
    expect(() => check('add orders fields id, user_id from (get users fields max(id), max(id))')).not.toThrow()
  })
})

describe('a list next to JSON is JSON', () => {
  test.each<[string, string]>([
    ['set users values meta = [] where all', "SET meta = '[]'::jsonb"],
    [
      'set users values meta = [1, \'a\', true, null, [2.5], {"b": 1}] where all',
      `'[1, "a", true, null, [2.5], {"b": 1}]'::jsonb`,
    ],
    ['add users fields meta values ([]), ([1])', `VALUES ('[]'::jsonb), ('[1]'::jsonb)`],
    ['add users fields id values 1 conflict (id) update meta = []', `SET meta = '[]'::jsonb`],
    ['get users where meta = [] or [1] <@ meta', `users.meta = '[]'::jsonb OR '[1]'::jsonb <@ users.meta`],
    ["get users where meta->'a' in ([], ['x'])", `IN ('[]'::jsonb, '["x"]'::jsonb)`],
    ['get users where meta between [] and [1]', `BETWEEN '[]'::jsonb AND '[1]'::jsonb`],
    ['get users where meta is distinct from []', `IS DISTINCT FROM '[]'::jsonb`],
    ['get users fields meta || [] as m', `users.meta || '[]'::jsonb`],
    ['get users fields coalesce(meta, []) as m', `COALESCE(users.meta, '[]'::jsonb)`],
    ['get users fields case when id = 1 then [] else meta end as m', `THEN '[]'::jsonb ELSE users.meta`],
    ["get users fields jsonb_set(meta, ['a'], []) as m", `(users.meta, ARRAY['a'], '[]'::jsonb)`],
    // A list next to a type other than JSON is left to PostgreSQL.
    ['set users values meta = [id] where all', 'SET meta = ARRAY[users.id]'],
    ['set users values meta = [1.] where all', 'SET meta = ARRAY[1.]'],
    // So is a list next to an array, or next to the texts of one.
    ['set users values tags = [] where all', "SET tags = '{}'"],
    [
      'get users where tags = [] and coalesce(tags, []) @> []',
      "users.tags = '{}' AND COALESCE(users.tags, '{}') @> '{}'",
    ],
    [
      "get users where meta ?| ['a'] and meta #> ['a'] is null",
      "users.meta ?| ARRAY['a'] AND users.meta #> ARRAY['a'] IS NULL",
    ],
  ])('%s', (text, expected) => {
    expect(sql(text)).toContain(expected)
  })
})

test('~ searches the text form of a column of any type', () => {
  expect(sql("get users where id ~ '1'")).toContain("WHERE users.id::text ILIKE '%1%'")
  expect(sql('get users where name ~ 1.5')).toContain("WHERE users.name ILIKE '%1.5%'")
  expect(sql('get users where id ~ :x')).toContain("users.id::text ILIKE '%' || replace(replace(replace($1::text,")
  expect(sql("get users where meta.a ~ 'x' and tags ~ 'y'")).toContain(
    "users.meta->>'a' ILIKE '%x%' AND users.tags::text ILIKE '%y%'",
  )
})

describe('a text cannot be ordered relative to a number', () => {
  test.each([
    'meta.seats > 9',
    '9 <= meta.seats',
    "meta ->> 'seats' < 1.5",
    'name >= 5',
    'meta.seats between 1 and 6',
    "meta.seats between '1' and 6",
  ])('%s', condition => {
    expect(() => check(`get users where ${condition}`)).toThrow(/is text, and texts sort by character/)
  })
  test.each([
    ['meta.seats = 9', "users.meta->>'seats' = 9"],
    ['meta.seats::int > 9', "(users.meta->>'seats')::int > 9"],
    ["meta.seats > '9'", "users.meta->>'seats' > '9'"],
    ["meta -> 'seats' > 9", "users.meta -> 'seats' > 9"],
    ['name > :x', 'users.name > $1::text'],
  ])('%s is accepted', (condition, expected) => {
    expect(sql(`get users where ${condition}`)).toContain(expected)
  })
})

describe('a name that the check and PostgreSQL could resolve differently is rejected', () => {
  test.each<[string, string]>([
    // The printed name would mean the inner source.
    ['get orders a where exists (get users a where total > 1)', 'another source named "a" hides here'],
    [
      'get orders where exists (get users orders where public.orders.total > 1)',
      'another source named "orders" hides here',
    ],
    [
      'get (get users fields id as ctid) a where exists (get orders a where ctid = 1)',
      'another source named "a" hides here',
    ],
    // Inside an aggregate a name is never an alias: PostgreSQL would look for a column, a system column or
    // a whole row.
    ['get users fields count(*) as users having count(users) > 0', 'has no column "users"'],
    ['get users fields count(*) as ctid having min(ctid) is null', 'has no column "ctid"'],
    ['get users fields count(*) as n having count(*) filter (where n > 1) > 0', 'has no column "n"'],
    // `*` would lose a column without a name, or let PostgreSQL decide what it means.
    ['get (get users fields id, 1) d', '"d" has a field without a name'],
    ['get (get users fields 1) d', '"d" has a field without a name'],
    ['with c as (get users fields id || 1) get c', '"c" has a field without a name'],
    ['get users fields users', 'has no column "users"'],
    ['get users fields users.xmax', 'has no column "xmax"'],
    ['get users u fields public.users.id', '"public.users.id" begins with "public"'],
    ['get pg_catalog.pg_class', 'there is no table "pg_catalog.pg_class"'],
    ['get information_schema.tables', 'there is no table "information_schema.tables"'],
    ['with a as (get users) get b.a', 'there is no table "b.a"'],
    ['with a as (get users) add a fields id values 1', 'there is no table "a"'],
    ['with a as (get users) del a where all', 'there is no table "a"'],
    ['with a as (get users) get users nest many a', 'there is no table "a"'],
    // PostgreSQL allows forward references in a recursive clause; here a name means an earlier common
    // table.
    ['with recursive a as (get b), b as (get users) get a', 'there is no table "b"'],
  ])('%s', (text, message) => {
    expect(() => check(text)).toThrow(GatewayError)
    expect(() => check(text)).toThrow(message)
  })
})

describe('functions that do more than compute are rejected under every name', () => {
  const runsSql = [
    'ts_rewrite',
    'ts_stat',
    'query_to_xml',
    'database_to_xml',
    'table_to_xml',
    'cursor_to_xml',
    'schema_to_xml',
  ]
  const settings = ['set_config', 'current_setting', 'pg_reload_conf']
  const sessions = [
    'pg_sleep',
    'pg_terminate_backend',
    'pg_cancel_backend',
    'pg_stat_get_activity',
    'pg_notify',
    'pg_advisory_lock',
  ]
  const files = ['pg_read_file', 'pg_ls_dir', 'lo_import', 'lo_export', 'lo_get', 'pg_stat_file']
  const catalogues = [
    'pg_typeof',
    'to_regclass',
    'format_type',
    'pg_get_functiondef',
    'pg_get_viewdef',
    'obj_description',
    'has_table_privilege',
  ]
  const others = [
    'nextval',
    'setval',
    'currval',
    'dblink',
    'current_user',
    'session_user',
    'version',
    'inet_server_addr',
    'any',
    'txid_current',
  ]
  test.each([...runsSql, ...settings, ...sessions, ...files, ...catalogues, ...others])('%s', name => {
    const spellings = [
      name,
      name.toUpperCase(),
      `\`${name}\``,
      `pg_catalog.${name}`,
      `\`pg_catalog\`.\`${name}\``,
      `public.${name}`,
    ]
    for (const spelling of spellings) {
      for (const place of [
        `get users fields ${spelling}('x')`,
        `get users where ${spelling}('x') = 'y'`,
        `get users order by ${spelling}(id)`,
      ]) {
        expect(() => check(place)).toThrow(expect.objectContaining({ code: 'FORBIDDEN' }))
      }
    }
  })
  test('functions of the database that write or are not allowed are rejected everywhere in a tree', () => {
    for (const call of ['bump()', 'public.bump()', 'secret()', '`Rate`()', 'public.lower(name)', 'sales.secret()']) {
      const places = [
        `get users fields ${call}`,
        `get users[${call} = 1]`,
        `get users where id = 1 group by ${call}`,
        `get users fields count(*) having ${call} = 1`,
        `get users order by ${call}`,
        `get users fields max(id) filter (where ${call} = 1)`,
        `get users fields max(id) over (partition by ${call})`,
        `get users fields max(id) over w window w as (order by ${call})`,
        `get distinct on (${call}) users`,
        `get users u join orders o on ${call} = 1`,
        `get users nest many orders on ${call} = 1`,
        `get users nest many orders { where ${call} = 1 }`,
        `get users where id in (get orders fields ${call})`,
        `with a as (get users fields ${call} as x) get a`,
        `add users fields id values ${call}`,
        `add users fields id values 1 conflict (id) update name = ${call}`,
        `set users values name = ${call} where all`,
        `set users values name = 'x' where all returning ${call}`,
        `del users where ${call} = 1`,
      ]
      for (const place of places) expect(() => check(place)).toThrow(expect.objectContaining({ code: 'FORBIDDEN' }))
    }
  })
})

test('the error suggests the syntax that the language uses instead', () => {
  expect(() => check('get users where id = current_date')).toThrow(
    'has no column "current_date"; to call the function, write current_date()',
  )
  expect(() => check('get users where id > NOW')).toThrow('to call the function, write now()')
  for (const text of [
    'get orders fields status, sum(total) as s where s > 100',
    'get users fields lower(name) as s order by upper(s)',
    'get users fields lower(name) as s, count(*) group by upper(s)',
  ]) {
    expect(() => check(text)).toThrow('has no column "s"; a field has this name')
  }
  expect(() => check('get users as u where users.id = 1')).toThrow(
    'begins with "users", which is neither a table nor a column here; did you mean "u"?',
  )
  expect(() => check("get users where 'a' = any(tags)")).toThrow(`an array column with tags @> ['a']`)
})

test('a cast to a type that turns numbers into names is rejected', () => {
  for (const type of [
    'regclass',
    'regrole',
    'regproc',
    'regprocedure',
    'regtype',
    'regnamespace',
    'regoper',
    'regoperator',
  ]) {
    for (const spelling of [
      type,
      `\`${type}\``,
      `pg_catalog.${type}`,
      `${type}[]`,
      `pg_catalog.\`_${type}\``,
      `\`_${type}\``,
    ]) {
      for (const text of [
        `get users fields 1::${spelling}`,
        `get users where id = cast($1 as ${spelling})`,
        `get users where id in $1::${spelling}`,
      ]) {
        expect(() => check(text)).toThrow(expect.objectContaining({ code: 'FORBIDDEN' }))
      }
    }
  }
  expect(() => check("get users where name @@ 'x' and 'english'::regconfig is not null")).not.toThrow()
})

describe('the time of the check is linear in the text', () => {
  const wrapped = (times: number, wrap: (inner: string, level: number) => string, first = 'get users fields id') =>
    Array.from({ length: times }).reduce<string>((inner, _, level) => wrap(inner, level), first)
  const many = (times: number, one: (index: number) => string, separator = ' ') =>
    Array.from({ length: times }, (_, index) => one(index)).join(separator)
  // Each of these would take exponential time if a source were checked twice on every level.
  test.each<[string, string]>([
    ['derived tables', wrapped(100, (inner, level) => `get (${inner}) d${level} fields id`)],
    [
      'common tables inside each other',
      wrapped(60, (inner, level) => `with c${level} as (${inner}) get c${level} fields id`),
    ],
    [
      'recursive ones',
      wrapped(
        60,
        (inner, level) =>
          `with recursive c${level} as (${inner} union get c${level} fields id) get c${level} fields id`,
      ),
    ],
    [
      'a chain of common tables',
      `with c0 as (get users), ${many(200, index => `c${index + 1} as (get c${index})`, ', ')} get c200 fields id`,
    ],
    [
      'nests',
      `get users ${wrapped(60, (inner, level) => `nest many orders o${level} on true { fields id ${inner} }`, '')}`,
    ],
  ])('%s', (_, text) => {
    const started = performance.now()
    check(text, UNLIMITED)
    expect(performance.now() - started).toBeLessThan(5_000)
  })
  test('the number of sources is bounded, wherever they appear', () => {
    const refused = 'reads from more than 64 relations (max_relations)'
    expect(() => check(`get users ${many(63, index => `nest many orders o${index}`)} fields id`)).not.toThrow()
    for (const text of [
      `get users ${many(64, index => `nest many orders o${index}`)}`,
      `with c0 as (get users), ${many(64, index => `c${index + 1} as (get c${index})`, ', ')} get c64`,
      `get users where ${many(64, () => 'exists (get orders)', ' or ')}`,
      many(65, () => 'get users', ' union '),
      `del users where ${many(65, () => 'exists (get orders)', ' or ')}`,
    ]) {
      expect(() => check(text)).toThrow(refused)
    }
  })
  test('the number of columns that stars expand to is bounded', () => {
    const joins = many(120, index => `join users u${index} on true`)
    expect(() => check(`get users ${joins} fields ${many(1000, () => '*', ', ')}`, UNLIMITED)).toThrow(
      'more than 16384 columns',
    )
    const wide = `with w as (get users ${joins}) get w ${many(60, index => `join (get w) w${index} on true`)} fields 1`
    expect(() => check(wide, UNLIMITED)).toThrow('more than 16384 columns')
  })
})
