/** docs/guides/access-policies.md: its policies load, and give the responses in its tables. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { fileNamed } from '../support/page.ts'
import { sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/access-policies.md')

interface Row {
  readonly role: string
  readonly scopes: readonly string[]
  readonly method: string
  readonly path: string
  readonly status: number
}

/** The rows of the table that follows `heading`. */
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

const database = databaseFixture(sampleDatabase)
const folder = folderFixture()

describe.each([
  [
    '## The native policy',
    'access.toml',
    (file: string) => `[access]\nenabled = true\npath = ${JSON.stringify(file)}`,
    16,
  ],
  ['## The route policy', 'policy.yaml', (file: string) => `policy = ${JSON.stringify(file)}`, 5],
] as const)('%s', (heading, name, toml, count) => {
  const rows = rowsAfter(heading)
  const file = join(folder, name)
  beforeAll(() => writeFile(file, fileNamed(PAGE, name)))
  const gateway = gatewayFixture(database, { toml: toml(file) })

  test('the table has the expected number of rows', () => expect(rows).toHaveLength(count))

  test.each(rows)('$role: $method $path → $status', async ({ role, scopes, method, path, status }) => {
    const [tenant] = database.tenants
    const as = { tenantId: tenant?.id, userId: tenant?.userId, role, scopes }
    const reply = await gateway.get(path, { as, method })
    expect([reply.status, reply.text]).toEqual([status, expect.anything()])
    if (status === 200) expect(reply.json.data.length).toBeGreaterThan(0)
  })
})
