/** Resources and their properties in the catalog (decision 0002), read from a real PostgreSQL. */
import { describe, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { INVOKER, POSTGRES_MAJOR, sqlSince } from '../../test/support/postgres-version.ts'
import { testSince } from '../../test/support/test-since.ts'
import { introspect } from './introspect.ts'
import type { Catalog, Column, Table } from './model.ts'

const database = databaseFixture()
const admin = fixture(() => openSession(database.adminUrl))
/** The gateway's role: it owns nothing and has no privileges. */
const gateway = fixture(() => openSession(database.url))

/** Creates the schema with `ddl` and reads it as the gateway's role. */
async function read(schema: string, ddl: string, exposedViews: readonly string[] = []): Promise<Catalog> {
  await admin.run(`create schema "${schema}"; set search_path to "${schema}", public; ${ddl}; reset search_path`)
  return introspect(gateway.query, { schemas: [schema], exposedViews })
}

function table(catalog: Catalog, resource: string): Table {
  const found = catalog.tables.get(resource)
  if (found === undefined) throw new Error(`no ${resource} among ${[...catalog.tables.keys()].join(', ')}`)
  return found
}

function column(of: Table, name: string): Column {
  const found = of.columnByName.get(name)
  if (found === undefined) throw new Error(`no ${name} among ${of.columns.map(one => one.name).join(', ')}`)
  return found
}

describe('resources', () => {
  test('tables, partitioned and foreign tables are resources; views only if security_invoker or listed', async () => {
    const catalog = await read(
      'kinds',
      `create table t (id int);
       create table p (id int, at date) partition by range (at);
       create table p_2024 partition of p for values from ('2024-01-01') to ('2025-01-01') partition by range (at);
       create table p_2024_01 partition of p_2024 for values from ('2024-01-01') to ('2024-02-01');
       create table child () inherits (t);
       create extension if not exists file_fdw with schema public;
       create server files foreign data wrapper file_fdw;
       create foreign table f (line text) server files options (filename '/dev/null');
       create view owner_view as select * from t;
       create view listed_view as select * from t;
       create view invoker_view with (security_invoker = on) as select * from t;
       create view not_invoker_view ${sqlSince(15, 'with (security_invoker = false)')} as select * from t;
       create materialized view m as select * from t;
       create materialized view listed_m as select * from t;
       create sequence s;
       create type composite as (a int);
       create index on t (id)`,
      ['listed_view', 'kinds.listed_m', 'absent'],
    )
    expect([...catalog.tables.values()].map(({ resource, kind }) => [resource, kind])).toEqual([
      ['child', 'table'],
      ['f', 'foreign'],
      ...(POSTGRES_MAJOR < 15 ? [] : [['invoker_view', 'view']]),
      ['listed_m', 'materialized view'],
      ['listed_view', 'view'],
      ['p', 'partitioned'],
      ['t', 'table'],
    ])
  })

  test('names are unqualified in the first schema and schema.table in others; other schemas are not read', async () => {
    await admin.run(`
      create schema shop; create schema sales; create schema hidden;
      create table shop.orders (id int); create table sales.orders (id int); create table hidden.orders (id int);
      create view sales.report as select 1 as one; create view shop.report as select 1 as one`)
    const catalog = await introspect(gateway.query, {
      schemas: ['shop', 'sales', 'shop'],
      exposedViews: ['report', 'hidden.report'],
    })
    expect(catalog.schemas).toEqual(['shop', 'sales'])
    expect([...catalog.tables].map(([resource, { schema, name }]) => [resource, schema, name])).toEqual([
      ['orders', 'shop', 'orders'],
      ['report', 'shop', 'report'],
      ['sales.orders', 'sales', 'orders'],
    ])
    const swapped = await introspect(gateway.query, { schemas: ['sales', 'shop'], exposedViews: ['shop.report'] })
    expect([...swapped.tables.keys()]).toEqual(['orders', 'shop.orders', 'shop.report'])
  })

  test('if two tables have the same resource name, the schema configured first has it', async () => {
    await admin.run(
      'create schema one; create schema two; create table one."two.t" (a int); create table two.t (b int)',
    )
    const catalog = await introspect(gateway.query, { schemas: ['one', 'two'], exposedViews: [] })
    expect([...catalog.tables].map(([resource, { schema, name }]) => [resource, schema, name])).toEqual([
      ['two.t', 'one', 'two.t'],
    ])
  })

  test('a configured schema that does not exist is an error with a suggestion', async () => {
    await admin.run('create schema if not exists billing')
    await expect(introspect(gateway.query, { schemas: ['public', 'biling'], exposedViews: [] })).rejects.toThrow(
      `schemas: there is no schema "biling" in database "${database.database}"; did you mean "billing"?`,
    )
  })

  test('reserved, mixed-case, dotted, quoted, Unicode and Object.prototype names are ordinary', async () => {
    const names = [
      '__proto__',
      'constructor',
      'valueOf',
      'toString',
      'Server Today',
      'do$llar$s',
      'تست',
      'a"b',
      'a.b',
      "a'b",
      'select',
      'back\\slash',
      '💥',
      '1',
    ]
    const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
    const catalog = await read(
      'weird sch.ema',
      names
        .map(
          name =>
            `create table ${quoted(name)} (${quoted(name)} int primary key, parent int references ${quoted(name)})`,
        )
        .join(';'),
    )
    expect(new Set(catalog.tables.keys())).toEqual(new Set(names))
    for (const name of names) {
      const { columnByName, columns, primaryKey, relations } = table(catalog, name)
      expect(columns.map(one => one.name)).toEqual([name, 'parent'])
      expect(columnByName.get(name)).toBe(columns[0])
      expect(primaryKey).toEqual([name])
      expect(relations.map(relation => [relation.name, relation.cardinality])).toEqual([
        [name, 'one'],
        [name, 'many'],
      ])
    }
  })

  test('a schema whose name has quotes, backslashes and commas is read like any other', async () => {
    const schema = String.raw`s"c\h,e{m}a`
    await admin.run(
      `create schema "${schema.replaceAll('"', '""')}"; create table "${schema.replaceAll('"', '""')}".t ()`,
    )
    const catalog = await introspect(gateway.query, { schemas: [schema], exposedViews: [] })
    expect([...catalog.tables.values()].map(({ schema, name }) => [schema, name])).toEqual([[schema, 't']])
  })

  test('a table is listed whatever its grants, which PostgreSQL enforces', async () => {
    const catalog = await read('granted', 'create table secret (id int)')
    expect(catalog.tables.has('secret')).toBe(true)
    await expect(gateway.query('select * from granted.secret', [])).rejects.toThrow('permission denied')
  })

  test('comments, row-level security flags and supported writes are read', async () => {
    const catalog = await read(
      'flags',
      `create table plain (id int);
       create table enabled (id int); alter table enabled enable row level security;
       create table forced (id int); alter table forced enable row level security;
       alter table forced force row level security;
       comment on table plain is 'Nothing special: "quotes", 💥 and
       two lines';
       comment on column plain.id is 'which';
       create view simple ${INVOKER} as select * from plain;
       create view total ${INVOKER} as select count(*) as n from plain;
       create view handled ${INVOKER} as select count(*) as n from plain;
       create function ignore() returns trigger language plpgsql as 'begin return null; end';
       create trigger t instead of delete on handled for each row execute function ignore();
       create materialized view m as select * from plain`,
      ['m', 'simple', 'total', 'handled'],
    )
    const facts = [...catalog.tables.values()].map(({ name, rowSecurity: { enabled, forced }, writable }) => [
      name,
      [enabled, forced],
      [writable.insert, writable.update, writable.delete],
    ])
    expect(facts).toEqual([
      ['enabled', [true, false], [true, true, true]],
      ['forced', [true, true], [true, true, true]],
      ['handled', [false, false], [false, false, true]],
      ['m', [false, false], [false, false, false]],
      ['plain', [false, false], [true, true, true]],
      ['simple', [false, false], [true, true, true]],
      ['total', [false, false], [false, false, false]],
    ])
    expect(table(catalog, 'plain').comment).toBe('Nothing special: "quotes", 💥 and\n       two lines')
    expect(table(catalog, 'forced').comment).toBeNull()
    expect(column(table(catalog, 'plain'), 'id').comment).toBe('which')
  })

  test('a foreign table without a handler, and a view over it, do not affect other tables', async () => {
    const catalog = await read(
      'dead_end',
      `create foreign data wrapper nothing; create server nowhere foreign data wrapper nothing;
       create foreign table f (id int) server nowhere;
       create view v ${INVOKER} as select * from f;
       create view vv ${INVOKER} as select * from v`,
      ['v', 'vv'],
    )
    for (const name of ['f', 'v', 'vv']) {
      expect(table(catalog, name).writable).toEqual({ insert: false, update: false, delete: false })
    }
  })
})

describe('columns', () => {
  test('types have their text, kind and components', async () => {
    const catalog = await read(
      'types',
      `create type mood as enum ('sad', 'ok', 'so "happy"');
       create domain positive as int check (value > 0);
       create domain very_positive as positive check (value > 10);
       create domain moods as mood[];
       create domain mood_domain as mood;
       create type pair as (a int, b text);
       create type span as range (subtype = float8, multirange_type_name = multispan);
       create table t (
         "int" int, amount numeric(10,2), code varchar(20), codes varchar(20)[], flag bool, day date, at timestamptz(3),
         "any" text, doc jsonb, fixed char(3), id uuid, raw bytea, "interval" interval, matrix int[][], bits bit(4),
         mood mood, mood_list mood[], moods moods, mood_domain mood_domain, positive positive,
         very positive[], very_positive very_positive,
         pair pair, pairs pair[], dates daterange, int_sets int4multirange, span span, spans multispan,
         words tsvector, vector oidvector, place point
       )`,
    )
    const shape = (type: Column['type']): string => {
      const labels = type.labels.length === 0 ? '' : ` ${type.labels.join('|')}`
      const of = type.of === null ? '' : ` of ${shape(type.of)}`
      return `${type.kind} ${type.name} ${type.category}${labels}${of}`
    }
    const mood = 'enum mood E sad|ok|so "happy"'
    expect(table(catalog, 't').columns.map(one => [one.name, one.typeText, shape(one.type)])).toEqual([
      ['int', 'integer', 'base int4 N'],
      ['amount', 'numeric(10,2)', 'base numeric N'],
      ['code', 'character varying(20)', 'base varchar S'],
      ['codes', 'character varying(20)[]', 'array _varchar A of base varchar S'],
      ['flag', 'boolean', 'base bool B'],
      ['day', 'date', 'base date D'],
      ['at', 'timestamp(3) with time zone', 'base timestamptz D'],
      ['any', 'text', 'base text S'],
      ['doc', 'jsonb', 'base jsonb U'],
      ['fixed', 'character(3)', 'base bpchar S'],
      ['id', 'uuid', 'base uuid U'],
      ['raw', 'bytea', 'base bytea U'],
      ['interval', 'interval', 'base interval T'],
      ['matrix', 'integer[]', 'array _int4 A of base int4 N'],
      ['bits', 'bit(4)', 'base bit V'],
      ['mood', 'types.mood', mood],
      ['mood_list', 'types.mood[]', `array _mood A of ${mood}`],
      ['moods', 'types.moods', `domain moods A of array _mood A of ${mood}`],
      ['mood_domain', 'types.mood_domain', `domain mood_domain E of ${mood}`],
      ['positive', 'types.positive', 'domain positive N of base int4 N'],
      ['very', 'types.positive[]', 'array _positive A of domain positive N of base int4 N'],
      ['very_positive', 'types.very_positive', 'domain very_positive N of domain positive N of base int4 N'],
      ['pair', 'types.pair', 'composite pair C'],
      ['pairs', 'types.pair[]', 'array _pair A of composite pair C'],
      ['dates', 'daterange', 'range daterange R of base date D'],
      ['int_sets', 'int4multirange', 'multirange int4multirange R of base int4 N'],
      ['span', 'types.span', 'range span R of base float8 N'],
      ['spans', 'types.multispan', 'multirange multispan R of base float8 N'],
      ['words', 'tsvector', 'base tsvector U'],
      ['vector', 'oidvector', 'array oidvector A of base oid N'],
      ['place', 'point', 'base point G'],
    ])
  })

  test('columns of one type share one object', async () => {
    const catalog = await read(
      'shared',
      `create type e as enum ('x'); create table a (x e, y e[]); create table b (z e)`,
    )
    expect(column(table(catalog, 'a'), 'x').type).toBe(column(table(catalog, 'b'), 'z').type)
    expect(column(table(catalog, 'a'), 'y').type.of).toBe(column(table(catalog, 'b'), 'z').type)
  })

  test('nullable, default, generated and identity are read; domains count; dropped columns are omitted', async () => {
    const catalog = await read(
      'defaults',
      `create domain required as text not null;
       create domain still_required as required;
       create domain with_default as int default 7;
       create domain over_default as with_default;
       create table t (
         id bigint generated always as identity primary key,
         other int generated by default as identity,
         serial serial,
         plain text,
         must text not null,
         dropped text,
         given text default 'x' not null,
         at timestamptz default now(),
         price numeric, amount numeric,
         stored numeric generated always as (price * amount) stored,
         virtual numeric generated always as (price * 2) ${sqlSince(18, 'virtual', 'stored')},
         required required, still still_required,
         with_default with_default, own_default with_default default 8, over_default over_default
       );
       alter table t drop column dropped;
       create view v ${INVOKER} as select id, must, required, with_default from t`,
      ['v'],
    )
    const facts = (of: Table) =>
      of.columns.map(one => [one.name, one.nullable, one.default, one.generated, one.identity])
    expect(facts(table(catalog, 't'))).toEqual([
      ['id', false, null, null, 'always'],
      ['other', false, null, null, 'by default'],
      ['serial', false, "nextval('defaults.t_serial_seq'::regclass)", null, null],
      ['plain', true, null, null, null],
      ['must', false, null, null, null],
      ['given', false, "'x'::text", null, null],
      ['at', true, 'now()', null, null],
      ['price', true, null, null, null],
      ['amount', true, null, null, null],
      ['stored', true, null, 'stored', null],
      ['virtual', true, null, sqlSince(18, 'virtual', 'stored'), null],
      ['required', false, null, null, null],
      ['still', false, null, null, null],
      ['with_default', true, '7', null, null],
      ['own_default', true, '8', null, null],
      ['over_default', true, '7', null, null],
    ])
    expect(facts(table(catalog, 'v'))).toEqual([
      ['id', true, null, null, null],
      ['must', true, null, null, null],
      ['required', true, null, null, null],
      ['with_default', true, null, null, null],
    ])
  })

  testSince(18, 'NOT NULL … NOT VALID')('a not-null constraint that is not valid yet keeps no NULL out', async () => {
    const catalog = await read(
      'not_valid',
      `create table t (a int, b int); insert into t values (null, 1);
       alter table t add constraint a_there not null a not valid;
       alter table t add constraint b_there not null b`,
    )
    expect(table(catalog, 't').columns.map(one => one.nullable)).toEqual([true, false])
  })
})

describe('keys', () => {
  test('a primary key has its columns in key order; unique constraints and indexes appear once', async () => {
    const catalog = await read(
      'keys',
      `create table t (a int, b int, c int, d text, e int, primary key (b, a), unique (c), unique (d, c) include (e));
       create unique index on t (e) ;
       create unique index again on t (e);
       create unique index same_as_primary on t (b, a);
       create unique index on t (d) where c > 0;
       create unique index on t (lower(d));
       create unique index on t (a, e) ${sqlSince(15, 'nulls not distinct')};
       create index on t (c, d);
       create table none (a int);
       create materialized view m as select 1 as id; create unique index on m (id)`,
      ['m'],
    )
    const { primaryKey, unique } = table(catalog, 't')
    expect(primaryKey).toEqual(['b', 'a'])
    expect(unique).toEqual([['a', 'e'], ['c'], ['d', 'c'], ['e']])
    expect(table(catalog, 'none').primaryKey).toEqual([])
    expect(table(catalog, 'm')).toMatchObject({ primaryKey: [], unique: [['id']] })
  })

  testSince(18, 'WITHOUT OVERLAPS')(
    'a key without overlaps is a primary key, but no unique key, and a key with period is no way to it',
    async () => {
      const catalog = await read(
        'temporal',
        `create extension if not exists btree_gist with schema public;
       create table price (id int, during daterange, extra int, primary key (id, during without overlaps),
       unique (extra, during without overlaps));
       create table booking (id int primary key, price_id int, during daterange,
         foreign key (price_id, period during) references price (id, period during))`,
      )
      expect(table(catalog, 'price')).toMatchObject({ primaryKey: ['id', 'during'], unique: [], relations: [] })
      expect(table(catalog, 'booking')).toMatchObject({ foreignKeys: [], relations: [] })
    },
  )

  test('an invalid index is not a key', async () => {
    await admin.run('create schema invalid; create table invalid.t (a int); insert into invalid.t values (1), (1)')
    await expect(admin.run('create unique index concurrently on invalid.t (a)')).rejects.toThrow(
      'could not create unique index',
    )
    const catalog = await introspect(gateway.query, { schemas: ['invalid'], exposedViews: [] })
    expect(table(catalog, 't').unique).toEqual([])
  })
})

describe('foreign keys and relations', () => {
  test('relations are forward and reverse, with paired columns', async () => {
    const catalog = await read(
      'shop2',
      `create table customers (id int primary key);
       create table orders (id int primary key, customer_id int references customers)`,
    )
    expect(table(catalog, 'orders').foreignKeys).toEqual([
      { name: 'orders_customer_id_fkey', columns: ['customer_id'], table: 'customers', referencedColumns: ['id'] },
    ])
    expect(table(catalog, 'orders').relations).toEqual([
      {
        ...{ name: 'customers', shortName: 'customer', cardinality: 'one', table: 'customers' },
        ...{
          columns: ['customer_id'],
          targetColumns: ['id'],
          junction: null,
          constraints: ['orders_customer_id_fkey'],
        },
      },
    ])
    expect(table(catalog, 'customers').relations).toEqual([
      {
        ...{ name: 'orders', shortName: null, cardinality: 'many', table: 'orders' },
        ...{
          columns: ['id'],
          targetColumns: ['customer_id'],
          junction: null,
          constraints: ['orders_customer_id_fkey'],
        },
      },
    ])
  })

  test('composite keys keep the order of the constraint and can refer to unique keys', async () => {
    const catalog = await read(
      'composite',
      `create table seats (hall int, row_no int, seat int, primary key (hall, row_no), unique (seat, hall));
       create table tickets (id int primary key, h int, r int, s int, foreign key (r, h) references seats (row_no,
       hall), foreign key (h, s) references seats (hall, seat))`,
    )
    expect(table(catalog, 'tickets').foreignKeys).toEqual([
      { name: 'tickets_h_s_fkey', columns: ['h', 's'], table: 'seats', referencedColumns: ['hall', 'seat'] },
      { name: 'tickets_r_h_fkey', columns: ['r', 'h'], table: 'seats', referencedColumns: ['row_no', 'hall'] },
    ])
  })

  test('a foreign key to a table outside the schemas is listed but is not a relation', async () => {
    await admin.run(`
      create schema inside; create schema outside;
      create table outside.users (a int, id int, tenant int, primary key (id, tenant));
      create table inside.notes (id int primary key, tenant_id int, user_id int, foreign key (user_id, tenant_id)
      references outside.users);
      create table inside."outside.users" (id int primary key)`)
    const catalog = await introspect(gateway.query, { schemas: ['inside'], exposedViews: [] })
    expect(table(catalog, 'notes').foreignKeys).toEqual([
      {
        name: 'notes_user_id_tenant_id_fkey',
        columns: ['user_id', 'tenant_id'],
        table: 'outside.users',
        referencedColumns: ['id', 'tenant'],
      },
    ])
    expect(table(catalog, 'notes').relations).toEqual([])
    expect(table(catalog, 'outside.users').relations).toEqual([])
  })

  test('a relation to a table of another schema has the unqualified name and refers to the resource', async () => {
    await admin.run(`
      create schema front; create schema back;
      create table back.users (id int primary key);
      create table front.notes (id int primary key, user_id int references back.users)`)
    const catalog = await introspect(gateway.query, { schemas: ['front', 'back'], exposedViews: [] })
    expect(table(catalog, 'notes').relations).toMatchObject([
      { name: 'users', table: 'back.users', cardinality: 'one' },
    ])
    expect(table(catalog, 'back.users').relations).toMatchObject([
      { name: 'notes', table: 'notes', cardinality: 'many' },
    ])
  })

  test('foreign keys of partitioned tables appear once, not once for each partition', async () => {
    const catalog = await read(
      'partitions',
      `create table accounts (id int, region text, primary key (id, region)) partition by list (region);
       create table accounts_eu partition of accounts for values in ('eu');
       create table accounts_us partition of accounts for values in ('us');
       create table payments (id int, account_id int, region text, primary key (id, region),
       foreign key (account_id, region) references accounts) partition by list (region);
       create table payments_eu partition of payments for values in ('eu');
       create table payments_us partition of payments for values in ('us')`,
    )
    expect([...catalog.tables.keys()]).toEqual(['accounts', 'payments'])
    expect(table(catalog, 'accounts').primaryKey).toEqual(['id', 'region'])
    expect(table(catalog, 'payments').foreignKeys).toHaveLength(1)
    expect(table(catalog, 'accounts').relations).toMatchObject([
      { name: 'payments', columns: ['id', 'region'], targetColumns: ['account_id', 'region'] },
    ])
  })

  test('a foreign key to a single partition is not a relation, because a partition is not a resource', async () => {
    const catalog = await read(
      'to_partition',
      `create table p (id int primary key) partition by range (id);
       create table p1 partition of p for values from (0) to (10);
       create table t (id int primary key, p_id int references p1)`,
    )
    expect(table(catalog, 't').foreignKeys).toMatchObject([{ table: 'to_partition.p1', referencedColumns: ['id'] }])
    expect(table(catalog, 't').relations).toEqual([])
  })
})

test('the catalog is frozen', async () => {
  const catalog = await read('frozen', 'create table a (id int primary key, up int references a unique)')
  const { columns, relations, foreignKeys, unique, writable, rowSecurity } = table(catalog, 'a')
  const parts = [
    catalog,
    catalog.schemas,
    table(catalog, 'a'),
    columns,
    columns[0],
    columns[0]?.type,
    columns[0]?.type.labels,
  ]
  const more = [
    relations,
    relations[0],
    relations[0]?.constraints,
    relations[0]?.columns,
    foreignKeys,
    foreignKeys[0],
    unique,
    unique[0],
  ]
  for (const part of [...parts, ...more, writable, rowSecurity]) {
    expect(part).toBeDefined()
    expect(Object.isFrozen(part)).toBe(true)
  }
})

test('the server’s version is PostgreSQL’s version number', async () => {
  const catalog = await introspect(gateway.query, { schemas: ['public'], exposedViews: [] })
  const [row] = await gateway.query('show server_version_num', [])
  expect(String(catalog.serverVersion)).toBe(row?.[0])
})
