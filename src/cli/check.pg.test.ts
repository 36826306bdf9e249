/** `svc check` against a real database (decisions 1): what boot would warn about is an error here. */
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { execute, type TestDatabase, testDatabase } from '../../test/support/postgres.ts'
import { run } from './program.ts'
import type { SignalSource } from './signals.ts'

let database: TestDatabase
let folder: string

beforeAll(async () => {
  database = await testDatabase()
  folder = mkdtempSync(join(tmpdir(), 'svc-check-'))
})

afterAll(async () => {
  rmSync(folder, { recursive: true })
  await database.drop()
})

beforeEach(() =>
  execute(
    database.adminUrl,
    'drop schema public cascade; create schema public; grant usage on schema public to public',
  ),
)

/** Exit code and what was said on standard error, but for the version of this server. */
async function check(toml: string, url: string): Promise<readonly [code: number, error: string]> {
  writeFileSync(join(folder, 'svc.toml'), toml)
  const said: string[] = []
  const code = await run(['check'], {
    environment: { DATABASE_URL: url, JWT_SECRET: 'a secret of 32 bytes, or of more' },
    workingDirectory: folder,
    out: line => said.push(`out: ${line}`),
    error: line => said.push(line),
    input: async () => '',
    stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
    signals: new EventEmitter() as unknown as SignalSource,
  })
  return [code, said.filter(line => !/^error: PostgreSQL \d/.test(line)).join('\n')]
}

test('a tenant table without forced row-level security, with the SQL that mends it', async () => {
  await execute(database.adminUrl, 'create table deals (tenant_id int, id int); grant select on deals to public')
  const [code, error] = await check('', database.url)
  expect(code).toBe(1)
  expect(error).toContain('error: Tables with the column tenant_id but without forced row-level security: deals.')
  expect(error).toContain('\n  alter table public.deals enable row level security, force row level security;\n')

  const sql = error.split('\n').filter(line => /^ {2}(alter|create)/.test(line))
  await execute(database.adminUrl, sql.join('\n'))
  expect((await check('', database.url))[1]).not.toContain('deals')
})

test('the tenant column of the configuration', async () => {
  await execute(database.adminUrl, 'create table deals (operator_id int); grant select on deals to public')
  expect((await check('', database.url))[1]).not.toContain('deals')
  expect((await check('[gateway]\ntenant_column = "operator_id"', database.url))[1]).toContain('column operator_id')
})

test('a superuser', async () => {
  expect((await check('', database.adminUrl))[1]).toMatch(/^error: The database role postgres is a superuser: /)
})

test('a schema that is not there', async () => {
  const [code, error] = await check('[gateway]\nschemas = ["public", "sales"]', database.url)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: The database cannot be checked: .*sales/)
})

test('a search language that is not there', async () => {
  const [code, error] = await check('[gateway]\nsearch_language = "englsh"', database.url)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: .*"englsh".*\n {2}Set search_language to english\.$/m)
})

test('the address to listen at is read like the other', async () => {
  const [code, error] = await check('[gateway]\nrealtime_database_url = "postgres://app@h/d?sslmood=on"', database.url)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: Changes of the schema cannot be listened for: .*sslmood/)
  expect(error).not.toContain('no effect')
})

test('a password that is wrong is not printed', async () => {
  const url = new URL(database.url)
  url.pathname = '/no_such_database'
  url.password = 'hunter2'
  const [code, error] = await check('', url.href)
  expect(code).toBe(1)
  expect(error).toMatch(/^error: The database cannot be checked: no session with .*no_such_database/)
  expect(error).not.toContain('hunter2')
})
