/** docs/guides/console.md#explain-a-request, in a real browser. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, enterConsole, tabTo, VIEWS } from '../support/console.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 60_000 }

const ATTACK = '<img src=x onerror="window.attacked=1">'
const NAME = `"${ATTACK.replaceAll('"', '""')}"`
const HOSTILE = `
  CREATE TABLE ${NAME} (id int PRIMARY KEY, note text);
  INSERT INTO ${NAME} VALUES (1, 'x');
  ALTER TABLE ${NAME} ENABLE ROW LEVEL SECURITY;
  CREATE POLICY ${NAME} ON ${NAME} USING (note <> '<script>window.attacked=1</script>');
  GRANT SELECT ON ${NAME} TO PUBLIC;
`

const database = databaseFixture(sampleDatabase, HOSTILE)
let gateway: TestGateway
const tokens: string[] = []
let withoutScope = ''

beforeAll(async () => {
  await installed(database)
  gateway = await testGateway(database.url, { toml: '[gateway.console]\nenabled = true' })
  const scopes = ['svc:explain']
  for (const { id, userId } of database.tenants.slice(0, 2))
    tokens.push(await gateway.token({ tenantId: id, userId, role: 'clerk', scopes }))
  const [tenant] = database.tenants
  withoutScope = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
})
afterAll(() => gateway?.close())

if (BROWSER_MISSING !== null)
  process.stderr.write(`console-explain.pg.test.ts: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)
  beforeEach(async () => {
    await page.show(1280, 'light')
    page.complaints.length = 0
  })

  const addressOf = (request: string) => `#/explain?${new URLSearchParams({ request })}`
  const stages = `document.querySelectorAll('.stages > li').length`
  const outcome = (): Promise<string> => page.evaluate(`document.querySelector('#outcome').parentElement.innerText`)
  const stage = (title: string): Promise<string> =>
    page.evaluate(`[...document.querySelectorAll('.stages > li')]
      .find(one => one.querySelector('h3').textContent === ${JSON.stringify(title)}).innerText`)
  const explain = async (caller: number, request: string): Promise<void> => {
    await enterConsole(page, gateway.url, tokens[caller] ?? '', addressOf(request))
    await page.until(`${stages} === 7`)
  }

  test('a request is explained by keyboard alone', PATIENT, async () => {
    await enterConsole(page, gateway.url, tokens[0] ?? '', '#/explain')
    await page.until(`document.querySelector('#inspected') !== null`)
    await tabTo(page, `element.id === 'inspected'`)
    await page.type('/api/orders?status=paid&sort=-total&limit=5')
    await tabTo(page, `element.textContent === 'Explain' && element.type === 'submit'`)
    await page.press('Enter')
    await page.until(`${stages} === 7`)
    expect(await outcome()).toContain('The response has 5 rows.')
    expect(await stage('Caller')).toContain(database.tenants[0]?.id)
    expect(await stage('Row-level security')).toContain('current_setting')
    expect(await stage('Tree and SQL')).toContain('where status = $1')
    expect(await stage('Plan')).toMatch(/rows?, \d+ estimated/)
    expect(await stage('Times')).toContain('Database')
    expect(await page.evaluate('location.hash')).toContain('request=')
    expect(page.complaints).toEqual([])
  })

  test('a row of the other tenant is hidden, and the page contains no value of it', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const [row] = (await gateway.get('/api/customers?sort=id&limit=1', { as })).json.data
    await explain(0, `/api/customers/${row.id}`)
    expect(await outcome()).toContain('visible to you')
    expect(await stage('Row-level security')).toContain('true for this row')
    page.complaints.length = 0
    await explain(1, `/api/customers/${row.id}`)
    expect(await outcome()).toContain('row-level security hides it from you')
    expect(await stage('Row-level security')).toContain('not true for this row')
    const text: string = await page.evaluate('document.documentElement.outerHTML')
    for (const secret of [row.email, row.name, database.tenants[0]?.id]) expect(text).not.toContain(secret)
  })

  test('a write is planned, and executed and rolled back only on request', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const total = async () => (await gateway.get('/api/orders/1?select=total', { as })).json.data.total
    const before = await total()
    page.complaints.length = 0
    await explain(0, `curl -X PATCH '${gateway.url}/api/orders/1' -d '{"total": 5}'`)
    expect(await outcome()).toContain('planned and not executed')
    expect(await stage('Access policies')).toContain('Columns that the update can write: all')
    expect(await stage('Row-level security')).toContain('New versions of rows must meet')
    await page.evaluate(`[...document.querySelectorAll('button')].find(b => /roll back/.test(b.textContent)).click()`)
    await page.until(`/rolled back/.test(document.querySelector('#outcome')?.parentElement.innerText)`)
    expect(await outcome()).toContain('The response has 1 row.')
    expect(await total()).toBe(before)
    expect(page.complaints).toEqual([])
  })

  test('the request of another screen leads here', PATIENT, async () => {
    await enterConsole(page, gateway.url, tokens[0] ?? '', '#/explore/orders?status=paid&limit=3')
    await page.until(`document.querySelectorAll('tbody tr').length >= 3`)
    await page.evaluate(`[...document.querySelectorAll('a')].find(a => /Explain this/.test(a.textContent)).click()`)
    await page.until(`${stages} === 7`)
    expect(await page.evaluate(`document.getElementById('inspected').value`)).toBe(
      'GET /api/orders?status=paid&limit=3',
    )
    await enterConsole(page, gateway.url, tokens[0] ?? '', `#/query?query=${encodeURIComponent('get orders limit 2')}`)
    await page.until(`document.querySelector('.query') !== null`)
    await page.evaluate(`[...document.querySelectorAll('a')].find(a => /Explain this/.test(a.textContent)).click()`)
    await page.until(`/2 rows/.test(document.querySelector('#outcome')?.parentElement.innerText)`)
    expect(page.complaints).toEqual([])
  })

  test('each operation of a batch is explained, and has its status once the batch is sent', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const named = async (name: string): Promise<number> =>
      (await gateway.get(`/api/tags?name=${name}`, { as })).json.data.length
    const operations = [
      { id: 'tag', method: 'POST', path: '/api/tags?returning=id', body: { name: 'batched' } },
      { method: 'PATCH', path: '/api/tags/$0.data.id', body: { name: 'batched-again' } },
      { query: 'get orders limit 2' },
      { method: 'GET', path: '/api/orders?nope=1' },
    ]
    const paste = (some: readonly object[], more: object = {}) =>
      `POST /api/_batch\n\n${JSON.stringify({ operations: some, ...more })}`
    const cells = (): Promise<string[][]> =>
      page.evaluate(`[...document.querySelectorAll('tbody tr')].map(row =>
        [...row.cells].slice(2).map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()))`)
    const press = (name: string) =>
      page.evaluate(
        `[...document.querySelectorAll('button')].find(b => b.textContent === ${JSON.stringify(name)}).click()`,
      )

    await enterConsole(page, gateway.url, tokens[0] ?? '', addressOf(paste(operations)))
    await page.until(`/400 PARSE_ERROR|400 QUERY_ERROR/.test(document.querySelector('tbody')?.innerText)`)
    expect(await cells()).toEqual([
      ['Planned, not executed. Explain', ''],
      ['Uses the response of an earlier operation.', ''],
      ['2 rows. Explain', ''],
      [expect.stringMatching(/^400 \w+ Explain$/), ''],
    ])
    expect(await named('batched')).toBe(0)

    // All or nothing: the last operation fails.
    await press('Send the batch')
    await page.until(`document.querySelector('[role=alert]') !== null`)
    expect((await cells()).map(([, response]) => response)).toEqual([
      ...['Rolled back', 'Rolled back', 'Rolled back', '400'],
    ])
    expect(await named('batched-again')).toBe(0)
    page.complaints.length = 0

    await enterConsole(page, gateway.url, tokens[0] ?? '', addressOf(paste(operations, { atomic: false })))
    await page.until(`/Explain/.test(document.querySelector('tbody')?.innerText)`)
    await press('Send the batch')
    await page.until(`/The batch was executed/.test(document.body.innerText)`)
    expect((await cells()).map(([, response]) => response)).toEqual(['201', '200', '200', '400'])
    expect(await named('batched-again')).toBe(1)
    expect(page.complaints).toEqual([])

    await page.evaluate('window.scrollTo(0, 0)')
    for (const view of VIEWS) {
      await page.show(view.width, view.theme)
      await auditScreen(page, 'explain-batch', view)
    }
  })

  test('a batch with an Idempotency-Key is executed once', PATIENT, async () => {
    const as = { tenantId: database.tenants[0]?.id, userId: database.tenants[0]?.userId, role: 'clerk' }
    const operations = [{ method: 'POST', path: '/api/tags', body: { name: 'sent-once' } }]
    const request = `POST /api/_batch\nIdempotency-Key: sent-once\n\n${JSON.stringify({ operations })}`
    const press = `[...document.querySelectorAll('button')].find(b => b.textContent === 'Send the batch').click()`
    await enterConsole(page, gateway.url, tokens[0] ?? '', addressOf(request))
    await page.until(`document.getElementById('idempotency-key')?.value === 'sent-once'`)
    await page.evaluate(press)
    await page.until(`/The batch was executed/.test(document.body.innerText)`)
    await page.evaluate(press)
    await page.until(`/Replayed: nothing was executed/.test(document.body.innerText)`)
    expect((await gateway.get('/api/tags?name=sent-once', { as })).json.data).toHaveLength(1)
    expect(page.complaints).toEqual([])
  })

  test('a JSON patch is explained by its media type', PATIENT, async () => {
    const patch = [{ op: 'test', path: '/currency', value: 'EUR' }]
    const type = 'Content-Type: application/json-patch+json'
    await explain(0, `PATCH /api/orders/1\n${type}\n\n${JSON.stringify(patch)}`)
    expect(await outcome()).toContain('The write was planned')
    expect(page.complaints).toEqual([])
  })

  test('a caller without the scope reads which scope is missing', PATIENT, async () => {
    await enterConsole(page, gateway.url, withoutScope, addressOf('/api/orders'))
    await page.until(`document.querySelector('.problem') !== null`)
    expect(await page.evaluate(`document.querySelector('.problem').innerText`)).toContain('svc:explain')
    expect(await page.evaluate(stages)).toBe(0)
  })

  test('names, conditions and errors of the database are text', PATIENT, async () => {
    await explain(0, `/api/${encodeURIComponent(ATTACK)}/1`)
    const text: string = await page.evaluate('document.body.innerText')
    expect(text).toContain(ATTACK)
    expect(text).toContain('<script>window.attacked=1</script>')
    await explain(0, `/api/orders?${encodeURIComponent(ATTACK)}=1`)
    expect(await outcome()).toContain('<img src=x')
    expect(await page.evaluate('window.attacked ?? null')).toBeNull()
    expect(await page.evaluate(`document.querySelectorAll('#app img, #app script').length`)).toBe(0)
    expect(page.complaints).toEqual([])
  })

  test.each(VIEWS)('explain: $width px, $theme', PATIENT, async view => {
    await page.show(view.width, view.theme)
    await explain(0, '/api/customers/934/orders?expand=nested:order_items&sort=-total&limit=3')
    await page.evaluate('window.scrollTo(0, 0)')
    await auditScreen(page, 'explain', view)
    await page.evaluate(`document.querySelector('.plan').scrollIntoView()`)
    await auditScreen(page, 'explain-plan', view)
  })
})
