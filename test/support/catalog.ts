/**
 * A test database accessed through `pg`: as the narrow query function that introspection takes, and for
 * running DDL.
 */
import pg from 'pg'
import type { Query } from '../../src/catalog/introspect.ts'
import { forThisVersion } from './postgres-version.ts'

export interface Session {
  readonly query: Query
  /** Runs SQL text of one or more statements. */
  run(sql: string): Promise<void>
  close(): Promise<void>
}

export async function openSession(url: string): Promise<Session> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const types = { getTypeParser: () => (text: string | null) => text }
  return {
    async query(text, parameters) {
      const result = await client.query({ text, values: [...parameters], rowMode: 'array', types })
      return result.rows as (string | null)[][]
    },
    async run(sql) {
      await client.query(forThisVersion(sql))
    },
    async close() {
      await client.end()
    },
  }
}
