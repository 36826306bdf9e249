/** `/docs`: the API reference in the browser, with the caller's own token and no external resources. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDocs } from '../../src/http/docs.ts'
import { BROWSER_MISSING, openBrowser, type Page } from '../support/browser.ts'
import { auditScreen, VIEWS } from '../support/console.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { HOSTILE_TABLE } from '../support/hostile.ts'
import { sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'

const database = databaseFixture(sampleDatabase)
const hostile = databaseFixture(HOSTILE_TABLE)
let token: string

const gateway = gatewayFixture(database, {
  toml: '[gateway.openapi]\ntitle = "Shop <b>API</b>"\ndescription = "Everything about orders."',
  callers: async () => [{ title: 'a clerk', token }],
})
beforeAll(async () => {
  const [tenant] = database.tenants
  token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
})

describe('the files of /docs', () => {
  test('need no token, forbid external resources, and are served plain or compressed', async () => {
    const page = await gateway.get('/docs', { as: null })
    expect(page.status).toBe(200)
    expect(page.text).toBe(read('src/http/docs/page.html'))
    expect(page.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self';/,
    )
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    expect(page.headers.get('content-encoding')).toBe('gzip')
    const plain = await gateway.get('/docs', { as: null, headers: { 'Accept-Encoding': 'identity' } })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.text).toBe(page.text)
  })

  test('are all present with their content types', async () => {
    const types = { '.js': 'text/javascript', '.css': 'text/css' }
    const names = [...read('src/http/docs/page.html').matchAll(/(?:src|href)="(docs\/[^"]+?(\.\w+))"/g)]
    expect(names).toHaveLength(4)
    for (const [, name, ending] of names) {
      const { status, headers } = await gateway.get(`/${name}`, { as: null })
      expect([status, headers.get('content-type')]).toEqual([200, `${types[ending as '.js']}; charset=utf-8`])
    }
    const other = await gateway.get('/docs/other.js', { as: null })
    expect(other.status).toBe(404)
    const slash = await fetch(`${gateway.url}/docs/`, { redirect: 'manual' })
    expect([slash.status, slash.headers.get('location')]).toEqual([308, '../docs'])
    expect((await gateway.get('/docs', { as: null, method: 'POST', body: '' })).status).toBe(405)
  })

  test('are reported as missing if they were not built', async () => {
    const answer = createDocs({ tokens: null, folder: new URL('file:///nowhere/') }).get('/docs')
    await expect(answer?.({})).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('npm run build'),
    })
  })
})

describe('the explanation of a token', () => {
  const development = gatewayFixture(database, { environment: { SVC_DEV_MODE: 'true' } })
  const explained = (from: TestGateway, Authorization: string) =>
    from.get('/docs/token', { as: null, headers: { Authorization } })

  test('is sent in development mode', async () => {
    const good = await explained(development, `Bearer ${token}`)
    expect([good.status, good.headers.get('content-type'), good.headers.get('cache-control')]).toEqual([
      200,
      'text/plain; charset=utf-8',
      'no-store',
    ])
    expect(good.text).toMatch(/^ok {7}form: three parts; alg HS256[\s\S]*\naccepted, with the session settings\n/)
    expect(good.text).toContain(`  app.current_tenant_id = "${database.tenants[0]?.id}"\n`)
    expect((await explained(development, `Bearer ${token.slice(0, -4)}AAAA`)).text).toMatch(
      /\nrefused {2}the token was refused: its signature does not match\n$/,
    )
    expect((await development.get('/docs/token', { as: null })).status).toBe(401)
    const foreign = { Authorization: `Bearer ${token}`, Origin: 'https://evil.example' }
    expect((await development.get('/docs/token', { as: null, headers: foreign })).status).toBe(403)
  })

  test('is not sent otherwise', async () => {
    const { status, text } = await explained(gateway, `Bearer ${token}`)
    expect([status, text]).toEqual([204, ''])
  })

  // Without a browser there is nothing to open it in; a message below says so.
  test.skipIf(BROWSER_MISSING !== null)('is shown by the page', { timeout: 180_000 }, async () => {
    const page = await openBrowser()
    const enter = async (text: string) => {
      await page.evaluate(`document.getElementById('token').value = ${JSON.stringify(text)}`)
      await page.evaluate(`document.getElementById('caller').requestSubmit()`)
    }
    const checks = `document.getElementById('checks').textContent`
    const shown = (text: string) =>
      page.until(`!document.getElementById('explanation').hidden && ${checks}.includes(${JSON.stringify(text)})`)
    try {
      await page.open(`${development.url}/docs`)
      await enter(token)
      await shown('accepted, with the session settings')
      await enter('nonsense')
      await shown('refused  the token was refused: it does not consist of three base64url parts')
      await page.evaluate(`document.getElementById('forget').click()`)
      await page.until(`document.getElementById('explanation').hidden`)
    } finally {
      await page.close()
    }
  })
})

const LIST_OF_TAGS = `document.querySelector('#operations-tags-list-tags')`

/** Unfolds the operation that lists tags, and sends its request. */
async function sendListOfTags(page: Page): Promise<void> {
  await page.evaluate(`document.querySelector('#operations-tag-tags').click()`)
  await page.until(`${LIST_OF_TAGS} !== null`)
  await page.evaluate(`${LIST_OF_TAGS}.querySelector('.opblock-summary-control').click()`)
  await page.until(`${LIST_OF_TAGS}.querySelector('.try-out__btn') !== null`)
  await page.evaluate(`${LIST_OF_TAGS}.querySelector('.try-out__btn').click()`)
  await page.until(`${LIST_OF_TAGS}.querySelector('.execute') !== null`)
  await page.evaluate(`${LIST_OF_TAGS}.querySelector('.execute').click()`)
}

if (BROWSER_MISSING !== null) process.stderr.write(`docs.pg.test.ts: the page is not opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  let page: Page
  beforeAll(async () => {
    page = await openBrowser()
  }, 120_000)
  afterAll(() => page?.close())

  test('shows the document for the token entered, and sends requests with it', { timeout: 180_000 }, async () => {
    await page.open(`${gateway.url}/docs`)
    await page.until(
      `!document.getElementById('welcome').hidden && document.getElementById('message').textContent !== ''`,
    )
    // Without a token the document request is rejected, and the browser logs that.
    expect(page.complaints.splice(0)).toEqual([expect.stringContaining('401')])

    await page.evaluate(`document.getElementById('token').value = ${JSON.stringify(token)}`)
    await page.evaluate(`document.getElementById('caller').requestSubmit()`)
    await page.until(`document.querySelector('#operations-tag-orders') !== null`)
    const tags = await page.evaluate(`[...document.querySelectorAll('.opblock-tag')].map(tag => tag.dataset.tag)`)
    expect(tags).toEqual(expect.arrayContaining(['orders', 'monthly_sales', 'functions', 'gateway']))

    await sendListOfTags(page)
    await page.until(`${LIST_OF_TAGS}.querySelector('.live-responses-table tbody .response-col_status') !== null`)
    const status = await page.evaluate(
      `${LIST_OF_TAGS}.querySelector('.live-responses-table tbody .response-col_status').textContent`,
    )
    const body = await page.evaluate(
      `${LIST_OF_TAGS}.querySelector('.live-responses-table .highlight-code').textContent`,
    )
    expect(status).toContain('200')
    expect(body).toContain('next_cursor')

    expect(page.complaints).toEqual([])
    expect(page.requested.filter(url => !url.startsWith(gateway.url) && !url.startsWith('data:'))).toEqual([])
  })

  const openSignedIn = async (): Promise<void> => {
    await page.open(gateway.url)
    await page.evaluate(`sessionStorage.setItem('svc-token', ${JSON.stringify(token)})`)
    await page.open(`${gateway.url}/docs`)
    await page.until(`document.querySelector('#operations-tag-orders') !== null`)
  }

  test('has the title of the configuration, one token control, and folds shared parameters', {
    timeout: 60_000,
  }, async () => {
    await openSignedIn()
    expect(await page.evaluate(`[document.title, document.getElementById('title').textContent]`)).toEqual([
      'Shop <b>API</b>',
      'Shop <b>API</b>',
    ])
    expect(await page.evaluate(`document.getElementById('reference').innerText`)).toContain('Everything about orders.')
    expect(await page.evaluate(`document.querySelectorAll('.authorize, .authorization__btn').length`)).toBe(0)
    await page.evaluate(`document.querySelector('#operations-tag-tags').click()`)
    await page.until(`document.querySelector('#operations-tags-list-tags') !== null`)
    await page.evaluate(`document.querySelector('#operations-tags-list-tags .opblock-summary-control').click()`)
    await page.until(`document.querySelector('tr[data-param-name="limit"]') !== null`)
    const height = (name: string) =>
      page.evaluate(`document.querySelector('tr[data-param-name="${name}"]').getBoundingClientRect().height`)
    expect([await height('limit'), await height('sort')]).toEqual([0, 0])
    await page.evaluate(`document.getElementById('folded').click()`)
    expect(await height('limit')).toBeGreaterThan(0)
    await page.evaluate(`document.getElementById('folded').click()`)
    expect(page.complaints).toEqual([])
  })

  test('shows samples for curl, TypeScript and Python, without the token', { timeout: 60_000 }, async () => {
    await openSignedIn()
    await sendListOfTags(page)
    await page.until(`${LIST_OF_TAGS}.querySelector('.request-snippets') !== null`)
    for (const [title, part] of [
      ['curl', '$TOKEN'],
      ['TypeScript', 'client.from("tags")'],
      ['Python', 'requests.request('],
    ] as const) {
      await page.evaluate(`[...${LIST_OF_TAGS}.querySelectorAll('.request-snippets .btn, .request-snippets h4')]
        .find(one => one.textContent === ${JSON.stringify(title)}).click()`)
      await page.until(`${LIST_OF_TAGS}.querySelector('.request-snippets').innerText.includes(${JSON.stringify(part)})`)
      expect(await page.evaluate(`${LIST_OF_TAGS}.querySelector('.request-snippets').innerText`)).not.toContain(token)
    }
    expect(page.complaints).toEqual([])
  })

  test('a visitor signs in as a sample caller, and signs out', { timeout: 60_000 }, async () => {
    await page.open(gateway.url)
    await page.evaluate('sessionStorage.clear()')
    await page.open(`${gateway.url}/docs`)
    await page.until(`!document.getElementById('welcome').hidden`)
    await page.until(`document.querySelector('#callers button') !== null`)
    expect(await page.evaluate(`document.querySelector('#callers button').textContent`)).toBe('Enter as a clerk')
    await page.evaluate(`document.querySelector('#callers button').click()`)
    await page.until(`document.querySelector('#operations-tag-orders') !== null`)
    await page.evaluate(`document.getElementById('forget').click()`)
    await page.until(`!document.getElementById('welcome').hidden`)
    page.complaints.length = 0
  })

  test('names, comments, defaults and values of the database are text', { timeout: 120_000 }, async () => {
    const other = await testGateway(hostile.url)
    await page.open(other.url)
    const as = await other.token({ tenantId: 't1' })
    await page.evaluate(`sessionStorage.setItem('svc-token', ${JSON.stringify(as)})`)
    await page.open(`${other.url}/docs`)
    await page.until(`document.querySelector('.opblock-tag') !== null`)
    await page.evaluate(
      `[...document.querySelectorAll('.opblock-tag[data-is-open=false]')].forEach(one => one.click())`,
    )
    await page.until(`document.querySelector('.opblock-get .opblock-summary-control') !== null`)
    const operation = `[...document.querySelectorAll('.opblock-get')].find(one => one.innerText.includes('onerror'))`
    await page.until(`${operation} !== undefined`)
    await page.evaluate(`${operation}.querySelector('.opblock-summary-control').click()`)
    await page.until(`${operation}.querySelector('.try-out__btn') !== null`)
    await page.evaluate(`${operation}.querySelector('.try-out__btn').click()`)
    await page.until(`${operation}.querySelector('.execute') !== null`)
    await page.evaluate(`${operation}.querySelector('.execute').click()`)
    await page.until(`${operation}.querySelector('.live-responses-table .highlight-code') !== null`)
    expect(await page.evaluate(`${operation}.querySelector('.live-responses-table').innerText`)).toContain('</script>')
    const code = `#reference :is(img, script, iframe, [onload], [onerror], a[href^="javascript:"])`
    expect(await page.evaluate(`[window.attacked ?? null, document.querySelectorAll('${code}').length]`)).toEqual([
      null,
      0,
    ])
    expect(await page.evaluate(`${operation}.closest('.opblock-tag-section').innerText`)).toContain('<svg onload')
    // Not even a parser of Swagger UI has seen a tag.
    expect(page.complaints).toEqual([])
    expect(page.requested.filter(url => url.includes('attacker'))).toEqual([])
    await page.evaluate('sessionStorage.clear()')
    await other.close()
  })

  test.each(VIEWS)('an operation that was sent: $width px, $theme', { timeout: 120_000 }, async view => {
    await page.show(view.width, view.theme)
    await openSignedIn()
    await sendListOfTags(page)
    await page.until(`${LIST_OF_TAGS}.querySelector('.live-responses-table .microlight') !== null`)
    const [red = 0] = await page.evaluate(`getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)`)
    expect(red > 127).toBe(view.theme === 'light')
    await auditScreen(page, 'docs', view)
  })

  test.each(VIEWS)('the sign-in: $width px, $theme', { timeout: 60_000 }, async view => {
    await page.show(view.width, view.theme)
    await page.open(gateway.url)
    await page.evaluate('sessionStorage.clear()')
    await page.open(`${gateway.url}/docs`)
    await page.until(`document.querySelector('#callers button') !== null`)
    // The browser logs the request without a token.
    page.complaints.length = 0
    await auditScreen(page, 'docs-sign-in', view)
  })
})
