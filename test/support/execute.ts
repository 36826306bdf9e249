/** SQL from tests, by somebody else's client. */
import pg from 'pg'
import { forThisVersion } from './postgres-version.ts'

/** Runs SQL text – several statements if you like – as the role of the URL; the rows of the last statement. */
export async function execute(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(forThisVersion(sql))
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  } finally {
    await client.end()
  }
}
