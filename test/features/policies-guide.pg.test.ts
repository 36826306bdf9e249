/** docs/guides/access-policies.md: its policies load, and answer what its tables say. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { fileNamed } from '../support/page.ts'
import { type SampleDatabase, sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/access-policies.md')

interface Row {
  readonly role: string
  readonly scopes: readonly string[]
  readonly method: string
  readonly path: string
  readonly status: number
}

/** Of the table that follows `heading`. */
function rowsAfter(heading: string): readonly Row[] {
  const part = PAGE.slice(PAGE.indexOf(heading))
  const table = part.slice(part.indexOf('| As |'))
  const rows = table
    .slice(0, table.indexOf('\n\n'))
    .matchAll(/^\| (\w+)(?: with `([^`]+)`)? \| `(\w+) ([^`]+)` \| (\d+) \|$/gm)
  return [...rows].map(([, role = '', scope, method = '', path = '', status]) => ({
    ...{ role, scopes: scope === undefined ? [] : [scope], method, path },
    status: Number(status),
  }))
}

let database: SampleDatabase
let folder: string
beforeAll(async () => {
  database = await sampleDatabase()
  folder = await mkdtemp(join(tmpdir(), 'guide-'))
})
afterAll(async () => {
  await database.drop()
  await rm(folder, { recursive: true })
})

describe.each([
  [
    '## The native policy',
    'access.toml',
    (file: string) => `[access]\nenabled = true\npath = ${JSON.stringify(file)}`,
    14,
  ],
  ['## The route policy', 'policy.yaml', (file: string) => `policy = ${JSON.stringify(file)}`, 5],
] as const)('%s', (heading, name, toml, count) => {
  const rows = rowsAfter(heading)
  let gateway: TestGateway
  beforeAll(async () => {
    const file = join(folder, name)
    await writeFile(file, fileNamed(PAGE, name))
    gateway = await testGateway(database.url, { toml: toml(file) })
  })
  afterAll(() => gateway.close())

  test('the table is read', () => expect(rows).toHaveLength(count))

  test.each(rows)('$role: $method $path → $status', async ({ role, scopes, method, path, status }) => {
    const [tenant] = database.tenants
    const as = { tenantId: tenant?.id, userId: tenant?.userId, role, scopes }
    const reply = await gateway.get(path, { as, method })
    expect([reply.status, reply.text]).toEqual([status, expect.anything()])
    if (status === 200) expect(reply.json.data.length).toBeGreaterThan(0)
  })
})
