/**
 * PostgreSQL accepts the SQL of each example, with literals kept and lifted: it parses, resolves all names
 * and types, and finds a plan.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { clientFixture, databaseFixture } from '../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { printSql } from '../language/sql/print.ts'
import type { ParameterMode } from '../language/sql/printer.ts'
import { parse } from '../language/syntax/parse.ts'
import type { Statement } from '../language/tree/ast.ts'

const { schema, examples } = CORPUS

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() => client.query(schema))

/** Statements that `PREPARE` accepts; the others have no plan. */
const PREPARABLE: ReadonlySet<Statement['kind']> = new Set<Statement['kind']>(['get', 'add', 'set', 'del', 'merge'])

/** Statements that start or end transactions. */
const TRANSACTIONS: ReadonlySet<Statement['kind']> = new Set<Statement['kind']>(['begin', 'commit', 'rollback'])

describe.each<ParameterMode>(['keep', 'all'])('PostgreSQL accepts the examples with parameters: %s', mode => {
  const statements = examples
    .map(({ query }) => ({ query, tree: parse(query) }))
    .filter(({ query, tree }) => tree.kind !== 'merge' || POSTGRES_MAJOR >= (query.includes('by source') ? 17 : 15))

  test.each(statements.filter(({ tree }) => PREPARABLE.has(tree.kind)))('PostgreSQL plans $query', async ({ tree }) => {
    const { text } = printSql(tree, { parameters: mode })
    await client.query(`prepare example as ${text}`)
    await client.query('deallocate example')
    if (POSTGRES_MAJOR < 16) return
    // Preparing does not resolve the unique key of a conflict; planning does.
    const { rows } = await client.query(`explain (generic_plan) ${text}`)
    expect(rows.length).toBeGreaterThan(0)
  })

  test.each(statements.filter(({ tree }) => !PREPARABLE.has(tree.kind) && !TRANSACTIONS.has(tree.kind)))(
    'PostgreSQL executes $query, which is rolled back',
    async ({ tree }) => {
      const { text, parameters } = printSql(tree, { parameters: mode })
      const values = parameters.map(parameter => (parameter.kind === 'literal' ? parameter.value : null))
      await client.query('begin')
      try {
        await client.query(text, values)
      } finally {
        await client.query('rollback')
      }
    },
  )

  test('PostgreSQL executes the examples that control transactions', async () => {
    for (const { tree } of statements.filter(({ tree }) => TRANSACTIONS.has(tree.kind))) {
      await client.query(printSql(tree, { parameters: mode }).text)
    }
  })
})
