/** Runs SQL for tests with the `pg` client, not with the gateway's own. */
import pg from 'pg'
import { forThisVersion } from './postgres-version.ts'

/** Runs SQL text of one or more statements as the role of the URL. Returns the rows of the last statement. */
export async function execute(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await executeOn(client, sql)
  } finally {
    await client.end()
  }
}

/** Runs statements on a connection that stays open. */
export async function executeOn(client: pg.Client, sql: string): Promise<Record<string, unknown>[]> {
  const result: pg.QueryResult | pg.QueryResult[] = await client.query(forThisVersion(sql))
  return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
}
