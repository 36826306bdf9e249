/** `/` in a browser. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen } from '../support/console.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { ATTACK, HOSTILE_TABLE } from '../support/hostile.ts'
import { privateServer } from '../support/postgres.ts'
import { sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'

const HTML = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const PATIENT = { timeout: 60_000 }

const database = databaseFixture(sampleDatabase)
const hostile = databaseFixture(HOSTILE_TABLE)
const empty = databaseFixture('')
let gateway: TestGateway
let token = ''

beforeAll(async () => {
  gateway = await testGateway(database.url, {
    callers: async ({ host }) => (host === undefined ? [] : [{ title: 'a clerk <b>of</b> a shop', token }]),
  })
  const [tenant] = database.tenants
  token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
})
afterAll(() => gateway?.close())

test('a browser receives a page, other clients the error of a path without a route', async () => {
  const page = await gateway.get('/', { as: null, headers: HTML })
  expect([page.status, page.text]).toEqual([200, read('src/http/front/page.html')])
  expect(page.headers.get('vary')).toBe('Accept, Accept-Encoding')
  for (const [, name] of page.text.matchAll(/(?:src|href)="(front\/[^"]+)"/g)) {
    expect((await gateway.get(`/${name}`, { as: null })).status).toBe(200)
  }
  for (const headers of [{}, { Accept: 'application/json' }, { Accept: '*/*' }]) {
    const other = await gateway.get('/', { as: null, headers })
    expect([other.status, other.json.error.code]).toEqual([404, 'NOT_FOUND'])
  }
  const post = await gateway.get('/', { as: null, headers: HTML, method: 'POST', body: '' })
  expect(post.status).toBe(404)
})

test('the page of a gateway outside the demo offers no callers', async () => {
  const other = await testGateway(database.url, { toml: 'require_auth = false' })
  const state = await other.get('/front/state', { as: null })
  expect(state.json).toEqual({ requiresToken: false, hasConsole: false, callers: [] })
  await other.close()
})

if (BROWSER_MISSING !== null) process.stderr.write(`front.pg.test.ts: the page is not opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)
  const text = (id: string) => page.evaluate(`document.getElementById('${id}').textContent`)

  test('a visitor sees the state of the gateway, enters as a sample caller, and leaves', PATIENT, async () => {
    await page.open(gateway.url)
    await page.until(`document.querySelector('#callers button') !== null`)
    await page.until(`document.getElementById('health').dataset.state === 'good'`)
    expect(await text('health')).toMatch(/^Version \d+\.\d+\.\d+.*, healthy$/)
    expect(await page.evaluate(`document.querySelector('.lead').innerText`)).toContain('PostgreSQL database')
    expect(await text('token-state')).toContain('need a token')
    expect(await page.evaluate(`document.querySelector('details pre').textContent`)).toMatch(/^svc token /)
    expect(await page.evaluate(`document.querySelector('#callers button').textContent`)).toBe(
      'Enter as a clerk <b>of</b> a shop',
    )
    await page.evaluate(`document.querySelector('#callers button').click()`)
    await page.until(`!document.getElementById('tables').hidden`)
    expect(await page.evaluate(`[...document.querySelectorAll('.names li')].map(item => item.textContent)`)).toContain(
      'orders',
    )
    await page.evaluate(`document.getElementById('forget').click()`)
    await page.until(`document.getElementById('tables').hidden`)
    expect(await page.evaluate(`window.sessionStorage.getItem('svc-token')`)).toBeNull()
    expect(page.complaints).toEqual([])
  })

  test(
    'links lead to the console, the reference, the OpenAPI document, the documentation and health',
    PATIENT,
    async () => {
      const other = await testGateway(database.url, { toml: '[gateway.console]\nenabled = true' })
      await page.open(other.url)
      await page.until(`!document.getElementById('console').hidden`)
      const links: readonly string[] = await page.evaluate(
        `[...document.querySelectorAll('.links li:not([hidden]) a')].map(link => link.getAttribute('href'))`,
      )
      expect(links).toEqual(['console', 'docs', 'api/_openapi', 'documentation', 'health'])
      for (const link of links) {
        const { status } = await other.get(`/${link}`, { as: link.startsWith('api/') ? {} : null })
        expect([link, status]).toEqual([link, 200])
      }
      await other.close()
    },
  )

  test('an empty database is explained', PATIENT, async () => {
    const other = await testGateway(empty.url, { toml: 'require_auth = false' })
    await page.open(other.url)
    await page.until(`!document.getElementById('tables').hidden`)
    expect(await text('tables-state')).toContain('the database is empty, or its tables are not granted')
    expect(await text('token-state')).toBe('Requests need no token here.')
    expect(page.complaints).toEqual([])
    await other.close()
  })

  test('a gateway without its database, and one that has stopped, are explained', PATIENT, async () => {
    const own = await privateServer()
    const other = await testGateway(own.url, { toml: 'require_auth = false' })
    await own.stop()
    await page.open(other.url)
    await page.until(`document.getElementById('health').dataset.state === 'bad'`)
    expect(await text('health')).toBe('The gateway has no connection to its database.')
    await page.open(other.url)
    await page.until(`document.getElementById('health').dataset.state === 'bad'`)
    await other.close()
    await page.evaluate('showHealth()')
    expect(await text('health')).toBe('The gateway does not answer.')
    page.complaints.length = 0
    await own.close()
  })

  test('a token that is refused is explained', PATIENT, async () => {
    await page.open(gateway.url)
    await page.evaluate(`document.getElementById('token').value = 'nonsense'`)
    await page.evaluate(`document.querySelector('form').requestSubmit()`)
    await page.until(`!/^$|need a token/.test(document.getElementById('token-state').textContent)`)
    expect(await text('token-state')).toMatch(/JWT|token/)
    await page.evaluate(`window.sessionStorage.clear()`)
    page.complaints.length = 0
  })

  test('names of tables are text, and an error is', PATIENT, async () => {
    const other = await testGateway(hostile.url)
    await page.open(other.url)
    const as = await other.token({ tenantId: 't1' })
    await page.evaluate(`sessionStorage.setItem('svc-token', ${JSON.stringify(as)})`)
    await page.open(other.url)
    await page.until(`document.querySelector('.names li')?.textContent === ${JSON.stringify(ATTACK)}`)
    expect(await page.evaluate(`[window.attacked ?? null, document.querySelectorAll('main img').length]`)).toEqual([
      null,
      0,
    ])
    expect(page.complaints).toEqual([])
    await page.evaluate('sessionStorage.clear()')
    await other.close()
  })

  test('the OpenAPI document of the caller is a download', PATIENT, async () => {
    await page.open(gateway.url)
    await page.evaluate(`sessionStorage.setItem('svc-token', ${JSON.stringify(token)})`)
    await page.open(gateway.url)
    const { name, text: saved } = await page.download(() => page.evaluate(`document.getElementById('openapi').click()`))
    expect(name).toBe('openapi.json')
    expect(Object.keys(JSON.parse(saved).paths)).toContain('/api/orders')
    expect(page.complaints).toEqual([])
    await page.evaluate('sessionStorage.clear()')
    await page.open(gateway.url)
    await page.evaluate(`document.getElementById('openapi').click()`)
    await page.until(`/token/.test(document.getElementById('openapi-state').textContent)`)
    page.complaints.length = 0
  })

  const sizes = [360, 768, 1920].flatMap(width => (['light', 'dark'] as const).map(theme => ({ width, theme })))
  test.each(sizes)('the page fits a window of $width px, $theme', PATIENT, async ({ width, theme }) => {
    await page.show(width, theme)
    await page.open(gateway.url)
    await page.until(`document.querySelector('#callers button') !== null`)
    const [red = 0] = await page.evaluate(`getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)`)
    expect(red > 127).toBe(theme === 'light')
    await auditScreen(page, 'front', { width, theme })
  })
})
