/** One connection to the configured database, for commands that run a few queries and end. */
import type { Query } from '../catalog/introspect.ts'
import { queryThrough } from '../catalog/query.ts'
import { openGss } from '../kerberos/open.ts'
import { createPool } from '../postgres/pool.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'

export interface DatabaseSession {
  readonly query: Query
  /** Runs all statements in one transaction. `onDone` receives how many of them have run. */
  transaction(statements: readonly string[], onDone?: (count: number) => void): Promise<void>
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly preparedStatements: boolean
  readonly gssModule: string | null
  /** The timeout of one query. */
  readonly timeoutMs?: number
  /** Receives how many rows of a query have arrived. */
  readonly onRows?: (count: number) => void
}

/** Long enough for a connection, and short enough for a user who waits. */
const CONNECT_TIMEOUT_MS = 10_000

/** The same timeout as the gateway uses for these queries. */
const TIMEOUT_MS = 30_000

/** Time after the statement timeout after which an unresponsive server is given up. */
const ANSWER_GRACE_MS = 5_000

/**
 * Opens a session. Rejects with `UrlError` or `KerberosSetupError`. A query rejects with the first connection
 * failure: unlike a gateway, a command does not retry forever.
 */
export async function openDatabase(url: string | ConnectionTarget, options: DatabaseOptions): Promise<DatabaseSession> {
  const { preparedStatements, gssModule, timeoutMs = TIMEOUT_MS, onRows } = options
  const target = typeof url === 'string' ? parseUrl(url) : url
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  // The failure can come while no query is running.
  failed.catch(() => {})
  const pool = createPool({
    target,
    gss: await openGss(target, { gssModule }),
    maxConnections: 1,
    acquireTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: timeoutMs + ANSWER_GRACE_MS,
    preparedStatements,
    onEvent: event => {
      if (event.kind === 'connect-failed') fail(event.error)
    },
  })
  const query = queryThrough(pool, timeoutMs, onRows)
  return {
    query: (text, parameters) => Promise.race([query(text, parameters), failed]),
    async transaction(statements, onDone = () => {}) {
      const transaction = pool.begin(undefined, null)
      const running = statements.map(text => transaction.run([{ text, parameters: [] }]))
      // After a failure, the statements behind it fail too.
      for (const statement of running) statement.catch(() => {})
      try {
        for (const [index, statement] of running.entries()) {
          await Promise.race([statement, failed])
          onDone(index + 1)
        }
        await Promise.race([transaction.commit([]), failed])
      } catch (error) {
        // If the connection has failed, there is nothing to roll back.
        await Promise.race([transaction.rollback(), failed]).catch(() => {})
        throw error
      }
    },
    close: () => pool.close({ deadlineMs: 0 }),
  }
}
