/** A database seen through `pg`: as the narrow function that the catalogue reads by, and as a place to run DDL in. */
import pg from 'pg'
import type { Query } from '../../src/catalog/introspect.ts'
import { forThisVersion } from './postgres-version.ts'

export interface Session {
  readonly query: Query
  /** Runs SQL text, several statements if you like. */
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
