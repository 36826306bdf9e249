/** `svc install` and `svc uninstall` (docs/guides/installation.md) on the command line. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { feedUrl } from '../../test/support/install.ts'
import { execute, type TestDatabase, testDatabase } from '../../test/support/postgres.ts'
import { CAPTURE, PASSWORD, uniqueName, urlOf } from '../../test/support/server.ts'

let database: TestDatabase

beforeEach(async () => {
  database = await testDatabase()
  await execute(
    database.adminUrl,
    'create table orders (id int primary key); create table "odd.name" (id int); ' +
      'create schema shop; create table shop.items (id int); ' +
      'create view v as select 1 as one; ' +
      'grant select on orders, "odd.name" to app',
  )
})
afterEach(() => database.drop())

interface Ran {
  readonly code: number
  readonly out: string
  readonly error: string
}

/** Installs triggers unless a test chooses otherwise, also on a server that allows the write-ahead log. */
async function svc(argv: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const isAuto = argv[0] === 'install' && !argv.includes('--capture')
  const command = isAuto && CAPTURE === 'wal' ? [...argv, '--capture', 'triggers'] : argv
  const { code, out, error } = await runCommand(command, {
    environment: { DATABASE_URL: database.url, SVC_ADMIN_DATABASE_URL: database.adminUrl, ...environment },
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

const captured = async (): Promise<unknown> =>
  (
    await execute(
      database.adminUrl,
      "select coalesce(array_agg(tgrelid::regclass::text order by 1), '{}') as tables " +
        "from pg_trigger where tgname = 'svc_capture_insert'",
    )
  )[0]?.tables

test('captures every table of the published schemas and reports it', async () => {
  const { code, out, error } = await svc(['install'])
  expect([code, error]).toEqual([0, ''])
  expect(out).toMatch(
    /^Schema svc is installed \(version 5\) for role app: the changes of 2 tables and partitions are captured\.$/m,
  )
  expect(out).toContain('detect schema changes immediately')
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
  expect(out).toContain('as role app_feed, which has no other privileges.')
  expect(await execute(feedUrl(database), "select from svc.change where operation <> 'B'")).toEqual([])
})

test('on a terminal a bar shows what the installation waits for', async () => {
  const writer = new pg.Client({ connectionString: database.adminUrl })
  await writer.connect()
  const frames = new Set<string>()
  let isWaiting = () => {}
  const waits = new Promise<void>(resolve => {
    isWaiting = resolve
  })
  const write = (text: string): void => {
    // The bar moves, so it is drawn more than once.
    if (text.includes('Changing the captured tables, after writes in progress')) frames.add(text)
    if (frames.size > 1) isWaiting()
  }
  try {
    await writer.query('begin; lock table orders in row exclusive mode')
    const installing = runCommand(['install'], {
      environment: { DATABASE_URL: database.url, SVC_ADMIN_DATABASE_URL: database.adminUrl },
      terminal: { columns: 100, hasColors: false, write },
    })
    await waits
    await writer.query('commit')
    expect((await installing).code).toBe(0)
    expect([...frames].every(frame => !frame.includes('%'))).toBe(true)
  } finally {
    await writer.end()
  }
})

test('captures the named tables and replaces the previous selection', async () => {
  await svc(['install'])
  expect((await svc(['install', '--table', 'odd.name'])).code).toBe(0)
  expect(await captured()).toEqual(['"odd.name"'])
  await execute(database.adminUrl, 'create table later (id int primary key); grant select on later to app')
  expect(await captured()).toEqual(['"odd.name"'])
})

test('captures no table if requested, and rejects a combination with other selections', async () => {
  await svc(['install'])
  const { code, out } = await svc(['install', '--no-tables'])
  expect([code, out]).toEqual([0, expect.stringContaining('the changes of 0 tables and partitions are captured')])
  expect(await captured()).toEqual([])
  expect(await svc(['install', '--no-tables', '--table', 'orders'])).toMatchObject({
    code: 2,
    error: expect.stringContaining('--table and --no-tables contradict each other; give one'),
  })
})

test('the SQL of a dry run has the same effect in another client, also when it runs twice', async () => {
  const { code, out } = await svc(['install', '--dry-run'])
  expect(code).toBe(0)
  expect(await captured()).toEqual([])
  await execute(database.adminUrl, out)
  await execute(database.adminUrl, out)
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
})

test('without the privileges it reports the reason and prints the SQL for a role that has them', async () => {
  const { code, out, error } = await svc(['install'], { SVC_ADMIN_DATABASE_URL: database.url })
  expect(code).toBe(1)
  expect(error).toContain('Role "app" of the gateway would own schema svc')
  expect(error).toContain('Role "app" cannot create a schema in this database (GRANT CREATE ON DATABASE).')
  expect(error).toContain('Triggers on "public.orders" require its owner, or GRANT TRIGGER ON the table.')
  expect(error).toContain('Nothing was changed.')
  await execute(database.adminUrl, out)
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
})

describe('the installing role', () => {
  let folder: string
  let file: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-install-'))
    file = join(folder, 'svc.toml')
    await writeFile(file, `[gateway]\ndatabase_url = "${database.url}"\n`)
  })
  afterEach(() => rm(folder, { recursive: true }))

  const nowhere = 'postgres://nobody@127.0.0.1:1/none'
  const INSTALLED = { code: 0, error: '', out: expect.stringContaining('is installed (version 5) for role app:') }
  const UNKNOWN = {
    code: 1,
    error: expect.stringMatching(
      new RegExp(
        '^The role that should create schema svc is not known: give --admin-url, or set SVC_ADMIN_DATABASE_URL\\. ' +
          'DATABASE_URL is used for this only if .*\\nNothing was changed\\.',
      ),
    ),
    out: expect.stringContaining('CREATE SCHEMA'),
  }

  test('is taken from --admin-url, otherwise from SVC_ADMIN_DATABASE_URL', async () => {
    const argv = ['install', '--admin-url', database.adminUrl]
    expect(await svc(argv, { SVC_ADMIN_DATABASE_URL: nowhere })).toMatchObject(INSTALLED)
  })
  test('is that of SVC_ADMIN_DATABASE_URL before that of DATABASE_URL', async () => {
    expect(await svc(['install', '--config', file], { DATABASE_URL: nowhere })).toMatchObject(INSTALLED)
  })
  test('is that of DATABASE_URL if the file contains another database_url', async () => {
    const environment = { DATABASE_URL: database.adminUrl, SVC_ADMIN_DATABASE_URL: '' }
    expect(await svc(['install', '--config', file], environment)).toMatchObject(INSTALLED)
  })
  test('is not that of DATABASE_URL if the file contains no database_url, or the same', async () => {
    const without = { SVC_ADMIN_DATABASE_URL: '' }
    expect(await svc(['install'], without)).toMatchObject(UNKNOWN)
    expect(await svc(['install', '--config', file], without)).toMatchObject(UNKNOWN)
    // Neither for another role than its own.
    const superuser = { ...without, DATABASE_URL: database.adminUrl }
    const { code, out, error } = await svc(['install', '--role', 'app'], superuser)
    expect({ code, out, error }).toMatchObject(UNKNOWN)
    expect(await captured()).toEqual([])
    await execute(database.adminUrl, out)
    expect(await captured()).toEqual(['"odd.name"', 'orders'])
  })
  test('is not the database_url of the file', async () => {
    const environment = { DATABASE_URL: '', SVC_ADMIN_DATABASE_URL: '' }
    expect(await svc(['install', '--config', file], environment)).toMatchObject(UNKNOWN)
  })
  test('is not needed for a dry run', async () => {
    const { code, out } = await svc(['install', '--dry-run'], { SVC_ADMIN_DATABASE_URL: '' })
    expect([code, out]).toEqual([0, expect.stringContaining('CREATE SCHEMA')])
  })
  test('without any URL is a usage error', async () => {
    const environment = { DATABASE_URL: '', SVC_ADMIN_DATABASE_URL: '' }
    expect(await svc(['install'], environment)).toMatchObject({
      code: 2,
      error: expect.stringContaining(
        'no database is configured: give --admin-url, or set SVC_ADMIN_DATABASE_URL or DATABASE_URL',
      ),
    })
  })
})

describe('the role of the gateway', () => {
  test('is that of --role, else of the database_url of the file, else of DATABASE_URL', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-install-'))
    const [first, second] = [uniqueName('first'), uniqueName('second')]
    await execute(database.adminUrl, `create role ${first} login; create role ${second} login`)
    try {
      const file = join(folder, 'svc.toml')
      await writeFile(file, `[gateway]\ndatabase_url = "${urlOf(database.port, first, database.database)}"\n`)
      const roleOf = async (argv: readonly string[]) => {
        const { out, error } = await svc(['install', '--no-tables', ...argv])
        return /for role (\w+):/.exec(out)?.[1] ?? error
      }
      expect(await roleOf(['--config', file, '--role', second])).toBe(second)
      expect(await roleOf(['--config', file])).toBe(first)
      expect(await roleOf([])).toBe('app')
    } finally {
      const made = [first, second].flatMap(name => [name, `${name}_feed`]).join(', ')
      await execute(database.adminUrl, `drop owned by ${made}; drop role ${made}`)
      await rm(folder, { recursive: true })
    }
  })
})

test('tables that cannot be captured are reported before any change', async () => {
  const argv = ['install', '--role', 'nobody', '--table', 'v', '--table', 'none']
  const { code, out, error } = await svc(argv)
  expect([code, out]).toEqual([1, ''])
  expect(error.split('\n')).toEqual([
    'Role "nobody" of the gateway does not exist in this database.',
    '"public.v" is a view; its changes cannot be captured.',
    'Table "public.none" does not exist.',
  ])
  expect((await execute(database.adminUrl, `select to_regnamespace('svc') as svc`))[0]).toEqual({ svc: null })
})

test('the gateway’s role cannot be a superuser or bypass row-level security', async () => {
  const superuser = await svc(['install'], { DATABASE_URL: database.adminUrl, SVC_ADMIN_DATABASE_URL: '' })
  expect([superuser.code, superuser.out]).toEqual([1, ''])
  expect(superuser.error).toContain(
    'Role "postgres" of the gateway is a superuser; row-level security does not apply to it.',
  )
  const bypasses = uniqueName('bypasses')
  await execute(database.adminUrl, `create role ${bypasses} bypassrls`)
  expect(await svc(['install', '--role', bypasses])).toMatchObject({
    code: 1,
    error: expect.stringContaining(`Role "${bypasses}" of the gateway has BYPASSRLS`),
  })
  expect((await svc(['install', '--role', bypasses, '--dry-run'])).code).toBe(1)
  await execute(database.adminUrl, `drop role ${bypasses}`)
  expect((await execute(database.adminUrl, `select to_regnamespace('svc') as svc`))[0]).toEqual({ svc: null })
})

test('DATABASE_URL is the installing role if the file has the gateway’s URL, unless options override it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-install-'))
  const file = join(folder, 'svc.toml')
  await writeFile(file, `[gateway]\ndatabase_url = "${database.url}"\n`)
  const asAdmin = { DATABASE_URL: database.adminUrl, SVC_ADMIN_DATABASE_URL: '' }
  expect(await svc(['install', '--config', file], asAdmin)).toMatchObject({
    code: 0,
    out: expect.stringContaining('for role app:'),
  })
  const other = uniqueName('other')
  await execute(database.adminUrl, `create role ${other} login; grant select on orders to ${other}`)
  const nowhere = {
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    SVC_ADMIN_DATABASE_URL: 'postgres://no@127.0.0.1:1/no',
  }
  const named = ['install', '--config', file, '--role', other, '--admin-url', database.adminUrl]
  expect(await svc(named, nowhere)).toMatchObject({ code: 0, out: expect.stringContaining(`for role ${other}:`) })
  expect((await svc(named, nowhere)).out).toContain(
    `Role ${other}_feed has no password, because role ${other} has no SCRAM`,
  )
  const roles = await execute(database.adminUrl, 'select role, feed from svc.served order by role = $$app$$ desc')
  expect(roles).toEqual([
    { role: 'app', feed: 'app_feed' },
    { role: other, feed: `${other}_feed` },
  ])
  await execute(database.adminUrl, `drop owned by ${other}, ${other}_feed; drop role ${other}, ${other}_feed`)
  await rm(folder, { recursive: true })
})

test('a feed role that the gateway’s role can assume is rejected', async () => {
  const feed = uniqueName('feed')
  await execute(database.adminUrl, `create role ${feed} login; grant ${feed} to app`)
  for (const name of ['app', feed]) {
    const { code, error } = await svc(['install', '--feed-role', name])
    expect([code, error]).toEqual([1, expect.stringContaining('SQL of requests could read the change log')])
  }
  await execute(database.adminUrl, `revoke ${feed} from app`)
  expect(await svc(['install', '--feed-role', feed])).toMatchObject({ code: 0, error: '' })
  await execute(database.adminUrl, `drop owned by ${feed}; drop role ${feed}`)
})

test('svc check reports a feed role that cannot log in as an error', async () => {
  const gateway = uniqueName('gateway')
  await execute(database.adminUrl, `create role ${gateway} login password '${PASSWORD}'`)
  const environment = {
    JWT_SECRET: 'a secret of 32 bytes, or of more',
    DATABASE_URL: urlOf(database.port, gateway, database.database),
  }
  expect((await svc(['install'], environment)).code).toBe(0)
  expect((await svc(['check'], environment)).out).not.toContain('The installation in schema svc is unusable')
  await execute(database.adminUrl, `alter role ${gateway}_feed password 'another'`)
  const { code, out } = await svc(['check'], environment)
  expect(code).toBe(1)
  expect(out).toContain(
    `error: The installation in schema svc is unusable: role "${gateway}_feed", which reads it, cannot connect`,
  )
  expect((await svc(['install'], environment)).code).toBe(0)
  expect((await svc(['check'], environment)).out).not.toContain('The installation in schema svc is unusable')
  await execute(database.adminUrl, `drop owned by ${gateway}, ${gateway}_feed; drop role ${gateway}, ${gateway}_feed`)
})

test('a table that the gateway’s role cannot SELECT is not captured, and reported if requested', async () => {
  await execute(database.adminUrl, 'create table secrets (id int primary key)')
  expect((await svc(['install'])).code).toBe(0)
  expect(await captured()).toEqual(['"odd.name"', 'orders'])
  expect((await svc(['install', '--table', 'secrets'])).error).toBe(
    'Role "app" of the gateway cannot SELECT from "public.secrets"; ' +
      'changes are captured for this role, so GRANT it first.',
  )
})

test('an owner without superuser rights installs without event triggers', async () => {
  const [owner, gateway] = [uniqueName('owner'), uniqueName('gateway')]
  await execute(
    database.adminUrl,
    `create role ${gateway} login password '${PASSWORD}'; grant select on orders, "odd.name" to ${gateway};
     create role ${owner} login createrole password '${PASSWORD}';
     grant create on database ${database.database} to ${owner};
     alter table orders owner to ${owner}; alter table "odd.name" owner to ${owner}`,
  )
  const url = new URL(database.adminUrl)
  url.username = owner
  url.password = PASSWORD
  const admin = {
    SVC_ADMIN_DATABASE_URL: url.href,
    DATABASE_URL: urlOf(database.port, gateway, database.database),
  }
  const { code, out, error } = await svc(['install'], admin)
  expect([code, error]).toEqual([0, ''])
  expect(out).toContain('Event triggers require a superuser and were not created')
  await execute(url.href, 'insert into orders values (1)')
  const feed = urlOf(database.port, `${gateway}_feed`, database.database)
  expect(await execute(feed, "select key from svc.change where operation = 'I'")).toEqual([{ key: { id: 1 } }])
  expect((await svc(['uninstall'], admin)).code).toBe(0)
  expect(await captured()).toEqual([])
  await execute(
    database.adminUrl,
    `drop owned by ${owner}, ${gateway}, ${gateway}_feed cascade; drop role ${owner}, ${gateway}, ${gateway}_feed`,
  )
})

test('a long write to a table does not block the installation forever', { timeout: 30_000 }, async () => {
  const { default: pg } = await import('pg')
  const writer = new pg.Client({ connectionString: database.adminUrl })
  await writer.connect()
  await writer.query('begin; insert into orders values (1)')
  const { code, error } = await svc(['install'])
  expect(code).toBe(1)
  expect(error).toContain('A table is in use; try again when there is less traffic. Nothing was changed.')
  await writer.query('commit')
  await writer.end()
  expect((await svc(['install'])).code).toBe(0)
})

test('uninstalling leaves nothing behind and does not drop waiting webhooks without confirmation', async () => {
  expect((await svc(['uninstall'])).out).toBe('Schema svc does not exist in this database.')
  await svc(['install'])
  expect((await svc(['uninstall'], { SVC_ADMIN_DATABASE_URL: '' })).error).toContain(
    'Schema svc belongs to another role.',
  )
  await execute(
    database.adminUrl,
    'insert into svc.webhook (id, trigger, "schema", "table", operation, created_at) ' +
      "values ('msg_1', 't', 'public', 'orders', 'INSERT', now())",
  )
  const refused = await svc(['uninstall'])
  expect(refused.code).toBe(1)
  expect(refused.error).toContain('1 webhooks have not been delivered and would be lost.')
  expect((await svc(['uninstall', '--dry-run'])).out).toContain('DROP SCHEMA IF EXISTS svc CASCADE;')
  expect((await svc(['uninstall', '--force'])).code).toBe(0)
  expect(await captured()).toEqual([])
  const left =
    "select (select count(*) from pg_namespace where nspname = 'svc')::int + " +
    "(select count(*) from pg_event_trigger where evtname like 'svc%')::int as n"
  expect((await execute(database.adminUrl, left))[0]).toEqual({ n: 0 })
  await execute(database.adminUrl, 'insert into orders values (2)')
})

test('svc check reports what is missing and does not repair it', async () => {
  await svc(['install'])
  await execute(database.adminUrl, 'drop trigger svc_capture_delete on orders')
  const { out } = await svc(['check'], { JWT_SECRET: 'a secret of 32 bytes, or of more' })
  expect(out).toContain(
    'warning: Changes of public.orders are not captured: their capture triggers are missing.\n  SELECT svc.repair();',
  )
  const again = await svc(['check'], { JWT_SECRET: 'a secret of 32 bytes, or of more' })
  expect(again.out).toContain('public.orders')
  await execute(database.adminUrl, 'update svc.installation set version = 9')
  expect((await svc(['check'], { JWT_SECRET: 'a secret of 32 bytes, or of more' })).out).toContain(
    'error: The installation in schema svc is unusable: it has version 9, ' +
      'but this gateway requires version 5.\n' +
      '  Run the version of the gateway that installed it.',
  )
})

// With this variable, the server of the tests allows it.
test.skipIf(CAPTURE === 'wal')(
  'capturing from the write-ahead log is refused with the change that allows it',
  async () => {
    const { code, error } = await svc(['install', '--capture', 'wal'])
    expect([code, error]).toEqual([
      1,
      expect.stringContaining(
        `wal_level is "replica": run ALTER SYSTEM SET wal_level = 'logical' and restart PostgreSQL`,
      ),
    ])
    expect((await svc(['install'])).out).toMatch(
      /^Changes are captured by triggers\. The write-ahead log cannot be read instead: wal_level is "replica": run /m,
    )
    expect(await svc(['install', '--capture', 'no'])).toMatchObject({
      code: 2,
      error: expect.stringContaining('--capture is "no"; use auto, wal or triggers'),
    })
  },
)
