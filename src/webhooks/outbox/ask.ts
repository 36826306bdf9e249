/** How the outbox is asked: commands of one transaction, and rows of texts. */
import type { Database } from '../../postgres/types.ts'

export type Rows = readonly (readonly (string | null)[])[]

export interface Asked {
  readonly text: string
  readonly parameters: readonly (string | null)[]
}

/** One answer for each command. */
export type Ask = (...commands: readonly Asked[]) => Promise<readonly Rows[]>

/** Nothing here takes as long; whoever holds a lock that we need is an operator with a transaction open. */
const TIMEOUT_MS = 30_000

/**
 * The outbox is empty one moment and has a million rows in the next, so what a planner believes of it is never true: indexes are made for each of these statements,
 * and it is left nothing else.
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

const BEFORE = {
  text: `SELECT WHERE ${Object.entries(SETTINGS)
    .map(([name, value]) => `set_config('${name}', '${value}', true) IS NOT NULL`)
    .join(' AND ')}`,
  parameters: [],
}

/** Rejects as the database does. */
export function askThrough(database: Pick<Database, 'run'>): Ask {
  return async (...commands) => {
    const [, ...results] = await database.run([BEFORE, ...commands]).result
    return results.map(({ rows }) => rows.map(row => row.map(cell => cell?.toString() ?? null)))
  }
}
