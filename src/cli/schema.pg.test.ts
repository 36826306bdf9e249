/** `svc schema pull`, `summary` and `types` on a real database. */
import { expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { sampleDatabase } from '../../test/support/sample.ts'
import { parseSchema } from '../schema/parse.ts'

const database = databaseFixture(sampleDatabase)

async function svc(...argv: readonly string[]): Promise<string> {
  const { code, out, error } = await runCommand(argv, { environment: { DATABASE_URL: database.url } })
  expect([code, error]).toEqual([0, []])
  return out.join('\n')
}

test('pull prints a document that can be parsed again', async () => {
  const document = parseSchema(await svc('schema', 'pull'))
  expect(document.tables.map(table => table.name.name)).toEqual(expect.arrayContaining(['customers', 'orders']))
})

test('on a terminal a bar counts what was read, and is erased', async () => {
  const written: string[] = []
  const terminal = { columns: 80, hasColors: false, write: (text: string) => void written.push(text) }
  const ran = await runCommand(['schema', 'pull'], { environment: { DATABASE_URL: database.url }, terminal })
  expect([ran.code, ran.error]).toEqual([0, []])
  expect(written.join('')).toMatch(/Reading the schema: \d{2,} objects/)
  expect(written.at(-1)).toBe('\r\u001b[K')
})

test('summary and types can read the database directly', async () => {
  const summary = JSON.parse(await svc('schema', 'summary'))
  expect(summary.tables.length).toBeGreaterThan(10)
  const bypassed = POSTGRES_MAJOR < 15 ? [{ code: 'view_bypasses_rls' }] : []
  expect(summary.warnings).toMatchObject(bypassed)
  const types = await svc('types')
  expect(types).toMatch(/customers: \{/)
  expect(types).toContain("'draft' | 'pending'")
})
