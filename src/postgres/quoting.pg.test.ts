/** Literals in our statements are quoted for `standard_conforming_strings = on`; nobody's URL may turn that off. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/support/postgres.ts'
import { createPool } from './pool.ts'
import { parseUrl } from './url.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.drop())

test.each([
  '-c standard_conforming_strings=off',
  '--standard-conforming-strings=off',
  '-cSTANDARD_CONFORMING_STRINGS=off',
])('options=%s does not win', async options => {
  const pool = createPool({ target: parseUrl(`${database.url}?options=${encodeURIComponent(options)}`) })
  const [result] = await pool.run([{ text: 'SHOW standard_conforming_strings', parameters: [] }]).result
  expect(result?.rows[0]?.[0]?.toString()).toBe('on')
  await pool.close({ deadlineMs: 1_000 })
})
