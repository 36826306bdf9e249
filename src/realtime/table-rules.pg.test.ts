/**
 * The rules decide which callers share what is read for them: an overlooked setting would show rows of one
 * caller to another.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
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
import { conditionStatement, readTableRules, type TableRules } from './table-rules.ts'

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
     alter table members enable row level security;
     create policy known on members using (exists (select from admins a where a.who = members.who));
     alter table notes enable row level security; alter table notes force row level security;
     grant select on notes, members, member, admins to app`,
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

test('permissive policies are alternatives, restrictive ones conditions; those of other roles are ignored', async () => {
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
