/**
 * The rules decide which callers share what is read for them: an overlooked setting would show rows of one
 * caller to another.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { INVOKER } from '../../test/support/postgres-version.ts'
import { introspect } from '../catalog/introspect.ts'
import type { Table } from '../catalog/model.ts'
import { queryThrough } from '../catalog/query.ts'
import { createPool, type Pool } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'
import { routeHash } from '../run/write-notifications.ts'
import { routeStatement } from './route.ts'
import { conditionStatement, FINGERPRINTS, readTableRules, type TableRules } from './table-rules.ts'

const database = databaseFixture()
let pool: Pool
let table: Table

beforeAll(async () => {
  await execute(
    database.adminUrl,
    `create table members (who text, team int);
     create function team_of(who text) returns int stable language sql as 'select 1';
     create domain tenant as text check (value <> '');
     create type kind as enum ('a', 'b');
     create table parents (id int primary key);
     create collation folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
     create table notes (id int primary key, tenant text, who text, team int, kind kind, org uuid, label varchar(9),
     amount numeric, folded text collate folding, parent int references parents on delete cascade);
     create view noted as select * from notes;
     create table old_notes () inherits (notes);
     create view member ${INVOKER} as select * from members;
     create table admins (who text);
     create table rings (tenant text, who text, upper text generated always as (who || '!') stored);
     create table clubs (tenant text, who text, part int) partition by list (part);
     create table club_one partition of clubs for values in (1);
     alter table clubs enable row level security; alter table clubs force row level security;
     create policy own on clubs using (tenant = current_setting('app.current_tenant_id', true)
       and exists (select from rings where rings.who = clubs.who));
     alter table rings enable row level security; alter table rings force row level security;
     create policy own on rings using (tenant = current_setting('app.current_tenant_id', true));
     create view club ${INVOKER} as select * from clubs;
     alter table members enable row level security;
     create policy known on members using (exists (select from admins a where a.who = members.who));
     alter table notes enable row level security; alter table notes force row level security;
     grant select on notes, members, member, admins, clubs, club_one, rings, club to app`,
  )
  pool = createPool({ target: parseUrl(database.url) })
  const catalog = await introspect(queryThrough(pool), { schemas: ['public'], exposedViews: [] })
  table = catalog.tables.get('notes') as Table
})

afterAll(async () => {
  await pool?.close({ deadlineMs: 1_000 })
})

beforeEach(async () => {
  await execute(
    database.adminUrl,
    `do $$ declare name text; begin for name in select polname from pg_policy where polrelid = 'notes'::regclass ` +
      `loop execute format('drop policy %I on notes', name); end loop; end $$`,
  )
})

async function rulesWith(...policies: readonly string[]): Promise<TableRules> {
  for (const [index, policy] of policies.entries())
    await execute(database.adminUrl, `create policy p${index} on notes ${policy}`)
  const rules = await readTableRules(pool, table, null)
  if (rules === null) throw new Error('the table is there')
  return rules
}

test.each([
  [`using (tenant = current_setting('app.current_tenant_id', true))`, ['app.current_tenant_id'], ['tenant']],
  [`using (tenant = (select current_setting('app.current_tenant_id')))`, ['app.current_tenant_id'], ['tenant']],
  [
    `using (who = current_setting('App.Current_User_Id', true) or kind = 'a')`,
    ['app.current_user_id'],
    ['kind', 'who'],
  ],
  [`using (tenant = current_setting('request.jwt.claims', true)::jsonb ->> 'org')`, ['request.jwt.claims'], ['tenant']],
  ['using (true)', [], []],
  // The settings are unknown.
  [`using (tenant = current_setting(who, true))`, null, ['tenant', 'who']],
  [
    `using (tenant = current_setting('app.' || who, true) or who = current_setting('app.x', true))`,
    null,
    ['tenant', 'who'],
  ],
  [`using (team = team_of(current_setting('app.current_user_id', true)))`, null, ['team']],
  [
    'using (exists (select from members m where m.team = notes.team and m.who = ' +
      `current_setting('app.current_user_id', true)))`,
    null,
    ['team'],
  ],
  [`using (tenant::tenant = current_setting('app.current_tenant_id', true))`, null, ['tenant']],
  [`using (exists (select from pg_settings where name = notes.who))`, null, ['who']],
] as const)('the settings and columns of a policy are found: %s', async (policy, settings, columns) => {
  const rules = await rulesWith(policy)
  expect([rules.settings, [...(rules.columns ?? [])].sort()]).toEqual([settings, columns])
})

test.each([
  [`using (tenant = current_setting('app.current_tenant_id'))`, 'tenant'],
  [`using (tenant = (select current_setting('app.current_tenant_id', true)))`, 'tenant'],
  [`using (org = (select nullif(current_setting('app.current_tenant_id', true), '')::uuid))`, 'org'],
  [`using (label = current_setting('app.current_user_id', true) and team > 1)`, 'label'],
  [`using (team = current_setting('app.current_tenant_id', true)::int and tenant is not null)`, 'team'],
  // The number is compared as text, but its JSON is a number.
  [`using (team::text = current_setting('app.current_tenant_id', true))`, 'team'],
  // Equal values may have different text.
  [`using (folded = current_setting('app.current_tenant_id', true))`, null],
  [`using (amount = current_setting('app.current_tenant_id', true)::numeric)`, null],
  [`using (tenant = current_setting('app.current_tenant_id', true) or team = 1)`, null],
] as const)('%s: rows are routed by %s', async (policy, column) => {
  const { route } = await rulesWith(policy)
  expect(route?.column ?? null).toBe(column)
  if (route === null) return
  const value = column === 'org' ? 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' : '7'
  const [, answer] = await pool.run([
    ...[
      {
        text: `select set_config('app.current_tenant_id', $1, true), set_config('app.current_user_id', $1, true)`,
        parameters: [value],
      },
    ],
    {
      text: `select asked.*, to_json(t) -> $1, ${routeHash(`to_json(t.${column})`)}
        from (${routeStatement(route)}) asked, (select $2::text::uuid as org, '7' as tenant, '7' as label,
        7 as team) t`,
      parameters: [column, value.padStart(36, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')],
    },
  ]).result
  const [computed, hash, stored, storedHash] = answer?.rows[0] ?? []
  expect([computed?.toString(), hash?.toString()]).toEqual([stored?.toString(), storedHash?.toString()])
})

test('permissive policies are alternatives, restrictive ones conditions; other roles are ignored', async () => {
  const { settings, condition } = await rulesWith(
    `using (tenant = current_setting('app.t', true))`,
    `for select using (who = 'all')`,
    `as restrictive using (team < 5)`,
    `for update using (who = current_setting('app.u', true))`,
    `for select to postgres using (who = current_setting('app.r', true))`,
  )
  expect(settings).toEqual(['app.t'])
  const rows = [
    { tenant: 'mine', team: 1 },
    { tenant: 'mine', team: 9 },
    { tenant: 'other', who: 'all', team: 1 },
    { tenant: 'other', team: 1 },
    { tenant: null, team: 1 },
  ]
  const [, judged] = await pool.run([
    { text: "select set_config('app.t', 'mine', true)", parameters: [] },
    { text: conditionStatement(table, condition ?? ''), parameters: [JSON.stringify(rows)] },
  ]).result
  expect(judged?.rows.map(([cell]) => cell?.toString())).toEqual(['t', 'f', 't', 'f', 'f'])
})

test('without a policy no row is visible, and without row-level security every row', async () => {
  expect((await rulesWith()).condition).toBe('(false)')
  await execute(database.adminUrl, 'alter table notes disable row level security')
  const { settings, condition } = await rulesWith()
  expect([settings, condition]).toEqual([[], 'true'])
  await execute(database.adminUrl, 'alter table notes enable row level security')
})

test('a table depends on cascades to it, on tables its policies read, and on its views', async () => {
  const { reads, views, inheriting, writtenBy } = await rulesWith(
    'using (exists (select from member m where m.team = notes.team))',
  )
  // The view, its underlying table, and the table that the policy of that one reads.
  expect([[...reads].sort(), views]).toEqual([['public.admins', 'public.members'], ['public.member']])
  expect(inheriting).toEqual(['public.old_notes'])
  expect([...writtenBy].sort()).toEqual(['public.noted', 'public.old_notes', 'public.parents'])
})

describe('a table that a policy reads', () => {
  const inClub = 'exists (select from clubs c where c.who = notes.who)'
  const own = `current_setting('app.current_tenant_id', true)`
  const guards = async (policy: string) =>
    [...(await rulesWith(policy)).guards].map(([name, { route, isPlain }]) => [name, route.column, isPlain]).sort()

  test('guards the rows if each caller sees only rows with one value in a column', async () => {
    expect(await guards(`using (${inClub})`)).toEqual([
      ['public.clubs', 'tenant', true],
      ['public.rings', 'tenant', false],
    ])
  })

  test('leaves the routing column of the table itself', async () => {
    const { route, settings } = await rulesWith(`using (tenant = ${own} and ${inClub})`)
    expect([route?.column, settings]).toEqual(['tenant', null])
  })

  test.each([
    ['through a view', 'exists (select from club c where c.who = notes.who)'],
    ['as a partition, whose own policies apply', 'exists (select from club_one c where c.who = notes.who)'],
    ['as a partition too', `${inClub} or exists (select from club_one c where c.who = notes.who)`],
    ['with a function that can change a setting', `${inClub} and team = team_of(who)`],
    ['with a setting that is changed', `${inClub} and set_config('app.current_tenant_id', who, true) <> ''`],
    ['and its own policy maps rows to no value', 'exists (select from members m where m.who = notes.who)'],
  ])('does not guard them %s', async (_, condition) => {
    expect(await guards(`using (${condition})`)).toEqual([])
    const rules = await rulesWith()
    expect(rules.reads).not.toEqual([])
  })

  test.each([['without row-level security', 'disable row level security', 'enable row level security']])(
    'does not guard them %s',
    async (_, before, after) => {
      await execute(database.adminUrl, `alter table clubs ${before}`)
      const found = await guards(`using (${inClub})`)
      await execute(database.adminUrl, `alter table clubs ${after}`)
      expect(found).toEqual([])
    },
  )

  test('does not guard them if one of its policies calls a function', async () => {
    await execute(database.adminUrl, 'create policy fun on rings as restrictive using (team_of(who) = 1)')
    const found = await guards(`using (${inClub})`)
    await execute(database.adminUrl, 'drop policy fun on rings')
    expect(found).toEqual([])
  })

  test('has its policies in the fingerprint', async () => {
    const read = async () => (await rulesWith()).readPolicies
    const before = (await rulesWith(`using (${inClub})`)).readPolicies
    expect(before.oids).toHaveLength(2)
    const fingerprints = async () => {
      const parameters = [String(table.oid), `{${before.oids.join(',')}}`]
      const [result] = await pool.run([{ text: FINGERPRINTS, parameters }]).result
      return result?.rows[0]?.map(cell => cell?.toString())
    }
    expect((await fingerprints())?.[1]).toBe(before.fingerprint)
    await execute(database.adminUrl, 'create policy more on rings using (false)')
    expect((await read()).fingerprint).not.toBe(before.fingerprint)
    expect((await fingerprints())?.[1]).toBe((await read()).fingerprint)
    await execute(database.adminUrl, 'drop policy more on rings')
  })
})

test('every change of a policy changes the fingerprint', async () => {
  const before = await rulesWith('using (true)')
  expect((await rulesWith()).fingerprint).toBe(before.fingerprint)
  await execute(database.adminUrl, 'alter policy p0 on notes using (id > 0)')
  const changed = await rulesWith()
  expect(changed.fingerprint).not.toBe(before.fingerprint)
  await execute(database.adminUrl, 'alter table notes no force row level security')
  expect((await rulesWith()).fingerprint).not.toBe(changed.fingerprint)
  await execute(database.adminUrl, 'alter table notes force row level security')
})

test('a dropped table has no rules', async () => {
  expect(await readTableRules(pool, { ...table, oid: 4_000_000_000 }, null)).toBeNull()
})
