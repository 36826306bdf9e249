/** The composition root: makes every part in order, and closes them in reverse. */

import { randomBytes } from 'node:crypto'
import type { Catalog } from '../catalog/model.ts'
import { queryThrough } from '../catalog/query.ts'
import type { LogReaders } from '../changes/readers.ts'
import type { Peers } from '../cluster/peers.ts'
import { addPlanStats, createPlanCache } from '../compile/plans.ts'
import type { Config } from '../config/config.ts'
import { ENVIRONMENT } from '../config/environment.ts'
import type { Environment } from '../config/expand.ts'
import { limitsOf } from '../config/limits.ts'
import { watchEventLoop } from '../event-loop.ts'
import type { Emit } from '../events.ts'
import type { FrontOptions } from '../http/front.ts'
import { createResponseBytes } from '../http/response-bytes.ts'
import { createAdminCheck } from '../identity/admin.ts'
import { createTokenVerifier } from '../identity/jwt.ts'
import { watchInstallation } from '../install/installation-watcher.ts'
import { openInstalled } from '../install/installed.ts'
import { createLoad } from '../limits/load.ts'
import { createBootWarnings } from '../ops/boot-warnings.ts'
import type { HttpStats } from '../ops/http-metrics.ts'
import { createInternal, type WebhookOperations } from '../ops/internal.ts'
import { createLog } from '../ops/log.ts'
import { createMetrics } from '../ops/metrics.ts'
import type { OperatorRoutes } from '../ops/operator-routes.ts'
import { createSchemaWatch } from '../ops/schema-status.ts'
import { createServerTiming } from '../ops/server-timing.ts'
import { createSlowRequests } from '../ops/slow-requests.ts'
import type { Realtime } from '../realtime/realtime.ts'
import { createSettings } from '../run/settings.ts'
import { openTracing } from '../tracing/open-tracing.ts'
import { VERSION } from '../version.ts'
import { operatorRequests, webhookStatus } from '../webhooks/operator-requests.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { configFindings, databaseFindings, report } from './boot.ts'
import { createChecks } from './checks.ts'
import { type Notices, onceAvailable, openCatalog, openListener, openPool } from './database.ts'
import { openDoor } from './door.ts'
import { createFeed } from './feed.ts'
import { createCountedLimits } from './limits.ts'
import { openConfiguredLists, watchUnmatched } from './lists.ts'
import { createChanges, openCache, openConfiguredWebhooks, openPolicies, openShared } from './on-demand.ts'
import { withPreConfig } from './pre-config.ts'
import { openProviders } from './providers.ts'
import { openReplicas } from './replicas.ts'
import { openRevocations, READ_TIMEOUT_MS } from './revocations.ts'
import { openServer } from './server.ts'
import { SessionRenewal } from './session-renewal.ts'
import { UnsentSettings } from './session-settings.ts'
import { tableFindings } from './table-settings.ts'

/** A running gateway. */
export interface Gateway {
  /** Where it listens, e.g. `http://127.0.0.1:8080`. */
  readonly url: string
  /**
   * Stops accepting, finishes what is in flight until `drain_timeout_ms`, drains the pool
   * (docs/guides/deploying.md#start-reload-stop).
   */
  close(): Promise<void>
  /**
   * Stops accepting connections without refusing a request, because another worker accepts them. `close`
   * comes next.
   */
  retire(): Promise<void>
  /** The figures of the process, for the sums of all workers. */
  figures(): Promise<unknown>
  /** What SIGHUP does: reads the schema again, and the files that may change while it runs. */
  reload(): Promise<void>
}

/** The dependencies of a gateway. */
export interface GatewayOptions {
  /** Receives all events; the log by default. */
  readonly emit?: Emit
  /**
   * A file to which the shapes of all queries are written (docs/guides/allow-list.md#recording); every query
   * is then allowed.
   */
  readonly record?: string
  /** What `${NAME}` means in the files that are read again; the process's by default. */
  readonly environment?: Environment
  /** The other workers of this machine, if the gateway is one of several processes behind one address. */
  readonly peers?: Peers
  /** Further routes, in addition to the gateway's own, which they cannot replace. */
  readonly routes?: OperatorRoutes
  /** Callers whom the page at `/` offers to be, for the headers of a request; none by default. */
  readonly callers?: FrontOptions['callers']
  /** A sentence for visitors of the page at `/`. */
  readonly notice?: string | null
}

/** Requests that were cut off at the end of `drain_timeout_ms` are still to be cancelled in the database. */
const CANCEL_GRACE_MS = 1_000

/** The randomness of the secret by which functions in schema `svc` recognize this gateway. */
const TICKET_BYTES = 24

/** The random bytes by which a gateway recognizes its own notifications. */
const READER_ID_BYTES = 9

/** Waits for the database, however long it takes to come, and listens once it can answer. */
export async function startGateway(configured: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const { peers = null, environment = ENVIRONMENT } = options
  const log = createLog(configured.logLevel, { worker: peers?.number ?? null })
  const now = () => performance.now()
  const metrics = createMetrics({ version: VERSION, now })
  const warnings = createBootWarnings()
  const hearers: Emit[] = [options.emit ?? log.emit, metrics.hear, warnings.hear]
  const emit: Emit = event => {
    for (const hear of hearers) hear(event)
  }
  const opened: (() => Promise<void> | void)[] = [() => log.flush(), () => metrics.close()]
  let closeBy = 0
  const closeAll = async () => {
    closeBy = performance.now() + configured.gateway.drainTimeoutMs
    const failures: unknown[] = []
    for (const close of opened.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
  try {
    report(await configFindings(configured), configured, emit)
    const tracing = await openTracing(configured.gateway.tracing, { emit, clock: () => Date.now(), now })
    opened.push(() => tracing?.close())
    const issuers = await openProviders(configured, emit)
    opened.push(() => issuers.close())
    const { record = null } = options
    const lists = await openConfiguredLists(configured, record, emit)
    opened.push(async () => {
      await lists.close()
      if (record !== null) emit({ kind: 'recorded', file: record, shapes: lists.recorded() })
    })
    const answerBytes = createResponseBytes(configured.gateway)
    const pool = await openPool(configured, answerBytes.results, emit)
    opened.push(() => pool.close({ deadlineMs: Math.max(closeBy - performance.now(), CANCEL_GRACE_MS) }))
    const query = queryThrough(pool)
    const config = await onceAvailable(pool, () => withPreConfig(configured, query))
    report(await onceAvailable(pool, () => databaseFindings(config, query)), config, emit)
    let onRevoked = () => {}
    const revocations = await onceAvailable(pool, () =>
      openRevocations({ config, query: queryThrough(pool, READ_TIMEOUT_MS), onRead: () => onRevoked(), emit }),
    )
    opened.push(() => revocations.close())
    const tokens = createTokenVerifier(config, issuers.all, () => Date.now(), revocations.list)
    const feed = createFeed(config, emit)
    opened.push(() => feed.close({ deadlineMs: Math.max(closeBy - performance.now(), CANCEL_GRACE_MS) }))
    const ticket = randomBytes(TICKET_BYTES).toString('base64url')
    const installed = await onceAvailable(pool, () =>
      openInstalled({
        ...{ ask: query, openFeed: feed.open, ticket },
        warn: (message, fix) => emit({ kind: 'warning', message, fix }),
      }),
    )
    opened.push(() => installed.close())
    const catalog = await onceAvailable(pool, () => openCatalog(config, query, emit))
    opened.push(() => catalog.close())
    const door = await onceAvailable(pool, () => openDoor(config, query, emit))
    opened.push(() => door?.catalog.close())
    report(tableFindings(config, catalog.current()), config, emit)
    reportViews(catalog.current(), emit)
    const unmatched = watchUnmatched(config, { lists, catalog: () => catalog.current(), emit })
    report(await unmatched.findings(), config, emit)
    const schema = createSchemaWatch({ catalog: () => catalog.current(), now, clock: () => Date.now() })
    hearers.push(schema.hear)
    const recaptured: ((left: readonly string[]) => void)[] = []
    const following = watchInstallation({
      ...{ installed, everyMs: config.gateway.schemaPollSecs * 1_000 },
      onChange(left) {
        for (const hear of recaptured) hear(left)
      },
    })
    opened.push(() => following.close())
    const noticed = (reason: string) => {
      catalog.notify(reason)
      door?.catalog.notify(reason)
    }
    let onStored: LogReaders['stored'] = () => {}
    let join: LogReaders['join'] = () => null
    const readers: LogReaders = {
      id: randomBytes(READER_ID_BYTES).toString('base64url'),
      join: () => join(),
      stored: (tables, hasJoined) => onStored(tables, hasJoined),
    }
    const unsent = new UnsentSettings(config, catalog)
    const notices: Notices = {
      schema: noticed,
      listens: hears => unsent.listens(hears),
      installation: () => void following.check(),
      stored(by) {
        if (by !== readers.id) onStored(null, false)
      },
    }
    const listener = await openListener(config, notices, emit)
    opened.push(() => listener?.close())
    const policies = await openPolicies(config, catalog, emit)
    const usesWal = () => installed.current()?.usesWal === true
    const settings = createSettings({ ...config.gateway, usesWal })
    const fewerSettings =
      config.gateway.sessionSettings === 'all'
        ? settings
        : createSettings({ ...config.gateway, usesWal, unsent: unsent.current })
    // Its times are those of the spans too.
    const timing = config.devMode || tracing !== null ? createServerTiming(now) : null
    const replicas = await openReplicas({ timing, config, pool, resultBudget: answerBytes.results, peers, emit, now })
    opened.push(() => replicas?.close({ deadlineMs: Math.max(closeBy - performance.now(), CANCEL_GRACE_MS) }))
    const shared = await openShared(config, emit, now)
    opened.push(() => shared?.close())
    const caching = await openCache({
      ...{ config, catalog, settings, installed, database: feed.database, peers, shared, now },
    })
    opened.push(() => caching?.close())
    const cache = caching?.cache ?? null
    // Results cached before may have missed changes of tables that are captured from now on.
    if (cache !== null) recaptured.push(() => cache.clear())
    const hooks = await onceAvailable(pool, () =>
      openConfiguredWebhooks({
        config,
        database: feed.database,
        catalog,
        installed,
        environment,
        emit,
      }),
    )
    opened.push(() => hooks?.webhooks.close({ deadlineMs: Math.max(closeBy - performance.now(), CANCEL_GRACE_MS) }))
    const changes = createChanges({ config, readers, feed, installed, emit, now })
    opened.push(() => changes.close())
    changes.look()
    recaptured.push(changes.look)
    const plans = createPlanCache()
    const load = createLoad()
    opened.push(
      watchEventLoop(now, delayMs => {
        load.report(delayMs)
        metrics.delayed(delayMs)
      }),
    )
    const slow = config.adminToken === null ? null : createSlowRequests(() => Date.now())
    const checks = createChecks({ config, query, catalog: () => catalog.current(), environment, now })
    const internal = (stats: Realtime['stats'], http: () => HttpStats) =>
      createInternal({
        ...{ version: VERSION, metrics, warnings, now },
        ...{ realtime: stats, http, checks },
        slowRequests: slow === null ? null : slow.list,
        installation: () => installed.current(),
        schema: schema.status,
        pool: () => pool.stats(),
        replicas: replicas === null ? null : replicas.stats,
        cache: cache === null ? null : () => cache.stats(),
        sessionSettings: config.adminToken === null ? null : unsent.status,
        plans: () => (door === null ? plans.stats() : addPlanStats(plans.stats(), door.plans.stats())),
        maxConnections: config.gateway.maxConnections,
        peers,
        feedConnections: feed.connections,
        changes: changes.stats,
        limits: limitsOf(config.gateway),
        webhooks: hooks === null ? null : operationsOf(hooks.webhooks),
        issuers: issuers.stats,
        tracing: tracing?.stats ?? null,
        shared: shared === null ? null : () => shared.stats(),
        isAdmin: config.adminToken === null ? null : createAdminCheck(config.adminToken),
      })
    const counted = createCountedLimits(config.gateway, peers, shared)
    opened.push(() => counted.close())
    let listeningAt = ''
    const {
      server,
      realtime,
      shapes,
      broadcasts,
      health,
      internal: own,
      importStatuses,
    } = await openServer({
      ...{
        config,
        tokens,
        door,
        issuers: issuers.all,
        denylist: revocations.list,
        ownUrl: () => listeningAt,
        pool,
        replicas,
        feed: feed.database,
        catalog,
        settings,
        fewerSettings,
        unsent: unsent.current,
        cache,
        plans,
        lists,
        policies,
      },
      ...{ webhooks: hooks?.webhooks ?? null, load, internal, routes: options.routes ?? new Map(), emit },
      callers: options.callers ?? (async () => []),
      notice: options.notice ?? null,
      ...{ counted, peers, tracing, timing, slow },
      ...{ answerBytes, installed, ticket, onBroken: () => void following.check() },
    })
    join = () => realtime.join()
    onStored = (tables, hasJoined) => {
      if (!hasJoined) realtime.wake()
      caching?.wake(tables)
    }
    onRevoked = () => {
      realtime.revoke(tokens.isRevoked)
      shapes?.revoke(tokens.isRevoked)
    }
    recaptured.push(left => {
      realtime.recapture(left)
      // Subscriptions being set up read their rules again, based on the new schema.
      void catalog.reload('svc install or svc uninstall').then(realtime.refresh)
    })
    if (hooks !== null) recaptured.push(() => void hooks.refresh())
    opened.push(() => realtime.close())
    opened.push(() => broadcasts?.close())
    opened.push(() => server.close())
    const catalogs = door === null ? [catalog] : [catalog, door.catalog]
    const renewal = new SessionRenewal(catalogs, replicas === null ? [pool] : [pool, replicas])
    hearers.push(event => {
      if (event.kind !== 'catalog' || event.detail.changed !== true) return
      renewal.changed()
      replicas?.routes.changed()
      reportViews(catalog.current(), emit)
      realtime.refresh()
      void following.check().then(() => hooks?.refresh())
      void unmatched.check('changes only')
    })
    shared?.handle({
      changed: relations => cache?.changed(relations),
      revoked: () => revocations.refresh(),
    })
    peers?.handle({
      report(name, argument) {
        if (name === 'health') return health.isHealthy()
        if (name === 'webhooks') return own.operate(argument)
        if (name === 'imports') return importStatuses.answer(argument)
        return name === 'metrics' ? own.collect() : own.details()
      },
      changed: relations => cache?.changed(relations),
      wrote: (caller, position) => replicas?.routes.wroteThere(caller, position),
      surrender: counted.surrender,
    })
    // Other processes may have answered writes before this one could learn about them.
    replicas?.routes.changed()
    const url = await server.listen()
    listeningAt = url
    // The primary process reports it when all workers listen.
    if (peers === null) emit({ kind: 'listening', url })
    return {
      url,
      retire: () => server.retire(),
      figures: () => own.collect(),
      async close() {
        emit({ kind: 'closing' })
        await closeAll()
        emit({ kind: 'closed' })
        await log.flush()
      },
      async reload() {
        await Promise.all([
          catalog.reload('asked to'),
          door?.catalog.reload('asked to'),
          lists.reload(),
          following.check(),
          issuers.reload(),
        ])
        // Policies and triggers are checked against the new schema.
        await Promise.all([policies.reload(), hooks?.reload(), unmatched.check('all')])
        cache?.clear()
        realtime.refresh()
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Writes the names of views that are not published into the log, with the reasons. */
function reportViews({ unpublishedViews }: Catalog, emit: Emit): void {
  if (unpublishedViews.size === 0) return
  const named = [...unpublishedViews].slice(0, VIEWS_NAMED_MAX).map(([view, reason]) => `${view}: ${reason}`)
  emit({
    kind: 'catalog',
    event: 'views that are not published',
    detail: { views: named, count: unpublishedViews.size },
  })
}

const VIEWS_NAMED_MAX = 20

function operationsOf(webhooks: Webhooks): WebhookOperations {
  return {
    status: () => webhookStatus(webhooks),
    stats: () => webhooks.stats(),
    answers: operatorRequests(webhooks),
  }
}
