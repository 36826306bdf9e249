/** The sample has only intended findings, and well-known public databases have the expected findings. */
import { describe, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { TARGET } from '../../test/support/lint.ts'
import type { TestDatabase } from '../../test/support/postgres.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { REAL_DATA_MISSING, REAL_DATABASES, realDatabase } from '../../test/support/real-data.ts'
import { sampleDatabase } from '../../test/support/sample.ts'
import { lintDatabase } from './lint-database.ts'

if (REAL_DATA_MISSING !== null) console.info(`skipped: ${REAL_DATA_MISSING}`)

/** Findings of every database of a version: before 15, every role can create objects in schema public. */
const OF_THE_VERSION = ['version-reads-past-rls', ...(POSTGRES_MAJOR < 15 ? ['schema-create-granted'] : [])]

/**
 * The names of the checks and the number of objects that each has found, before and after all of their SQL
 * has run.
 */
async function lintAndMend(database: TestDatabase) {
  const admin = await openSession(database.adminUrl)
  const app = await openSession(database.url)
  const lint = async () => {
    const { findings } = await lintDatabase(app.query, { ...TARGET, schemas: ['public'] })
    return findings.filter(({ check }) => !OF_THE_VERSION.includes(check ?? ''))
  }
  const counts = async () => Object.fromEntries((await lint()).map(({ check, objects }) => [check, objects?.length]))
  try {
    const before = await counts()
    for (const { sql = [] } of await lint()) await admin.run(sql.join('\n'))
    return { before, after: await counts() }
  } finally {
    await app.close()
    await admin.close()
    await database.drop()
  }
}

/**
 * Without security_invoker, before PostgreSQL 15, the view of the sample is published only if it is listed.
 */
const OLD_VIEW = POSTGRES_MAJOR < 15 ? { 'view-unpublished': 1 } : {}

test('the sample has only findings about foreign keys without the tenant, and their SQL runs', async () => {
  // Foreign keys of one column keep the short names of relations (`expand=customer`), which the sample
  // demonstrates.
  expect(await lintAndMend(await sampleDatabase())).toEqual({
    before: { 'foreign-key-across-tenants': 14, ...OLD_VIEW },
    after: OLD_VIEW,
  })
})

const EXPECTED: Readonly<Record<(typeof REAL_DATABASES)[number], Readonly<Record<string, number>>>> = {
  chinook: {},
  northwind: { 'foreign-key-index': 10 },
  pagila: {
    ...{ 'definer-search-path': 1, 'definer-bypasses-rls': 1, 'foreign-key-index': 7 },
    ...{ 'secret-column-readable': 1, 'view-unpublished': 8 },
  },
}

/**
 * SQL is missing for a column that is named like a secret, for a materialized view, and for any view
 * before PostgreSQL 15.
 */
const LEFT: Partial<typeof EXPECTED> = {
  pagila: { 'secret-column-readable': 1, 'view-unpublished': POSTGRES_MAJOR < 15 ? 8 : 1 },
}

describe.skipIf(REAL_DATA_MISSING !== null)('public example databases', () => {
  test.each(REAL_DATABASES)('%s', { timeout: 120_000 }, async name => {
    expect(await lintAndMend(await realDatabase(name))).toEqual({ before: EXPECTED[name], after: LEFT[name] ?? {} })
  })
})

describe.skipIf(REAL_DATA_MISSING !== null)('pagila with customers of tenants', () => {
  test('payments and rentals belong to customers, and every tenant could read them', { timeout: 120_000 }, async () => {
    const database = await realDatabase('pagila')
    const admin = await openSession(database.adminUrl)
    const app = await openSession(database.url)
    try {
      await admin.run(`alter table customer add tenant_id int not null default 1;
        create index on customer (tenant_id);
        alter table customer enable row level security, force row level security;
        create policy tenant on customer
          using (tenant_id = (select nullif(current_setting('app.current_tenant_id', true), '')::int))`)
      const find = async () => {
        const { findings } = await lintDatabase(app.query, { ...TARGET, schemas: ['public'] })
        return findings.find(({ check }) => check === 'tenant-child-unprotected')
      }
      const finding = await find()
      expect(finding?.level).toBe('error')
      expect(finding?.objects).toEqual(expect.arrayContaining(['payment', 'rental']))
      expect(finding?.objects).not.toContain('country')
      await admin.run((finding?.sql ?? []).join('\n'))
      expect(await find()).toBeUndefined()
      expect(await app.query('select 1 from payment limit 1', [])).toEqual([])
    } finally {
      await app.close()
      await admin.close()
      await database.drop()
    }
  })
})
