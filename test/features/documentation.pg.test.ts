/** `/documentation`: the pages of the package in the browser, and no other file. */
import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createDocumentation } from '../../src/http/documentation.ts'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, tabTo, VIEWS } from '../support/console.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { filesBelow, read } from '../tidy/tree.ts'

const PATIENT = { timeout: 60_000 }

const database = databaseFixture('')
const gateway = gatewayFixture(database, { toml: 'rate_limit_rate = 0' })
const ask = (page: string) => gateway.get(`/documentation?page=${page}`, { as: null })

const PAGES = [
  ...filesBelow('docs').filter(path => path.endsWith('.md')),
  ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md'],
]

test('the first page is the list of all pages, without a token, scripts and other hosts', async () => {
  const { status, text, headers } = await gateway.get('/documentation', { as: null })
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(text).toContain('<h1 id="documentation">Documentation</h1>')
  expect(text).toBe((await ask('docs/README.md')).text)
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none';/)
  expect(text).not.toMatch(/<script|<style| style=| on\w+=/)
  expect((await gateway.get('/documentation', { as: null, method: 'POST', body: '' })).status).toBe(405)
})

test('every page is served, and every link between them leads to a page and to a heading', PATIENT, async () => {
  const rendered = new Map<string, string>()
  for (const path of PAGES) {
    const { status, text } = await ask(path)
    expect([path, status]).toEqual([path, 200])
    rendered.set(path, text)
  }
  const links = [...rendered].flatMap(([path, text]) =>
    [...text.matchAll(/href="(?:\?page=([^"#]*))?(?:#([^"]*))?"/g)].map(([, to = path, hash]) => ({ path, to, hash })),
  )
  expect(links.length).toBeGreaterThan(500)
  const others = new Set(links.flatMap(({ to }) => (rendered.has(to) ? [] : [to])))
  for (const path of others) expect([path, (await ask(path)).status]).toEqual([path, 200])
  const dangling = links.filter(
    ({ to, hash }) => hash !== undefined && rendered.get(to)?.includes(` id="${hash}"`) === false,
  )
  expect(dangling).toEqual([])
  // The Markdown of a link or a heading that was not rendered.
  const marks = [...rendered].flatMap(([path, text]) =>
    [...text.replace(/<(pre|code)[\s\S]*?<\/\1>/g, '').matchAll(/\]\(.{0,40}|^#+ .*|\*\*.{0,20}/gm)].map(([found]) => [
      path,
      found,
    ]),
  )
  expect(marks).toEqual([])
})

test('files of other kinds are text or images', async () => {
  const caddy = await ask('docs/operations/Caddyfile')
  expect([caddy.text, caddy.headers.get('content-type')]).toEqual([
    read('docs/operations/Caddyfile'),
    'text/plain; charset=utf-8',
  ])
  const image = await ask('docs/images/live-board.webp')
  expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/webp'])
})

test.each([
  ...['package.json', 'src/errors.ts', 'docs', 'docs/', '/etc/passwd', '../README.md', 'docs/../package.json'],
  ...['docs/..%2fpackage.json', '%2e%2e/package.json', 'docs%00/README.md', 'constructor', '__proto__', ''],
  ...['file:///etc/passwd', 'http://127.0.0.1/', 'docs\\README.md', '.git/config', 'docs/guides/.hidden'],
])('%s is not a page', async page => {
  const { status, json } = await ask(page)
  expect([status, json.error.code]).toEqual([404, 'NOT_FOUND'])
})

test('a package without the folder is reported', async () => {
  const route = createDocumentation(new URL('file:///nowhere/')).get('/documentation')
  await expect(route?.answer({ headers: {}, query: '', connection: {} })).rejects.toMatchObject({
    ...{ code: 'NOT_FOUND', message: expect.stringContaining('is not installed') },
  })
  expect(readdirSync('/')).not.toContain('nowhere')
})

if (BROWSER_MISSING !== null) process.stderr.write(`documentation: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)

  test('the start page leads to it, and its links to other pages, by keyboard', PATIENT, async () => {
    await page.open(gateway.url)
    await tabTo(page, `element.textContent === 'Documentation'`)
    await page.follow(() => page.press('Enter'))
    expect(await page.evaluate('[location.pathname, document.title]')).toEqual(['/documentation', 'Documentation'])
    await tabTo(page, `element.textContent === 'Console'`)
    await page.follow(() => page.press('Enter'))
    expect(await page.evaluate('document.title')).toBe('The console')
    expect(page.complaints.filter(text => !text.includes('401'))).toEqual([])
    expect(page.requested.filter(url => !url.startsWith(gateway.url) && !url.startsWith('data:,'))).toEqual([])
  })

  test.each(VIEWS)('a page with tables, code and lists: $width px, $theme', PATIENT, async view => {
    await page.show(view.width, view.theme)
    await page.open(`${gateway.url}/documentation?page=docs/guides/console.md`)
    page.complaints.length = 0
    await auditScreen(page, 'documentation', view)
    await page.open(`${gateway.url}/documentation?page=docs/reference/reading.md`)
    await auditScreen(page, 'documentation-reference', view)
  })
})
