/** The catalog read by the gateway's own wire client equals the one read by another client. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { createPool, type Pool } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'
import { introspect, readFingerprint } from './introspect.ts'
import { queryThrough } from './query.ts'

const OPTIONS = { schemas: ['public'], exposedViews: [] }

const database = databaseFixture()
let pool: Pool

beforeAll(async () => {
  pool = createPool({ target: parseUrl(database.url), maxConnections: 2 })
})

afterAll(async () => {
  await pool?.close({ deadlineMs: 1_000 })
})

test('reads many rows, text in any script, and NULL', async () => {
  const admin = await openSession(database.adminUrl)
  await admin.run(`create table "تست" (id int primary key, "💥" text);
    do $$ begin for n in 1..300 loop execute format('create table t%s (a int, b int, c int, d int)', n); end loop;
    end $$`)
  const catalog = await introspect(queryThrough(pool), OPTIONS)
  expect(catalog).toEqual(await introspect(admin.query, OPTIONS))
  expect(catalog.tables.size).toBe(301)
  expect(await readFingerprint(queryThrough(pool), OPTIONS)).toBe(catalog.fingerprint)
  await admin.close()
})

test('an error of the database rejects', async () => {
  await expect(queryThrough(pool)('select 1 / $1::int', ['0'])).rejects.toThrow('division by zero')
})

test('a read that takes too long is cancelled, and the next one succeeds', async () => {
  await expect(queryThrough(pool, 50)('select pg_sleep(10)', [])).rejects.toThrow('statement timeout')
  expect(await queryThrough(pool)('select current_setting($1)', ['statement_timeout'])).toEqual([['30s']])
})
