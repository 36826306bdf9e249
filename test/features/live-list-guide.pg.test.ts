/** The files of docs/guides/live-list.md compile with strict types, and work in a browser. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { startSvc } from '../support/process.ts'
import { sampleDatabase } from '../support/sample.ts'
import { ROOT, read } from '../tidy/tree.ts'

const WAIT_MS = 600_000
const FILES = new Map(
  [...read('docs/guides/live-list.md').matchAll(/^```tsx\n\/\/ (\S+)\n([\s\S]*?)^```/gm)].map(
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

beforeAll(async () => {
  for (const [name, code] of FILES) await writeFile(join(folder, name), code)
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  const types = startSvc(['types', '--out', join(folder, 'schema.ts')], { DATABASE_URL: database.url })
  expect(await types.exited).toEqual([0, null])
}, WAIT_MS)

const options = { jsx: 'automatic', alias: PATHS, bundle: true, target: 'es2022' } as const

test('the files compile with strict types', { timeout: WAIT_MS }, async () => {
  expect([...FILES.keys()]).toEqual(['orders.tsx', 'main.tsx'])
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

async function open() {
  const script = await build({ ...options, entryPoints: [join(folder, 'main.tsx')], write: false, format: 'esm' })
  let start = ''
  const answer = (type: string, body: () => string | Uint8Array) => async () => ({
    ...{ status: 200, headers: { 'Content-Type': type }, body: Buffer.from(body()) },
  })
  const pages = new Map([
    [
      '/list',
      answer(
        'text/html',
        () => `<!doctype html><div id="root"></div>${start}<script type="module" src="/list.js"></script>`,
      ),
    ],
    ['/list.js', answer('text/javascript', () => script.outputFiles[0]?.contents ?? '')],
  ])
  const gateway = await testGateway(database.url, { pages })
  const [tenant] = database.tenants
  const token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
  start = `<script id="start" type="application/json">${JSON.stringify({ url: gateway.url, token })}</script>`
  return { gateway, client: createClient({ url: gateway.url, token }) }
}

// Without a browser there is nothing to show the page in; a message below says so.
test.skipIf(BROWSER_MISSING !== null)('an order that is cancelled leaves the list', { timeout: WAIT_MS }, async () => {
  const { gateway, client } = await open()
  const page = await openBrowser()
  try {
    await page.open(`${gateway.url}/list`)
    await page.until(`document.querySelectorAll('li').length === 20`)
    const [first] = await client
      .from('orders')
      .where({ status: { in: ['draft', 'pending'] } })
      .orderBy('-id')
      .limit(1)
      .rows()
    const shown = `document.querySelector('li').textContent.startsWith(${JSON.stringify(`${first?.number}, `)})`
    expect(await page.evaluate(shown)).toBe(true)
    await page.evaluate(`document.querySelector('li button').click()`)
    await page.until(`!${shown}`)
    expect(await client.from('orders').get(first?.id)).toMatchObject({ status: 'cancelled' })
    expect(page.complaints.filter(text => !text.includes('404'))).toEqual([])
  } finally {
    await page.close()
    await gateway.close()
  }
})

if (BROWSER_MISSING !== null) process.stderr.write(`live-list-guide.pg.test.ts: skipped: ${BROWSER_MISSING}\n`)
