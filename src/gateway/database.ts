/** The connections, and the schema that is read through them. */
import { introspect, type Query, readFingerprint } from '../catalog/introspect.ts'
import { type CatalogSource, createCatalogSource } from '../catalog/reload.ts'
import type { Config } from '../config/config.ts'
import { tenantShare, tenantStreams } from '../config/share.ts'
import type { Emit } from '../events.ts'
import { STORED_CHANNEL } from '../install/wal-capture.ts'
import type { Gss } from '../postgres/auth/gss-attempts.ts'
import { UnavailableError } from '../postgres/errors.ts'
import { createListener, type Listener } from '../postgres/listener.ts'
import { createPool, type Pool, type PoolEvent } from '../postgres/pool.ts'
import type { ResultBudget } from '../postgres/result-budget.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'
import type { OpenListener } from '../realtime/realtime.ts'
import { BootError, NO_DATABASE } from './boot.ts'
import { createProgressLines } from './startup-progress.ts'

/**
 * The server ends a statement at its timeout. If the answer is later than this, the gateway cancels the
 * statement itself.
 */
export const CANCEL_GRACE_MS = 500
/** If the answer is later than this, the gateway gives up the connection. */
export const ANSWER_GRACE_MS = 1_500

/** `resultBudget`: how many bytes of results may be in memory. */
export async function openPool(config: Config, resultBudget: ResultBudget, emit: Emit): Promise<Pool> {
  const { databaseUrl, maxConnections, acquireTimeoutMs, preparedStatements, statementTimeoutMs } = config.gateway
  if (databaseUrl === null) throw new BootError([NO_DATABASE])
  const target = parseUrl(databaseUrl)
  const lineOf = config.devMode ? createProgressLines(target, () => performance.now()) : null
  let isReady = false
  const onEvent = (event: PoolEvent) => {
    if (lineOf !== null && !isReady && event.kind === 'connect-failed') {
      const message = lineOf(event)
      if (message !== null) emit({ kind: 'waiting for database', message })
      return
    }
    const { kind, ...detail } = event
    emit({ kind: 'database', event: kind, detail })
  }
  const pool = createPool({
    target,
    gss: await openTokens(target, config, emit),
    maxConnections,
    flowConnectionsMax: tenantShare(config.gateway),
    flowStreamsMax: tenantStreams(config.gateway),
    acquireTimeoutMs,
    preparedStatements,
    resultBudget,
    resultBytesMax: config.gateway.maxResultBytes,
    cancelAfterMs: statementTimeoutMs + CANCEL_GRACE_MS,
    answerTimeoutMs: statementTimeoutMs + ANSWER_GRACE_MS,
    onEvent,
  })
  try {
    await pool.ready()
    isReady = true
  } catch (error) {
    await pool.close({ deadlineMs: 0 })
    throw error
  }
  return pool
}

/** The pool, the listeners and the feed share a circuit where they go to the same server. */
export async function openTokens(target: ConnectionTarget, { gateway }: Config, emit: Emit): Promise<Gss | null> {
  if (target.gss === null) return null
  const { openGss } = await import('../kerberos/open.ts')
  const { gssModule } = gateway
  return openGss(target, { gssModule, onTransition: transition => emit({ kind: 'circuit', ...transition }) })
}

/** Waits until the database is available, including when it becomes unavailable again during startup. */
export async function onceAvailable<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error
      await pool.ready()
    }
  }
}

/** Reads the schema and keeps it up to date. */
export async function openCatalog({ gateway }: Config, query: Query, emit: Emit): Promise<CatalogSource> {
  const { schemas, exposedViews, schemaPollSecs, jwtDenylistTable, tables } = gateway
  const options = {
    ...{ schemas, exposedViews, jwtDenylistTable, tables, dependencies: true },
    settingReaders: gateway.sessionSettings === 'readable',
  }
  return createCatalogSource({
    load: () => introspect(query, options),
    fingerprint: () => readFingerprint(query, options),
    pollSeconds: schemaPollSecs,
    onEvent: ({ kind, ...detail }) => emit({ kind: 'catalog', event: kind, detail }),
  })
}

const SCHEMA_CHANNEL = 'svc_schema'

/** The channel on which applications of PostgREST report changes of the schema. */
const POSTGREST_CHANNEL = 'pgrst'

/** The URL for LISTEN; null behind a transaction pooler, where LISTEN is not possible. */
export function listeningUrl({
  gateway: { databaseUrl, realtimeDatabaseUrl, preparedStatements },
}: Config): string | null {
  return realtimeDatabaseUrl ?? (preparedStatements ? databaseUrl : null)
}

/** Receives what other programs report. */
export interface Notices {
  /** The schema may have changed. */
  schema(reason: string): void
  /** The listener hears of changes from now on, or no longer. */
  listens(hears: boolean): void
  /** The installation may have changed. */
  installation(): void
  /** A gateway has stored changes from the write-ahead log. `by` identifies it. */
  stored(by: string): void
}

/** Listens for notices. Null if the gateway cannot listen; polling remains. */
export async function openListener(config: Config, notices: Notices, emit: Emit): Promise<Listener | null> {
  const url = listeningUrl(config)
  if (url === null) return null
  const target = parseUrl(url)
  const listener = createListener({
    target,
    gss: await openTokens(target, config, emit),
    onNotification(channel, payload) {
      if (channel === STORED_CHANNEL) return notices.stored(payload)
      notices.schema('NOTIFY svc_schema')
      notices.installation()
    },
    onGap() {
      notices.listens(true)
      notices.schema('the listening connection was lost and has reconnected')
      notices.installation()
    },
    onEvent({ kind, ...detail }) {
      if (kind === 'lost') notices.listens(false)
      emit({ kind: 'database', event: `listener ${kind}`, detail })
    },
  })
  const channels = [SCHEMA_CHANNEL, STORED_CHANNEL, ...(config.postgrest.enabled ? [POSTGREST_CHANNEL] : [])]
  Promise.all(channels.map(channel => listener.listen(channel))).then(
    () => {
      notices.listens(true)
      notices.schema('the listener connected after the schema was read')
    },
    // Closed before it ever listened.
    () => {},
  )
  return listener
}

/** Opens the listener for changes once there is a subscription. */
export async function openChangeListener(config: Config, emit: Emit): Promise<OpenListener | null> {
  const url = listeningUrl(config)
  if (url === null) return null
  const target = parseUrl(url)
  const gss = await openTokens(target, config, emit)
  return (hearing, prepare) =>
    createListener({
      ...{ target, gss },
      onNotification: hearing.notification,
      onGap: hearing.gap,
      prepare,
      onEvent: ({ kind, ...detail }) => emit({ kind: 'database', event: `realtime listener ${kind}`, detail }),
    })
}
