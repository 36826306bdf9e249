/** The files of docs/guides/offline-first.md compile, and work while the gateway is stopped. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { beforeAll, expect, test, vi } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { clientFixture, databaseFixture, fixture, folderFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { startSvc } from '../support/process.ts'
import { sampleDatabase } from '../support/sample.ts'
import { ROOT, read } from '../tidy/tree.ts'

const WAIT_MS = 600_000
const PATIENT = { timeout: 60_000 }
const GUIDE = read('docs/guides/offline-first.md')
const FILES = new Map(
  [...GUIDE.matchAll(/^```tsx?\n\/\/ (\S+)\n([\s\S]*?)^```/gm)].map(([, name = '', code = '']) => [name, code]),
)
const [, FUNCTION = ''] = /^```sql\n([\s\S]*?)^```/m.exec(GUIDE) ?? []
const CLIENT = join(ROOT, 'src/client/index.ts')

const database = databaseFixture(sampleDatabase)
const admin = clientFixture(() => database.adminUrl)
/** Below the root, where packages are found. */
const folder = folderFixture(join(ROOT, '.cache'))

beforeAll(async () => {
  await execute(database.adminUrl, FUNCTION)
  await installed(database)
  for (const [name, code] of FILES) await writeFile(join(folder, name), code)
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  const types = startSvc(['types', '--out', join(folder, 'schema.ts')], { DATABASE_URL: database.url })
  expect(await types.exited).toEqual([0, null])
}, WAIT_MS)

test('the files compile with strict types', { timeout: WAIT_MS }, async () => {
  expect([...FILES.keys()]).toEqual(['rows.ts', 'outbox.ts', 'orders.ts', 'main.tsx'])
  const compilerOptions = {
    ...{ jsx: 'react-jsx', lib: ['es2023', 'dom'], types: [], isolatedDeclarations: false, declaration: false },
    ...{ paths: { 'svc-gateway/client': [CLIENT] }, skipLibCheck: true },
  }
  const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, files: [...FILES.keys()], include: [] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const output = await promisify(execFile)(process.execPath, [compiler, '-p', folder, '--noEmit']).then(
    () => '',
    (error: { readonly stdout: string }) => error.stdout,
  )
  expect(output).toBe('')
})

/** Serves the page. Its files do not come from the gateway, so it opens while the gateway is stopped. */
const site = fixture(
  async () => {
    const start = {}
    const { outputFiles } = await build({
      ...{ entryPoints: [join(folder, 'main.tsx')], bundle: true, write: false, format: 'esm', target: 'es2022' },
      ...{ jsx: 'automatic', alias: { 'svc-gateway/client': CLIENT } },
      define: { 'process.env.NODE_ENV': '"production"' },
    })
    const server = createServer((request, response) => {
      const isScript = request.url === '/main.js'
      response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
      if (isScript) response.end(outputFiles[0]?.contents)
      else {
        response.end(`<!doctype html><link rel="icon" href="data:,"><div id="root"></div>
          <script id="start" type="application/json">${JSON.stringify(start)}</script>
          <script type="module" src="/main.js"></script>`)
      }
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    return { url: `http://127.0.0.1:${port}`, server, start: (values: object) => Object.assign(start, values) }
  },
  async ({ server }) => {
    server.closeAllConnections()
    server.close()
  },
)

// Without a browser there is nothing to show the page in; a message below says so.
test.skipIf(BROWSER_MISSING !== null)(
  'a page shows and changes orders while the gateway is stopped, and sends each change once afterwards',
  { timeout: WAIT_MS },
  async () => {
    const toml = `cors_allowed_origins = ["${site.url}"]\n[shapes]\nenabled = true\nlong_poll_ms = 1000`
    const open = (port: number) => testGateway(database.url, { toml, environment: { SVC_BIND: `127.0.0.1:${port}` } })
    let gateway = await open(0)
    const port = Number(new URL(gateway.url).port)
    const [tenant] = database.tenants
    const token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
    site.start({ url: gateway.url, token })
    const openOrders = async () => {
      const { rows } = await admin.query(
        `select id, number, status::text from orders where tenant_id = $1 and status in ('pending', 'paid')
          order by id desc limit 5`,
        [tenant?.id],
      )
      return rows.map(({ number, status }) => `${number}: ${status} Ship`)
    }
    const [first, second, third] = (await openOrders()).map(line => line.split(':')[0] ?? '')
    const statusOf = async (number = '') =>
      (await admin.query(`select status::text from orders where tenant_id = $1 and number = $2`, [tenant?.id, number]))
        .rows[0].status
    const page = await openBrowser()
    const shows = (...texts: readonly string[]) =>
      page.until(
        `JSON.stringify([...document.querySelectorAll('li')].map(one => one.textContent))
          === ${JSON.stringify(JSON.stringify(texts))}`,
      )
    const shown = (number = '') =>
      `[...document.querySelectorAll('li')].find(one => one.textContent.startsWith('${number}:'))`
    const ship = (number = '') => page.evaluate(`${shown(number)}.querySelector('button').click()`)
    const isShipped = (number = '') => page.until(`${shown(number)}?.textContent === '${number}: shipped Ship'`)
    const stored = () => page.evaluate(`JSON.parse(localStorage.getItem('writes') ?? '[]').length`)
    try {
      await page.open(site.url)
      await shows(...(await openOrders()))
      await ship(first)
      await page.until(`${shown(first)} === undefined`)
      expect(await statusOf(first)).toBe('shipped')
      await shows(...(await openOrders()))
      // The rows are stored a moment after they have changed.
      await vi.waitFor(async () => {
        const rows = await page.evaluate(`localStorage.getItem('rows') ?? ''`)
        expect([rows.includes(second), rows.includes(first)]).toEqual([true, false])
      }, PATIENT)

      await gateway.close()
      await ship(second)
      await isShipped(second)
      await page.open(site.url)
      await isShipped(second)
      await ship(third)
      await isShipped(third)
      expect([await stored(), await statusOf(second), await statusOf(third)]).toEqual([
        2,
        expect.stringMatching(/pending|paid/),
        expect.stringMatching(/pending|paid/),
      ])

      await admin.query(`update orders set status = 'paid' where tenant_id = $1 and status = 'pending'`, [tenant?.id])
      const before = page.requested.length
      gateway = await open(port)
      await page.until(`${shown(second)} === undefined && ${shown(third)} === undefined`)
      await shows(...(await openOrders()))
      expect([await statusOf(second), await statusOf(third), await stored()]).toEqual(['shipped', 'shipped', 0])
      const { rows } = await admin.query(`select count(*)::int from svc.idempotency_key`)
      expect(rows[0].count).toBe(3)
      // The shape continued from its stored position.
      const offsets = page.requested.slice(before).flatMap(url => new URL(url).searchParams.get('offset') ?? [])
      expect(offsets.length).toBeGreaterThan(0)
      expect(offsets).not.toContain('-1')
    } finally {
      await page.close()
      await gateway.close()
    }
  },
)

if (BROWSER_MISSING !== null) process.stderr.write(`offline-guide.pg.test.ts: skipped: ${BROWSER_MISSING}\n`)
