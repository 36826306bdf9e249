/** One connection to the configured database, for commands that ask a few questions and end. */
import type { Query } from '../catalog/introspect.ts'
import { createPool } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'

export interface DatabaseSession {
  readonly query: Query
  close(): Promise<void>
}

/** Longer than a connection needs, shorter than somebody waits. */
const CONNECT_TIMEOUT_MS = 10_000

/**
 * Throws `UrlError`. A query rejects with the first failure to connect: where a gateway tries again for ever, whoever
 * called a command wants to know.
 */
export function openDatabase(url: string, preparedStatements: boolean): DatabaseSession {
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  // Nobody may be asking when it fails.
  failed.catch(() => {})
  const pool = createPool({
    target: parseUrl(url),
    maxConnections: 1,
    acquireTimeoutMs: CONNECT_TIMEOUT_MS,
    preparedStatements,
    onEvent: event => {
      if (event.kind === 'connect-failed') fail(event.error)
    },
  })
  return {
    async query(text, parameters) {
      const [result] = await Promise.race([pool.run([{ text, parameters }]).result, failed])
      return result?.rows.map(row => row.map(cell => cell?.toString() ?? null)) ?? []
    },
    close: () => pool.close({ deadlineMs: 0 }),
  }
}
