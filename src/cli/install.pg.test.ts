/** `svc install` and `svc uninstall` (decisions 9), as somebody who types them sees them. */
import { EventEmitter } from 'node:events'
import { tmpdir } from 'node:os'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { execute, type TestDatabase, testDatabase } from '../../test/support/postgres.ts'
import { PASSWORD, uniqueName } from '../../test/support/server.ts'
import { run } from './program.ts'
import type { SignalSource } from './signals.ts'

let database: TestDatabase

beforeEach(async () => {
  database = await testDatabase()
  await execute(
    database.adminUrl,
    'create table orders (id int primary key); create table "odd.name" (id int); create schema shop; create table shop.items (id int); create view v as select 1 as one',
  )
})
afterEach(() => database.drop())

interface Ran {
  readonly code: number
  readonly out: string
  readonly error: string
}

async function svc(argv: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const out: string[] = []
  const error: string[] = []
  const code = await run(argv, {
    environment: { DATABASE_URL: database.url, SVC_ADMIN_DATABASE_URL: database.adminUrl, ...environment },
    workingDirectory: tmpdir(),
    input: async () => new Uint8Array(),
    stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
    out: line => out.push(line),
    error: line => error.push(line),
    signals: new EventEmitter() as unknown as SignalSource,
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

const captured = async (): Promise<unknown> =>
  (
    await execute(
      database.adminUrl,
      `select coalesce(array_agg(tgrelid::regclass::text order by 1), '{}') as tables from pg_trigger where tgname = 'svc_capture_insert'`,
    )
  )[0]?.tables

test('captures every table of the published schemas, and says so', async () => {
  const { code, out, error } = await svc(['install'])
  expect([code, error]).toEqual([0, ''])
  expect(out).toMatch(
    /^Schema svc is installed \(version 2\) for role app: the changes of 2 tables and partitions are captured\.$/m,
  )
  expect(out).toContain('heard at once')
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
  expect((await execute(database.url, "select count(*)::int from svc.change where operation <> 'B'"))[0]).toEqual({
    count: 0,
  })
})

test('captures the tables that are named, and forgets what was chosen before', async () => {
  await svc(['install'])
  expect((await svc(['install', '--table', 'odd.name'])).code).toBe(0)
  expect(await captured()).toEqual(['"odd.name"'])
  await execute(database.adminUrl, 'create table later (id int primary key)')
  expect(await captured()).toEqual(['"odd.name"'])
})

test('captures none where that is asked for, and takes no other choice besides', async () => {
  await svc(['install'])
  const { code, out } = await svc(['install', '--no-tables'])
  expect([code, out]).toEqual([0, expect.stringContaining('the changes of 0 tables and partitions are captured')])
  expect(await captured()).toEqual([])
  expect(await svc(['install', '--no-tables', '--table', 'orders'])).toMatchObject({
    code: 2,
    error: expect.stringContaining('--table and --no-tables contradict each other; give one'),
  })
})

test('the SQL of a dry run does the same through somebody else’s client, twice', async () => {
  const { code, out } = await svc(['install', '--dry-run'])
  expect(code).toBe(0)
  expect(await captured()).toEqual([])
  await execute(database.adminUrl, out)
  await execute(database.adminUrl, out)
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
})

test('whoever may not is told why, and given the SQL for somebody who may', async () => {
  const { code, out, error } = await svc(['install'], { SVC_ADMIN_DATABASE_URL: '' })
  expect(code).toBe(1)
  expect(error).toContain('Role "app" may not create a schema here (GRANT CREATE ON DATABASE).')
  expect(error).toContain('Triggers on "public.orders" need its owner, or GRANT TRIGGER ON it.')
  expect(error).toContain('Nothing was changed.')
  await execute(database.adminUrl, out)
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
})

test('what cannot be captured is said before anything is done', async () => {
  const argv = ['install', '--role', 'nobody', '--table', 'v', '--table', 'none']
  const { code, out, error } = await svc(argv)
  expect([code, out]).toEqual([1, ''])
  expect(error.split('\n')).toEqual([
    'Role "nobody" of the gateway does not exist in this database.',
    '"public.v" is a view; its changes cannot be captured.',
    'There is no table "public.none".',
  ])
  expect((await execute(database.adminUrl, `select to_regnamespace('svc') as svc`))[0]).toEqual({ svc: null })
})

test('an owner who is no superuser installs without event triggers', async () => {
  const owner = uniqueName('owner')
  await execute(
    database.adminUrl,
    `create role ${owner} login password '${PASSWORD}'; grant create on database ${database.database} to ${owner};
     alter table orders owner to ${owner}; alter table "odd.name" owner to ${owner}`,
  )
  const url = new URL(database.adminUrl)
  url.username = owner
  url.password = PASSWORD
  const admin = { SVC_ADMIN_DATABASE_URL: url.href }
  const { code, out, error } = await svc(['install'], admin)
  expect([code, error]).toEqual([0, ''])
  expect(out).toContain('Event triggers need a superuser and were left out')
  await execute(url.href, 'insert into orders values (1)')
  expect((await execute(database.url, "select key from svc.change where operation = 'I'"))[0]).toEqual({
    key: { id: 1 },
  })
  expect((await svc(['uninstall'], admin)).code).toBe(0)
  expect(await captured()).toEqual([])
  await execute(database.adminUrl, `drop owned by ${owner} cascade; drop role ${owner}`)
})

test('a table that is being written to for long keeps nobody waiting for ever', { timeout: 30_000 }, async () => {
  const { default: pg } = await import('pg')
  const writer = new pg.Client({ connectionString: database.adminUrl })
  await writer.connect()
  await writer.query('begin; insert into orders values (1)')
  const { code, error } = await svc(['install'])
  expect(code).toBe(1)
  expect(error).toContain('A table is being written to; try again when less is going on. Nothing was changed.')
  await writer.query('commit')
  await writer.end()
  expect((await svc(['install'])).code).toBe(0)
})

test('uninstalling leaves nothing, and does not lose webhooks unasked', async () => {
  expect((await svc(['uninstall'])).out).toBe('There is no schema svc in this database.')
  await svc(['install'])
  expect((await svc(['uninstall'], { SVC_ADMIN_DATABASE_URL: '' })).error).toContain(
    'Schema svc belongs to another role.',
  )
  await execute(
    database.adminUrl,
    `insert into svc.webhook (id, trigger, "schema", "table", operation, created_at) values ('msg_1', 't', 'public', 'orders', 'INSERT', now())`,
  )
  const refused = await svc(['uninstall'])
  expect(refused.code).toBe(1)
  expect(refused.error).toContain('1 webhooks have not been delivered and would be lost.')
  expect((await svc(['uninstall', '--dry-run'])).out).toContain('DROP SCHEMA IF EXISTS svc CASCADE;')
  expect((await svc(['uninstall', '--force'])).code).toBe(0)
  expect(await captured()).toEqual([])
  const left = `select (select count(*) from pg_namespace where nspname = 'svc')::int + (select count(*) from pg_event_trigger where evtname like 'svc%')::int as n`
  expect((await execute(database.adminUrl, left))[0]).toEqual({ n: 0 })
  await execute(database.adminUrl, 'insert into orders values (2)')
})

test('svc check tells what is missing, and leaves the mending to others', async () => {
  await svc(['install'])
  await execute(database.adminUrl, 'drop trigger svc_capture_delete on orders')
  const { out } = await svc(['check'], { JWT_SECRET: 'a secret of 32 bytes, or of more' })
  expect(out).toContain(
    'warning: Changes of public.orders are not captured by triggers, although they were chosen.\n  SELECT svc.mend();',
  )
  const again = await svc(['check'], { JWT_SECRET: 'a secret of 32 bytes, or of more' })
  expect(again.out).toContain('public.orders')
  await execute(database.adminUrl, 'update svc.installation set version = 9')
  expect((await svc(['check'], { JWT_SECRET: 'a secret of 32 bytes, or of more' })).out).toContain(
    'warning: What svc install made cannot be used: it has version 9, and this gateway knows version 2.\n  Run the gateway that came with it.',
  )
})
