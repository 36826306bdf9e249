/** Runs SQL through the gateway's own client, in order on one connection. */
import { createPool } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'
import { EmbeddedError } from './error.ts'

/** Longer than any statement of the sample data takes, even on a slow disk. */
const ANSWER_TIMEOUT_MS = 120_000
const STATEMENT_QUOTED_MAX = 200

/** Runs each statement in its own transaction; stops at the first failure. */
export async function runStatements(url: string, statements: readonly string[]): Promise<void> {
  const pool = createPool({ target: parseUrl(url), maxConnections: 1, answerTimeoutMs: ANSWER_TIMEOUT_MS })
  try {
    for (const text of statements) {
      await pool.run([{ text, parameters: [] }]).result.catch(cause => {
        throw new EmbeddedError(`${(cause as Error).message}\nin: ${text.slice(0, STATEMENT_QUOTED_MAX)}`, { cause })
      })
    }
  } finally {
    await pool.close({ deadlineMs: 0 })
  }
}
