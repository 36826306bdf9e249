/** `svc check --postgrest` (docs/guides/coming-from-postgrest.md#checklist): what each check finds. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { uniqueName } from '../../test/support/server.ts'

const database = databaseFixture()
const [anon, author, service, stranger] = ['anon', 'author', 'service', 'stranger'].map(uniqueName) as [
  string,
  string,
  string,
  string,
]
const folder = mkdtempSync(join(tmpdir(), 'svc-check-'))
let me = ''

beforeAll(async () => {
  me = decodeURIComponent(new URL(database.url).username)
  await execute(
    database.adminUrl,
    `create role ${anon}; create role ${author}; create role ${service} bypassrls; create role ${stranger};
     grant ${anon}, ${author} to "${me}";
     create schema api; create schema closed;
     create table api.open (id int primary key); create table api.guarded (id int primary key, owner text);
     create table api.unused (id int primary key); create table closed.things (id int primary key);
     alter table api.guarded enable row level security;
     create view api.shown as select id from api.guarded;
     create view api.plain as select id from api.open;
     create function api.check_it() returns void language sql as 'select 1';
     create function api.hidden() returns void language sql as 'select 1';
     revoke execute on function api.hidden() from public;
     create procedure api.tidy() language sql as 'select 1';
     grant usage on schema api to ${anon}, ${author};
     grant select, insert, update on api.open to ${anon}; grant select, insert on api.guarded to ${author};
     grant select on api.shown, api.plain to ${author}; grant select on closed.things to ${author}`,
  )
})

afterAll(() => rmSync(folder, { recursive: true }))

interface Shown {
  readonly check: string | null
  readonly level: string
  readonly message: string
  readonly objects: readonly string[]
  readonly sql: readonly string[]
}

/** The findings of these checks, by name. */
async function findings(toml: string, ...options: string[]): Promise<ReadonlyMap<string, Shown>> {
  writeFileSync(join(folder, 'svc.toml'), `[postgrest]\nenabled = true\nschemas = ["api", "closed"]\n${toml}`)
  const { out, error } = await runCommand(['check', '--json', ...(options.length === 0 ? ['--postgrest'] : options)], {
    environment: { DATABASE_URL: database.url, JWT_SECRET: 'a secret of 32 bytes, or of more' },
    workingDirectory: folder,
  })
  const report = JSON.parse([...out, ...error].join('\n')) as { readonly findings: readonly Shown[] }
  return new Map(report.findings.map(found => [found.check ?? found.message, found]))
}

describe('with anon_role', () => {
  const toml = () => `anon_role = "${anon}"`

  test.each<[check: string, level: string, objects: () => readonly string[], sql: () => readonly string[]]>([
    [
      'postgrest-unprotected-table',
      'warning',
      () => ['api.open (insert, update)'],
      () => [`revoke insert, update on api.open from ${anon};`],
    ],
    [
      'postgrest-view-of-owner',
      'warning',
      () => ['api.shown'],
      () => (POSTGRES_MAJOR < 15 ? [] : ['alter view api.shown set (security_invoker = true);']),
    ],
    ['postgrest-not-granted', 'note', () => ['api.unused'], () => []],
    [
      'postgrest-schema-usage',
      'warning',
      () => [anon, author].map(role => `closed (${role})`).toSorted(),
      () => [anon, author].toSorted().map(role => `grant usage on schema closed to ${role};`),
    ],
    ['postgrest-function-not-served', 'note', () => ['api.tidy()'], () => []],
  ])('%s', async (check, level, objects, sql) => {
    const found = (await findings(toml())).get(check)
    expect([found?.level, found?.objects, found?.sql]).toEqual([level, objects(), sql()])
  })

  test('nothing else is found, and nothing without --postgrest', async () => {
    const names = [...(await findings(toml())).keys()].filter(name => name.startsWith('postgrest-'))
    expect(names).toHaveLength(5)
    expect([...(await findings(toml(), '--json')).keys()].filter(name => name.startsWith('postgrest-'))).toEqual([])
  })

  test('an accepted finding is left out', async () => {
    const accepted = '[gateway]\naccepted_findings = ["postgrest-not-granted: api.unused", "postgrest-schema-usage"]'
    const names = [...(await findings(`${toml()}\n${accepted}`)).keys()]
    expect(names).toContain('postgrest-view-of-owner')
    expect(names.filter(name => /not-granted|schema-usage|accepted_findings/.test(name))).toEqual([])
  })
})

test('an anon_role that the gateway cannot switch to; the fix is a grant if the role exists', async () => {
  const missing = (await findings('anon_role = "nobody_at_all"')).get('postgrest-anon-role')
  expect([missing?.level, missing?.objects, missing?.sql]).toEqual(['error', ['nobody_at_all'], []])
  const other = (await findings(`anon_role = "${stranger}"`)).get('postgrest-anon-role')
  expect(other?.sql).toEqual([`grant ${stranger} to ${me};`])
})

test('hooks that do not exist or that no role can execute', async () => {
  const found = await findings(`anon_role = "${anon}"\npre_request = "api.hidden"\nroot_spec = "nothing"`)
  expect(found.get('postgrest-hook-missing')?.objects).toEqual(['pre_request api.hidden', 'root_spec nothing'])
  const fine = await findings(`anon_role = "${anon}"\npre_request = "api.check_it"\nroot_spec = "check_it"`)
  expect(fine.has('postgrest-hook-missing')).toBe(false)
})

test('a role that bypasses row-level security', async () => {
  await execute(database.adminUrl, `grant ${service} to "${me}"`)
  const found = (await findings(`anon_role = "${anon}"`)).get('postgrest-role-bypasses-rls')
  expect([found?.level, found?.objects, found?.sql]).toEqual(['warning', [service], [`revoke ${service} from ${me};`]])
  await execute(database.adminUrl, `revoke ${service} from "${me}"`)
})

test('settings of PostgREST in the database', async () => {
  await execute(database.adminUrl, `alter role ${stranger} set pgrst.db_schemas = 'api'`)
  const found = (await findings('')).get('postgrest-database-settings')
  expect([found?.level, found?.objects]).toEqual(['warning', [`pgrst.db_schemas=api (role ${stranger})`]])
  await execute(database.adminUrl, `alter role ${stranger} reset pgrst.db_schemas`)
})

test('tables that channels cannot subscribe to, if realtime is enabled', async () => {
  const found = (await findings('realtime = true')).get('postgrest-not-captured')
  expect([found?.level, found?.objects]).toEqual(['note', ['api.guarded', 'api.open', 'closed.things']])
})

test('a missing schema, a disabled dialect and a missing anon_role are reported', async () => {
  const missing = await findings('')
  expect([...missing.keys()].some(message => message.includes('anon_role is not set'))).toBe(true)
  writeFileSync(join(folder, 'other.toml'), '[postgrest]\nenabled = false\nschemas = ["gone"]')
  const gone = await findings('', '--json', '--postgrest', '--config', 'other.toml')
  expect([...gone.keys()].join('\n')).toMatch(/no schema "gone"/)
  writeFileSync(join(folder, 'other.toml'), '[postgrest]\nschemas = ["api"]')
  const off = await findings('', '--json', '--postgrest', '--config', 'other.toml')
  expect([...off.keys()].join('\n')).toMatch(/enabled is false/)
})
