/** docs/guides/console.md#explore, import and export of CSV, in a real browser, as two callers. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, enterConsole, tabTo, VIEWS } from '../support/console.ts'
import { clientFixture, databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'

const PATIENT = { timeout: 60_000 }
const ATTACK = '<img src=x onerror="window.attacked=1">'
/** More than one page of an export, and more than one response may have. */
const ROWS = 12_000

const database = databaseFixture(`
  CREATE TABLE words (id int PRIMARY KEY, word text, tenant_id text NOT NULL
    DEFAULT current_setting('app.current_tenant_id'));
  ALTER TABLE words ENABLE ROW LEVEL SECURITY;
  CREATE POLICY own ON words USING (tenant_id = current_setting('app.current_tenant_id'));
  GRANT SELECT, INSERT ON words TO PUBLIC;
  CREATE TABLE many (id int PRIMARY KEY, note text);
  INSERT INTO many SELECT n, CASE WHEN n % 1000 = 0 THEN E'two\\nlines, "quoted"' END
    FROM generate_series(1, ${ROWS}) AS n;
  CREATE TABLE keyless AS SELECT * FROM many;
  GRANT SELECT ON many, keyless TO PUBLIC;
`)
const admin = clientFixture(() => database.adminUrl)
const folder = folderFixture()
const POLICY = `
policies:
  - { name: all read, table: "*", role: "*", operations: [read] }
  - { name: writers create, table: words, role: writer, operations: [create] }
`
const gateway = gatewayFixture(database, async () => {
  await writeFile(join(folder, 'policy.yaml'), POLICY)
  return {
    toml: `policy = ${JSON.stringify(join(folder, 'policy.yaml'))}\n[gateway.console]\nenabled = true`,
  }
})

// Without a browser these tests are skipped.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)

  async function enter(tenantId: string, role: string, address: string): Promise<void> {
    await enterConsole(page, gateway.url, await gateway.token({ tenantId, role }), address)
    await page.until(`document.querySelector('.transfer') !== null`)
    await page.evaluate(`document.querySelector('.transfer').closest('details').open = true`)
  }
  async function importFile(name: string, text: string): Promise<void> {
    const path = join(folder, name)
    await writeFile(path, text)
    await page.choose('.transfer input[type=file]', [path])
    await page.evaluate(`document.querySelector('.transfer [type=submit]').click()`)
  }
  const click = (text: string): Promise<unknown> =>
    page.evaluate(
      `[...document.querySelectorAll('.transfer button')].find(b => b.textContent === ${JSON.stringify(text)}).click()`,
    )
  const status = `document.querySelector('.transfer > [role=status]').textContent`
  const exportAll = () => page.download(() => click('Export all rows of the filter'))
  const stored = async (): Promise<readonly unknown[]> =>
    (await admin.query({ text: 'SELECT id, word, tenant_id FROM words ORDER BY id', rowMode: 'array' })).rows

  beforeEach(async () => {
    await page.show(1280, 'light')
    await admin.query('TRUNCATE words')
    page.complaints.length = 0
  })

  test('a caller imports a file, and exports the rows of a filter, by keyboard', PATIENT, async () => {
    await enter('t1', 'writer', '#/explore/words')
    const path = join(folder, 'words.csv')
    await writeFile(path, `id,word\n1,one\n2,"two, ""2"""\n3,${ATTACK.replaceAll('"', '')}\n`)
    await page.choose('.transfer input[type=file]', [path])
    await tabTo(page, `element.textContent === 'Import'`)
    await page.press('Enter')
    await page.until(`${status} === '3 rows imported.'`)
    // The grid has the new rows.
    await page.until(`document.querySelectorAll('.table-view > .scroll tbody tr').length === 3`)
    expect(await stored()).toHaveLength(3)
    await page.evaluate(`location.hash = '#/explore/words?id.lte=2&sort=-id&select=id,word&limit=1'`)
    await page.until(`document.querySelectorAll('.table-view > .scroll tbody tr').length === 1`)
    await tabTo(page, `element.textContent === 'Export all rows of the filter'`)
    const { name, text } = await page.download(() => page.press('Enter'))
    expect([name, text]).toEqual(['words.csv', 'id,word\n2,"two, ""2"""\n1,one\n'])
    await page.until(`${status} === '2 rows exported.'`)
    expect(page.complaints).toEqual([])
  })

  test('an export has only the rows of its caller', PATIENT, async () => {
    await admin.query(`INSERT INTO words VALUES (1, 'of one', 't1'), (2, 'of two', 't2')`)
    await enter('t2', 'reader', '#/explore/words?select=id,word')
    expect((await exportAll()).text).toBe('id,word\n2,"of two"\n')
    await enter('t1', 'writer', '#/explore/words?select=id,word')
    expect((await exportAll()).text).toBe('id,word\n1,"of one"\n')
  })

  test('an export has all rows, although a response has fewer', PATIENT, async () => {
    await enter('t1', 'writer', '#/explore/many')
    const { text } = await exportAll()
    const { rows } = await admin.query(`SELECT string_agg(line, '' ORDER BY id) AS all FROM (SELECT id, CASE WHEN note
      IS NULL THEN id || E',\\n' ELSE id || ',"' || replace(note, '"', '""') || E'"\\n' END AS line FROM many) AS l`)
    expect(text === `id,note\n${rows[0].all}`).toBe(true)
    await page.until(`${status} === '${ROWS} rows exported.'`)
    await enter('t1', 'writer', '#/explore/keyless')
    expect((await exportAll()).text.match(/^\d/gm)).toHaveLength(ROWS)
  })

  test('if a row fails, nothing is imported, and the message names its line', PATIENT, async () => {
    await enter('t1', 'writer', '#/explore/words')
    await importFile('bad.csv', 'id,word\n1,one\nten,two\n')
    await page.until(`document.querySelector('.transfer [role=alert]') !== null`)
    expect(await page.evaluate(`document.querySelector('.transfer [role=alert]').textContent`)).toMatch(
      /^line 3: column "id" is integer and cannot hold "ten".*; nothing was imported/,
    )
    expect(await stored()).toEqual([])
  })

  test('rows that fail can be left out, and are listed with their lines', PATIENT, async () => {
    await enter('t1', 'writer', '#/explore/words')
    await page.evaluate(`document.querySelector('.transfer [type=checkbox]').click()`)
    await importFile('bad.csv', `id,word\n1,one\n"${ATTACK.replaceAll('"', '""')}",two\n1,again\n`)
    await page.until(`${status} === '1 row imported. 2 rows were left out.'`)
    const cells = `[...document.querySelectorAll('.failed tbody tr')].map(r => [...r.cells].map(c => c.textContent))`
    expect(await page.evaluate(cells)).toEqual([
      ['3', 'id', expect.stringContaining(ATTACK)],
      ['4', 'id', expect.stringContaining('duplicate key')],
    ])
    expect(await page.evaluate(`[window.attacked ?? null, document.querySelectorAll('.failed img').length]`)).toEqual([
      null,
      0,
    ])
    expect(await stored()).toEqual([[1, 'one', 't1']])
  })

  test('a caller without the right to create imports nothing', PATIENT, async () => {
    await enter('t2', 'reader', '#/explore/words')
    await importFile('words.csv', `id,word\n${Array.from({ length: 200_000 }, (_, id) => `${id},word\n`).join('')}`)
    await page.until(`document.querySelector('.transfer [role=alert]') !== null`)
    expect(await page.evaluate(`document.querySelector('.transfer [role=alert]').textContent`)).toMatch(
      /reader.*words|words.*reader|not allowed|cannot/,
    )
    expect(await stored()).toEqual([])
    expect(await page.evaluate(`document.querySelector('.transfer [type=submit]').disabled`)).toBe(false)
  })

  test('a running import can be cancelled, and changes nothing', PATIENT, async () => {
    await enter('t1', 'writer', '#/explore/words')
    // The lock holds the import, so that it is cancelled while it runs.
    await admin.query('BEGIN; LOCK TABLE words IN ACCESS EXCLUSIVE MODE')
    await importFile('words.csv', `id,word\n${Array.from({ length: 1_000 }, (_, id) => `${id},word\n`).join('')}`)
    const isWaiting = async (): Promise<boolean> => {
      // The screen can read the rows at the same time, and waits for the lock as well.
      const { rowCount } = await admin.query(
        `SELECT FROM pg_locks WHERE relation = 'words'::regclass AND mode = 'RowExclusiveLock' AND NOT granted`,
      )
      return rowCount === 1
    }
    await vi.waitUntil(isWaiting, PATIENT)
    await page.until(`document.querySelector('.transfer progress') !== null`)
    await click('Cancel')
    await page.until(`${status} === 'Cancelled.'`)
    await vi.waitUntil(async () => !(await isWaiting()), PATIENT)
    await admin.query('COMMIT')
    expect(await stored()).toEqual([])
  })

  test.each(VIEWS)('import and export: $width px, $theme', PATIENT, async ({ width, theme }) => {
    await page.show(width, theme)
    await enter('t1', 'writer', '#/explore/words')
    await page.evaluate(`document.querySelector('.transfer [type=checkbox]').click()`)
    await importFile('bad.csv', 'id,word\n1,one\nten,two\n')
    await page.until(`document.querySelector('.failed') !== null`)
    await auditScreen(page, 'transfer', { width, theme })
  })
})
