/**
 * `/console` in a real browser: every request is one of the signed-in caller, and no text of the database is
 * code.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, tabTo, VIEWS } from '../support/console.ts'
import { firstPaint } from '../support/first-paint.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 60_000 }

const ATTACK = '<img src=x onerror="window.attacked=1">'
const HOSTILE = `
  CREATE TABLE "${ATTACK.replaceAll('"', '""')}" (id int PRIMARY KEY, "<svg onload=window.attacked=1>" text);
  COMMENT ON TABLE "${ATTACK.replaceAll('"', '""')}" IS '</p><script>window.attacked=1</script>';
  INSERT INTO "${ATTACK.replaceAll('"', '""')}" VALUES (1, '"><script>window.attacked=1</script>');
  GRANT SELECT, UPDATE ON "${ATTACK.replaceAll('"', '""')}" TO PUBLIC;
  CREATE TABLE exact (id bigint PRIMARY KEY, price numeric, data jsonb, is_open boolean NOT NULL DEFAULT false);
  INSERT INTO exact VALUES (9007199254740993, 12.50, '{"a": [1.10]}');
  GRANT SELECT, UPDATE ON exact TO PUBLIC;
  CREATE TABLE unversioned
    (id int PRIMARY KEY, note text, at timestamptz, data jsonb, labels text[], deleted_at timestamptz);
  INSERT INTO unversioned VALUES (1, 'first', '2026-01-31', '{"a": 1}', '{}');
  GRANT SELECT, UPDATE, DELETE ON unversioned TO PUBLIC;
`

const database = databaseFixture(sampleDatabase, HOSTILE)
const clerk = (caller: number) => {
  const { id, userId } = database.tenants[caller] ?? {}
  return { tenantId: id, userId, role: 'clerk' }
}
let gateway: TestGateway
const tokens: string[] = []

beforeAll(async () => {
  await installed(database)
  gateway = await testGateway(database.url, {
    toml: '[gateway.console]\nenabled = true\n[gateway.tables.unversioned]\nsoft_delete = "deleted_at"',
    callers: async () => [{ title: 'a clerk', token: tokens[0] ?? '' }],
  })
  for (const { id, userId } of database.tenants.slice(0, 2))
    tokens.push(await gateway.token({ tenantId: id, userId, role: 'clerk' }))
})
afterAll(() => gateway?.close())

test('without the setting there is no console', async () => {
  const other = await testGateway(database.url)
  expect((await other.get('/console', { as: null })).status).toBe(404)
  expect((await other.get('/front/state', { as: null })).json.hasConsole).toBe(false)
  await other.close()
})

test('the page and its files allow no inline code, no evaluation and no other host', async () => {
  const page = await gateway.get('/console', { as: null })
  const files = [...page.text.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, name = '']) => name)
  expect(files).toEqual(['console/console.css', 'console/console.js'])
  for (const path of ['/console', ...files.map(name => `/${name}`)]) {
    const reply = await gateway.get(path, { as: null })
    expect([path, reply.status]).toEqual([path, 200])
    const policy = reply.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
  }
  expect(page.text).not.toMatch(/<script>|<style|style=| on\w+=/)
  expect((await gateway.get('/front/state', { as: null })).json.hasConsole).toBe(true)
})

if (BROWSER_MISSING !== null) process.stderr.write(`console.pg.test.ts: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)

  /** A new document, signed in as a caller of one of the two tenants. */
  async function enter(caller: number, address = ''): Promise<void> {
    await page.open(gateway.url)
    await page.evaluate(`sessionStorage.setItem('svc-token', ${JSON.stringify(tokens[caller])})`)
    await page.open(`${gateway.url}/console${address}`)
    await page.until(`document.querySelector('.tables a, .editor') !== null`)
  }
  const shown = (): Promise<string> => page.evaluate('document.body.innerText')
  const rowsShown = `document.querySelectorAll('.table-view > .scroll tbody tr').length`
  const column = (name: string): Promise<readonly string[]> =>
    page.evaluate(`(() => {
      const heads = [...document.querySelectorAll('.table-view > .scroll thead th')]
      const at = heads.findIndex(head => head.textContent.replace(/ [↑↓]$/, '') === ${JSON.stringify(name)})
      return [...document.querySelectorAll('.table-view > .scroll tbody tr')].map(row => row.cells[at].textContent)
    })()`)
  beforeEach(async () => {
    await page.show(1280, 'light')
    page.complaints.length = 0
    ;(page.requested as string[]).length = 0
  })

  test('a caller signs in, filters, sorts and opens a row by keyboard alone', PATIENT, async () => {
    await page.open(gateway.url)
    await page.evaluate('sessionStorage.clear()')
    await page.open(`${gateway.url}/console#/explore/orders`)
    await page.until(`document.querySelector('.sign-in .choices button') !== null`)
    await tabTo(page, `element.id === 'token'`)
    await page.type(tokens[0] ?? '')
    await page.press('Enter')
    await page.until(`${rowsShown} === 50`)
    await tabTo(page, `element.matches('.filters .grows input')`)
    await page.type('0')
    await page.press('Enter')
    await page.until(`location.hash.includes('id.eq=0') && /No row/.test(document.body.innerText)`)
    await tabTo(page, `element.matches('.chips button')`)
    await page.press('Enter')
    await page.until(`${rowsShown} === 50`)
    await tabTo(page, `element.closest('[role=grid]') !== null`)
    await page.press('ArrowUp')
    const title = () => page.evaluate('document.activeElement.textContent')
    while ((await title()) !== 'total') await page.press('ArrowRight')
    await page.press('Enter')
    await page.until(`document.querySelector('[aria-sort="ascending"]')?.textContent.startsWith('total') === true`)
    await page.until(`${rowsShown} === 50`)
    const totals = (await column('total')).map(Number)
    expect(totals).toEqual(totals.toSorted((a, b) => a - b))
    await tabTo(page, `element.matches('tbody td button')`)
    await page.press('Enter')
    await page.until(`document.querySelector('dialog[open] form') !== null`)
    expect(await page.evaluate(`document.querySelector('dialog').contains(document.activeElement)`)).toBe(true)
    await page.press('Escape')
    await page.until(`document.querySelector('dialog') === null`)
    expect(page.complaints).toEqual([])
    expect(page.requested.filter(url => !url.startsWith(gateway.url) && !url.startsWith('data:,'))).toEqual([])
  })

  test('the first paint needs the page, two files and little data', PATIENT, async () => {
    await page.open('about:blank')
    await page.open(`${gateway.url}/console`)
    await page.until(`document.querySelector('.sign-in .choices button, .tables a') !== null`)
    const painted = await firstPaint(page)
    const paths = painted.before.map(({ path }) => path)
    expect(paths).toEqual(expect.arrayContaining(['/console', '/console/console.css', '/console/console.js']))
    expect(paths.filter(path => !/^\/(console|front\/state|api\/_schema)/.test(path))).toEqual([])
    const bytes = painted.before.reduce((sum, { bytes: length }) => sum + length, 0)
    expect(bytes).toBeGreaterThan(50_000)
    expect(bytes).toBeLessThan(250_000)
    process.stderr.write(`console.pg.test.ts: the first paint took ${Math.round(painted.ms)} ms\n`)
  })

  test('pages and related rows have addresses, and the browser goes back', PATIENT, async () => {
    await enter(0, '#/explore/orders?sort=-id&expand=customer(name)&limit=3')
    await page.until(`${rowsShown} === 3`)
    const first = await column('id')
    expect((await column('customer'))[0]).toMatch(/^{"name":".+"}$/)
    await page.evaluate(`[...document.querySelectorAll('.pages a')].find(a => a.textContent === 'Next page').click()`)
    await page.until(
      `location.hash.includes('cursor=') && ${rowsShown} === 3 &&
        document.querySelector('.pages a')?.textContent === 'First page'`,
    )
    const second = await column('id')
    expect(Math.max(...second.map(Number))).toBeLessThan(Math.min(...first.map(Number)))
    await page.evaluate('history.back()')
    await page.until(`document.querySelector('.pages a')?.textContent !== 'First page' && ${rowsShown} === 3`)
    expect(await page.evaluate('location.hash')).not.toContain('cursor=')
    expect(await column('id')).toEqual(first)
    // A foreign key leads to its row.
    await page.evaluate(`[...document.querySelectorAll('tbody a')].find(a => a.hash.includes('customers')).click()`)
    await page.until(`document.getElementById('table')?.textContent === 'customers' && ${rowsShown} === 1`)
    expect(page.complaints).toEqual([])
  })

  test('rows of the other tenant and of the previous caller are nowhere in the page', PATIENT, async () => {
    const names: (readonly string[])[] = []
    for (const caller of [0, 1]) {
      await enter(caller, '#/explore/customers?sort=id')
      await page.until(`${rowsShown} === 50`)
      names.push(await column('email'))
    }
    const text: string = await page.evaluate('document.documentElement.outerHTML')
    expect(names[1]?.some(name => text.includes(name))).toBe(true)
    expect(names[0]?.filter(name => text.includes(name))).toEqual([])
    await page.evaluate(`[...document.querySelectorAll('button')].find(b => b.textContent === 'Sign out').click()`)
    await page.until(`document.querySelector('.sign-in') !== null`)
    const left: string = await page.evaluate('document.documentElement.outerHTML')
    expect(names[1]?.filter(name => left.includes(name))).toEqual([])
    expect(await page.evaluate(`sessionStorage.getItem('svc-token')`)).toBeNull()
  })

  test('a change of a row that another client has changed is rejected', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const [{ id }] = (await gateway.get('/api/orders?select=id&sort=id&limit=1', { as })).json.data
    const change = (notes: string) =>
      gateway.get(`/api/orders/${id}`, {
        ...{ as, method: 'PATCH', headers: { 'Content-Type': 'application/json' } },
        body: JSON.stringify({ notes }),
      })
    const write = (text: string) =>
      page.evaluate(`(() => {
        const [flag, field] = ['[aria-label="notes is NULL"]', '#column-notes'].map(s => document.querySelector(s))
        if (flag.checked) flag.click()
        return new Promise(resolve => setTimeout(resolve)).then(() => {
          field.value = ${JSON.stringify(text)}
          field.dispatchEvent(new Event('input', { bubbles: true }))
        })
      })()`)
    const save = `document.querySelector('dialog button[type=submit]').click()`
    expect((await change('before')).status).toBe(200)
    await enter(0, `#/explore/orders?id.eq=${id}`)
    await page.until(`${rowsShown} === 1`)
    await page.evaluate(`document.querySelector('tbody td button').click()`)
    await page.until(`document.querySelector('dialog form') !== null`)
    await write('from the console')
    await page.evaluate(save)
    await page.until(`/Saved/.test(document.querySelector('dialog').innerText)`)
    expect((await gateway.get(`/api/orders/${id}`, { as })).json.data.notes).toBe('from the console')
    expect((await change('by another client')).status).toBe(200)
    await write('too late')
    await page.evaluate(save)
    await page.until(`document.querySelector('dialog [role=alert]') !== null`)
    expect(await shown()).toContain('has changed since it was loaded')
    expect((await gateway.get(`/api/orders/${id}`, { as })).json.data.notes).toBe('by another client')
    await page.evaluate(`document.querySelector('dialog [role=alert] button').click()`)
    await page.until(`document.querySelector('#column-notes')?.value === 'by another client'`)
  })

  test('without a version, a change is rejected if the changed column has another value', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const row = async () => (await gateway.get('/api/unversioned/1', { as })).json.data
    const change = (values: object) =>
      gateway.get('/api/unversioned/1', {
        ...{ as, method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(values) },
      })
    const write = (name: string, text: string) =>
      page.evaluate(`(() => {
        const field = document.getElementById('column-${name}')
        field.value = ${JSON.stringify(text)}
        field.dispatchEvent(new Event('input', { bubbles: true }))
        return new Promise(resolve => setTimeout(resolve))
      })()`)
    const save = `document.querySelector('dialog button[type=submit]').click()`
    await enter(0, '#/explore/unversioned')
    await page.until(`${rowsShown} === 1`)
    await page.evaluate(`document.querySelector('tbody td button').click()`)
    await page.until(`document.querySelector('dialog form') !== null`)
    expect(await page.evaluate(`document.querySelector('dialog').innerText`)).toContain('no strong entity tag')
    // Another client has changed another column.
    expect((await change({ note: 'by another client' })).status).toBe(200)
    await write('data', '{"a": 2}')
    await write('at', '2026-02-01T00:00:00Z')
    await page.evaluate(save)
    await page.until(`/Saved/.test(document.querySelector('dialog').innerText)`)
    expect(await row()).toMatchObject({ note: 'by another client', data: { a: 2 } })
    expect((await change({ note: 'again' })).status).toBe(200)
    await write('note', 'too late')
    await page.evaluate(save)
    await page.until(`document.querySelector('dialog [role=alert]') !== null`)
    expect(await shown()).toContain('has changed since it was loaded')
    expect((await row()).note).toBe('again')
  })

  test('numbers keep every digit, in the grid and in a change', PATIENT, async () => {
    await enter(0, '#/explore/exact')
    await page.until(`${rowsShown} === 1`)
    expect([await column('id'), await column('price'), await column('data')]).toEqual([
      ['9007199254740993'],
      ['12.50'],
      ['{"a":[1.10]}'],
    ])
    await page.evaluate(`document.querySelector('tbody td button').click()`)
    await page.until(`document.querySelector('dialog form') !== null`)
    await page.evaluate(`(() => {
      const field = document.getElementById('column-price')
      field.value = '9007199254740993.10'
      field.dispatchEvent(new Event('input', { bubbles: true }))
      const save = document.querySelector('dialog [type=submit]')
      return new Promise(resolve => setTimeout(resolve)).then(() => save.click())
    })()`)
    await page.until(`/Saved/.test(document.querySelector('dialog').innerText)`)
    await page.press('Escape')
    await page.until(`/9007199254740993\\.10/.test(document.querySelector('.table-view > .scroll')?.innerText)`)
  })

  test('names, comments, values and errors of the database are text', PATIENT, async () => {
    await enter(0, `#/explore/${encodeURIComponent(ATTACK)}`)
    await page.until(`${rowsShown} === 1`)
    await page.evaluate(`document.querySelectorAll('details').forEach(one => { one.open = true })`)
    const text = await shown()
    for (const part of [ATTACK, '<svg onload=window.attacked=1>', '</p><script>', '"><script>']) {
      expect(text).toContain(part)
    }
    await page.evaluate(`document.querySelector('tbody td button').click()`)
    await page.until(`document.querySelector('dialog form') !== null`)
    await page.press('Escape')
    await page.evaluate(`location.hash = '#/explore/orders?' + encodeURIComponent(${JSON.stringify(ATTACK)}) + '=1'`)
    await page.until(`document.querySelector('.problem') !== null`)
    expect(await page.evaluate(`document.querySelector('.problem').innerText`)).toContain('<img src=x')
    await page.evaluate(`location.hash = '#/explore/' + encodeURIComponent('<script>window.attacked=1</script>')`)
    await page.until(`/No table "<script>/.test(document.body.innerText)`)
    for (const [query, part] of [
      [`get \`${ATTACK}\``, '"><script>'],
      [`get orders where id = '${ATTACK}'`, '<img src=x'],
    ] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/query?${new URLSearchParams({ query })}`)}`)
      await page.until(`document.querySelector('.query .main') !== null`)
      await page.evaluate(`document.querySelector('.query .main').click()`)
      const answer = `document.querySelector('.query .scroll, .query [role=alert]')?.innerText ?? ''`
      await page.until(`(${answer}).includes(${JSON.stringify(part)})`)
    }
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    expect(await page.evaluate(`document.querySelectorAll('#app img, #app script, #app svg').length`)).toBe(0)
    expect(page.complaints.filter(text => !/400 \(Bad Request\)/.test(text))).toEqual([])
  })

  const EDITOR = `document.querySelector('.editor').shadowRoot`
  const suggestions = `[...${EDITOR}.querySelectorAll('.cm-tooltip-autocomplete li')].map(li => li.textContent)`
  /** Resolves when the expression is true; the observer of `until` does not see into a shadow root. */
  const untilShown = (condition: string): Promise<void> =>
    page.evaluate(`new Promise(resolve => {
      const look = () => (${condition} ? resolve() : requestAnimationFrame(look))
      look()
    })`)

  test('a query is written with suggestions, sent by keyboard, and kept', PATIENT, async () => {
    await enter(0, '#/query?query=')
    await untilShown(`${EDITOR}?.querySelector('.cm-content') != null`)
    await page.evaluate(`${EDITOR}.querySelector('.cm-content').focus()`)
    await page.type('get cat')
    await untilShown(`${suggestions}.includes('categories')`)
    // CodeMirror accepts nothing for some milliseconds, so that a suggestion is not taken by mistake.
    await untilShown(`${EDITOR}.querySelector('li[aria-selected]') !== null`)
    await page.type('egories fields name order by name limit 2')
    await page.press('Escape')
    await tabTo(page, `element.textContent === 'Run'`)
    await page.press('Enter')
    await page.until(`document.querySelectorAll('.query .scroll tbody tr').length === 2`)
    expect(await shown()).toContain('2 rows in')
    expect(await page.evaluate(`new URLSearchParams(location.hash.split('?')[1]).get('query')`)).toBe(
      'get categories fields name order by name limit 2',
    )
    await page.evaluate(`[...document.querySelectorAll('button')].find(b => b.textContent === 'Format').click()`)
    await untilShown(`${EDITOR}.querySelectorAll('.cm-line').length === 4`)
    expect(await page.evaluate(`document.querySelector('.history').textContent`)).toContain('get categories')
    await page.evaluate(`document.querySelectorAll('details').forEach(one => { one.open = true })`)
    expect(await shown()).toContain('SELECT name FROM categories ORDER BY name LIMIT 2')
    await page.evaluate(`[...document.querySelectorAll('button')].find(b => b.textContent === 'Sign out').click()`)
    await page.until(`document.querySelector('.sign-in') !== null`)
    expect(await page.evaluate(`sessionStorage.getItem('svc-console-queries')`)).toBeNull()
    expect(page.complaints).toEqual([])
  })

  test('a query is highlighted, checked while it is typed, and taken from the history', PATIENT, async () => {
    await enter(0, `#/query?query=${encodeURIComponent("get tags where name = 'a' limit 2 -- first")}`)
    await untilShown(`${EDITOR}?.querySelector('.cm-line span') != null`)
    const colored: readonly (readonly [string, string])[] = await page.evaluate(
      `[...${EDITOR}.querySelectorAll('.cm-line span')].map(one => [one.textContent, getComputedStyle(one).color])`,
    )
    const colors = new Map(colored)
    const kinds = ['get', "'a'", '2', '-- first'].map(part => colors.get(part))
    expect([new Set(kinds).size, kinds.includes(undefined)]).toEqual([4, false])
    expect(colors.get('limit')).toBe(colors.get('get'))
    await page.evaluate(`document.querySelector('.query .main').click()`)
    await page.until(`/0 rows in/.test(document.body.innerText)`)

    // A mistake is marked while it is typed, and unmarked when it is corrected.
    await page.evaluate(`location.hash = '#/query?query='`)
    await untilShown(`${EDITOR}?.querySelector('.cm-content')?.textContent === ''`)
    await page.evaluate(`${EDITOR}.querySelector('.cm-content').focus()`)
    const marked = `[...${EDITOR}.querySelectorAll('.cm-lintRange-error, .cm-lintPoint-error')]`
    await page.type('get tags where name = limit 3')
    await untilShown(`${marked}.length === 1`)
    expect(await page.evaluate(`${marked}[0].textContent`)).toBe('limit')
    await page.evaluate(`location.hash = '#/query?query=get%20tags%20limit'`)
    await untilShown(`${EDITOR}?.querySelector('.cm-content')?.textContent === 'get tags limit'`)
    await untilShown(`${marked}.length === 1`)
    await page.evaluate(`${EDITOR}.querySelector('.cm-content').focus()`)
    await page.press('End')
    await page.type(' 3')
    await untilShown(`${marked}.length === 0`)
    await page.evaluate(`document.querySelector('.query .main').click()`)
    await page.until(`/3 rows in/.test(document.body.innerText)`)
    await page.evaluate(
      `[...document.querySelectorAll('.history button')].find(one => /-- first/.test(one.textContent)).click()`,
    )
    await untilShown(`/-- first/.test(${EDITOR}.querySelector('.cm-content').textContent)`)
    expect(page.complaints).toEqual([])
  })

  test('the same request is shown for REST, curl and TypeScript, and each of them works', PATIENT, async () => {
    const text = 'get tags fields name where id > :least limit 2'
    await enter(0, `#/query?query=${encodeURIComponent(text)}`)
    await page.until(`document.querySelector('.query textarea') !== null`)
    await page.evaluate(`(() => {
      const field = document.querySelector('.query textarea')
      field.value = '{"least": 0}'
      field.dispatchEvent(new Event('input', { bubbles: true }))
      return new Promise(resolve => setTimeout(resolve))
    })()`)
    const snippets = new Map<string, string>(
      await page.evaluate(`[...document.querySelectorAll('.snippet')].map(one =>
        [one.querySelector('h3').textContent, one.querySelector('code').textContent])`),
    )
    expect([...snippets.keys()]).toEqual(['HTTP', 'curl', 'TypeScript'])
    const [token = ''] = tokens
    expect([...snippets.values()].filter(one => one.includes(token))).toEqual([])
    const body = `{"query": "${text}", "parameters": {"least": 0}}`
    expect(snippets.get('HTTP')).toContain(`POST /api/_query HTTP/1.1\nHost: ${new URL(gateway.url).host}\n`)
    expect(snippets.get('HTTP')?.endsWith(`\n\n${body}`)).toBe(true)
    const rows = (await gateway.get('/api/tags?select=name&limit=2', { as: clerk(0) })).json.data
    const rest: string = await page.evaluate(`document.querySelector('details p code').textContent`)
    expect(rest).toBe('GET /api/tags?select=name&id.gt=0&limit=2')
    expect((await gateway.get(rest.slice(4), { as: clerk(0) })).json.data).toEqual(rows)
    const run = new Function('token', `return (async () => { ${snippets.get('TypeScript')}; return data })()`)
    expect(await run(token)).toEqual(rows)
    const env = { PATH: process.env.PATH, TOKEN: token }
    const { stdout } = await promisify(execFile)('sh', ['-c', `${snippets.get('curl')} -s`], { env })
    expect(JSON.parse(stdout).data).toEqual(rows)
  })

  test('a query with an Idempotency-Key is executed once, and the second response is a replay', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const text = "add tags fields name values 'only-once'"
    const run = `[...document.querySelectorAll('button')].find(one => one.textContent === 'Run').click()`
    const isReplayed = `/Replayed: nothing was executed/.test(document.body.innerText)`
    await enter(0, `#/query?query=${encodeURIComponent(text)}`)
    await page.until(`document.getElementById('idempotency-key') !== null`)
    await page.evaluate(`[...document.querySelectorAll('button')].find(one => one.textContent === 'New key').click()`)
    await page.until(`document.getElementById('idempotency-key').value.length === 32`)
    await page.evaluate(run)
    await page.until(`/1 row in/.test(document.body.innerText)`)
    expect(await page.evaluate(isReplayed)).toBe(false)
    const key = await page.evaluate(`document.getElementById('idempotency-key').value`)
    expect(await page.evaluate(`document.body.textContent`)).toContain(`-H 'Idempotency-Key: ${key}'`)
    await page.evaluate(run)
    await page.until(isReplayed)
    expect((await gateway.get('/api/tags?name=only-once', { as })).json.data).toHaveLength(1)
    expect(await page.evaluate('location.href')).not.toContain(key)
    expect(page.complaints).toEqual([])
  })

  test('an error is marked where it is, and a query of the other tenant’s rows finds none', PATIENT, async () => {
    await enter(1, `#/query?query=${encodeURIComponent('get orders whre id = 1')}`)
    await untilShown(`${EDITOR}?.querySelector('.cm-lintRange-error')?.textContent === 'id'`)
    await enter(1, `#/query?query=${encodeURIComponent('get orders where tenant_id = :tenant')}`)
    await page.evaluate(`(() => {
      const field = document.querySelector('.query textarea')
      field.value = JSON.stringify({ tenant: ${JSON.stringify(database.tenants[0]?.id)} })
      field.dispatchEvent(new Event('input', { bubbles: true }))
      return new Promise(resolve => setTimeout(resolve)).then(() => document.querySelector('.query .main').click())
    })()`)
    await page.until(`/0 rows in/.test(document.body.innerText)`)
  })

  test('a token that is refused leads back to the form, with the reason', PATIENT, async () => {
    await page.open(gateway.url)
    await page.evaluate(`sessionStorage.setItem('svc-token', 'nonsense')`)
    await page.open(`${gateway.url}/console`)
    await page.until(`document.querySelector('.sign-in [role=alert]') !== null`)
    expect(await page.evaluate(`document.querySelector('.sign-in [role=alert]').innerText`)).toMatch(/token/i)
  })

  const SCREENS = {
    'sign-in': ['', `document.querySelector('.sign-in .choices button') !== null`],
    tables: ['#/explore', `document.querySelector('.hint') !== null`],
    rows: ['#/explore/orders?status.in=paid,shipped&sort=-total&expand=customer', `${rowsShown} === 50`],
    query: ['#/query?query=get%20orders%20whre', `document.querySelector('.editor') !== null`],
    row: ['#/explore/orders?limit=1', `${rowsShown} === 1`],
  } as const

  for (const [name, [address, isReady]] of Object.entries(SCREENS)) {
    test.each(VIEWS)(`${name}: $width px, $theme`, PATIENT, async ({ width, theme }) => {
      await page.show(width, theme)
      if (name === 'sign-in') {
        await page.open(gateway.url)
        await page.evaluate('sessionStorage.clear()')
        await page.open(`${gateway.url}/console`)
      } else await enter(0, address)
      await page.until(isReady)
      if (name === 'rows') await page.evaluate(`document.querySelector('main details').open = true`)
      if (name === 'row') {
        await page.evaluate(`document.querySelector('tbody td button').click()`)
        await page.until(`document.querySelector('dialog form') !== null`)
      }
      await auditScreen(page, name, { width, theme })
    })
  }
})
