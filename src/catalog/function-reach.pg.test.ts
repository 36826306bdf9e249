/**
 * The tables and types whose use can run a function of the database; only requests that can run one are
 * followed by a reset.
 */
import { beforeAll, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { introspect } from './introspect.ts'

const database = databaseFixture()
const admin = fixture(() => openSession(database.adminUrl))
const gateway = fixture(() => openSession(database.url))

beforeAll(() =>
  admin.run(`
    create schema svc; create schema inner_part;
    create extension citext schema inner_part;
    create function f() returns boolean immutable language sql as 'select true';
    create function is_fine(text) returns boolean immutable language sql as 'select true';
    create function noted() returns trigger language plpgsql as 'begin return new; end';
    create function svc.captured() returns trigger language plpgsql as 'begin return null; end'`),
)

interface Reached {
  readonly [relation: string]: 'read' | 'write'
}

interface Found {
  readonly tables: Reached
  readonly types: readonly string[]
  readonly everywhere: boolean
  readonly deferring: readonly string[]
}

/** Runs the statements, reads the catalog and undoes them. */
async function after(ddl: string): Promise<Found> {
  const [[before]] = (await admin.query('select count(*) from pg_catalog.pg_depend', [])) as [[string]]
  await admin.run(`create schema scratch; set search_path = scratch, public; ${ddl}`)
  try {
    const { tables, functionReach } = await introspect(gateway.query, {
      schemas: ['scratch'],
      exposedViews: ['v', 'w', 'm'],
    })
    const named = [...tables.values()].flatMap(({ name, oid }) => {
      const reach = functionReach.relations.get(oid)
      return reach === undefined ? [] : [[name, reach] as const]
    })
    return {
      tables: Object.fromEntries(named),
      types: [...functionReach.types].filter(name => !name.startsWith('_')).sort(),
      everywhere: functionReach.everywhere,
      deferring: [...tables.values()]
        .filter(({ oid }) => functionReach.deferring.has(oid))
        .map(({ name }) => name)
        .sort(),
    }
  } finally {
    await admin.run('drop schema scratch cascade; set search_path = public')
    expect((await admin.query('select count(*) from pg_catalog.pg_depend', []))[0]).toEqual([before])
  }
}

const NOTHING = { types: [], everywhere: false, deferring: [] }
const POLICY = 'alter table t enable row level security; create policy p on t'

test.each<[what: string, ddl: string, tables: Reached]>([
  ['a plain table', 'create table t (id int primary key)', {}],
  [
    'PostgreSQL’s own functions',
    'create table t (id uuid default gen_random_uuid(), at timestamptz default now(), n serial)',
    {},
  ],
  [
    'functions of extensions that are not VOLATILE',
    "create table t (id int, name inner_part.citext check (name ~ 'x'))",
    {},
  ],
  [
    'triggers of schema svc',
    'create table t (id int); create trigger c after insert on t execute function svc.captured()',
    {},
  ],
  ['a policy', `create table t (id int); ${POLICY} using (f())`, { t: 'read' }],
  ['a policy for writes', `create table t (id int); ${POLICY} for update using (f())`, { t: 'write' }],
  [
    'a policy that sets a setting',
    `create table t (id int); ${POLICY} using (set_config('a.b', 'c', false) is not null)`,
    { t: 'read' },
  ],
  [
    'a view, and a view over it',
    'create view v as select f() as x; create view w as select x from v',
    { v: 'read', w: 'read' },
  ],
  ['a materialized view', 'create materialized view m as select f() as x', {}],
  ['a trigger', 'create table t (id int); create trigger c after insert on t execute function noted()', { t: 'write' }],
  ['a default', 'create table t (id int, x boolean default f())', { t: 'write' }],
  ['a check', 'create table t (id int, x text check (is_fine(x)))', { t: 'write' }],
  ['an index', 'create table t (id int, x text); create index on t (is_fine(x))', { t: 'write' }],
  ['a generated column', 'create table t (x text, y boolean generated always as (is_fine(x)) stored)', { t: 'write' }],
  ['a rule', 'create table t (id int); create rule r as on insert to t do also select f()', { t: 'write' }],
  [
    'a trigger of a partition',
    'create table t (id int) partition by list (id); create table t1 partition of t for values in (1); create ' +
      'trigger c after insert on t1 execute function noted()',
    { t: 'write' },
  ],
  [
    'a policy that reads such a table',
    `create table u (id int); alter table u enable row level security; create policy p on u using (f());
     create table t (id int); ${POLICY} using (exists (select from u))`,
    { t: 'read', u: 'read' },
  ],
  [
    'a foreign key without a cascade',
    'create table u (id int primary key); create trigger c after insert on u execute function noted(); create ' +
      'table t (u int references u)',
    { u: 'write' },
  ],
  [
    'a foreign key that cascades to such a table',
    'create table u (id int primary key); create table t (u int references u on delete cascade); create trigger ' +
      'c after delete on t execute function noted()',
    { t: 'write', u: 'write' },
  ],
  [
    'an aggregate of the database',
    'create aggregate total(int) (sfunc = int4pl, stype = int); create view v as select total(n) from ' +
      'generate_series(1, 3) n',
    { v: 'read' },
  ],
])('a relation that can run a function is found: %s', async (_, ddl, tables) => {
  expect(await after(ddl)).toEqual({ ...NOTHING, tables })
})

test('a domain with a check runs a function, and so do its arrays and the types that contain it', async () => {
  const ddl = `create domain word as text check (is_fine(value)); create domain short as word;
    create type pair as (a word, b int);
    create table t (a word); create table u (a short[]); create table v (a pair); create table w (a text)`
  expect(await after(ddl)).toEqual({
    ...{ everywhere: false, deferring: [], types: ['pair', 'short', 't', 'u', 'v', 'word'] },
    tables: { t: 'read', u: 'read', v: 'read' },
  })
})

test('a cast or an operator counts for its user-defined type', async () => {
  const ddl = `create type mood as enum ('calm'); create table t (m mood); create table u (x text);
    create function eq(mood, text) returns boolean language sql as 'select true';
    create operator = (leftarg = mood, rightarg = text, function = eq)`
  expect(await after(ddl)).toMatchObject({ everywhere: false, tables: { t: 'read' } })
  const cast = `create type mood as (x int); create table t (m mood);
    create function j(mood) returns json language sql as 'select null::json';
    create cast (mood as json) with function j(mood)`
  expect(await after(cast)).toMatchObject({ everywhere: false, tables: { t: 'read' } })
})

test('an operator between two built-in types can run in any statement', async () => {
  const ddl = `create function eq(text, int) returns boolean language sql as 'select true';
    create operator = (leftarg = text, rightarg = int, function = eq)`
  expect((await after(ddl)).everywhere).toBe(true)
})

const DEFERRED = 'deferrable initially deferred'

test.each<[what: string, ddl: string, deferring: readonly string[]]>([
  [
    'constraints that cannot be deferred',
    'create table t (id int unique); create table u (id int references t (id))',
    [],
  ],
  ['a unique constraint', `create table t (id int unique ${DEFERRED}); create table u (id int)`, ['t']],
  [
    'a foreign key, for both of its tables',
    `create table t (id int unique); create table u (id int references t (id) ${DEFERRED})`,
    ['t', 'u'],
  ],
  [
    'a partition, for the whole table',
    `create table t (id int) partition by list (id);
    create table t1 partition of t (unique (id) ${DEFERRED}) for values in (1)`,
    ['t'],
  ],
  ['a view', `create table t (id int unique ${DEFERRED}); create view v as select id from t`, ['t', 'v']],
  [
    'a cascade',
    `create table t (id int unique); create table u (id int references t (id) on delete cascade);
    create constraint trigger c after delete on u deferrable for each row execute function svc.captured()`,
    ['t', 'u'],
  ],
])('what can be deferred to the end of a transaction is found: %s', async (_, ddl, deferring) => {
  expect(await after(ddl)).toMatchObject({ deferring })
})
