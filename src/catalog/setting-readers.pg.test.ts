/** The objects of a database that can read session settings. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { introspect, readFingerprint } from './introspect.ts'
import type { SettingReaders } from './model.ts'

const database = databaseFixture()
const admin = fixture(() => openSession(database.adminUrl))
const gateway = fixture(() => openSession(database.url))
const OPTIONS = { schemas: ['scratch'], exposedViews: [], settingReaders: true }

/** Runs the statements, reads the catalog and undoes them. */
async function after(ddl: string): Promise<Pick<SettingReaders, 'names' | 'unclear'> & { readonly print: string }> {
  await admin.run(`create schema scratch; set search_path = scratch, public; ${ddl}`)
  try {
    const { settingReaders, fingerprint } = await introspect(gateway.query, OPTIONS)
    expect(await readFingerprint(gateway.query, OPTIONS)).toBe(fingerprint)
    if (settingReaders === null) throw new Error('not read')
    return { names: settingReaders.names, unclear: settingReaders.unclear, print: fingerprint }
  } finally {
    await admin.run('drop schema scratch cascade; set search_path = public')
  }
}

const READ = "current_setting('App.X', true)"
const TABLE = 'create table t (id int, x text);'
const NOTED = (body: string) => `create function f() returns trigger language plpgsql as $$ begin ${body} end $$`

test.each<[what: string, ddl: string, reader: string]>([
  ['a function', `create function f() returns text language sql as $$ select ${READ} $$`, 'function scratch.f'],
  ['a procedure', `create procedure f() language plpgsql as $$ begin perform ${READ}; end $$`, 'function scratch.f'],
  [
    'the default of an argument',
    `create function f(a text default ${READ}) returns text language sql as 'select 1::text'`,
    'function f',
  ],
  [
    'a trigger',
    `${TABLE} ${NOTED(`new.x := ${READ}; return new;`)};
    create trigger g before insert on t for each row execute function f()`,
    'function scratch.f',
  ],
  [
    'the condition of a trigger',
    `${TABLE} ${NOTED('return new;')};
    create trigger g before insert on t for each row when (${READ} = '') execute function f()`,
    'trigger scratch.t.g',
  ],
  ['a policy', `${TABLE} create policy p on t using (x = (select ${READ}))`, 'policy scratch.t.p'],
  ['a policy of writes', `${TABLE} create policy p on t for insert with check (x = ${READ})`, 'policy scratch.t.p'],
  ['a default', `create table t (id int, x text default ${READ})`, 'default scratch.t.x'],
  ['a check', `create table t (x text check (x <> ${READ}))`, 'constraint scratch.t.t_x_check'],
  ['a domain', `create domain d as text check (value <> ${READ})`, 'constraint d_check'],
  ['the default of a domain', `create domain d as text default ${READ}`, 'type d'],
  [
    'a view over a view',
    `${TABLE} create view v as select ${READ} as x; create view w as select x from v`,
    'rule scratch.v._RETURN',
  ],
  ['a materialized view', `create materialized view m as select ${READ} as x`, 'rule scratch.m._RETURN'],
  ['a rule', `${TABLE} create rule r as on insert to t do also select ${READ}`, 'rule scratch.t.r'],
  ...(POSTGRES_MAJOR < 14
    ? []
    : [
        [
          'a body that is not a string',
          `create function f() returns text begin atomic select ${READ}; end`,
          'function f',
        ] as [string, string, string],
      ]),
])('a setting is read by %s', async (_, ddl, reader) => {
  expect(await after(ddl)).toMatchObject({ names: new Map([['app.x', reader]]), unclear: null })
})

test.each<[what: string, ddl: string, reason: string]>([
  [
    'a computed name',
    `${TABLE} create policy p on t using (current_setting('app.' || x) = '')`,
    'policy scratch.t.p computes the name of a setting',
  ],
  [
    'a name of another type',
    `${TABLE} create policy p on t using (current_setting('app.x'::varchar) = '')`,
    'policy scratch.t.p computes the name of a setting',
  ],
  [
    'the view of all settings',
    'create view v as select setting from pg_settings',
    'rule scratch.v._RETURN reads settings by computed names',
  ],
  [
    'a query in a string',
    "create view v as select query_to_xml('select 1', true, true, '') as x",
    'rule scratch.v._RETURN reads settings by computed names',
  ],
  ['dynamic SQL', NOTED("execute 'select 1'; return new;"), 'function scratch.f uses EXECUTE'],
  [
    'an alias of the function',
    "create function f(text) returns text language internal as 'show_config_by_name'",
    'function scratch.f is written in internal',
  ],
  [
    'an operator',
    'create operator @@@ (rightarg = text, function = current_setting)',
    'operator @@@ reads settings by computed names',
  ],
  [
    'an aggregate',
    "create aggregate f(boolean) (sfunc = current_setting, stype = text, initcond = 'app.x')",
    'aggregate scratch.f reads settings by computed names',
  ],
  [
    'a body that is too long',
    `create function f() returns int language sql as $$ select 1 ${' '.repeat(1_000_000)} $$`,
    'function scratch.f is too long to be searched',
  ],
])('any setting may be read by %s', async (_, ddl, reason) => {
  expect((await after(ddl)).unclear).toBe(reason)
})

test('functions that read no setting, and those of known extensions, are not readers', async () => {
  const ddl = `${TABLE} create extension citext; create extension pgcrypto; ${NOTED('return new;')};
    create function g(a int) returns int language sql as 'select a + 1'; create policy p on t using (x = session_user);
    create view v as select count(*) from t`
  expect(await after(ddl)).toMatchObject({ names: new Map(), unclear: null })
})

test('functions of other extensions may read any setting', async () => {
  expect((await after('create extension tablefunc')).unclear).toMatch(/^function scratch\.\w+ is written in c$/)
})

test('the fingerprint depends on what bodies read', async () => {
  const body = (text: string) => after(`create function f() returns text language sql as $$ ${text} $$`)
  const [one, other, more] = [await body(`select ${READ}`), await body("select 'x'"), await body("select 'y'")]
  expect(one.print).not.toBe(other.print)
  expect(other.names.size + more.names.size).toBe(0)
})

const GAPS = ['', ' ', '\n', "/* ' */", '-- "\n', '/* /* $$ */ */']
const CALLED = [
  ...['current_setting', '"current_setting"', 'Current_Setting', 'pg_catalog.current_setting'],
  ...['pg_catalog . "current_setting"', String.raw`U&"current\005fsetting"`, `U&"!0063urrent_setting" uescape '!'`],
]
const NAMES = [
  ...["'app.x'", "'APP.X'", '$$app.x$$', '$a$App.x$a$', "e'app.x'", String.raw`e'app\x2ex'`, "u&'app.x'", "n'app.x'"],
  ...["'app.' || 'x'", "'app.'\n'x'", "concat('app', '.x')", "('app.x')", "'app.x'::text", "'app.x' :: varchar"],
  ...["cast('app.x' as text)", "reverse('x.ppa')", "case when true then 'app.x' end", "variadic 'app.x'"],
]
const AROUND: readonly ((call: string) => string)[] = [
  call => call,
  call => `(select ${call})`,
  call => `'it''s' || ${call} || '--'`,
  call => `$$ ' $$ || ${call} -- '`,
  call => String.raw`e'\'' || ${call}`,
  call => `query_to_xml($q$ select ${call} $q$, true, true, '')::text`,
  call => `query_to_xml('select ' || ${call.length} || ' || current' || '_setting(''app.x'')', true, true, '')::text`,
  call => `coalesce(null, ${call}, current_setting('app.y'))`,
  call => `'current_setting(' || length(${call})::text`,
]

test('whatever PostgreSQL evaluates with the value of a setting counts as reading it', async () => {
  await admin.run('create schema scratch')
  const one = (of: readonly string[]) => fc.constantFrom(...of)
  const gap = one(GAPS)
  const expression = fc
    .tuple(one(CALLED), gap, gap, one(NAMES), gap, one(['', ', true', ',false']), fc.constantFrom(...AROUND))
    .map(([called, a, b, name, c, more, around]) => around(`${called}${a}(${b}${name}${c}${more})`))
  const bodies = [
    (text: string) => `as '${`select ${text}`.replaceAll("'", "''")}'`,
    (text: string) => `begin atomic select ${text}\n; end`,
  ]
  let reading = 0
  const holds = fc.asyncProperty(expression, fc.constantFrom(...bodies), async (text, body) => {
    try {
      await admin.run(`create function scratch.f() returns text language sql ${body(text)}`)
    } catch {
      // Not every combination is SQL.
      return
    }
    try {
      const valueWith = async (value: string) => {
        await admin.run(`set app.x = '${value}'; set app.y = 'y'`)
        // A text that a function runs may be invalid SQL.
        return admin.query('select scratch.f()', []).catch(() => null)
      }
      const [short, long] = [await valueWith('a'), await valueWith('longer')]
      if (JSON.stringify(short) === JSON.stringify(long)) return
      reading++
      const { settingReaders } = await introspect(gateway.query, OPTIONS)
      expect(settingReaders?.names.has('app.x') === true || settingReaders?.unclear != null).toBe(true)
    } finally {
      await admin.run('drop function scratch.f()')
    }
  })
  await fc.assert(holds, { numRuns: 150, endOnFailure: true })
  await admin.run('drop schema scratch cascade')
  expect(reading).toBeGreaterThan(30)
})
