/** Access to the gateway's database for reading the catalog. */
import type { Database } from '../postgres/types.ts'
import type { Query } from './introspect.ts'

/** Rows are decoded batch by batch, so that a large schema is never in memory twice. */
const BATCH_ROWS = 1_000

/**
 * Much longer than reading 5 000 tables takes. A view locked by a migration must not block all further reads.
 */
const TIMEOUT_MS = 30_000

/**
 * JIT compilation is disabled: it takes longer than the statement itself, and the plan of a large schema
 * would trigger it.
 */
const BEFORE = "select set_config('statement_timeout', $1, true), set_config('jit', 'off', true)"

/**
 * Reads through a stream, which has its own connection: reading a large schema takes most of a second, and
 * requests must not wait behind it. Rejects after `timeoutMs`. `onRows` receives how many rows have arrived.
 */
export function queryThrough(
  database: Database,
  timeoutMs: number = TIMEOUT_MS,
  onRows: (count: number) => void = () => {},
): Query {
  const before = [{ text: BEFORE, parameters: [String(timeoutMs)] }]
  return async (text, parameters) => {
    const read: (string | null)[][] = []
    for await (const rows of database.stream(before, { text, parameters }, BATCH_ROWS)) {
      for (const row of rows) read.push(row.map(cell => cell?.toString() ?? null))
      onRows(read.length)
    }
    return read
  }
}
