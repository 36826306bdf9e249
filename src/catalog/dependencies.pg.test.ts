/**
 * The dependencies in the catalog of views, policies, inheritance, cascades and triggers, on which the result
 * cache relies.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { introspect } from './introspect.ts'
import type { Dependency } from './model.ts'

const database = databaseFixture()
const admin = fixture(() => openSession(database.adminUrl))
const gateway = fixture(() => openSession(database.url))

beforeAll(() =>
  admin.run(`
    create schema hidden; create schema svc; create sequence numbers;
    create table plain (id int primary key, word text);
    create function noted() returns trigger language plpgsql as 'begin return new; end';
    create function svc.captured() returns trigger language plpgsql as 'begin return null; end';
    create function draw() returns int volatile language sql as 'select 1';
    create function look() returns boolean stable language sql as 'select true';
    create function same(t text) returns text immutable language sql as 'select t'`),
)

interface Told {
  readonly ties: readonly string[]
  readonly nondeterminism: readonly string[]
  readonly effect: string
}

/** The dependencies of a relation, with names in place of OIDs: `child t`, `stable now`, `insert delete`. */
async function toldOf(name: string): Promise<Told> {
  const { dependencies } = await introspect(gateway.query, {
    ...{ schemas: ['public'], exposedViews: ['v', 'w', 'over'] },
    dependencies: true,
  })
  const [[oid]] = (await admin.query('select $1::regclass::oid', [name])) as [[string]]
  const { ties = [], nondeterminism = [], effect = null }: Partial<Dependency> = dependencies.get(Number(oid)) ?? {}
  const names = await Promise.all(
    ties.map(async ({ other, how }) => {
      const [[text]] = (await admin.query('select $1::oid::regclass', [String(other)])) as [[string]]
      return `${how} ${text}`
    }),
  )
  return {
    ties: names.sort(),
    nondeterminism: nondeterminism.map(({ cause, name: of }) => `${cause} ${of}`).sort(),
    effect: effect === null ? '' : (['insert', 'update', 'delete'] as const).filter(event => effect[event]).join(' '),
  }
}

const NOTHING: Told = { ties: [], nondeterminism: [], effect: '' }

/** The dependencies of a database after these statements, which are rolled back. */
async function after(ddl: string, name: string): Promise<Told> {
  await admin.run(`create schema scratch; ${ddl}`)
  try {
    return await toldOf(name)
  } finally {
    await admin.run(
      `drop view if exists over, v, w cascade; drop schema scratch cascade; drop table if exists t, u, x cascade`,
    )
  }
}

test('a plain table has no dependencies', async () => {
  expect(await after('create table t (id int primary key)', 't')).toEqual(NOTHING)
})

test.each([
  ['cascade', ['delete deletes u']],
  ['set null', ['delete updates u']],
  ['set default', ['delete updates u']],
  ['restrict', []],
  ['no action', []],
])('on delete %s', async (action, ties) => {
  const ddl = `create table t (id int primary key); create table u (id int references t on delete ${action})`
  expect(await after(ddl, 't')).toEqual({ ...NOTHING, ties })
})

test('on update cascade, for a table that refers to itself and one that is not a resource', async () => {
  const ddl = `create table t (id int primary key, up int references t on delete cascade);
    create table scratch.far (id int references t on update cascade)`
  expect((await after(ddl, 't')).ties).toEqual(['delete deletes t', 'update updates scratch.far'])
})

test('inheriting tables count; partitions and their triggers count as the partitioned table', async () => {
  expect((await after('create table t (id int); create table u () inherits (t)', 't')).ties).toEqual(['child u'])
  const partitioned = `create table t (id int primary key) partition by range (id);
    create table scratch.part partition of t for values from (0) to (9);
    create table u (id int references t on delete cascade)`
  expect(await after(partitioned, 't')).toEqual({ ...NOTHING, ties: ['delete deletes u', 'update moves t'] })
  const trigger = 'create trigger note before update on scratch.part for each row execute function noted()'
  expect((await after(`${partitioned}; ${trigger}`, 't')).effect).toBe('update')
  expect((await after(`${partitioned}; create view v as select * from scratch.part`, 'v')).ties).toEqual(['view t'])
})

test('a view reads its tables, at any depth', async () => {
  const ddl = `create table t (id int); create table u (id int);
    create view v as select id, (select count(*) from u) from t;
    create view over as select id from v where exists (select from plain)`
  expect((await after(ddl, 'v')).ties).toEqual(['view t', 'view u'])
  expect((await after(ddl, 'over')).ties).toEqual(['view plain', 'view v'])
})

describe('mentions of relations', () => {
  /** `view t × 2`; an entry without a name is not a relation of the database. */
  async function mentionsOf(ddl: string, of: 'v' | 'x'): Promise<readonly string[]> {
    await admin.run(`create schema scratch; ${ddl}`)
    try {
      const { dependencies } = await introspect(gateway.query, {
        ...{ schemas: ['public'], exposedViews: ['v', 'w', 'over'] },
        dependencies: true,
      })
      const [[oid]] = (await admin.query('select $1::regclass::oid', [of])) as [[string]]
      const lines: string[] = []
      for (const { other, how, times } of dependencies.get(Number(oid))?.mentions ?? []) {
        const [[name]] = (await admin.query('select $1::oid::regclass', [String(other ?? 0)])) as [[string]]
        lines.push(`${how} ${name} × ${times}`)
      }
      return lines.sort()
    } finally {
      await admin.run('drop schema scratch cascade; drop view if exists v; drop table if exists x, t cascade')
    }
  }
  const TABLE = 'create table t (id int primary key); '

  test.each([
    ['select id from t', ['view t × 1']],
    ['select a.id from t a join t b using (id) left join t c on c.id = b.id', ['view t × 3']],
    ['select id, (select count(*) from t x where x.id in (select id from t)) from t', ['view t × 3']],
    ['select id from t union all select id from plain', ['view - × 2', 'view plain × 1', 'view t × 1']],
    ['with c as (select id from t) select a.id from c a join c b using (id)', ['view - × 2', 'view t × 1']],
    [`select ':rtekind 0 :relid 1 ' as id from generate_series(1, 2) as ":rtekind 0 :relid 1 "`, ['view - × 1']],
    ['select relname::text as id from pg_class', ['view - × 1']],
  ])('in a view: %s', async (query, mentions) => {
    expect(await mentionsOf(`${TABLE}create view v as ${query}`, 'v')).toEqual(mentions)
  })
  test('in policies, for reading and for writing', async () => {
    const policies = `${TABLE}create table x (id int primary key); alter table x enable row level security;
      create policy a on x using (exists (select from t) and exists (select from t join plain using (id)));
      create policy b on x for insert with check (exists (select from t));
      create policy c on x for delete using (exists (select from plain))`
    expect(await mentionsOf(policies, 'x')).toEqual(['read plain × 1', 'read t × 2', 'write plain × 1', 'write t × 1'])
    expect(await mentionsOf(`${policies}; alter table x disable row level security`, 'x')).toEqual([])
  })
})

test('a materialized view reads nothing until it is refreshed', async () => {
  const ddl = 'create table t (id int); create materialized view x as select id, now() from t'
  await admin.run(ddl)
  expect(await toldOf('x')).toEqual(NOTHING)
  await admin.run('drop materialized view x; drop table t')
})

test('a policy reads its tables while row-level security is enabled', async () => {
  const ddl = `create table t (id int); create table scratch.u (id int);
    create policy own on t using (id in (select id from scratch.u where id = current_setting('app.x')::int))`
  expect(await after(ddl, 't')).toEqual(NOTHING)
  expect(await after(`${ddl}; alter table t enable row level security`, 't')).toEqual({
    ...NOTHING,
    ties: ['policy scratch.u'],
    nondeterminism: ['stable current_setting'],
  })
})

test.each([
  ['now()', ['stable now']],
  ['clock_timestamp()', ['volatile clock_timestamp']],
  ['current_date', ['volatile current_timestamp']],
  ['localtimestamp(3)', ['volatile current_timestamp']],
  ['current_user', []],
  ['random() < 2', ['volatile random']],
  ["id || 'x'", ['stable anytextcat']],
  ['lower(id::text)', []],
  ['same(id::text)', []],
  ['look()', ['opaque look']],
  ['draw()', ['volatile draw']],
  ['(select max(relname::text) from pg_class)', ['volatile pg_class']],
  ['(select last_value from numbers)', ['volatile numbers']],
  ['(select count(*) from pg_stat_activity)', ['volatile pg_stat_activity']],
  ['array(select concat(id) from t)', ['stable concat']],
  ['string_agg(id::text, now()::text) over ()', ['stable now']],
  ['case when id = any (array[1, txid_current()]) then 1 end', ['stable txid_current']],
])('a view over %s can change without a write', async (expression, causes) => {
  const told = await after(`create table t (id int); create view v as select ${expression} as it from t`, 'v')
  expect(told.nondeterminism).toEqual(causes)
})

test('samples and foreign tables can change without a write', async () => {
  const sample = 'create table t (id int); create view v as select * from t tablesample bernoulli (50)'
  expect((await after(sample, 'v')).nondeterminism).toEqual(['volatile tablesample'])
  await admin.run('create foreign data wrapper w; create server s foreign data wrapper w')
  const foreign =
    'create table t (id int) partition by range (id); create foreign table scratch.f partition of t default server s'
  expect((await after(foreign, 't')).nondeterminism).toEqual(['volatile f'])
  expect((await after('create foreign table elsewhere (id int) server s', 'elsewhere')).nondeterminism).toEqual([
    'volatile elsewhere',
  ])
  await admin.run('drop foreign data wrapper w cascade')
})

test.each([
  ['create trigger a before insert or delete on t for each row execute function noted()', 'insert delete'],
  ['create trigger a after update of id on t for each statement execute function noted()', 'update'],
  ['create constraint trigger a after insert on t deferrable for each row execute function noted()', 'insert'],
  ['create trigger a after truncate on t execute function noted()', ''],
  ['create trigger a before insert on t for each row execute function noted(); alter table t disable trigger a', ''],
  ['create trigger a after insert on t for each statement execute function svc.captured()', ''],
  ['create trigger a before update on t for each row execute function suppress_redundant_updates_trigger()', ''],
  ['create rule a as on insert to t do also delete from plain', 'insert'],
  ['create rule a as on delete to t do instead nothing', 'delete'],
  ['alter table t alter id set default draw()', 'insert update delete'],
  ['alter table t alter id set default random()::int', ''],
  ['alter table t add column made int generated always as identity', ''],
  ['alter table t add check (draw() = 1)', 'insert update delete'],
  ['create policy own on t with check (draw() = 1)', 'insert update delete'],
])('a write can change other tables by: %s', async (ddl, effect) => {
  expect((await after(`create table t (id int); ${ddl}`, 't')).effect).toBe(effect)
})

test('tables that no resource depends on are omitted', async () => {
  await admin.run(
    'create table hidden.t (id int primary key); create table hidden.u (id int references hidden.t on delete cascade)',
  )
  expect(await toldOf('hidden.t')).toEqual(NOTHING)
})
