/** One connection to the configured database, for commands that ask a few questions and end. */
import type { Query } from '../catalog/introspect.ts'
import { queryThrough } from '../catalog/query.ts'
import { openGss } from '../kerberos/open.ts'
import { createPool } from '../postgres/pool.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'

export interface DatabaseSession {
  readonly query: Query
  /** All statements, or none. */
  transaction(statements: readonly string[]): Promise<void>
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly preparedStatements: boolean
  readonly gssModule: string | null
  /** How long the database may work on one question. */
  readonly timeoutMs?: number
}

/** Longer than a connection takes, shorter than a user waits. */
const CONNECT_TIMEOUT_MS = 10_000

/** As long as the gateway itself gives the same questions. */
const TIMEOUT_MS = 30_000

/** A server that is silent for so long after its statement should have timed out is taken for dead. */
const ANSWER_GRACE_MS = 5_000

/**
 * Opens a session. Rejects with `UrlError` or `KerberosSetupError`. A query rejects with the first connection
 * failure: unlike a gateway, a command does not retry forever.
 */
export async function openDatabase(url: string | ConnectionTarget, options: DatabaseOptions): Promise<DatabaseSession> {
  const { preparedStatements, gssModule, timeoutMs = TIMEOUT_MS } = options
  const target = typeof url === 'string' ? parseUrl(url) : url
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  // A query may be missing when it fails.
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
  const query = queryThrough(pool, timeoutMs)
  return {
    query: (text, parameters) => Promise.race([query(text, parameters), failed]),
    async transaction(statements) {
      const commands = statements.map(text => ({ text, parameters: [] }))
      await Promise.race([pool.run(commands).result, failed])
    },
    close: () => pool.close({ deadlineMs: 0 }),
  }
}
