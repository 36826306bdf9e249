/** The tables and types whose use can run a function of the database, and which functions leave nothing. */
import { beforeAll, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { introspect } from './introspect.ts'
import type { Reach } from './model.ts'

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
    create function svc.remembers() returns text language sql as $$ select set_config('a.b', 'c', false) $$;
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
  /** Tables whose use can run a function that leaves something. */
  readonly leaving: Reached
  /** The functions of `scratch` that leave nothing. */
  readonly harmless: readonly string[]
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
    const { running, leaving, harmless, deferring } = functionReach
    const named = ({ relations }: Reach): Reached =>
      Object.fromEntries(
        [...tables.values()].flatMap(({ name, oid }) => {
          const reach = relations.get(oid)
          return reach === undefined ? [] : [[name, reach]]
        }),
      )
    return {
      tables: named(running),
      types: [...running.types].filter(name => !name.startsWith('_')).sort(),
      everywhere: running.everywhere,
      deferring: [...tables.values()]
        .filter(({ oid }) => deferring.has(oid))
        .map(({ name }) => name)
        .sort(),
      leaving: named(leaving),
      harmless: [...(harmless.get('scratch') ?? [])].sort(),
    }
  } finally {
    // A cast between PostgreSQL's types belongs to no schema.
    await admin.run('drop schema scratch cascade; drop cast if exists (bigint as boolean); set search_path = public')
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
  expect(await after(ddl)).toMatchObject({ ...NOTHING, tables })
})

test('a domain with a check runs a function, and so do its arrays and the types that contain it', async () => {
  const ddl = `create domain word as text check (is_fine(value)); create domain short as word;
    create type pair as (a word, b int);
    create table t (a word); create table u (a short[]); create table v (a pair); create table w (a text)`
  expect(await after(ddl)).toMatchObject({
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

const SETS = "perform set_config('a.b', 'c', false)"

test.each<[what: string, ddl: string]>([
  ['an expression', "create function g() returns int language sql as 'select 1 + 1'"],
  [
    'a setting',
    `create function g() returns uuid stable language sql as
      $$ select nullif(current_setting('app.current_tenant_id', true), '')::uuid $$`,
  ],
  ['a tree', 'create function g(a int, b int default 1) returns int language sql return a + b'],
  [
    'PL/pgSQL that assigns',
    `create function g(n int) returns int language plpgsql as
      $$ declare m int := 1; begin select n into m; if m > 1 then raise 'no'; end if; return m; end $$`,
  ],
  ['a trigger', 'create function g() returns trigger language plpgsql as $$ begin new.at := now(); return new; end $$'],
  [
    'a notification',
    "create function g() returns void language plpgsql as $$ begin perform pg_notify('a', 'b'); end $$",
  ],
  [
    'a table with a policy that calls a harmless function',
    `create table t (id int); ${POLICY} using (f());
    create function g() returns bigint security definer language sql as 'select count(*) from t'`,
  ],
  [
    'a function that calls itself',
    'create function g(n int) returns int language plpgsql as $$ begin return g(n - 1); end $$',
  ],
  [
    'a table with a trigger that writes, because it is not run',
    `create table log (at timestamptz); create table t (id int, at timestamptz default now());
    create function audit() returns trigger language plpgsql as $$
      begin insert into log values (now()); return new; end $$;
    create trigger x after insert on t for each row execute function audit();
    create function g() returns bigint stable language sql as 'select count(*) from t'`,
  ],
  [
    'while there is a range type',
    `create type hours as range (subtype = time); create table t (h hours);
    create function g() returns bigint stable language sql as 'select count(*) from t'`,
  ],
  [
    'an aggregate that a known extension has as well',
    "create function g() returns int stable language sql as 'select max(n) from generate_series(1, 3) n'",
  ],
  [
    'a compiled function of a known extension',
    "create function g(a inner_part.citext) returns int language sql as 'select inner_part.citext_cmp(a, a)'",
  ],
])('a function is harmless if it reads only %s', async (_, ddl) => {
  expect((await after(ddl)).harmless).toContain('g')
})

const BODIES: readonly string[] = [
  "select set_config('a.b', 'c', false)",
  `select "set_config"('a.b', 'c', false)`,
  `select U&"set\\005fconfig"('a.b', 'c', false)`,
  "select pg_catalog . SET_CONFIG ('a.b', 'c', false)",
  'select pg_advisory_lock(1)::text',
  'select pg_try_advisory_lock_shared(1)::text',
  "select query_to_xml('select 1', true, true, '')::text",
  "select word from ts_stat('select to_tsvector($q$a$q$)')",
  "set a.b = 'c'; select 'x'",
  'set role postgres; select null',
  "select 'x' into temporary made",
  "insert into noted_rows values ('x') returning 'x'",
  'with gone as (delete from noted_rows returning x) select x from gone',
  "update noted_rows set x = 'y' returning x",
  'select x from noted_rows for update',
  "select 'x'; discard temp",
  "prepare p as select 1; select 'x'",
  "declare c cursor with hold for select 1; select 'x'",
  "do $q$ begin end $q$; select 'x'",
]

test.each(BODIES)('a function is not harmless with the body %s', async body => {
  const ddl = `create table noted_rows (x text); set check_function_bodies = off;
    create function g() returns text language sql as $body$ ${body} $body$`
  expect((await after(ddl)).harmless).toEqual([])
})

test.each<[what: string, ddl: string]>([
  ['runs a text', "create function g() returns void language plpgsql as $$ begin execute 'reset all'; end $$"],
  [
    'opens a cursor for a text',
    "create function g(c refcursor) returns void language plpgsql as $$ begin open c for execute 'select 1'; end $$",
  ],
  [
    'sets a setting by a command',
    "create function g() returns void language plpgsql as $$ begin set a.b = 'c'; end $$",
  ],
  [
    'has a tree that calls set_config',
    "create function g() returns text language sql return set_config('a.b', 'c', false)",
  ],
  [
    'has a tree that writes',
    `create table t (x int);
    create function g() returns void language sql begin atomic insert into t values (1); end`,
  ],
  [
    'has an argument whose default calls set_config',
    "create function g(x text default set_config('a.b', 'c', false)) returns int language sql as 'select 1'",
  ],
  ['is very long', `create function g() returns int language sql as $$ select 1 /* ${'x'.repeat(5_000)} */ $$`],
  ['analyses tables', "create function g() returns void language sql as 'analyse'"],
])('a function is not harmless if it %s', async (_, ddl) => {
  expect((await after(ddl)).harmless).toEqual([])
})

const SETTER = `create function bad() returns boolean language plpgsql as $$ begin ${SETS}; return true; end $$`

test.each<[what: string, ddl: string]>([
  ['its text calls one', "create function g() returns boolean language sql as 'select scratch.bad()'"],
  ['its text names one in quotes', `create function g() returns boolean language sql as 'select "bad"()'`],
  ['its text names one by an attribute', "create function g() returns int language sql as 'select 1 as BAD'"],
  ['its tree calls one', 'create function g() returns boolean language sql return bad()'],
  ['a default calls one', "create function g(x boolean default bad()) returns int language sql as 'select 1'"],
  [
    'it calls a function that does',
    `create function between_them() returns boolean language sql as 'select bad()';
    create function g() returns boolean language sql as 'select between_them()'`,
  ],
  [
    'the other is called by a name of several words',
    `create function "odd name"() returns boolean language sql as 'select bad()';
    create function g() returns boolean language sql as 'select "odd name"()'`,
  ],
  [
    'the other has a quote in its name',
    `create function "odd""name"() returns boolean language sql as 'select bad()';
    create function g() returns boolean language sql as 'select "odd""name"()'`,
  ],
  [
    'a policy of a table that it reads does',
    `create table t (id int); ${POLICY} using (bad());
    create function g() returns bigint language sql as 'select count(*) from t'`,
  ],
  [
    'a view over a view that it reads does',
    `create view v as select bad() as x; create view w as select x from v;
    create function g() returns bigint language sql as 'select count(*) from w'`,
  ],
  [
    'a policy of a table reads a table whose policy does',
    `create table u (id int); alter table u enable row level security; create policy p on u using (bad());
    create table t (id int); ${POLICY} using (exists (select from u));
    create function g() returns bigint language sql as 'select count(*) from t'`,
  ],
  [
    'a partition of a table that it reads does',
    `create table t (id int) partition by list (id); create table t1 partition of t for values in (1);
    alter table t1 enable row level security; create policy p on t1 using (bad());
    create function g() returns bigint language sql as 'select count(*) from t'`,
  ],
  [
    'a policy that it reads under calls set_config',
    `create table t (id int); ${POLICY} using (set_config('a.b', 'c', false) is not null);
    create function g() returns bigint language sql as 'select count(*) from t'`,
  ],
  [
    'an operator does, which no text names',
    `create function eq(text, int) returns boolean language sql as 'select bad()';
    create operator = (leftarg = text, rightarg = int, function = eq);
    create function g() returns boolean language sql as $$ select 'x'::text = 1 $$`,
  ],
  [
    'a cast does',
    `create type mood as enum ('calm');
    create function to_int(mood) returns int language sql as 'select bad()::int';
    create cast (mood as int) with function to_int(mood) as implicit;
    create function g(m mood) returns int language sql as 'select m + 1'`,
  ],
  [
    'the check of a domain does',
    `create function is_good(text) returns boolean language sql as 'select bad()';
    create domain word as text check (is_good(value));
    create function g(a text) returns text language sql as 'select a::word'`,
  ],
  [
    'an aggregate does',
    `create function step(int, int) returns int language sql as 'select bad()::int';
    create aggregate total(int) (sfunc = step, stype = int);
    create function g() returns int language sql as 'select total(n) from generate_series(1, 3) n'`,
  ],
])('a function is not harmless if %s leaves something', async (_, ddl) => {
  const { harmless } = await after(`${SETTER}; ${ddl}`)
  expect(harmless).not.toContain('g')
})

const LONG = 'n'.repeat(63)
const LOCKING = 'create operator @@! (leftarg = int, rightarg = int, function = pg_try_advisory_lock)'

test.each<[what: string, ddl: string]>([
  [
    'PostgreSQL cuts off the name of one in its text',
    `create function ${LONG}() returns boolean language sql as $$ select set_config('a.b', 'c', false) = 'c' $$;
    create function g() returns boolean language sql as 'select ${LONG}_and_more()'`,
  ],
  [
    'an operator is one of PostgreSQL’s',
    `${LOCKING}; create function g() returns boolean language sql as 'select 1 operator(scratch.@@!) 2'`,
  ],
  [
    'a cast is one of PostgreSQL’s',
    `create cast (bigint as boolean) with function pg_try_advisory_lock(bigint);
    create function g() returns text language sql as 'select 1::bigint::boolean::text'`,
  ],
  [
    'the check of a domain calls one of PostgreSQL’s',
    `create domain d as text check (set_config('a.b', value, false) is not null);
    create function g(t text) returns boolean language sql as $$ select pg_input_is_valid('x', t) $$`,
  ],
  [
    'a view calls a volatile compiled function',
    `create extension pg_trgm schema scratch; create view v as select set_limit(0.9) as x;
    create function g() returns real language sql as 'select max(x) from v'`,
  ],
  ['a function of schema svc does', "create function g() returns text language sql as 'select svc.remembers()'"],
  [
    'another name of a compiled function does',
    `create function sc(text, text, bool) returns text language internal as 'set_config_by_name';
    create function g() returns text language sql as $$ select sc('a.b', 'c', false) $$`,
  ],
  [
    'the index that it has summarized does',
    "create function g() returns int language sql as $$ select brin_summarize_new_values('scratch.i') $$",
  ],
])('a function is not harmless if %s', async (_, ddl) => {
  const { harmless } = await after(ddl)
  expect(harmless).not.toContain('g')
})

const CONSTANT = `create function bad(int) returns int immutable language plpgsql as $$
  begin perform set_config('a.b', 'c', false); return $1; end $$`

test.each<[what: string, ddl: string, leaving: Reached]>([
  [
    'the check of a domain',
    "create domain d as text check (set_config('a.b', value, false) <> ''); create table t (a d)",
    { t: 'read' },
  ],
  [
    'the default of a domain',
    "create domain d as text default set_config('a.b', 'c', false); create table t (a d)",
    { t: 'read' },
  ],
  [
    'the condition of a trigger',
    `create table t (a int); create trigger x before insert on t for each row
      when (set_config('a.b', 'c', false) <> '') execute function noted()`,
    { t: 'write' },
  ],
  [
    'the condition of a rule',
    `create table t (a int);
    create rule r as on insert to t where set_config('a.b', 'c', false) <> '' do also select 1`,
    { t: 'write' },
  ],
  [
    'an index, which PostgreSQL reads for the plan of a read',
    `${CONSTANT}; create table t (a int); create index on t ((a + bad(1)))`,
    { t: 'read' },
  ],
  [
    'a statistics object',
    `${CONSTANT}; create table t (a int, b int); create statistics s on (a + bad(1)), b from t`,
    { t: 'read' },
  ],
  ['a partition key', `${CONSTANT}; create table t (a int) partition by list (bad(a))`, { t: 'read' }],
  [
    'a function with another name of a compiled one',
    `create function sc(text, text, bool) returns text language internal as 'set_config_by_name';
    create view v as select sc('a.b', 'c', false) as x`,
    { v: 'read' },
  ],
  [
    'an index of a referenced table, which a write plans a read of',
    `${CONSTANT}; create table u (id int primary key); create index on u ((id + bad(1)));
    create table t (u int references u)`,
    { t: 'write', u: 'read' },
  ],
  [
    'a statistics object of a referring table',
    `${CONSTANT}; create table u (id int primary key); create table t (u int references u, b int);
    create statistics s on (u + bad(1)), b from t`,
    { t: 'read', u: 'write' },
  ],
  [
    'a type in the condition of a trigger',
    `create domain d as text check (set_config('a.b', value, false) <> ''); create table t (a text);
    create trigger x before update on t for each row when (new.a::d is not null)
      execute function suppress_redundant_updates_trigger()`,
    { t: 'write' },
  ],
  [
    'the key of the table of a partition',
    `${CONSTANT}; create table t (a int) partition by list (bad(a));
    create table t1 partition of t for values in (1); create view v as select a from t1`,
    { t: 'read', v: 'read' },
  ],
  [
    'the condition of a trigger of the table of a partition',
    `create table t (a int) partition by list (a); create table t1 partition of t for values in (1);
    create trigger x before update on t for each row when (set_config('a.b', 'c', false) <> '')
      execute function noted();
    create view v as select a from t1`,
    { t: 'write', v: 'write' },
  ],
  ['an operator', `${LOCKING}; create view v as select n @@! n as x from generate_series(1, 2) n`, { v: 'read' }],
])('a relation that leaves something is found: %s', async (_, ddl, leaving) => {
  expect(await after(ddl)).toMatchObject({ leaving })
})

test('a function is not harmless if another one of its name is not', async () => {
  const ddl = `create function g() returns int language sql as 'select 1';
    create function g(int) returns text language sql as $$ select set_config('a.b', 'c', false) $$`
  expect((await after(ddl)).harmless).toEqual([])
})

test('only tables whose functions leave something are known to', async () => {
  const ddl = `${SETTER}; create table t (id int); ${POLICY} using (f());
    create table u (id int, x boolean default bad()); alter table u enable row level security;
    create policy p on u using (f());
    create table w (id int); alter table w enable row level security; create policy p on w using (bad());
    create table y (id int check (set_config('a.b', 'c', false) <> ''))`
  expect(await after(ddl)).toMatchObject({
    tables: { t: 'read', u: 'read', w: 'read', y: 'read' },
    leaving: { u: 'write', w: 'read', y: 'read' },
  })
})

test('an event trigger, which no request runs, makes no function count', async () => {
  const ddl = `create function noted_ddl() returns event_trigger language plpgsql as $$ begin ${SETS}; end $$;
    create event trigger scratch_ddl on ddl_command_end execute function noted_ddl();
    create function g() returns int language sql as 'select 1'`
  expect((await after(ddl)).harmless).toEqual(['g'])
})
