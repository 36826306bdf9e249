/**
 * The feed: connections of a separate role, for the change log and the outbox of webhooks (decision 0028). No
 * SQL of a request runs on them, and the role that requests run under can read neither.
 */
import { queryThrough } from '../catalog/query.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import { FeedError, type OpenFeed } from '../install/installation.ts'
import { ConnectError, UnavailableError } from '../postgres/errors.ts'
import { createPool, type Pool } from '../postgres/pool.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import type { Database } from '../postgres/types.ts'
import { parseUrl } from '../postgres/url.ts'
import { openTokens } from './database.ts'

/**
 * Longer than any statement here (realtime/log-statements.ts, webhooks/outbox/transaction.ts), so a dead
 * connection is detected soon after.
 */
const ANSWER_TIMEOUT_MS = 45_000

/** The connections of the feed role. */
export interface Feed {
  /** Rejects with `UnavailableError` before it is opened. */
  readonly database: Pick<Database, 'run' | 'begin'>
  /** The role whose connections are open; null before. */
  role(): string | null
  /** Opens it, or does nothing when it is open. Rejects with `FeedError`, or as the database does. */
  readonly open: OpenFeed
  /** That are open. */
  connections(): number
  close(options: { readonly deadlineMs: number }): Promise<void>
}

/** Where the feed role logs in: `feed_url`, else as the gateway does, with the name of the feed role. */
export function feedTarget(
  { gateway: { feedUrl, realtimeDatabaseUrl, databaseUrl } }: Config,
  role: string,
): ConnectionTarget {
  if (feedUrl !== null) return parseUrl(feedUrl)
  const gateway = parseUrl(databaseUrl ?? '')
  const direct = realtimeDatabaseUrl === null ? gateway : parseUrl(realtimeDatabaseUrl)
  return { ...direct, user: role, password: gateway.password }
}

/** A `FeedError` where a retry cannot help, else the same error. */
export function feedError({ user }: ConnectionTarget, error: unknown): unknown {
  const cause = error instanceof UnavailableError ? error.cause : error
  if (!(cause instanceof ConnectError) || !cause.permanent) return error
  return new FeedError(`role "${user}", which reads it, cannot connect: ${cause.message}.`)
}

/** Creates the feed, not yet open. */
export function createFeed(config: Config, emit: Emit): Feed {
  const { feedMaxConnections, acquireTimeoutMs, preparedStatements, realtimeDatabaseUrl } = config.gateway
  let opened: { readonly role: string; readonly pool: Pool } | null = null
  let opening: Promise<void> = Promise.resolve()

  async function poolOf(role: string): Promise<Pool> {
    if (opened?.role === role) return opened.pool
    const before = opened
    const target = feedTarget(config, role)
    const pool = createPool({
      ...{ target, gss: await openTokens(target, config, emit), maxConnections: feedMaxConnections, acquireTimeoutMs },
      flowConnectionsMax: feedMaxConnections,
      preparedStatements: preparedStatements || realtimeDatabaseUrl !== null,
      answerTimeoutMs: ANSWER_TIMEOUT_MS,
      onEvent: ({ kind, ...detail }) => emit({ kind: 'database', event: `feed ${kind}`, detail }),
    })
    opened = { role, pool }
    await before?.pool.close({ deadlineMs: 0 })
    return pool
  }

  async function open(role: string): Promise<Pool> {
    const pool = await poolOf(role)
    try {
      // The first rejects at once when it is of no use to try again, the second when the database does not
      // answer in time.
      await Promise.race([pool.ready(), pool.run([{ text: 'SELECT 1', parameters: [] }]).result])
    } catch (error) {
      throw feedError(feedTarget(config, role), error)
    }
    return pool
  }

  return {
    database: {
      run(commands) {
        if (opened !== null) return opened.pool.run(commands)
        return { result: Promise.reject(new UnavailableError('the feed is not open', false)), cancel() {} }
      },
      begin(flow, isolation) {
        if (opened !== null) return opened.pool.begin(flow, isolation)
        throw new UnavailableError('the feed is not open', false)
      },
    },
    role: () => opened?.role ?? null,
    async open(role) {
      const next = opening.then(() => open(role))
      opening = next.then(
        () => {},
        () => {},
      )
      return queryThrough(await next)
    },
    connections: () => opened?.pool.stats().open ?? 0,
    async close(options) {
      await opening
      await opened?.pool.close(options)
    },
  }
}
