/**
 * Every example that the tools show is parsed, printed, and prepared on a real PostgreSQL
 * (docs/guides/agents.md#tools).
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { printSql } from '../../src/language/sql/print.ts'
import { parse } from '../../src/language/syntax/parse.ts'
import type { Statement } from '../../src/language/tree/ast.ts'
import { CORPUS } from '../support/corpus.ts'
import { clientFixture, databaseFixture, fixture } from '../support/fixtures.ts'
import { hasGrammarFor } from '../support/postgres-version.ts'
import { buildRecipes } from '../support/recipes.ts'
import { call, repositoryLibrary, testToolServer } from '../support/tool-server.ts'

const server = fixture(testToolServer)
const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() => client.query(CORPUS.schema))

/** Statements that `PREPARE` accepts. The corpus tests execute the others. */
const PREPARABLE: ReadonlySet<Statement['kind']> = new Set<Statement['kind']>(['get', 'add', 'set', 'del', 'merge'])

async function assertRight({ query, sql }: { readonly query: string; readonly sql: string }): Promise<void> {
  const tree = parse(query)
  expect(printSql(tree).text).toBe(sql)
  if (PREPARABLE.has(tree.kind) && hasGrammarFor(sql)) await prepare(sql)
}

async function prepare(sql: string): Promise<void> {
  await client.query(`prepare shown as ${sql}`)
  await client.query('deallocate shown')
}

test.each([...Object.keys(CORPUS.constructs), 'where', 'order by', 'upsert', 'cte'])(
  'svc_syntax and svc_examples: %s',
  async construct => {
    const { card } = (await call(server.url, 'svc_syntax', { construct })).structuredContent
    expect(card).toMatchObject({ construct, grammar: expect.stringContaining(' = ') })
    expect(card.examples.length).toBeGreaterThan(0)
    for (const example of card.examples) await assertRight(example)

    const { examples } = (await call(server.url, 'svc_examples', { construct, limit: 20 })).structuredContent
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) await assertRight(example)
  },
)

describe('svc_builder_cookbook', () => {
  const { recipes } = repositoryLibrary()

  test('every recipe compiles, runs, and produces the query and the SQL shown', async () => {
    expect(recipes.length).toBeGreaterThan(15)
    const built = await buildRecipes(recipes.map(({ code }) => code))
    expect(built).toEqual(recipes.map(({ query, sql }) => ({ query, sql })))
  }, 60_000)

  test.each(recipes)('PostgreSQL accepts the recipe $title', async ({ sql }) => {
    await prepare(sql)
  })

  test('each recipe is shown under its topic', async () => {
    const topics = [...new Set(recipes.map(({ topic }) => topic))]
    const shown = await Promise.all(
      topics.map(async topic => (await call(server.url, 'svc_builder_cookbook', { topic })).structuredContent.recipes),
    )
    expect(shown.flat()).toEqual(recipes.map(({ topic, ...recipe }) => recipe))
  })
})

test.each(CORPUS.invalid)('the example next to the error of $query is valid', async ({ query }) => {
  const { structuredContent } = await call(server.url, 'svc_parse_query', { query })
  expect(structuredContent.ok).toBe(false)
  const { example } = structuredContent.error
  expect(() => printSql(parse(example))).not.toThrow()
})
