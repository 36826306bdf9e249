/**
 * docs/guides/console.md#change-a-cell: cells of the grid are changed in place, by keyboard and by mouse, and
 * only if the row is still the one that the grid shows.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, enterConsole, tabTo, VIEWS } from '../support/console.ts'
import { databaseFixture, fixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 60_000 }

const TABLES = `
  CREATE TYPE mood AS ENUM ('calm', 'tense');
  CREATE TABLE cells (
    id int PRIMARY KEY,
    tenant_id uuid NOT NULL,
    note text,
    amount numeric CONSTRAINT amount_is_positive CHECK (amount > 0),
    is_open boolean,
    mood mood NOT NULL DEFAULT 'calm',
    data jsonb,
    at timestamptz,
    twice numeric GENERATED ALWAYS AS (amount * 2) STORED,
    grade int NOT NULL DEFAULT 1,
    changed_by text
  );
  ALTER TABLE cells ENABLE ROW LEVEL SECURITY;
  CREATE POLICY own ON cells
    USING (tenant_id = (SELECT nullif(current_setting('app.current_tenant_id', true), '')::uuid));
  GRANT SELECT, UPDATE ON cells TO PUBLIC;
  CREATE TABLE guarded (id int PRIMARY KEY, note text, owner_note text);
  INSERT INTO guarded VALUES (1, 'note', 'x');
  GRANT SELECT, UPDATE (note) ON guarded TO PUBLIC;
  CREATE TABLE keyless (note text);
  INSERT INTO keyless VALUES ('no key');
  GRANT SELECT, UPDATE ON keyless TO PUBLIC;
  CREATE TABLE parts (id int PRIMARY KEY, note text, other text, labels text[]) PARTITION BY RANGE (id);
  CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
  INSERT INTO parts VALUES (1, 'first', 'other', '{a}');
  GRANT SELECT, UPDATE ON parts TO PUBLIC;
`
const POLICY = `
default_decision = "allow"
[tables.cells]
operations = ["read", "update"]
write_columns = { except = ["grade"] }
`
const ATTACK = '<img src=x onerror="window.attacked=1">'

const database = databaseFixture(sampleDatabase, TABLES)
const folder = folderFixture()
let gateway: TestGateway
const tokens: string[] = []

beforeAll(async () => {
  const file = join(folder, 'access.toml')
  await writeFile(file, POLICY)
  gateway = await testGateway(database.url, {
    toml: `[gateway.console]\nenabled = true\n[access]\nenabled = true\npath = ${JSON.stringify(file)}`,
  })
  for (const { id, userId } of database.tenants.slice(0, 2))
    tokens.push(await gateway.token({ tenantId: id, userId, role: 'clerk' }))
})
afterAll(() => gateway?.close())

/** Another client than the page. */
const as = () => ({ tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' })
const read = async (path: string) => (await gateway.get(`/api/${path}`, { as: as() })).json.data
const change = async (path: string, values: object) => {
  const headers = { 'Content-Type': 'application/json' }
  const reply = await gateway.get(`/api/${path}`, {
    ...{ as: as(), method: 'PATCH', headers, body: JSON.stringify(values) },
  })
  expect(reply.status).toBe(200)
}

if (BROWSER_MISSING !== null) process.stderr.write(`console-cells.pg.test.ts: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)

  const grid = `document.querySelector('[role=grid]')`
  const editor = `document.querySelector('.cell-editor')`
  const field = `document.querySelector('.cell-editor :is(input, textarea, select)')`
  /** The cell of a column in the first row. */
  const cell = (column: string): string =>
    `(grid => {
      const heads = [...grid.rows[0].cells].map(head => head.innerText.replace(/ [↑↓]$/, ''))
      return grid.rows[1].cells[heads.indexOf('${column}')]
    })(${grid})`
  const focused = `document.activeElement.closest('td, th')`
  const button = (text: string): string =>
    `[...document.querySelectorAll('.cell-editor button')].find(one => one.textContent === '${text}')`

  /** Enters as one of the two callers, and waits for the rows. */
  async function enter(address: string, caller = 0): Promise<void> {
    await enterConsole(page, gateway.url, tokens[caller] ?? '', `#/explore/${address}`)
    await page.until(`${grid}?.rows.length > 1`)
  }
  /** Opens the editor of a cell by keyboard. */
  async function edit(column: string): Promise<void> {
    await page.evaluate(`${cell(column)}.focus()`)
    await page.press('Enter')
    await page.until(`${editor} !== null && document.activeElement === ${field}`)
  }
  const replaceText = async (text: string): Promise<void> => {
    await page.evaluate(`${field}.select()`)
    await page.type(text)
  }
  const choose = (value: string): Promise<void> =>
    page.evaluate(`(select => {
      select.value = [...select.options].find(option => option.text === '${value}').value
      select.dispatchEvent(new Event('change', { bubbles: true }))
    })(${field})`)
  const closed = `${editor} === null`

  beforeEach(async () => {
    const [first, second] = database.tenants
    await execute(
      database.adminUrl,
      `DELETE FROM cells;
       INSERT INTO cells (id, tenant_id, note, amount, is_open, data, at, changed_by) VALUES
         (1, '${first?.id}', 'first', 9007199254740993.10, true, '{"a": [1.10]}', '2026-01-31T00:00:00Z', 'ann'),
         (2, '${first?.id}', 'second', 2, false, null, null, 'ann'),
         (3, '${second?.id}', 'of the other tenant', 3, false, null, null, 'bob')`,
    )
    await page.show(1280, 'light')
    page.complaints.length = 0
    ;(page.requested as string[]).length = 0
  })

  test('the grid is one stop of the Tab key, and arrow keys move between its cells', PATIENT, async () => {
    await enter('cells?sort=id')
    await tabTo(page, `element.closest('[role=grid]') !== null`)
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Open')
    await page.press('Tab')
    expect(await page.evaluate(`${grid}.contains(document.activeElement)`)).toBe(false)
    await page.press('Tab', true)
    await page.press('ArrowUp')
    await page.press('ArrowRight')
    expect(await page.evaluate('document.activeElement.matches("th button")')).toBe(true)
    await page.press('End')
    await page.press('ArrowDown')
    expect(await page.evaluate(`${focused} === ${cell('changed_by')}`)).toBe(true)
    expect(await page.evaluate(`document.querySelectorAll('[role=grid] [tabindex="0"]').length`)).toBe(1)
    await page.press('Home')
    await page.press('ArrowDown')
    expect(await page.evaluate(`${focused}.parentElement.rowIndex`)).toBe(2)
    expect(page.complaints).toEqual([])
  })

  test('Enter opens and saves, Tab saves and moves, Escape cancels, F2 sets NULL', PATIENT, async () => {
    await enter('cells?sort=id')
    await edit('note')
    expect(await page.evaluate(`${field}.value`)).toBe('first')
    await replaceText('changed')
    await page.press('Enter')
    await page.until(closed)
    expect(await page.evaluate(`document.activeElement === ${cell('note')}`)).toBe(true)
    expect(await page.evaluate(`${cell('note')}.textContent`)).toBe('changed')
    await page.press('F2')
    await page.until(`${editor} !== null`)
    await replaceText('not saved')
    await page.press('Escape')
    await page.until(closed)
    expect(await page.evaluate(`document.activeElement === ${cell('note')}`)).toBe(true)
    expect((await read('cells/1')).note).toBe('changed')
    await page.press('Enter')
    await page.until(`${editor} !== null`)
    await replaceText('by Tab')
    await page.press('Tab')
    await page.until(closed)
    expect(await page.evaluate(`document.activeElement === ${cell('amount')}`)).toBe(true)
    await page.press('Enter')
    await page.until(`${editor} !== null`)
    await replaceText('9007199254740993.25')
    await page.press('Tab', true)
    await page.until(closed)
    expect(await page.evaluate(`document.activeElement === ${cell('note')}`)).toBe(true)
    await page.press('Enter')
    await page.until(`${editor} !== null`)
    await page.press('F2')
    await page.until(`${field}.placeholder === 'NULL' && ${field}.value === ''`)
    await page.press('Enter')
    await page.until(closed)
    expect(await page.evaluate(`${cell('note')}.className`)).toBe('null')
    const { text } = await gateway.get('/api/cells/1?select=note,amount', { as: as() })
    expect(text).toContain('{"note":null,"amount":9007199254740993.25}')
    // Nothing has been sent for the cancelled change.
    expect(page.complaints).toEqual([])
  })

  test('a double click opens, and each type has its control', PATIENT, async () => {
    await enter('cells?sort=id')
    await page.click(cell('is_open'), 2)
    await page.until(`${field}?.matches('select') === true`)
    expect(await page.evaluate(`[...${field}.options].map(option => option.text)`)).toEqual(['NULL', 'true', 'false'])
    await choose('false')
    await page.click(button('Save'))
    await page.until(closed)
    await page.click(cell('mood'), 2)
    await page.until(`${field}?.matches('select') === true`)
    expect(await page.evaluate(`[...${field}.options].map(option => option.text)`)).toEqual(['calm', 'tense'])
    await choose('tense')
    await page.click(button('Save'))
    await page.until(closed)
    await page.click(cell('data'), 2)
    await page.until(`${field}?.matches('textarea') === true`)
    await replaceText('{"a": ')
    await page.click(button('Save'))
    await page.until(`/not valid JSON/.test(${editor}.innerText)`)
    expect(await page.evaluate(`${field}.getAttribute('aria-invalid')`)).toBe('true')
    await replaceText('{"a": [2.20]}')
    await page.click(button('Save'))
    await page.until(closed)
    await page.click(cell('at'), 2)
    await page.until(`${editor} !== null`)
    await replaceText('2026-02-01T00:00:00Z')
    await page.click(button('Save'))
    await page.until(closed)
    await page.click(cell('note'), 2)
    await page.until(`${editor} !== null`)
    // A second cell does not discard the change of the first.
    await replaceText('kept')
    await page.click(cell('at'), 2)
    expect(await page.evaluate(`document.activeElement === ${field} && ${field}.value`)).toBe('kept')
    await page.click(button('Cancel'))
    await page.until(closed)
    expect(await read('cells/1')).toMatchObject({
      ...{ is_open: false, mood: 'tense', data: { a: [2.2] }, note: 'first' },
      at: expect.stringMatching(/^2026-02-01/),
    })
    expect(page.complaints).toEqual([])
  })

  test('a change by another client is shown, and the user keeps it or saves over it', PATIENT, async () => {
    await enter('cells?sort=id')
    await edit('note')
    await change('cells/1', { note: ATTACK, changed_by: 'eve' })
    await replaceText('mine')
    await page.press('Enter')
    await page.until(`/Another client has changed this row/.test(${editor}.innerText)`)
    const shown: string = await page.evaluate(`document.querySelector('.conflict').innerText`)
    expect(shown).toContain(ATTACK)
    expect(shown).toMatch(/changed_by\s+ann eve/)
    expect((await read('cells/1')).note).toBe(ATTACK)
    // The choice has the focus: saving over it, then giving up.
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Save my value')
    await page.press('Tab')
    await page.press('Enter')
    await page.until(closed)
    expect(await page.evaluate(`[${cell('note')}.textContent, ${cell('changed_by')}.textContent]`)).toEqual([
      ATTACK,
      'eve',
    ])
    await edit('note')
    await change('cells/1', { amount: 5 })
    await replaceText('mine')
    await page.press('Enter')
    await page.until(`/note has not changed/.test(${editor}.innerText)`)
    // Between the choice and the request, the row changes again.
    await change('cells/1', { amount: 6 })
    await page.press('Enter')
    await page.until(`/amount\\s+5 6/.test(${editor}.innerText)`)
    await page.press('Enter')
    await page.until(closed)
    expect(await read('cells/1')).toMatchObject({ note: 'mine', amount: 6 })
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    expect(page.complaints.filter(text => !/412/.test(text))).toEqual([])
  })

  test('a row that has changed since the page was read is not overwritten', PATIENT, async () => {
    await enter('cells?sort=id')
    await change('cells/1', { note: 'by another client' })
    await edit('note')
    await replaceText('mine')
    await page.press('Enter')
    await page.until(`/by another client/.test(document.querySelector('.conflict')?.innerText)`)
    await page.press('Escape')
    await page.until(closed)
    expect((await read('cells/1')).note).toBe('by another client')
    expect(await page.evaluate(`${cell('note')}.textContent`)).toBe('by another client')
  })

  test('without a strong entity tag, the value of the cell is compared', PATIENT, async () => {
    await enter('parts')
    await edit('note')
    await change('parts/1', { other: 'changed' })
    await replaceText('mine')
    await page.press('Enter')
    await page.until(closed)
    expect(await read('parts/1')).toMatchObject({ note: 'mine', other: 'changed' })
    await edit('note')
    await change('parts/1', { note: 'theirs' })
    await replaceText('mine again')
    await page.press('Enter')
    await page.until(`/theirs/.test(document.querySelector('.conflict')?.innerText)`)
    expect((await read('parts/1')).note).toBe('theirs')
    await page.press('Escape')
    await page.until(closed)
    await edit('labels')
    await replaceText('["b"]')
    await page.press('Enter')
    await page.until(`/arrays cannot be compared/.test(${editor}.innerText)`)
    expect((await read('parts/1')).labels).toEqual(['a'])
  })

  test('errors of the database are shown at the cell', PATIENT, async () => {
    await enter('cells?sort=id')
    await edit('amount')
    await replaceText('-1')
    await page.press('Enter')
    await page.until(`/amount_is_positive/.test(${editor}.innerText)`)
    expect(await page.evaluate(`${field}.value`)).toBe('-1')
    expect(
      await page.evaluate(`document.getElementById(${field}.getAttribute('aria-describedby')).innerText`),
    ).toContain('amount_is_positive')
    await replaceText('4')
    await page.press('Enter')
    await page.until(closed)
    expect((await read('cells/1')).amount).toBe(4)
    await edit('note')
    await execute(database.adminUrl, 'DELETE FROM cells WHERE id = 1')
    await replaceText('mine')
    await page.press('Enter')
    await page.until(`document.querySelector('.cell-editor .bad') !== null`)
    expect(await page.evaluate(`${field}.value`)).toBe('mine')
    // The gateway does not know the privileges of PostgreSQL.
    await enter('guarded')
    await edit('owner_note')
    await replaceText('mine')
    await page.press('Enter')
    await page.until(`/permission denied|privilege/i.test(${editor}.innerText)`)
    expect((await read('guarded/1')).owner_note).toBe('x')
  })

  test('read-only cells have no editor, and say why', PATIENT, async () => {
    await enter('cells?sort=id&expand=&select=*,other:note')
    for (const [column, reason] of [
      ['id', /part of the primary key/],
      ['twice', /the database computes/],
      ['grade', /no right/],
      ['other', /renamed columns/],
    ] as const) {
      expect(await page.evaluate(`${cell(column)}.getAttribute('aria-readonly')`)).toBe('true')
      await page.evaluate(`${cell(column)}.focus()`)
      await page.press('F2')
      await page.until(`${reason}.test(document.querySelector('#grid-hint + [role=status]').textContent)`)
      await page.click(cell(column), 2)
      expect(await page.evaluate(closed)).toBe(true)
    }
    expect(await page.evaluate(`${cell('note')}.getAttribute('aria-readonly')`)).toBe('false')
    await enter('keyless')
    await page.click(cell('note'), 2)
    await page.until(`/no primary key/.test(document.querySelector('#grid-hint + [role=status]').textContent)`)
    await enter('cells?select=note')
    await page.click(cell('note'), 2)
    await page.until(
      `/do not contain the primary key/.test(document.querySelector('#grid-hint + [role=status]').textContent)`,
    )
    // The dialog does not offer the column either.
    await enter('cells?sort=id')
    await page.evaluate(`document.querySelector('tbody td button').click()`)
    await page.until(`document.querySelector('dialog form') !== null`)
    expect(
      await page.evaluate(`['grade', 'note'].map(name => document.getElementById('column-' + name).disabled)`),
    ).toEqual([true, false])
  })

  test('a change of a foreign key is followed by the related row', PATIENT, async () => {
    const [order] = await read('orders?select=id,customer_id&limit=1')
    const [customer] = await read(`customers?select=id,name&id.neq=${order.customer_id}&limit=1`)
    await enter(`orders?id.eq=${order.id}&expand=customer(name)&select=id,customer_id,status`)
    await edit('customer_id')
    await replaceText(String(customer.id))
    await page.press('Enter')
    await page.until(`${cell('customer')}?.textContent === ${JSON.stringify(JSON.stringify({ name: customer.name }))}`)
    expect(page.complaints).toEqual([])
  })

  test('a caller of the second tenant changes only the rows of that tenant', PATIENT, async () => {
    await enter('cells?sort=id', 1)
    expect(await page.evaluate(`${cell('note')}.textContent`)).toBe('of the other tenant')
    await edit('note')
    await replaceText('mine')
    await page.press('Enter')
    await page.until(closed)
    const text: string = await page.evaluate('document.documentElement.outerHTML')
    expect(text).not.toContain('second')
    expect(page.requested.filter(url => /\/api\/cells\/[12]$/.test(url))).toEqual([])
    expect((await read('cells?sort=id&select=note')).map(({ note }: { note: string }) => note)).toEqual([
      'first',
      'second',
    ])
  })

  for (const name of ['cell', 'cell-conflict']) {
    test.each(VIEWS)(`${name}: $width px, $theme`, PATIENT, async ({ width, theme }) => {
      await page.show(width, theme)
      await enter('cells?sort=id')
      await edit('note')
      if (name === 'cell-conflict') {
        await change('cells/1', { note: 'shipped by the night shift', changed_by: 'eve' })
        await replaceText('to be shipped tomorrow')
        await page.press('Enter')
        await page.until(`document.querySelector('.conflict') !== null`)
        page.complaints.length = 0
      }
      await auditScreen(page, name, { width, theme })
    })
  }
})
