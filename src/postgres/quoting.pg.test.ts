/**
 * Literals in the gateway's statements are quoted for `standard_conforming_strings = on`; no connection URL
 * can turn that off.
 */
import { expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { createPool } from './pool.ts'
import { parseUrl } from './url.ts'

const database = databaseFixture()

test.each([
  '-c standard_conforming_strings=off',
  '--standard-conforming-strings=off',
  '-cSTANDARD_CONFORMING_STRINGS=off',
])('options=%s has no effect', async options => {
  const pool = createPool({ target: parseUrl(`${database.url}?options=${encodeURIComponent(options)}`) })
  const [result] = await pool.run([{ text: 'SHOW standard_conforming_strings', parameters: [] }]).result
  expect(result?.rows[0]?.[0]?.toString()).toBe('on')
  await pool.close({ deadlineMs: 1_000 })
})
