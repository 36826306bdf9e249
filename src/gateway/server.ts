/** Assembles the parts into a server and connects them with each other. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHmac, randomBytes } from 'node:crypto'
import type { IsCallable } from '../access/functions.ts'
import type { Policies } from '../access/policy/policies.ts'
import type { View } from '../access/rights.ts'
import { queryThrough } from '../catalog/query.ts'
import { readPartition } from '../catalog/read-partition.ts'
import type { CatalogSource } from '../catalog/reload.ts'
import type { PlanCache } from '../compile/plans.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import { addressOf, createAdmission } from '../http/admission.ts'
import { createIdentify } from '../http/callers.ts'
import { createDocs } from '../http/docs.ts'
import { createHeadJudge } from '../http/head.ts'
import { createHosts } from '../http/hosts.ts'
import type { Page, Pages } from '../http/pages.ts'
import { createPipeline } from '../http/pipeline.ts'
import type { ResponseBytes } from '../http/response-bytes.ts'
import { createServer, type GatewayServer } from '../http/server.ts'
import { createStreamPaces } from '../http/stream-pace.ts'
import { createUnsent } from '../http/unsent.ts'
import { createAdminCheck } from '../identity/admin.ts'
import { createAuthenticator } from '../identity/authenticate.ts'
import type { Identity } from '../identity/identity.ts'
import type { TokenVerifier } from '../identity/jwt.ts'
import { createProtectedResource, type ProtectedResource } from '../identity/resource.ts'
import type { Installed } from '../install/installed.ts'
import { addressKey } from '../limits/address.ts'
import { createBudget } from '../limits/budget.ts'
import { createClientAddress, createProxyCheck } from '../limits/client-address.ts'
import type { Load } from '../limits/load.ts'
import { createRateLimit } from '../limits/rate.ts'
import { createTenantLimit } from '../limits/tenant-limit.ts'
import { createHealth } from '../ops/health.ts'
import type { HttpStats } from '../ops/http-metrics.ts'
import type { OperatorRoute, OperatorRoutes } from '../ops/internal.ts'
import { createServerTiming } from '../ops/server-timing.ts'
import type { Pool } from '../postgres/pool.ts'
import type { Database } from '../postgres/types.ts'
import { createTextReader, QueryHandler } from '../query/query.ts'
import { MESSAGE_BYTES_MAX } from '../realtime/message.ts'
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
import type { SettingsSource } from '../run/settings.ts'
import { VERSION } from '../version.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { openChangeListener } from './database.ts'
import { createDocuments } from './documents.ts'
import { createRunners } from './runners.ts'

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
  /** Where the gateway listens, once it does. */
  readonly ownUrl: () => string
  readonly pool: Pool
  /** Connections of the feed role. */
  readonly feed: Pick<Database, 'run'>
  readonly catalog: CatalogSource
  readonly settings: SettingsSource
  readonly cache: ResultCache | null
  readonly plans: PlanCache
  readonly lists: AllowLists
  readonly policies: Policies
  /** Null if there are no webhooks. */
  readonly webhooks: Webhooks | null
  readonly load: Load
  readonly answerBytes: ResponseBytes
  readonly installed: Installed
  /** Called when the objects of `svc install` have changed since they were detected. */
  readonly onBroken: () => void
  readonly internal: (realtime: Realtime['stats'], http: () => HttpStats) => OperatorRoutes
  readonly pages: Pages
  readonly emit: Emit
}

interface Opened {
  readonly server: GatewayServer
  readonly realtime: Realtime
}

/** Opens the server with all its parts. */
export async function openServer(parts: ServerParts): Promise<Opened> {
  const {
    config,
    pool,
    catalog,
    settings,
    cache,
    lists,
    policies,
    webhooks,
    load,
    answerBytes,
    internal,
    pages,
    emit,
  } = parts
  const { gateway } = config
  const clock = () => Date.now()
  const now = () => performance.now()
  let server: GatewayServer | null = null
  let lookedAt = -STALE_LOOK_INTERVAL_MS
  const lookAtSchema = () => {
    if (now() - lookedAt < STALE_LOOK_INTERVAL_MS) return
    lookedAt = now()
    catalog.notify('a statement named what is not there')
  }
  const current = () => catalog.current()
  const timing = config.devMode ? createServerTiming(now) : null
  const capture = createWriteCapture({
    ...{ catalog: current, tenantColumn: gateway.tenantColumn },
    isCaptured: table => parts.installed.current()?.captured.has(table) ?? false,
  })
  const trace = isLogged(config, 'debug') ? new AsyncLocalStorage<string>() : null
  const gate = createTenantLimit(gateway.tenantMaxConcurrent)
  const paces = createStreamPaces(gateway)
  const bodyBytes = createBudget<string | number>({
    max: gateway.maxInflightBodyBytes,
    shareMax: gateway.addressMaxInflightBodyBytes,
  })
  const connections = createBudget<string | number>({
    max: gateway.maxClientConnections,
    shareMax: gateway.addressMaxClientConnections,
  })
  const unsent = createUnsent({ bytes: answerBytes, gate })
  const runners = createRunners({
    ...{ config, settings, catalog: current, capture, cache, webhooks, gate, emit, now, trace },
    database: timing?.database(pool) ?? pool,
    onStaleSchema: lookAtSchema,
  })
  const view = (identity: Identity): View => ({
    catalog: current(),
    rights: policies.rightsOf(identity),
    limits: gateway,
  })
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
  const realtime = createRealtime({
    ...{ limits: gateway, emit },
    ...{
      database: pool,
      feed: parts.feed,
      visibilityReads: runners.unlimited,
      capture,
      onBroken: parts.onBroken,
      now,
      clock,
      random: Math.random,
    },
    reads: runners.uncachedReads,
    texts: createTextReader(texts),
    catalog: current,
    plan: (request, identity) =>
      planSubscription(request, {
        ...{ view: view(identity), searchLanguage: gateway.searchLanguage },
        ...{ limits: gateway, approvals: lists.approvals },
      }),
    authenticate: token => authenticate({ authorization: `Bearer ${token}` }),
    openListener: await openChangeListener(config, emit),
  })
  const callers = {
    authenticate: timing?.authenticate(authenticate) ?? authenticate,
    explainEndpoint: gateway.explainEndpoint,
    isAdmin: createAdminCheck(config.adminToken),
  }
  const partitionQuery = queryThrough(pool, PARTITION_TIMEOUT_MS)
  const answer = createPipeline({
    ...callers,
    ...{ view, approvals: lists.approvals, plans, cachesRequests: cache !== null },
    ...{ runner: runners.requests, reads: runners.reads },
    read: new ReadHandler({
      limits: gateway,
      cursors: createCursorCodec(cursorKey(config)),
      operatorExplains: gateway.explainEndpoint === 'admin',
    }),
    writeLimits: gateway,
    call: new CallHandler({
      limits: gateway,
      qualified: gateway.rpcRequireSchemaQualified,
      allowed: lists.functions,
      signatureCheck: gateway.rpcSignatureCheck,
    }),
    text: new QueryHandler({ ...texts, explains: gateway.explainEndpoint === 'on' }),
    newPartitions: new NewPartitions({
      find: (schema, name) => readPartition(partitionQuery, schema, name),
      now,
    }),
    compiler: new Compiler({ plans, searchLanguage: gateway.searchLanguage, limits: gateway }),
    documents: createDocuments({ config, catalog: current, functions: lists.functions }),
    assertRoom: unsent.assertRoom,
    health: createHealth({
      version: VERSION,
      ask: () => pool.run([{ text: 'SELECT 1', parameters: [] }]).result,
      now,
      isDraining: () => server?.isDraining() ?? false,
    }),
    internal: new Map([
      ...[...pages, ...createDocs({ tokens: config.devMode ? parts.tokens : null })].map(reading),
      ...(resource?.paths.map(path => [path, metadataOf(resource)] as const) ?? []),
      ...internal(realtime.stats, () => ({
        ...{ connections, bodyBytes, unsentBytes: answerBytes.unsent, resultBytes: answerBytes.reading.taken },
        slowStreams: paces.ended,
        ...(server?.stats() ?? { largeBodies: 0, pipelinedWaits: 0 }),
      })),
    ]),
  })
  const timed = timing?.pipeline(answer) ?? answer
  const pipeline: typeof answer =
    trace === null ? timed : (incoming, progress) => trace.run(incoming.requestId, () => timed(incoming, progress))
  const clientAddress = createClientAddress(gateway.trustedProxies)
  const admit = createAdmission({
    clientAddress,
    rate: createRateLimit({
      rate: gateway.rateLimitRate,
      burst: gateway.rateLimitBurst,
      now,
      seed: randomBytes(4).readUInt32LE(),
    }),
    isOverloaded: load.isTooHigh,
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
    pipeline,
    logsRequests: isLogged(config, 'info'),
    connections: {
      budget: connections,
      holderOf: ({ remoteAddress }) =>
        isProxy(remoteAddress) ? null : addressKey(clientAddress(remoteAddress, undefined)),
    },
    bodyBytes,
    holderOf: request => addressKey(addressOf(request, clientAddress)),
    unsent,
    paces,
    sockets: {
      ...{ messageBytesMax: MESSAGE_BYTES_MAX, queryToken: gateway.wsQueryToken, authenticate },
      admit: realtime.admit,
      open: realtime.open,
      leave: realtime.leave,
    },
    emit,
    serverTiming: timing !== null,
    now,
  })
  return { server, realtime }
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

/** A page by its path. */
function reading([path, answer]: readonly [string, Page]): readonly [string, OperatorRoute] {
  return [path, { method: 'GET', answer: ({ headers }) => answer(headers) }]
}

/**
 * Gateways that share the secret of the tokens can read each other's cursors; without one, each reads its
 * own.
 */
function cursorKey(config: Config): string {
  return createHmac('sha256', config.jwtSecret ?? randomBytes(32))
    .update('svc cursor')
    .digest('hex')
}
