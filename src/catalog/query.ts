/** The gateway's own database as the narrow function that the catalogue is read by. */
import type { Database } from '../postgres/types.ts'
import type { Query } from './introspect.ts'

/** Bytes become text batch by batch, so that a large schema is never in memory twice. */
const BATCH_ROWS = 1_000

/** Far more than 5 000 tables take; a view that a migration keeps locked must not end all further reading. */
const TIMEOUT_MS = 30_000

/** No compiling (JIT): it takes longer than the statement itself, and the plan of a large schema costs enough for it. */
const BEFORE = "select set_config('statement_timeout', $1, true), set_config('jit', 'off', true)"

/**
 * Reads through a stream, because that has a connection to itself: to read a large schema takes the better part of a
 * second, and no request shall wait behind it. Rejects after `timeoutMs`.
 */
export function queryThrough(database: Database, timeoutMs: number = TIMEOUT_MS): Query {
  const before = [{ text: BEFORE, parameters: [String(timeoutMs)] }]
  return async (text, parameters) => {
    const read: (string | null)[][] = []
    for await (const rows of database.stream(before, { text, parameters }, BATCH_ROWS)) {
      for (const row of rows) read.push(row.map(cell => cell?.toString() ?? null))
    }
    return read
  }
}
