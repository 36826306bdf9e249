/**
 * How findings are reported, which can be accepted, and the checks of the server itself
 * (docs/guides/checking.md).
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { lintedDatabase, TARGET } from '../../test/support/lint.ts'
import type { Query } from '../catalog/introspect.ts'
import type { Finding } from '../finding.ts'
import { bootDangers, lintDatabase } from './lint-database.ts'

const database = databaseFixture(lintedDatabase)

beforeEach(() => database.reset())

async function only(ask: Query, check: string): Promise<Finding | undefined> {
  return (await bootDangers(ask, TARGET)).find(finding => finding.check === check)
}

test('a finding contains the problem, the objects, the reason and the fix', async () => {
  await database.admin.run('create table "Ta ble" (tenant_id int primary key)')
  expect(await database.findings()).toEqual([
    {
      level: 'error',
      check: 'tenant-table-unprotected',
      message:
        'Tables with the column tenant_id but without forced row-level security: Ta ble. Every caller can see ' +
        "every tenant's rows in them. Enabling alone does not apply to the owner; forcing does.",
      objects: ['Ta ble'],
      fix: expect.stringContaining(
        'alter table public."Ta ble" enable row level security, force row level security;\n',
      ),
      sql: [
        'alter table public."Ta ble" enable row level security, force row level security;',
        'create policy tenant on public."Ta ble" using (tenant_id = (select ' +
          `nullif(current_setting('app.current_tenant_id', true), '')::integer));`,
      ],
    },
  ])
})

test('the suggested policy shows a tenant its own rows, and no rows without a tenant', async () => {
  await database.admin.run(`create table notes (tenant_id uuid, body text); create index on notes (tenant_id);
    insert into notes values ('11111111-1111-1111-1111-111111111111', 'mine'),
    ('22222222-2222-2222-2222-222222222222', 'theirs')`)
  await repair()
  expect(await database.findings()).toEqual([])
  await database.app.run(`set app.current_tenant_id = '11111111-1111-1111-1111-111111111111'`)
  expect(await database.app.query('select body from notes', [])).toEqual([['mine']])
  await database.app.run(`set app.current_tenant_id = ''`)
  expect(await database.app.query('select body from notes', [])).toEqual([])
})

test('the suggested policy does not truncate a longer tenant id', async () => {
  await database.admin.run(`create table notes (tenant_id char(2)); insert into notes values ('ab')`)
  await repair()
  await database.app.run(`set app.current_tenant_id = 'abc'`)
  expect(await database.app.query('select from notes', [])).toEqual([])
  await database.app.run(`set app.current_tenant_id = 'ab'`)
  expect(await database.app.query('select from notes', [])).toHaveLength(1)
})

test('no policy is suggested for a table that has one', async () => {
  await database.admin.run('create table t (tenant_id int primary key); create policy mine on t using (tenant_id > 0)')
  const [finding] = await database.findings()
  expect(finding?.sql).toEqual(['alter table public.t enable row level security, force row level security;'])
})

test('the tenant column is the configured one, whatever its length', async () => {
  await database.admin.run('create table t (operator_id int)')
  expect(await database.findings()).toEqual([])
  expect((await database.findings({ tenantColumn: 'operator_id' })).length).toBeGreaterThan(0)
  expect(await database.findings({ tenantColumn: 'operator_id'.repeat(20) })).toEqual([])
})

test('one readable column is enough for a finding', async () => {
  await database.admin.run('create table t (tenant_id int primary key); revoke all on t from app')
  expect(await database.findings()).toEqual([])
  await database.admin.run('grant select (tenant_id) on t to app')
  expect(await database.findings()).toHaveLength(1)
})

test('many tables become one finding that names twenty; sql and objects contain all', async () => {
  const name = (n: number) => `t${String(n).padStart(3, '0')}`
  await database.admin.run(
    Array.from({ length: 230 }, (_, n) => `create table ${name(n)} (tenant_id int primary key)`).join(';'),
  )
  const [finding, ...others] = await database.findings()
  expect(others).toEqual([])
  expect(finding?.message).toContain('t018, t019 and 210 more.')
  expect(finding?.fix.split('\n').at(-1)).toBe('-- and 260 more like these: --json lists all')
  expect(finding?.objects).toHaveLength(230)
  expect(finding?.sql).toHaveLength(460)
})

test('the printed SQL means the same under any search_path', async () => {
  await database.admin.run(`create domain sales.tenant as int; create table t (tenant_id sales.tenant primary key);
    create function sales.whose() returns int stable language sql return 1;
    create table u (tenant_id int primary key); alter table u enable row level security, force row level security;
    create policy p on u using (tenant_id = sales.whose() and current_setting('app.current_role', true) = 'a')`)
  await database.admin.run('set search_path = sales, public')
  await database.app.run('set search_path = sales, public')
  try {
    const sql = (await database.findings()).flatMap(finding => finding.sql ?? [])
    expect(sql.join('\n')).toContain("''::text)::sales.tenant".replace('::text', ''))
    expect(sql.join('\n')).toContain('(select sales.whose())')
    expect(await database.app.query('show search_path', [])).toEqual([['sales, public']])
  } finally {
    await database.app.run('reset search_path')
    await database.admin.run('reset search_path')
  }
})

test('SQL for objects with hostile names is valid', async () => {
  const names = [
    '__proto__',
    'a\nb',
    'drop"; drop table kept; --',
    'esc\u001b[2J',
    'back\\slash\n',
    '\u202eright',
    "it's",
    '🙂',
  ]
  const quoted = names.map(name => `"${name.replaceAll('"', '""')}"`)
  await database.admin.run(`create table kept (id int primary key);
    ${quoted
      .map(
        name => `create table ${name} (id int primary key generated always as identity, tenant_id int,
            ${name} text unique, up int references ${name});
          alter table ${name} enable row level security, force row level security;
          create policy ${name} on ${name} using (tenant_id = current_setting('app.current_tenant_id', true)::int
            and ${name} <> '${name.slice(1, -1).replaceAll("'", "''")}');`,
      )
      .join('\n')}`)
  const first = await database.findings()
  expect(first.map(({ check }) => check)).toEqual([
    'policy-per-row',
    'tenant-index',
    'foreign-key-index',
    'foreign-key-across-tenants',
    'unique-across-tenants',
  ])
  for (const { objects, message, sql = [] } of first) {
    expect(objects).toHaveLength(names.length)
    expect(`${message} ${sql.join('')}`).not.toMatch(/[\p{Cc}\u202e]/u)
  }
  await repair()
  expect(await database.findings()).toEqual([])
  expect(
    await database.app.query(
      `select count(*) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
      [],
    ),
  ).toEqual([[String(names.length + 1)]])
})

describe('accepted findings', () => {
  const SETUP = 'create table a (id int primary key, b int references a, c int references a)'

  test('a whole lint or one object can be accepted', async () => {
    await database.admin.run(SETUP)
    const accepting = (...acceptedFindings: string[]) =>
      lintDatabase(database.app.query, { ...TARGET, acceptedFindings }).then(({ findings, accepted }) => ({
        objects: findings.flatMap(({ check, objects = [] }) => (check === 'foreign-key-index' ? objects : [])),
        accepted,
      }))
    const both = ['a_b_fkey on a', 'a_c_fkey on a']
    expect(await accepting()).toEqual({ objects: both, accepted: 0 })
    expect(await accepting('foreign-key-index')).toEqual({ objects: [], accepted: 2 })
    expect(await accepting('foreign-key-index: a_b_fkey on a')).toEqual({ objects: ['a_c_fkey on a'], accepted: 1 })
    expect(await accepting('foreign-key-index: a_x_fkey on a', 'tenant-index')).toEqual({ objects: both, accepted: 0 })
  })

  test('a check of every start cannot be accepted, and the attempt is reported', async () => {
    await database.admin.run('create table t (tenant_id int primary key)')
    expect(await database.findings({ acceptedFindings: ['tenant-table-unprotected: t'] })).toEqual([
      { level: 'error', message: expect.stringContaining('cannot be accepted'), fix: expect.any(String) },
      expect.objectContaining({ check: 'tenant-table-unprotected' }),
    ])
  })

  test('an unknown check is reported', async () => {
    expect(await database.findings({ acceptedFindings: ['foreign-key-indx', '__proto__'] })).toEqual([
      {
        level: 'error',
        message: 'accepted_findings names "foreign-key-indx", which is not a check.',
        fix: 'Did you mean foreign-key-index?',
      },
      { level: 'error', message: expect.stringContaining('"__proto__"'), fix: expect.stringMatching(/^Name one of /) },
    ])
  })
})

test('startup runs only its own checks', async () => {
  await database.admin.run('create table a (id int primary key, b int references a, tenant_id int)')
  const found = (await bootDangers(database.app.query, TARGET)).map(({ check }) => check)
  expect(found.filter(check => check !== 'version-reads-past-rls')).toEqual(['tenant-table-unprotected'])
})

describe('role', () => {
  test('a superuser is reported, and the suggested SQL creates an ordinary role', async () => {
    await database.admin.run('create table sales.t (id int)')
    const finding = await only(database.admin.query, 'role-bypasses-rls')
    expect(finding?.objects).toEqual(['postgres is a superuser'])
    await database.admin.run(finding?.sql?.join('\n') ?? '')
    try {
      await database.admin.run('set role gateway; select from sales.t')
      expect(await only(database.admin.query, 'role-bypasses-rls')).toBeUndefined()
    } finally {
      await database.admin.run('reset role; drop owned by gateway; drop role gateway')
    }
  })

  test('a role with BYPASSRLS is an error', async () => {
    await database.admin.run('create role "by passing" bypassrls; set role "by passing"')
    try {
      const finding = await only(database.admin.query, 'role-bypasses-rls')
      expect(finding?.objects).toEqual(['by passing has the attribute BYPASSRLS'])
      await database.admin.run(`reset role; ${finding?.sql}; set role "by passing"`)
      expect(await only(database.admin.query, 'role-bypasses-rls')).toBeUndefined()
    } finally {
      await database.admin.run('reset role; drop role "by passing"')
    }
  })

  test('an ordinary role has no finding', async () => {
    expect(await database.findings()).toEqual([])
  })
})

describe('search language', () => {
  beforeEach(() =>
    database.admin.run(`create text search configuration sales.recipes (copy = simple);
      create text search configuration sales."Old Norse" (copy = simple)`),
  )

  test.each([
    ['englsh', 'englsh (did you mean english?)'],
    ['pg_catalog.germn', 'pg_catalog.germn (did you mean pg_catalog.german?)'],
    ['klingon', 'klingon'],
    ['recipes', 'recipes'],
    ['"English"', '"English" (did you mean english?)'],
  ])('%s is not a text search configuration', async (searchLanguage, object) => {
    await expect(database.app.query('select $1::regconfig', [searchLanguage])).rejects.toThrow('does not exist')
    expect(await database.findings({ searchLanguage })).toEqual([
      expect.objectContaining({ check: 'search-language', objects: [object], fix: expect.stringContaining('simple') }),
    ])
  })

  test.each(['simple', 'German', 'pg_catalog.english', 'sales.recipes', 'sales."Old Norse"', '"simple"'])(
    '%s',
    async searchLanguage => {
      await database.app.query('select $1::regconfig', [searchLanguage])
      expect(await database.findings({ searchLanguage })).toEqual([])
    },
  )

  test('a configuration that is found only through the search_path', async () => {
    await database.app.run('set search_path = sales')
    try {
      await database.app.query('select $1::regconfig', ['recipes'])
      expect(await database.findings({ searchLanguage: 'recipes' })).toEqual([])
    } finally {
      await database.app.run('reset search_path')
    }
  })
})

describe('version', () => {
  /** The answer of a server of that version; every other query runs on the real server. */
  const ofVersion =
    (version: number): Query =>
    (text, parameters) =>
      database.app.query(text.replace(`current_setting('server_version_num')`, `'${version}'`), parameters)

  test.each([
    [180_006, 'version-reads-past-rls', '18.6'],
    [170_011, 'version-reads-past-rls', '17.11'],
    [160_015, 'version-reads-past-rls', '16.15'],
    [150_019, 'version-reads-past-rls', '15.19'],
    [140_024, 'version-reads-past-rls', '14.24'],
    [130_023, 'version-unsupported', '13.23'],
  ])('a version with a known vulnerability is reported: %i', async (version, check, printed) => {
    expect(await bootDangers(ofVersion(version), TARGET)).toEqual([
      expect.objectContaining({ check, level: 'error', objects: [`PostgreSQL ${printed}`] }),
    ])
  })

  const unaffected = [180_007, 180_010, 170_012, 160_016, 150_020, 140_025, 190_000]
  test.each(unaffected)('version %i is not reported', async version => {
    expect(await bootDangers(ofVersion(version), TARGET)).toEqual([])
  })

  test('a minor release that lacks the fix is a note of svc check and an error under strict', async () => {
    const levelFor = async (purpose: 'check' | 'strict') => {
      const { findings } = await lintDatabase(ofVersion(180_006), TARGET, purpose)
      return findings.find(({ check }) => check === 'version-reads-past-rls')?.level
    }
    expect([await levelFor('check'), await levelFor('strict')]).toEqual(['note', 'error'])
  })

  test('the version of the real server is checked', async () => {
    const [[number = ''] = []] = await database.app.query(`select current_setting('server_version_num')`, [])
    const finding = await only(database.app.query, 'version-reads-past-rls')
    expect(finding === undefined).toBe(Number(number) >= 180_007)
  })
})

/** Runs all SQL of the findings, that of each finding as one text, indented as printed. */
async function repair(): Promise<void> {
  for (const { fix } of await database.findings()) await database.admin.run(fix.replaceAll('\n', '\n  '))
}
