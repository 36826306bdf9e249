/** The files of docs/guides/server-rendering.md compile, and work on a server and in a browser. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type BuildOptions, build } from 'esbuild'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { startSvc } from '../support/process.ts'
import { sampleDatabase } from '../support/sample.ts'
import { ROOT, read } from '../tidy/tree.ts'

const WAIT_MS = 600_000
const PATIENT = { timeout: 60_000 }
const FILES = new Map(
  [...read('docs/guides/server-rendering.md').matchAll(/^```tsx\n\/\/ (\S+)\n([\s\S]*?)^```/gm)].map(
    ([, name = '', code = '']) => [name, code],
  ),
)
const PATHS = {
  'svc-gateway/client': join(ROOT, 'src/client/index.ts'),
  'svc-gateway/react': join(ROOT, 'src/client/react/index.ts'),
}

const database = databaseFixture(sampleDatabase)
/** Below the root, where packages are found. */
const folder = folderFixture(join(ROOT, '.cache'))
let gateway: TestGateway
let server: Server
let url = ''

beforeAll(async () => {
  for (const [name, code] of FILES) await writeFile(join(folder, name), code)
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  const types = startSvc(['types', '--out', join(folder, 'schema.ts')], { DATABASE_URL: database.url })
  expect(await types.exited).toEqual([0, null])
  const bundle = (name: string, more: BuildOptions) =>
    build({
      ...{ jsx: 'automatic', alias: PATHS, bundle: true, target: 'es2022', format: 'esm', ...more },
      ...{ entryPoints: [join(folder, `${name}.tsx`)], outfile: join(folder, `${name}.js`) },
    })
  await bundle('browser', { define: { 'process.env.NODE_ENV': '"production"' } })
  await bundle('server', { platform: 'node', external: ['react', 'react-dom'] })
  // The page has another address than the gateway.
  gateway = await testGateway(database.url, { toml: 'cors_allowed_origins = ["*"]' })
  process.env.GATEWAY_URL = gateway.url
  const module = await import(/* @vite-ignore */ pathToFileURL(join(folder, 'server.js')).href)
  server = module.server
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`
}, WAIT_MS)
afterAll(async () => {
  delete process.env.GATEWAY_URL
  server?.closeAllConnections()
  server?.close()
  await gateway?.close()
})

async function signedIn(shop: number) {
  const tenant = database.tenants[shop]
  const token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
  return { token, client: createClient({ url: gateway.url, token }) }
}

test('the files compile with strict types', { timeout: WAIT_MS }, async () => {
  expect([...FILES.keys()]).toEqual(['app.tsx', 'server.tsx', 'browser.tsx'])
  const compilerOptions = {
    ...{ jsx: 'react-jsx', lib: ['es2023', 'dom'], types: ['node'], isolatedDeclarations: false, declaration: false },
    paths: Object.fromEntries(Object.entries(PATHS).map(([name, path]) => [name, [path]])),
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

test('the server sends each caller a page with the rows of that caller', { timeout: WAIT_MS }, async () => {
  const pages = await Promise.all(
    [0, 1].map(async shop => {
      const { token, client } = await signedIn(shop)
      const rows = await client.from('orders').select('number', 'status').orderBy('-id').limit(3).rows()
      const page = await fetch(url, { headers: { Cookie: `other=1; token=${token}` } })
      expect(page.headers.get('cache-control')).toBe('no-store')
      return { html: await page.text(), items: rows.map(({ number, status }) => `<li>${number}: ${status}</li>`) }
    }),
  )
  for (const { html, items } of pages) expect(html).toContain(items.join(''))
  expect(pages[0]?.items).not.toEqual(pages[1]?.items)
})

// Without a browser there is nothing to continue the page in; a message below says so.
test.skipIf(BROWSER_MISSING !== null)(
  'the browser continues the page without a new rendering, and shows changes',
  { timeout: WAIT_MS },
  async () => {
    const { token, client } = await signedIn(0)
    const page = await openBrowser()
    try {
      await page.open(`${url}browser.js`)
      await page.evaluate(`document.cookie = 'token=${token}'`)
      await page.open(url)
      const [newest] = await client.from('orders').orderBy('-id').limit(1).rows()
      const shows = (status: string) =>
        page.until(`document.querySelector('li')?.textContent === '${newest?.number}: ${status}'`)
      await shows(newest?.status)
      // An element that React replaced would not be this one any more.
      await page.evaluate(`void (window.item = document.querySelector('li'))`)
      const next = newest?.status === 'cancelled' ? 'draft' : 'cancelled'
      // The rows are read again when the subscription has begun.
      await vi.waitFor(() => expect(page.requested.some(each => each.includes('/api/orders'))).toBe(true), PATIENT)
      await client.from('orders').update(newest?.id, { status: next })
      await shows(next)
      expect(await page.evaluate(`window.item === document.querySelector('li')`)).toBe(true)
      expect(page.complaints.filter(text => !text.includes('404'))).toEqual([])
    } finally {
      await page.close()
    }
  },
)

if (BROWSER_MISSING !== null) process.stderr.write(`server-rendering-guide.pg.test.ts: skipped: ${BROWSER_MISSING}\n`)
