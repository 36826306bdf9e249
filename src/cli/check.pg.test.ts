/** `svc check` against a real database (docs/guides/checking.md): a warning at startup is an error here. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'

const database = databaseFixture()
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-check-'))
})

afterAll(async () => {
  rmSync(folder, { recursive: true })
})

beforeEach(() =>
  execute(
    database.adminUrl,
    'drop schema public cascade; create schema public; grant usage on schema public to public',
  ),
)

/**
 * Runs `svc check`. Returns the exit code, the report without the version of this server (with `--json`, the
 * text on standard error), and standard output unchanged.
 */
async function check(toml: string, url: string, ...options: string[]): Promise<readonly [number, string, string]> {
  writeFileSync(join(folder, 'svc.toml'), toml)
  const { code, out, error } = await runCommand(['check', ...options], {
    environment: { DATABASE_URL: url, JWT_SECRET: 'a secret of 32 bytes, or of more' },
    workingDirectory: folder,
  })
  const report = options.includes('--json') ? error : out
  return [code, report.filter(line => !line.startsWith('note: PostgreSQL older than')).join('\n'), out.join('\n')]
}

test('a tenant table without forced row-level security is reported with the SQL that fixes it', async () => {
  await execute(
    database.adminUrl,
    'create table deals (tenant_id int primary key, id int); grant select on deals to app',
  )
  const [code, error] = await check('', database.url)
  expect(code).toBe(1)
  expect(error).toContain('error: Tables with the column tenant_id but without forced row-level security: deals. ')
  expect(error).toContain('\n  alter table public.deals enable row level security, force row level security;\n')

  const sql = error.split('\n').filter(line => /^ {2}(alter|create)/.test(line))
  await execute(database.adminUrl, sql.join('\n'))
  expect((await check('', database.url))[1]).not.toContain('deals')
})

test('a note says why all session settings are set although only readable ones are configured', async () => {
  const [code, report] = await check('[gateway]\nsession_settings = "readable"', database.url)
  expect(code).toBe(0)
  expect(report).toContain('although session_settings = "readable": the event triggers of svc install are missing')
  expect((await check('', database.url))[1]).not.toContain('session_settings')
})

test('the configured tenant column is checked', async () => {
  await execute(database.adminUrl, 'create table deals (operator_id int); grant select on deals to app')
  expect((await check('', database.url))[1]).not.toContain('deals')
  expect((await check('[gateway]\ntenant_column = "operator_id"', database.url))[1]).toContain('column operator_id')
})

test('a superuser as the gateway’s role is an error', async () => {
  const [, error] = await check('', database.adminUrl)
  const finding = error.split('\n').find(line => line.endsWith(' [role-bypasses-rls]'))
  expect(finding).toMatch(/^error: Row-level security does not apply to the gateway's role: postgres is a superuser\. /)
})

test('a missing schema is reported', async () => {
  const [code, error] = await check('[gateway]\nschemas = ["public", "sales"]', database.url)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: The database cannot be checked: .*sales/)
})

test('a missing search language is reported', async () => {
  const [code, error] = await check('[gateway]\nsearch_language = "englsh"', database.url)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: .*englsh \(did you mean english\?\).*\n {2}Set search_language to simple/m)
})

test('realtime_database_url is checked like database_url', async () => {
  const [code, error] = await check('[gateway]\nrealtime_database_url = "postgres://app@h/d?sslmood=on"', database.url)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: The gateway cannot listen for schema changes: .*sslmood/)
  expect(error).not.toContain('no effect')
})

test('webhook triggers that do not match the schema, and one with a loopback URL, are reported', async () => {
  await execute(database.adminUrl, 'create table notes (id int primary key, body text); grant select on notes to app')
  const rest = 'operations: [create], webhook_url: https://example.com/hook'
  writeFileSync(
    join(folder, 'triggers.yaml'),
    `- {name: a, table: nots, ${rest}}\n- {name: b, table: public.notes, columns: [id, bdy], ${rest}}\n`,
  )
  const toml = '[gateway]\nevents_path = "triggers.yaml"'
  const [code, error] = await check(toml, database.url)
  expect(code).toBe(1)
  expect(error).toMatch(
    /^error: .*triggers\.yaml:1: trigger "a": 0\.table: there is no table "nots"; did you mean notes\?$/m,
  )
  expect(error).toMatch(
    /^error: .*triggers\.yaml:2: trigger "b": 1\.columns\.1: table "notes" has no column "bdy"; did you mean body\?$/m,
  )
  writeFileSync(
    join(folder, 'triggers.yaml'),
    `- {name: a, table: notes, ${rest.replace('example.com', 'localhost')}}\n`,
  )
  expect((await check(toml, database.url))[1]).toMatch(
    /^warning: Webhooks of "a" cannot be delivered: 127\.0\.0\.1 is a loopback address/m,
  )
  expect((await check(`${toml}\nwebhook_allow = ["127.0.0.1"]`, database.url))[1]).not.toContain('Webhooks of')
})

test('invalid examples in comments are reported with the SQL that removes them and keeps the description', async () => {
  await execute(
    database.adminUrl,
    `create table "or ders" (id int primary key, total numeric(12, 2), note text); grant select on "or ders" to app;
     comment on column "or ders".id is '@example 7'; comment on column "or ders".note is '12,50';
     comment on column "or ders".total is E'Of the "lot", it''s\\nwhat is owed.\\n@example 12,50';
     create function double("a b" int, variadic rest text[] default '{}') returns int language sql return 2 * "a b";
     comment on function double is '@example {"a": 1}'`,
  )
  const [, said] = await check('', database.url)
  const told = [
    'or ders.total (12,50 is not a numeric(12,2) as the API returns it, such as 1.5)',
    `double("a b" integer, VARIADIC rest text[]) (there is no argument "a")`,
  ]
  expect(said).toContain(
    `warning: Comments with an example that does not match its type: ${told.join(', ')}. The OpenAPI document shows`,
  )
  const { findings } = JSON.parse((await check('', database.url, '--json'))[2])
  const found = findings.find(({ objects }: { objects: readonly string[] }) => objects.includes(told[0] ?? ''))
  expect(found).toMatchObject({ level: 'warning', check: null, objects: told })

  await execute(database.adminUrl, found.sql.join('\n'))
  expect((await check('', database.url))[1]).not.toContain('example')
  const words = `select col_description('"or ders"'::regclass, 2) as total,
    obj_description('double'::regproc) as double,
    col_description('"or ders"'::regclass, 1) as id`
  expect(await execute(database.adminUrl, words)).toEqual([
    { total: 'Of the "lot", it\'s\nwhat is owed.', double: null, id: '@example 7' },
  ])
})

test('a wrong password is not printed', async () => {
  const url = new URL(database.url)
  url.pathname = '/no_such_database'
  url.password = 'hunter2'
  const [code, error] = await check('', url.href)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: The database cannot be checked: no session with .*no_such_database/)
  expect(error).not.toContain('hunter2')
})

test('a warning is printed and does not fail the check', async () => {
  await execute(database.adminUrl, 'create table a (id int primary key, b int references a); grant select on a to app')
  const [, error] = await check('', database.url)
  expect(error).toMatch(
    /^warning: Foreign keys without an index on their columns: a_b_fkey on a\. .*\[foreign-key-index\]$/m,
  )
  expect(error).toContain('\n  create index on public.a (b);\n')
})

test('a pool that cannot be shared fairly is reported', async () => {
  const [, alone] = await check('[gateway]\nmax_connections = 1', database.url)
  expect(alone).toMatch(/^warning: the pool has a single connection/m)
  const [, whole] = await check('[gateway]\ntenant_max_connections = 10', database.url)
  expect(whole).toMatch(/^warning: one tenant can use the whole pool/m)
  const [, two] = await check('[gateway]\nmax_connections = 2', database.url)
  expect(two).toMatch(/^warning: one tenant can open every stream/m)
  expect(two).toMatch(/^note: streams of a tenant can hold every connection/m)
  expect((await check('[gateway]\nmax_connections = 3', database.url))[1]).not.toMatch(/max_connections|tenant_max/)
})

test('an accepted finding is counted but not printed', async () => {
  await execute(database.adminUrl, 'create table a (id int primary key, b int references a); grant select on a to app')
  const [, error] = await check('[gateway]\naccepted_findings = ["foreign-key-index: a_b_fkey on a"]', database.url)
  expect(error).not.toContain('[foreign-key-index]')
  expect(error).toMatch(/, 1 accepted$/)
})

test('--json prints one object with all statements and nothing else', async () => {
  await execute(database.adminUrl, 'create table "De als" (tenant_id int primary key); grant select on "De als" to app')
  const [code, error, out] = await check('', database.url, '--json')
  const report = JSON.parse(out)
  expect(code).toBe(1)
  expect(error).toBe('')
  expect(report).toMatchObject({ file: join(folder, 'svc.toml'), warnings: 0, accepted: 0 })
  expect(report.findings).toHaveLength(report.errors + report.notes)
  expect(report.connections).toContain('  statements: prepared and pipelined')
  expect(report.findings).toContainEqual({
    level: 'error',
    check: 'tenant-table-unprotected',
    message: expect.stringContaining('De als'),
    objects: ['De als'],
    fix: expect.any(String),
    sql: [
      'alter table public."De als" enable row level security, force row level security;',
      expect.stringMatching(/^create policy tenant on public\."De als" /),
    ],
  })
})

test('--json works without a database and is rejected together with --print', async () => {
  const [code, , out] = await check('', '', '--json')
  expect(code).toBe(1)
  expect(JSON.parse(out).findings).toContainEqual({
    ...{ level: 'error', check: null, message: 'No database is configured.', fix: expect.any(String) },
    ...{ objects: [], sql: [] },
  })
  expect((await check('', database.url, '--json', '--print'))[0]).toBe(2)
})
