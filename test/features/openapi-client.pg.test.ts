/**
 * The generated client of docs/guides/openapi.md compiles with strict types, rejects what the API would
 * reject, and works.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { sampleDatabase } from '../support/sample.ts'
import { ROOT, read } from '../tidy/tree.ts'

const run = promisify(execFile)
const CLIENT = /^```ts\n([\s\S]*?)^```/m.exec(read('docs/guides/openapi.md'))?.[1] ?? ''
const WAIT_MS = 180_000

const database = databaseFixture(sampleDatabase)
const gateway = gatewayFixture(database)
/** A folder below the root, where packages are found. */
const folder = folderFixture(join(ROOT, '.cache'))
let token: string

beforeAll(async () => {
  const [tenant] = database.tenants
  const claims = { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' }
  token = await gateway.token(claims)
  await writeFile(join(folder, 'openapi.json'), (await gateway.get('/api/_openapi', { as: claims })).text)
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  const generator = join(ROOT, 'node_modules/openapi-typescript/bin/cli.js')
  await run(process.execPath, [
    ...['--import', join(ROOT, 'test/support/typescript-classic.js'), generator, join(folder, 'openapi.json')],
    ...['-o', join(folder, 'schema.d.ts'), '--default-non-nullable=false'],
  ])
}, WAIT_MS)

const COMPILER_OPTIONS = {
  ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true },
  ...{ module: 'nodenext', target: 'es2022', types: ['node'], allowImportingTsExtensions: true },
  rewriteRelativeImportExtensions: true,
}

/** The compiler's messages; empty if the code compiles. */
async function compile(name: string, source: string): Promise<string> {
  await writeFile(join(folder, `${name}.ts`), source)
  const config = { compilerOptions: COMPILER_OPTIONS, files: [`${name}.ts`] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  try {
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder])
    return ''
  } catch (error) {
    return (error as { readonly stdout: string }).stdout
  }
}

const INCREMENT = `
const stock = await api.PATCH('/api/products/{id}', { params: { path: { id: 1 } }, body: { stock: { $inc: 1 } } })
console.log(typeof stock.data?.data.stock)
`

test('compiles with strict types and works as described', { timeout: WAIT_MS }, async () => {
  expect(CLIENT).toContain('createClient')
  expect(await compile('client', CLIENT + INCREMENT)).toBe('')
  const env = { ...process.env, URL: gateway.url, TOKEN: token }
  const { stdout } = await run(process.execPath, [join(folder, 'client.js')], { env })
  const lines = stdout.trimEnd().split('\n')
  expect(lines).toHaveLength(9)
  for (const order of lines.slice(0, 5)) expect(order).toMatch(/^\S+ (paid|shipped) \D.* [1-9]\d*$/)
  expect(lines.slice(5)).toEqual(['from the client, changed', '204', '3 number', 'number'])
})

test('does not compile with names and values that the API would reject', { timeout: WAIT_MS }, async () => {
  const slips = [
    ["sort: ['-placed_at']", "sort: ['-placed']"],
    ["'nested:order_items']", "'order_items']"],
    ["{ name: 'from the client' }", "{ title: 'from the client' }"],
    ['path: { id } }, body', "path: { id: 'x' } }, body"],
    ['query: { top: 3 }', "query: { top: 'three' }"],
  ] as const
  const source = slips.reduce((text, [right, wrong]) => text.replace(right, wrong), CLIENT)
  const said = await compile('slips', source)
  const lines = source
    .split('\n')
    .flatMap((line, index) => (slips.some(([, wrong]) => line.includes(wrong)) ? [index + 1] : []))
  expect(lines).toHaveLength(slips.length)
  for (const line of lines) expect(said).toContain(`slips.ts(${line},`)
})
