/** Runs the statements of the outbox: several in one transaction, with rows as text. */
import type { Database } from '../../postgres/types.ts'

/** Rows of a result; columns are text or null. */
export type Rows = readonly (readonly (string | null)[])[]

/** One statement with its parameters. */
export interface OutboxCommand {
  readonly text: string
  readonly parameters: readonly (string | null)[]
}

/** Runs commands in one transaction; returns the rows of each. */
export type RunInTransaction = (...commands: readonly OutboxCommand[]) => Promise<readonly Rows[]>

/**
 * Statement timeout. No statement of the outbox takes this long unless it waits for a lock that an operator's
 * open transaction holds.
 */
const TIMEOUT_MS = 30_000

/**
 * The outbox can be empty one moment and hold a million rows the next, so planner statistics are unreliable.
 * Each of these statements has an index made for it; the settings leave the planner no other choice.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  statement_timeout: String(TIMEOUT_MS),
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}

const SET_SETTINGS = {
  text: `SELECT WHERE ${Object.entries(SETTINGS)
    .map(([name, value]) => `set_config('${name}', '${value}', true) IS NOT NULL`)
    .join(' AND ')}`,
  parameters: [],
}

/** A runner over a pool of connections. Errors of the database are passed on. */
export function transactionRunner(database: Pick<Database, 'run'>): RunInTransaction {
  return async (...commands) => {
    const [, ...results] = await database.run([SET_SETTINGS, ...commands]).result
    return results.map(({ rows }) => rows.map(row => row.map(cell => cell?.toString() ?? null)))
  }
}
