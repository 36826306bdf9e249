/** Decisions 1: boot never hides a danger. Each finding's SQL is run, and the finding is gone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openSession, type Session } from '../../test/support/catalog.ts'
import { type TestDatabase, testDatabase } from '../../test/support/postgres.ts'
import type { Query } from '../catalog/introspect.ts'
import { type CheckTarget, databaseFindings } from './checks.ts'
import type { Finding } from './finding.ts'

const TARGET: CheckTarget = {
  schemas: ['public', 'sales'],
  exposedViews: [],
  tenantColumn: 'tenant_id',
  searchLanguage: 'english',
}

let database: TestDatabase
let admin: Session
let app: Session

beforeAll(async () => {
  database = await testDatabase()
  admin = await openSession(database.adminUrl)
  app = await openSession(database.url)
})

afterAll(async () => {
  await app.close()
  await admin.close()
  await database.drop()
})

beforeEach(async () => {
  await admin.run(`
    drop schema public cascade; drop schema if exists sales cascade;
    create schema public; create schema sales;
    grant usage on schema public, sales to public;
    alter default privileges grant select on tables to public`)
})

/** The version of this server is a matter of its own. */
async function findings(target: Partial<CheckTarget> = {}, ask: Query = app.query): Promise<readonly Finding[]> {
  const all = await databaseFindings(ask, { ...TARGET, ...target })
  return all.filter(({ message }) => !message.startsWith('PostgreSQL '))
}

async function messages(target: Partial<CheckTarget> = {}): Promise<readonly string[]> {
  return (await findings(target)).map(({ message }) => message)
}

/** Does what the findings say, and answers what is left of them. */
async function mend(target: Partial<CheckTarget> = {}): Promise<readonly string[]> {
  for (const { fix } of await findings(target)) await admin.run(fix)
  return messages(target)
}

describe('role', () => {
  test('superuser', async () => {
    const [finding] = await findings({}, admin.query)
    expect(finding).toMatchObject({
      level: 'warning',
      message: expect.stringMatching(/^The database role postgres is a superuser: /),
    })
    expect(finding?.fix).toContain('nosuperuser nobypassrls')
  })

  test('BYPASSRLS', async () => {
    await admin.run('create role bypassing bypassrls; set role bypassing')
    try {
      const [finding] = await findings({}, admin.query)
      expect(finding?.message).toMatch(/^The database role bypassing has the attribute BYPASSRLS: /)
    } finally {
      await admin.run('reset role; drop role bypassing')
    }
  })

  test('a plain role is as it should be', async () => {
    expect(await messages()).toEqual([])
  })
})

describe('tenant tables', () => {
  const UNSAFE = 'but without forced row-level security: '

  test('without row-level security, enabled only, forced only; names that need quoting; of every schema; partitioned', async () => {
    await admin.run(`
      create table bare (tenant_id uuid);
      create table enabled (tenant_id int); alter table enabled enable row level security;
      create table forced (tenant_id int); alter table forced force row level security;
      create table safe (tenant_id int); alter table safe enable row level security, force row level security;
      create table "Ta ble's" (tenant_id text);
      create table other (id int);
      create table sales.bare (tenant_id bigint);
      create table parts (tenant_id int) partition by list (tenant_id); create table part partition of parts for values in (1)`)
    expect(await messages()).toEqual([
      `Tables with the column tenant_id ${UNSAFE}Ta ble's, bare, enabled, forced, parts, sales.bare. Every caller can see every tenant's rows in them.`,
    ])
    expect(await mend()).toEqual([])
  })

  test('the policy that is proposed lets a tenant see its own rows', async () => {
    await admin.run(`create table notes (tenant_id uuid, body text);
      insert into notes values ('11111111-1111-1111-1111-111111111111', 'mine'), ('22222222-2222-2222-2222-222222222222', 'theirs')`)
    expect(await mend()).toEqual([])
    await app.run(`set app.current_tenant_id = '11111111-1111-1111-1111-111111111111'`)
    expect(await app.query('select body from notes', [])).toEqual([['mine']])
    await app.run(`set app.current_tenant_id = ''`)
    expect(await app.query('select body from notes', [])).toEqual([])
  })

  test('a table that has a policy gets no second one', async () => {
    await admin.run('create table t (tenant_id int); create policy mine on t using (true)')
    const [finding] = await findings()
    expect(finding?.fix).toBe('alter table public.t enable row level security, force row level security;')
  })

  test('the tenant column is the configured one', async () => {
    await admin.run('create table t (operator_id int)')
    expect(await messages()).toEqual([])
    expect(await messages({ tenantColumn: 'operator_id' })).toHaveLength(1)
  })

  test('what the role may not read is not in danger; one readable column is enough', async () => {
    await admin.run('create table t (tenant_id int); revoke all on t from public')
    expect(await messages()).toEqual([])
    await admin.run('grant select (tenant_id) on t to public')
    expect(await messages()).toHaveLength(1)
  })

  test('dropped columns do not count', async () => {
    await admin.run('create table t (tenant_id int, id int); alter table t drop column tenant_id')
    expect(await messages()).toEqual([])
  })

  test('many tables make one finding that names twenty', async () => {
    await admin.run(
      Array.from({ length: 230 }, (_, n) => `create table t${String(n).padStart(3, '0')} (tenant_id int)`).join(';'),
    )
    const [finding, ...others] = await findings()
    expect(others).toEqual([])
    expect(finding?.message).toContain('t018, t019 and 210 more.')
    expect(finding?.fix.split('\n').at(-1)).toBe('-- and 260 more like these')
  })
})

test('foreign tables cannot be protected', async () => {
  await admin.run(`create foreign data wrapper nothing; create server nowhere foreign data wrapper nothing;
    create foreign table far (tenant_id int) server nowhere`)
  try {
    expect(await messages()).toEqual([expect.stringMatching(/^Foreign tables with the column tenant_id: far\. /)])
  } finally {
    await admin.run('drop foreign data wrapper nothing cascade')
  }
})

describe('exposed views', () => {
  const SETUP = `
    create table t (id int);
    create view plain as select * from t;
    create view "Su m" as select * from t;
    create view invoker with (security_invoker) as select * from t;
    create view off with (security_invoker = off) as select * from t;
    create view sales.plain as select * from t;
    create materialized view kept as select * from t`

  test('that are not security_invoker', async () => {
    await admin.run(SETUP)
    const exposedViews = ['plain', 'Su m', 'invoker', 'off', 'sales.plain']
    expect(await messages({ exposedViews })).toEqual([
      'Exposed views that are not security_invoker: Su m, off, plain, sales.plain. They show what their owner may see, whoever asks.',
    ])
    expect(await mend({ exposedViews })).toEqual([])
  })

  test('materialised ones hold what no policy filters', async () => {
    await admin.run(SETUP)
    expect(await messages({ exposedViews: ['kept'] })).toEqual([
      'Exposed materialised views: kept. Row-level security does not apply to what they hold.',
    ])
  })

  test("views that are not exposed are nobody's danger", async () => {
    await admin.run(SETUP)
    expect(await messages({ exposedViews: ['t', 'public.plain', 'gone'] })).toEqual([])
  })
})

describe('search language', () => {
  test.each([
    ['englsh', 'Set search_language to english.'],
    ['pg_catalog.germn', 'Set search_language to pg_catalog.german.'],
    ['klingon', 'Set search_language to simple, or to another that pg_ts_config lists.'],
    ['recipes', 'Set search_language to simple, or to another that pg_ts_config lists.'],
    ['"English"', 'Set search_language to english.'],
  ])('%s is none', async (searchLanguage, fix) => {
    await admin.run('create text search configuration sales.recipes (copy = simple)')
    await expect(app.query('select $1::regconfig', [searchLanguage])).rejects.toThrow('does not exist')
    expect(await findings({ searchLanguage })).toEqual([
      { level: 'warning', message: expect.stringContaining(`text search configuration "${searchLanguage}"`), fix },
    ])
  })

  test.each(['simple', 'German', 'pg_catalog.english', 'sales.recipes', 'sales."Old Norse"', '"simple"'])(
    '%s',
    async searchLanguage => {
      await admin.run(`create text search configuration sales.recipes (copy = simple);
      create text search configuration sales."Old Norse" (copy = simple)`)
      await app.query('select $1::regconfig', [searchLanguage])
      expect(await messages({ searchLanguage })).toEqual([])
    },
  )
})

describe('version', () => {
  /** Answers as a server of that version would; everything else is asked of the real one. */
  const ofVersion =
    (version: number): Query =>
    (text, parameters) =>
      text === `select pg_catalog.current_setting('server_version_num')`
        ? Promise.resolve([[String(version)]])
        : app.query(text, parameters)

  test.each([
    [180_006, 'PostgreSQL 18.6 is older than 18.7'],
    [170_011, 'PostgreSQL 17.11 is older than 17.12'],
    [160_015, 'PostgreSQL 16.15 is older than 16.16'],
    [150_019, 'PostgreSQL 15.19 is older than 15.20'],
    [140_024, 'PostgreSQL 14.24 is older than 14.25'],
    [130_023, 'PostgreSQL 13.23 gets no security fixes any more'],
  ])('%i', async (version, message) => {
    const all = await databaseFindings(ofVersion(version), TARGET)
    expect(all).toEqual([{ level: 'warning', message: expect.stringContaining(message), fix: expect.any(String) }])
  })

  test.each([180_007, 180_010, 170_012, 160_016, 150_020, 140_025, 190_000])('%i is safe', async version => {
    expect(await databaseFindings(ofVersion(version), TARGET)).toEqual([])
  })

  test('the real server is asked', async () => {
    const [[number = ''] = []] = await app.query(`select current_setting('server_version_num')`, [])
    const said = (await databaseFindings(app.query, TARGET)).map(({ message }) => message)
    const expected = Number(number) < 180_007 ? [expect.stringMatching(/^PostgreSQL 18\.\d is older than 18\.7/)] : []
    expect(said).toEqual(expected)
  })
})
