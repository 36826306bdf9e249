/** Assembles the parts into a server and connects them with each other. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { IsCallable } from '../access/functions.ts'
import type { Policies } from '../access/policy/policies.ts'
import type { View } from '../access/rights.ts'
import { queryThrough } from '../catalog/query.ts'
import { fetchPartition } from '../catalog/read-partition.ts'
import type { CatalogSource } from '../catalog/reload.ts'
import type { Peers } from '../cluster/peers.ts'
import type { PlanCache } from '../compile/plans.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import type { Incoming } from '../exchange.ts'
import { addressOf, createAdmission } from '../http/admission.ts'
import { createIdentify, createIsData } from '../http/callers.ts'
import { createConsole } from '../http/console.ts'
import { createDocs } from '../http/docs.ts'
import { createDocumentation } from '../http/documentation.ts'
import { createFront, type FrontOptions } from '../http/front.ts'
import { createHeadJudge } from '../http/head.ts'
import { createHosts } from '../http/hosts.ts'
import { type ImportStatus, ImportStatuses } from '../http/import-status.ts'
import { routesOf } from '../http/pages.ts'
import { createPipeline } from '../http/pipeline.ts'
import { createReports } from '../http/reports.ts'
import type { ResponseBytes } from '../http/response-bytes.ts'
import { createServer, type GatewayServer } from '../http/server.ts'
import { createStreamPaces } from '../http/stream-pace.ts'
import { createUnsent } from '../http/unsent.ts'
import type { Sockets } from '../http/upgrade.ts'
import { createAdminCheck } from '../identity/admin.ts'
import { createAuthenticator } from '../identity/authenticate.ts'
import type { Denylist } from '../identity/denylist.ts'
import type { Identity } from '../identity/identity.ts'
import type { Issuers } from '../identity/issuers.ts'
import type { TokenVerifier } from '../identity/jwt.ts'
import { createProtectedResource, type ProtectedResource } from '../identity/resource.ts'
import type { Installed } from '../install/installed.ts'
import { addressKey } from '../limits/address.ts'
import { createBudget } from '../limits/budget.ts'
import { createClientAddress, createProxyCheck } from '../limits/client-address.ts'
import { createImportSlots } from '../limits/import-slots.ts'
import type { Load } from '../limits/load.ts'
import { createHealth, type Health } from '../ops/health.ts'
import type { HttpStats } from '../ops/http-metrics.ts'
import type { Internal } from '../ops/internal.ts'
import type { OperatorRoute, OperatorRoutes } from '../ops/operator-routes.ts'
import type { ServerTiming } from '../ops/server-timing.ts'
import type { SlowRequests } from '../ops/slow-requests.ts'
import { Broadcasts } from '../phoenix/broadcasts.ts'
import { HttpBroadcasts } from '../phoenix/http-broadcasts.ts'
import { type PhoenixServices, PhoenixSession } from '../phoenix/session.ts'
import type { Pool } from '../postgres/pool.ts'
import type { Database } from '../postgres/types.ts'
import type { Door } from '../postgrest/door.ts'
import type { UnsentSettings } from '../postgrest/session.ts'
import { createTextReader, QueryHandler } from '../query/query.ts'
import { createEventStreams } from '../realtime/event-stream.ts'
import { CLIENT_MESSAGE_BYTES_MAX } from '../realtime/message.ts'
import type { Seat } from '../realtime/quotas.ts'
import { createRealtime, createWriteCapture, type Realtime } from '../realtime/realtime.ts'
import { planSubscription } from '../realtime/subscription-plan.ts'
import type { AllowLists } from '../rest/allow-list/lists.ts'
import { Compiler } from '../rest/compile.ts'
import { NewPartitions } from '../rest/new-partitions.ts'
import { createCursorCodec } from '../rest/read/cursor.ts'
import { ReadHandler } from '../rest/read/read.ts'
import { CallHandler } from '../rest/rpc/call.ts'
import { isAllowed } from '../rest/rpc/names.ts'
import type { ResultCache } from '../run/cache/cache.ts'
import { IdempotencyKeys } from '../run/idempotency.ts'
import type { SettingsSource } from '../run/settings.ts'
import { Shapes } from '../shapes/shapes.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { VERSION } from '../version.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { openChangeListener } from './database.ts'
import { createDocuments } from './documents.ts'
import { connectDoor, type OpenedDoor } from './door.ts'
import type { CountedLimits } from './limits.ts'
import type { Replicas } from './replicas.ts'
import { createRunners } from './runners.ts'
import { signInClientOf } from './sign-in-client.ts'

/**
 * Minimum interval between reloads of the schema because of failed statements. A view that is permanently
 * broken fails at every request, which must not cause constant reloads.
 */
const STALE_LOOK_INTERVAL_MS = 5_000

/** The response to a violated constraint waits for the constraint of a new partition. */
const PARTITION_TIMEOUT_MS = 1_000

interface ServerParts {
  readonly config: Config
  readonly tokens: TokenVerifier
  /** The entry point for clients of PostgREST; null if it is not enabled. */
  readonly door: OpenedDoor | null
  readonly issuers: Issuers['all']
  readonly denylist: Denylist
  /** The URL at which the gateway listens; only valid after it has started to. */
  readonly ownUrl: () => string
  readonly pool: Pool
  /** Null if none are configured. */
  readonly replicas: Replicas | null
  /** Connections of the feed role. */
  readonly feed: Pick<Database, 'run'>
  readonly catalog: CatalogSource
  readonly settings: SettingsSource
  /** The same without those that nothing can read (`session-settings.ts`). */
  readonly fewerSettings: SettingsSource
  readonly unsent: UnsentSettings
  readonly cache: ResultCache | null
  readonly plans: PlanCache
  readonly lists: AllowLists
  readonly policies: Policies
  /** Null without webhooks. */
  readonly webhooks: Webhooks | null
  readonly load: Load
  readonly answerBytes: ResponseBytes
  readonly installed: Installed
  /** Registered by `installed`. */
  readonly ticket: string
  /** Called when the objects of `svc install` have changed since they were detected. */
  readonly onBroken: () => void
  readonly internal: (realtime: Realtime['stats'], http: () => HttpStats) => Internal
  readonly routes: OperatorRoutes
  readonly callers: FrontOptions['callers']
  readonly notice: FrontOptions['notice']
  readonly counted: CountedLimits
  /** Null if requests are not traced. */
  readonly tracing: Tracing | null
  /** Null if the times of requests are not measured. */
  readonly timing: ServerTiming | null
  /** Null without an admin token. */
  readonly slow: SlowRequests | null
  /** The other workers; null if there is only this process. */
  readonly peers: Peers | null
  readonly emit: Emit
}

interface Opened {
  readonly server: GatewayServer
  readonly realtime: Realtime
  /** The entry point for clients of realtime-js; null if it is not enabled. */
  readonly broadcasts: Broadcasts | null
  /** Null if they are disabled. */
  readonly shapes: Shapes | null
  readonly health: Health
  readonly internal: Internal
  readonly importStatuses: ImportStatuses
}

/** Opens the server with all its parts. */
export async function openServer(parts: ServerParts): Promise<Opened> {
  const {
    config,
    pool,
    catalog,
    settings,
    fewerSettings,
    cache,
    lists,
    policies,
    webhooks,
    load,
    answerBytes,
    routes,
    counted,
    peers,
    tracing,
    emit,
  } = parts
  const { gateway } = config
  const clock = () => Date.now()
  const now = () => performance.now()
  const importStatuses = new ImportStatuses()
  let server: GatewayServer | null = null
  let lookedAt = -STALE_LOOK_INTERVAL_MS
  const lookAtSchema = () => {
    if (now() - lookedAt < STALE_LOOK_INTERVAL_MS) return
    lookedAt = now()
    parts.door?.catalog.notify('a statement used a name that does not exist')
    catalog.notify('a statement used a name that does not exist')
  }
  const current = () => catalog.current()
  const { timing } = parts
  const capture = createWriteCapture({
    ...{ catalog: current, tenantColumn: gateway.tenantColumn },
    isCaptured: table => parts.installed.current()?.captured.has(table) ?? false,
  })
  const requestIds = isLogged(config, 'debug') ? new AsyncLocalStorage<string>() : null
  const { tenants: gate, connections, rate } = counted
  const paces = createStreamPaces(gateway)
  const bodyBytes = createBudget<string | number>({
    max: gateway.maxInflightBodyBytes,
    shareMax: gateway.addressMaxInflightBodyBytes,
  })
  const unsent = createUnsent({ bytes: answerBytes, gate })
  const running = {
    config,
    routes: parts.replicas?.routes ?? null,
    settings,
    fewerSettings,
    capture,
    cache,
    webhooks,
    gate,
    emit,
    now,
    requestIds,
    tracing,
  }
  const database = timing?.database(pool) ?? pool
  const runners = createRunners({ ...running, database, catalog: current, onStaleSchema: lookAtSchema })
  const opened = parts.door
  const doorRunners =
    opened === null
      ? null
      : createRunners({ ...running, database, catalog: () => opened.catalog.current(), onStaleSchema: lookAtSchema })
  const view = (identity: Identity): View => ({
    catalog: current(),
    rights: policies.rightsOf(identity),
    limits: gateway,
  })
  const doorView = (identity: Identity): View =>
    opened === null ? view(identity) : { ...view(identity), catalog: opened.catalog.current() }
  const subscriptionView = (identity: Identity): View => (hasSession(identity) ? doorView(identity) : view(identity))
  const { plans } = parts
  const isProxy = createProxyCheck(gateway.trustedProxies)
  const resource = createProtectedResource({
    issuers: gateway.issuers.map(({ issuer }) => issuer),
    ...{ publicUrl: gateway.publicUrl, ownUrl: parts.ownUrl, isProxy },
  })
  const authenticate = createAuthenticator(config, parts.tokens, resource)
  const isCallable: IsCallable = (of, call) =>
    isAllowed(of, { allowed: lists.functions() }) && !(gateway.rpcRequireSchemaQualified && call.schema === null)
  const texts = {
    ...{ view, plans, limits: gateway, searchLanguage: gateway.searchLanguage, isCallable },
    ...{ allowed: lists.functions, approvals: lists.approvals },
  }
  const openListener = await openChangeListener(config, emit)
  const realtime = createRealtime({
    ...{ limits: gateway, unread: answerBytes.results, emit },
    ...{
      database: pool,
      feed: parts.feed,
      visibilityReads: {
        read: (identity, ...rest) =>
          (hasSession(identity) ? (doorRunners ?? runners) : runners).unlimited.read(identity, ...rest),
      },
      capture,
      onBroken: parts.onBroken,
      shareRead: peers === null ? null : peers.read,
      now,
      clock,
      random: Math.random,
    },
    reads: runners.sharedReads,
    texts: createTextReader(texts),
    catalog: current,
    plan: (request, identity) =>
      planSubscription(request, {
        ...{ view: subscriptionView(identity), searchLanguage: gateway.searchLanguage },
        ...{ limits: gateway, approvals: lists.approvals, owner: identity },
        // PostgREST's dialect has a separate catalog, so its sessions need separate plans.
        plans: hasSession(identity) ? (opened?.plans ?? plans) : plans,
      }),
    authenticate: token => authenticate({ authorization: `Bearer ${token}` }),
    openListener,
  })
  const shapes = config.shapes.enabled
    ? new Shapes({
        ...config.shapes,
        ...{ hub: realtime.hub, catalog: current, runner: runners.sharedReads, clock },
        ...{ maxInValues: gateway.maxInValues, maxQueryParameters: gateway.maxQueryParameters },
        ...{ unread: answerBytes.results, tenantMaxWaitingShapes: gateway.tenantMaxWaitingShapes },
      })
    : null
  const { issuers, denylist } = parts
  const door =
    opened === null || doorRunners === null
      ? null
      : connectDoor({
          ...{ config, opened, issuers, denylist, resource, policies },
          isExposed: of => isAllowed(of, { allowed: lists.functions() }),
          ...{ reads: doorRunners.uncachedReads, requests: doorRunners.requests, unsent: parts.unsent },
        })
  const broadcasts =
    door === null || !config.postgrest.realtime
      ? null
      : new Broadcasts({ database: pool, openListener, perSecond: config.postgrest.realtimeBroadcastsPerSec, now })
  const identifyToken = (of: Door) => (token: string | null) =>
    of.identify({ headers: token === null ? {} : { authorization: `Bearer ${token}` }, connection: {} })
  const httpBroadcasts =
    door === null || broadcasts === null
      ? null
      : new HttpBroadcasts({
          ...{ broadcasts, identify: identifyToken(door), preflight: door.preflight, finish: door.finish },
        })
  const signInClient = signInClientOf(gateway)
  const callers = {
    door,
    broadcasts: httpBroadcasts,
    shapesPath: shapes?.path ?? null,
    authenticate: timing?.authenticate(authenticate) ?? authenticate,
    explainEndpoint: gateway.explainEndpoint,
    isAdmin: createAdminCheck(config.adminToken),
  }
  const isData = createIsData(callers)
  const clientAddress = createClientAddress(gateway.trustedProxies)
  const health = createHealth({
    version: VERSION,
    query: () => pool.run([{ text: 'SELECT 1', parameters: [] }]).result,
    now,
    isDraining: () => server?.isDraining() ?? false,
    isAnyHealthy: peers === null ? null : () => isAnyHealthy(peers),
  })
  const internal = parts.internal(realtime.stats, () => ({
    ...{ connections, bodyBytes, unsentBytes: answerBytes.unsent, resultBytes: answerBytes.reading.taken },
    slowStreams: paces.ended,
    ...(server?.stats() ?? { largeBodies: 0, pipelinedWaits: 0 }),
    ...(shapes?.stats() ?? { shapesWaiting: 0, shapesRefused: 0, shapeRefetches: 0 }),
  }))
  const partitionQuery = queryThrough(pool, PARTITION_TIMEOUT_MS)
  const reports = createReports({ emit, logsRequests: isLogged(config, 'info'), tracing, slow: parts.slow })
  const answer = createPipeline({
    ...callers,
    ...{ view, approvals: lists.approvals, plans, cachesRequests: cache !== null },
    ...{ runner: runners.requests, reads: runners.reads },
    read: new ReadHandler({
      limits: gateway,
      cursors: createCursorCodec(cursorKey(config, peers)),
      operatorExplains: gateway.explainEndpoint === 'admin',
      comparesTags: cache === null,
    }),
    requestLimits: gateway,
    writeLimits: gateway,
    call: new CallHandler({
      limits: gateway,
      qualified: gateway.rpcRequireSchemaQualified,
      allowed: lists.functions,
      signatureCheck: gateway.rpcSignatureCheck,
    }),
    text: new QueryHandler({ ...texts, explains: gateway.explainEndpoint === 'on' }),
    newPartitions: new NewPartitions({
      find: (schema, name) => fetchPartition(partitionQuery, schema, name),
      now,
    }),
    compiler: new Compiler({ plans, searchLanguage: gateway.searchLanguage, limits: gateway }),
    events: createEventStreams({
      realtime,
      holderOf: incoming => addressKey(addressOf(socketOf(incoming), clientAddress)),
    }),
    shapes,
    batch: {
      ...{ maxBatchOperations: gateway.maxBatchOperations, maxBatchReferences: gateway.maxBatchReferences },
      ...{ maxResultBytes: gateway.maxResultBytes, reports, now },
      countRequest: incoming => rate === null || rate.take(addressOf(socketOf(incoming), clientAddress)),
      countBytes: unsent.count,
      pause: setTimeout,
      random: Math.random,
    },
    imports: {
      slots: peers?.imports ?? createImportSlots({ max: gateway.maxImports, shareMax: gateway.tenantMaxImports }),
      ...{ maxImportBytes: gateway.maxImportBytes, importTimeoutMs: gateway.importTimeoutMs, now },
      statuses: importStatuses,
      findElsewhere: peers === null ? null : question => findImport(peers, question),
    },
    inspect: {
      ...{ isEnabled: gateway.explainEndpoint === 'on', isOpen: config.devMode },
      ...{ limits: gateway, maxInspectSteps: gateway.maxInspectSteps, caches: cache !== null, now },
    },
    idempotencyKeys: new IdempotencyKeys({
      ...{ database, ticket: parts.ticket, limits: gateway },
      isInstalled: () => parts.installed.current() !== null,
      onUnknownTicket: parts.onBroken,
    }),
    documents: createDocuments({ config, catalog: current, functions: lists.functions }),
    assertRoom: unsent.assertRoom,
    health,
    internal: new Map([
      ...routes,
      ...routesOf(
        new Map([
          ...createDocs({ tokens: config.devMode ? parts.tokens : null }),
          ...createFront({
            ...{ requiresToken: gateway.requireAuth, hasConsole: gateway.console.enabled },
            ...{ provider: signInClient, callers: parts.callers, notice: parts.notice },
          }),
          ...(gateway.console.enabled ? createConsole(signInClient) : []),
        ]),
      ),
      ...createDocumentation(),
      ...(resource?.paths.map(path => [path, metadataOf(resource)] as const) ?? []),
      ...internal.routes,
    ]),
  })
  const timed = timing?.pipeline(answer) ?? answer
  const traced = tracing?.pipeline(timed) ?? timed
  const pipeline: typeof answer =
    requestIds === null
      ? traced
      : (incoming, progress) => requestIds.run(incoming.requestId, () => traced(incoming, progress))
  const admit = createAdmission({
    ...{ clientAddress, rate },
    isOverloaded: load.isTooHigh,
    isData,
  })
  server = await createServer({
    ...gateway.bind,
    ...gateway,
    admit,
    judgeHead: createHeadJudge({
      hosts: config.devMode ? createHosts([gateway.bind.host, ...gateway.allowedHosts]) : null,
      corsAllowedOrigins: gateway.corsAllowedOrigins,
    }),
    identify: createIdentify(callers),
    isData,
    answerError: (error, incoming, caller) =>
      door !== null && (door.owns(incoming.path) || httpBroadcasts?.owns(incoming.path))
        ? door.respondError(error, caller, incoming)
        : null,
    pipeline,
    reports,
    connections: {
      slots: connections,
      holderOf: ({ remoteAddress }) =>
        isProxy(remoteAddress) ? null : addressKey(clientAddress(remoteAddress, undefined)),
    },
    bodyBytes,
    holderOf: request => addressKey(addressOf(request, clientAddress)),
    unsent,
    paces,
    sockets: [
      {
        path: '/ws',
        ...{ messageBytesMax: CLIENT_MESSAGE_BYTES_MAX, queryToken: gateway.wsQueryToken, authenticate },
        admit: realtime.admit,
        open: realtime.open,
        leave() {
          realtime.leave()
          shapes?.leave()
        },
      },
      ...(door === null || broadcasts === null ? [] : [phoenixSockets({ door, broadcasts })]),
    ],
    emit,
    serverTiming: config.devMode,
    now,
  })
  return { server, realtime, shapes, broadcasts, health, internal, importStatuses }

  /** The sockets of realtime-js, whose messages identify callers. */
  function phoenixSockets({ door, broadcasts }: { readonly door: Door; readonly broadcasts: Broadcasts }): Sockets {
    const services: PhoenixServices = {
      ...{ realtime, hub: realtime.hub, broadcasts, schemas: config.postgrest.schemas, view: doorView, now, clock },
      ...{ isCaptured: capture.isCaptured, subscriber: door.subscriber },
      identify: identifyToken(door),
    }
    return {
      ...{ path: '/realtime/v1/websocket', messageBytesMax: CLIENT_MESSAGE_BYTES_MAX, queryToken: false },
      ...{ authenticate: null, admit: realtime.admit, leave() {} },
      open: (link, _identity, seat: Seat, query) => new PhoenixSession({ ...services, link, seat, query }),
    }
  }
}

/** True for callers of the entry point for clients of PostgREST. */
function hasSession({ session }: Identity): boolean {
  return session !== undefined
}

/** Reports whether any worker is healthy; a worker that does not answer is not. */
async function isAnyHealthy(peers: Peers): Promise<boolean> {
  const { reports } = await peers.gather('health')
  return reports.some(({ value }) => value === true)
}

/** The progress of an import of any worker. */
async function findImport(peers: Peers, question: string): Promise<ImportStatus | null> {
  const { reports } = await peers.gather('imports', question)
  // The others run the same program.
  return (reports.find(({ value }) => value !== null)?.value ?? null) as ImportStatus | null
}

/** The connection of a request, whose address its limits count. */
function socketOf({ connection, headers }: Incoming): Pick<IncomingMessage, 'socket' | 'headers'> {
  return { socket: connection as Socket, headers }
}

/** From the most to the least that is written. */
const LOG_LEVELS = ['trace', 'debug', 'info']

function isLogged({ logLevel }: Config, level: 'debug' | 'info'): boolean {
  const at = LOG_LEVELS.indexOf(logLevel)
  return at !== -1 && at <= LOG_LEVELS.indexOf(level)
}

/** Public, and the same for everybody: pages of other origins may read it as well. */
function metadataOf(resource: ProtectedResource): OperatorRoute {
  return {
    method: 'GET',
    answer: async asked => ({
      status: 200,
      headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-cache' },
      body: Buffer.from(JSON.stringify(resource.document(asked))),
    }),
  }
}

/**
 * The key that cursors are signed with. Gateways with the same token secret accept each other's cursors.
 * Without a secret, a gateway accepts only its own cursors, whichever of its workers issued them.
 */
function cursorKey(config: Config, peers: Peers | null): string {
  return createHmac('sha256', config.jwtSecret ?? peers?.secret ?? randomBytes(32))
    .update('svc cursor')
    .digest('hex')
}
