/** `svc openapi` on a real database, with and without a policy. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { databaseFixture, folderFixture } from '../../test/support/fixtures.ts'
import { sampleDatabase } from '../../test/support/sample.ts'

const database = databaseFixture(sampleDatabase)

const folder = folderFixture()
beforeAll(async () => {
  await writeFile(join(folder, 'svc.toml'), '[access]\nenabled = true\npath = "policy.toml"\n')
  await writeFile(
    join(folder, 'policy.toml'),
    `default_decision = "deny"
[tables.products]
operations = ["read"]
require_any_role = ["clerk"]
read_columns = { only = ["id", "name"] }
`,
  )
})

async function svc(...argv: readonly string[]): Promise<string> {
  const { code, out, error } = await runCommand(argv, {
    environment: { DATABASE_URL: database.url },
    workingDirectory: folder,
  })
  expect([code, error]).toEqual([0, []])
  return out.join('\n')
}

test('without a role the document is complete', async () => {
  const { paths, components } = JSON.parse(await svc('openapi'))
  expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/api/orders', '/api/products/{id}', '/api/rpc/slugify']))
  expect(Object.keys(components.schemas.products.properties)).toContain('price')
})

test('with a role it has only what the policy allows', async () => {
  await svc('openapi', '--role', 'clerk', '--out', 'clerk.json')
  const { paths, components } = JSON.parse(await readFile(join(folder, 'clerk.json'), 'utf8'))
  expect(paths['/api/orders']).toBeUndefined()
  expect(Object.keys(paths['/api/products'])).toEqual(['get'])
  expect(Object.keys(components.schemas.products.properties)).toEqual(['id', 'name'])
})

test('for a role without a policy it has no tables', async () => {
  const { paths } = JSON.parse(await svc('openapi', '--role', 'stranger'))
  expect(Object.keys(paths).filter(path => path.startsWith('/api/products'))).toEqual([])
})
