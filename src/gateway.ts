/** The composition root: makes every part in order, and closes them in reverse. */
import { createHmac, randomBytes } from 'node:crypto'
import { canSeeResult } from './access/columns.ts'
import type { IsCallable } from './access/functions.ts'
import { AllowListError } from './access/list/list-file.ts'
import type { Policies } from './access/policy/policies.ts'
import { canSee, EVERYTHING, type View } from './access/rights.ts'
import { describe } from './catalog/describe.ts'
import { describeFunctions } from './catalog/describe-functions.ts'
import { introspect, type Query, readFingerprint } from './catalog/introspect.ts'
import { queryThrough } from './catalog/query.ts'
import { type CatalogSource, createCatalogSource } from './catalog/reload.ts'
import type { Config } from './config/config.ts'
import { ENVIRONMENT } from './config/environment.ts'
import type { Environment } from './config/expand.ts'
import { limitsOf } from './config/limits.ts'
import { policyFiles } from './config/policy-files.ts'
import { type Emit, unusableFile } from './events.ts'
import { asErrors, asWarnings, type Finding, printFinding } from './finding.ts'
import { createAdmission } from './http/admission.ts'
import { createDocs } from './http/docs.ts'
import { documentFor } from './http/document.ts'
import type { Page, Pages } from './http/pages.ts'
import { createPipeline } from './http/pipeline.ts'
import { createServer, type Server } from './http/server.ts'
import { createAdminCheck } from './identity/admin.ts'
import { createAuthenticator } from './identity/authenticate.ts'
import { identityFindings } from './identity/boot.ts'
import type { Identity } from './identity/identity.ts'
import { follow } from './install/follow.ts'
import { type Installed, openInstalled } from './install/installed.ts'
import { createClientAddress } from './limits/client-address.ts'
import { createGate } from './limits/gate.ts'
import { createLoad, type Load, PROBE_INTERVAL_MS } from './limits/load.ts'
import { createRateLimit } from './limits/rate.ts'
import { bootDangers, lintDatabase } from './lint/lint-database.ts'
import { createBootWarnings } from './ops/boot-warnings.ts'
import { connectionFindings } from './ops/connections.ts'
import { createHealth } from './ops/health.ts'
import { createInternal, type Internal, type InternalAnswer, type WebhookOperations } from './ops/internal.ts'
import { createLog } from './ops/log.ts'
import { createMetrics } from './ops/metrics.ts'
import { createSchemaWatch } from './ops/schema-status.ts'
import { createServerTiming } from './ops/server-timing.ts'
import type { Gss } from './postgres/auth/gss-attempts.ts'
import { UnavailableError } from './postgres/errors.ts'
import { createListener, type Listener } from './postgres/listener.ts'
import { createPool, type Pool } from './postgres/pool.ts'
import type { ConnectionTarget } from './postgres/target.ts'
import { parseUrl } from './postgres/url.ts'
import { MESSAGE_BYTES_MAX } from './realtime/message.ts'
import { createCapture, createRealtime, type OpenListener, type Realtime } from './realtime/realtime.ts'
import { planWatch } from './realtime/watch.ts'
import { type Lists, type ListsParts, openLists as loadLists } from './rest/lists.ts'
import { createQuerier, createTextReader } from './rest/query/query.ts'
import { createCursorCodec } from './rest/read/cursor.ts'
import { createReader } from './rest/read/read.ts'
import { createCaller } from './rest/rpc/call.ts'
import { callName, isAllowed } from './rest/rpc/names.ts'
import { createWriter } from './rest/write/write.ts'
import type { ResultCache } from './run/cache/cache.ts'
import { captureChanges } from './run/capture.ts'
import { guardCost } from './run/cost-guard.ts'
import { createGatedRunner } from './run/gated.ts'
import { createRunner } from './run/run.ts'
import { createSettings, type SettingsSource } from './run/settings.ts'
import { VERSION } from './version.ts'
import { createAddressGuard } from './webhooks/address-guard.ts'
import { webhookAnswers, webhookStatus } from './webhooks/answers.ts'
import type { Hooks } from './webhooks/open.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

export interface Gateway {
  /** Where it listens, e.g. `http://127.0.0.1:8080`. */
  readonly url: string
  /** Stops accepting, finishes what is in flight until `drain_timeout_ms`, drains the pool (specification 1.10). */
  close(): Promise<void>
  /** What SIGHUP does: reads the schema again, and the files that may change while it runs. */
  reload(): Promise<void>
}

export interface GatewayOptions {
  /** Hears of everything that happens; the log by default. */
  readonly emit?: Emit
  /** A file to write the shapes of all queries to that are answered; every query may be asked then (decisions 7). */
  readonly record?: string
  /** What `${NAME}` means in the files that are read again; the process's by default. */
  readonly environment?: Environment
  /** More pages for browsers, besides the gateway's own. */
  readonly pages?: Pages
}

/** The gateway cannot start as it is configured; `message` says all of what to change. */
export class BootError extends Error {
  constructor(findings: readonly Finding[]) {
    super(findings.map(printFinding).join('\n'))
    this.name = 'BootError'
  }
}

/** A backend that does not answer for this long after its statement should have timed out is taken for dead. */
const ANSWER_GRACE_MS = 30_000

/** Requests that were cut off at the end of `drain_timeout_ms` are still to be cancelled in the database. */
const CANCEL_GRACE_MS = 1_000

/** Waits for the database, however long it takes to come, and listens once it can answer. */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const log = createLog(config.logLevel)
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
    closeBy = performance.now() + config.gateway.drainTimeoutMs
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
    report(identityFindings(config), config, emit)
    report(await connectionFindings(config), config, emit)
    const { record = null } = options
    const lists = await openLists(config, record, emit)
    opened.push(async () => {
      await lists.close()
      if (record !== null) emit({ kind: 'recorded', file: record, shapes: lists.recorded() })
    })
    const pool = await openPool(config, emit)
    opened.push(() => pool.close({ deadlineMs: Math.max(closeBy - performance.now(), CANCEL_GRACE_MS) }))
    const query = queryThrough(pool)
    report(await onceAvailable(pool, () => databaseFindings(config, query)), config, emit)
    const installed = await onceAvailable(pool, () =>
      openInstalled({ ask: query, warn: (message, fix) => emit({ kind: 'warning', message, fix }) }),
    )
    opened.push(() => installed.close())
    // Whoever keeps answers, or waits for them to change, has to know what they depend on.
    const dependences = config.gateway.cache.enabled || installed.current() !== null
    const catalog = await onceAvailable(pool, () => openCatalog(config, query, dependences, emit))
    opened.push(() => catalog.close())
    const schema = createSchemaWatch({ catalog: () => catalog.current(), now, clock: () => Date.now() })
    hearers.push(schema.hear)
    const recaptured: ((left: readonly string[]) => void)[] = []
    const following = follow({
      ...{ installed, everyMs: config.gateway.schemaPollSecs * 1_000 },
      onChange(left) {
        for (const hear of recaptured) hear(left)
      },
    })
    opened.push(() => following.close())
    const listener = await openListener(config, catalog, () => void following.look(), emit)
    opened.push(() => listener?.close())
    const policies = await openPolicies(config, catalog, emit)
    const settings = createSettings(config.gateway)
    const cache = await openCache(config, catalog, settings, now)
    const hooks = await onceAvailable(pool, () =>
      openWebhooks({ config, pool, catalog, installed, environment: options.environment ?? ENVIRONMENT, emit }),
    )
    opened.push(() => hooks?.webhooks.close({ deadlineMs: Math.max(closeBy - performance.now(), CANCEL_GRACE_MS) }))
    const load = createLoad(() => performance.now())
    const probing = setInterval(load.probe, PROBE_INTERVAL_MS)
    opened.push(() => clearInterval(probing))
    const internal = (stats: Realtime['stats']) =>
      createInternal({
        ...{ version: VERSION, metrics, warnings, now },
        realtime: stats,
        installation: () => installed.current(),
        schema: schema.status,
        pool: () => pool.stats(),
        cache: cache === null ? null : () => cache.stats(),
        maxConnections: config.gateway.maxConnections,
        limits: limitsOf(config.gateway),
        webhooks: hooks === null ? null : operationsOf(hooks.webhooks),
        isAdmin: config.adminToken === null ? null : createAdminCheck(config.adminToken),
      })
    const { server, realtime } = await openServer({
      ...{ config, pool, catalog, settings, cache, lists, policies },
      ...{ webhooks: hooks?.webhooks ?? null, load, internal, pages: options.pages ?? new Map(), emit },
      ...{ installed, dependences, onBroken: () => void following.look() },
    })
    recaptured.push(realtime.recapture)
    if (hooks !== null) recaptured.push(() => void hooks.refresh())
    opened.push(() => realtime.close())
    opened.push(() => server.close())
    hearers.push(event => {
      if (event.kind !== 'catalogue' || event.detail.changed !== true) return
      realtime.refresh()
      void following.look().then(() => hooks?.refresh())
    })
    const url = await server.listen()
    emit({ kind: 'listening', url })
    return {
      url,
      async close() {
        emit({ kind: 'closing' })
        await closeAll()
        emit({ kind: 'closed' })
        await log.flush()
      },
      async reload() {
        await Promise.all([catalog.reload('asked to'), lists.reload(), following.look()])
        // Policies and triggers are read against the schema as it is now.
        await Promise.all([policies.reload(), hooks?.reload()])
        cache?.clear()
        realtime.refresh()
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** `strict` looks at everything that `svc check` looks at; who only wants to start does not wait for that. */
async function databaseFindings({ gateway }: Config, query: Query): Promise<readonly Finding[]> {
  if (gateway.strict) return (await lintDatabase(query, gateway)).findings
  return asWarnings(await bootDangers(query, gateway))
}

/** Warnings go to the log; an error, or any finding under `strict`, ends the start (decisions 1). */
function report(findings: readonly Finding[], config: Config, emit: Emit): void {
  const judged = config.gateway.strict ? asErrors(findings) : findings
  const errors = judged.filter(finding => finding.level === 'error')
  if (errors.length > 0) throw new BootError(errors)
  for (const { message, fix } of judged) emit({ kind: 'warning', message, fix })
}

async function openPool(config: Config, emit: Emit): Promise<Pool> {
  const { databaseUrl, maxConnections, acquireTimeoutMs, preparedStatements, statementTimeoutMs } = config.gateway
  if (databaseUrl === null) {
    throw new BootError([
      {
        level: 'error',
        message: 'no database is configured',
        fix: 'Set DATABASE_URL or [gateway] database_url to postgres://user:password@host:5432/database.',
      },
    ])
  }
  const target = parseUrl(databaseUrl)
  const pool = createPool({
    target,
    gss: await openTokens(target, config, emit),
    maxConnections,
    acquireTimeoutMs,
    preparedStatements,
    answerTimeoutMs: statementTimeoutMs + ANSWER_GRACE_MS,
    onEvent: ({ kind, ...detail }) => emit({ kind: 'database', event: kind, detail }),
  })
  try {
    await pool.ready()
  } catch (error) {
    await pool.close({ deadlineMs: 0 })
    throw error
  }
  return pool
}

/** For the pool and for the listener apart: they may go to different servers, and one circuit must not block the other. */
async function openTokens(target: ConnectionTarget, { gateway }: Config, emit: Emit): Promise<Gss | null> {
  if (target.gss === null) return null
  const { openGss } = await import('./kerberos/open.ts')
  const { gssModule } = gateway
  return openGss(target, { gssModule, onTransition: transition => emit({ kind: 'circuit', ...transition }) })
}

/** A database that goes away again while the gateway starts is waited for like one that was never there. */
async function onceAvailable<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error
      await pool.ready()
    }
  }
}

async function openCatalog(
  { gateway }: Config,
  query: Query,
  dependences: boolean,
  emit: Emit,
): Promise<CatalogSource> {
  const { schemas, exposedViews, schemaPollSecs } = gateway
  const options = { schemas, exposedViews, dependences }
  return createCatalogSource({
    load: () => introspect(query, options),
    fingerprint: () => readFingerprint(query, options),
    pollSeconds: schemaPollSecs,
    onEvent: ({ kind, ...detail }) => emit({ kind: 'catalogue', event: kind, detail }),
  })
}

const SCHEMA_CHANNEL = 'svc_schema'

/** Null behind a transaction pooler, where LISTEN means nothing. */
function listeningUrl({ gateway: { databaseUrl, realtimeDatabaseUrl, preparedStatements } }: Config): string | null {
  return realtimeDatabaseUrl ?? (preparedStatements ? databaseUrl : null)
}

/** Hears when the schema changed. Null where nobody can listen: polling remains. */
async function openListener(
  config: Config,
  catalog: CatalogSource,
  lookAtInstallation: () => void,
  emit: Emit,
): Promise<Listener | null> {
  const url = listeningUrl(config)
  if (url === null) return null
  const target = parseUrl(url)
  const listener = createListener({
    target,
    gss: await openTokens(target, config, emit),
    onNotification() {
      catalog.notify('NOTIFY svc_schema')
      lookAtInstallation()
    },
    onGap() {
      catalog.notify('the connection that listens was lost for a while')
      lookAtInstallation()
    },
    onEvent: ({ kind, ...detail }) => emit({ kind: 'database', event: `listener ${kind}`, detail }),
  })
  listener.listen(SCHEMA_CHANNEL).then(
    () => catalog.notify('what changed between reading the schema and listening'),
    // Closed before it ever listened.
    () => {},
  )
  return listener
}

// What few gateways have, or few requests ask for, is loaded when it is wanted: each module is part of the time to the first answer.

/** Null: it is off, and nothing of it is on the way of a request. */
async function openCache(
  { gateway }: Config,
  catalog: CatalogSource,
  settings: SettingsSource,
  now: () => number,
): Promise<ResultCache | null> {
  const { enabled, maxEntries, ttlSecs } = gateway.cache
  if (!enabled) return null
  const { createResultCache } = await import('./run/cache/cache.ts')
  return createResultCache({
    catalog: () => catalog.current(),
    settings,
    entriesMax: maxEntries,
    ttlMs: ttlSecs * 1_000,
    statementTimeoutMs: gateway.statementTimeoutMs,
    now,
    after: (delayMs, call) => void setTimeout(call, delayMs).unref(),
  })
}

/** A view that is broken for good fails at every request; that is no reason to read the schema all the time. */
const STALE_LOOK_INTERVAL_MS = 5_000

interface ServerParts {
  readonly config: Config
  readonly pool: Pool
  readonly catalog: CatalogSource
  readonly settings: SettingsSource
  readonly cache: ResultCache | null
  readonly lists: Lists
  readonly policies: Policies
  /** Null: nobody is told of changes. */
  readonly webhooks: Webhooks | null
  readonly load: Load
  readonly installed: Installed
  /** The catalogue says what brings what in. */
  readonly dependences: boolean
  /** What `svc install` made is not as it was found. */
  readonly onBroken: () => void
  readonly internal: (realtime: Realtime['stats']) => Internal
  readonly pages: Pages
  readonly emit: Emit
}

interface Opened {
  readonly server: Server
  readonly realtime: Realtime
}

async function openServer(parts: ServerParts): Promise<Opened> {
  const { config, pool, catalog, settings, cache, lists, policies, webhooks, load, internal, pages, emit } = parts
  const { gateway } = config
  const clock = () => Date.now()
  const now = () => performance.now()
  let server: Server | null = null
  let lookedAt = -STALE_LOOK_INTERVAL_MS
  const lookAtSchema = () => {
    if (now() - lookedAt < STALE_LOOK_INTERVAL_MS) return
    lookedAt = now()
    catalog.notify('a statement named what is not there')
  }
  const current = () => catalog.current()
  const timing = config.devMode ? createServerTiming(now) : null
  const database = timing?.database(pool) ?? pool
  const capture = createCapture({
    catalog: current,
    isCaptured: table => parts.installed.current()?.captured.has(table) ?? false,
  })
  const plain = createRunner({
    ...{ database, settings },
    onStaleSchema: lookAtSchema,
    announcements: listeningUrl(config) === null ? null : capture.announcements,
  })
  const watched = cache?.watching(plain) ?? plain
  const ungated = webhooks === null ? watched : captureChanges(watched, webhooks)
  const gate = createGate(gateway.tenantMaxConcurrent)
  const runner = createGatedRunner(ungated, gate)
  // A write that reads again what it has done is no read.
  const guarded = guardCost(ungated, { limits: gateway, now })
  const reads = createGatedRunner(cache?.serving(guarded) ?? guarded, gate)
  const view = (identity: Identity): View => ({ catalog: current(), rights: policies.rightsOf(identity) })
  const documents = { sources: () => [current(), lists.functions()], keyOf: ({ rights }: View) => rights.key }
  const schemaDocument = documentFor<View>({
    ...documents,
    make: ({ catalog, rights }) => JSON.stringify(describe(catalog, (table, column) => canSee(table, column, rights))),
  })
  const contractsDocument = documentFor<View>({
    ...documents,
    make: seen =>
      JSON.stringify(
        describeFunctions(seen.catalog, {
          canCall: of => isAllowed(of, { allowed: lists.functions() }) && canSeeResult(of, seen),
          nameOf: of => callName(of, { qualified: gateway.rpcRequireSchemaQualified }),
        }),
      ),
  })
  const apiDocument = onDemand(async () => {
    const { openApiDocument } = await import('./rest/openapi/document.ts')
    const told = { ...gateway, version: VERSION, adminGuard: config.adminToken !== null }
    return documentFor<View>({
      ...documents,
      make: seen => openApiDocument(seen, { ...told, allowed: lists.functions() }),
    })
  })
  const door = { view, runner, limits: gateway, searchLanguage: gateway.searchLanguage }
  const authenticate = createAuthenticator(config, clock)
  const isCallable: IsCallable = (of, call) =>
    isAllowed(of, { allowed: lists.functions() }) && !(gateway.rpcRequireSchemaQualified && call.schema === null)
  const realtime = createRealtime({
    ...{ database: pool, looks: ungated, capture, onBroken: parts.onBroken, now, clock, random: Math.random },
    // What is kept may be older than the change that somebody waits for.
    reads: createGatedRunner(guarded, gate),
    knowsDependences: parts.dependences,
    texts: createTextReader({ ...door, isCallable, approvals: lists.approvals }),
    catalog: current,
    plan: (request, identity) =>
      planWatch(request, {
        ...{ view: view(identity), searchLanguage: gateway.searchLanguage },
        ...{ limits: gateway, approvals: lists.approvals },
      }),
    authenticate: token => authenticate({ authorization: `Bearer ${token}` }),
    openListener: await openChangeListener(config, emit),
  })
  const answer = createPipeline({
    authenticate: timing?.authenticate(authenticate) ?? authenticate,
    approvals: lists.approvals,
    read: createReader({
      ...door,
      runner: reads,
      cursors: createCursorCodec(cursorKey(config)),
      remembers: cache !== null,
    }),
    write: createWriter(door),
    call: createCaller({
      ...door,
      qualified: gateway.rpcRequireSchemaQualified,
      allowed: lists.functions,
      signatureCheck: gateway.rpcSignatureCheck,
    }),
    query: createQuerier({
      ...door,
      runner: reads,
      isCallable,
      approvals: lists.approvals,
      explains: gateway.explainEndpoint === 'on',
    }),
    schemaDocument: identity => schemaDocument(view(identity)),
    contractsDocument: identity => contractsDocument(view(identity)),
    openApiDocument: async identity => (await apiDocument())(view(identity)),
    explainEndpoint: gateway.explainEndpoint,
    isAdmin: createAdminCheck(config.adminToken),
    health: createHealth({
      version: VERSION,
      ask: () => pool.run([{ text: 'SELECT 1', parameters: [] }]).result,
      now,
      isDraining: () => server?.isDraining() ?? false,
    }),
    internal: new Map([...[...pages, ...createDocs()].map(reading), ...internal(realtime.stats)]),
  })
  const pipeline = timing?.pipeline(answer) ?? answer
  const admit = createAdmission({
    clientAddress: createClientAddress(gateway.trustedProxies),
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
    pipeline,
    sockets: {
      ...{ messageBytesMax: MESSAGE_BYTES_MAX, queryToken: gateway.wsQueryToken, authenticate },
      open: realtime.open,
      leave: realtime.leave,
    },
    emit,
    serverTiming: timing !== null,
    now,
  })
  return { server, realtime }
}

/** Hears of changes, once somebody subscribes. */
async function openChangeListener(config: Config, emit: Emit): Promise<OpenListener | null> {
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

/** What is wrong with the files that say what may be asked and called, for `svc check`; at the start it is fatal anyway. */
export async function listFindings({ gateway }: Pick<Config, 'gateway'>): Promise<readonly Finding[]> {
  try {
    await loadLists({ ...listFiles(gateway), record: null, onProblem() {}, onUnrecorded() {} })
    return []
  } catch (error) {
    if (!(error instanceof AllowListError)) throw error
    return [
      { level: 'error', message: error.message, fix: 'Mend the files of rpc_allowlist_path and allow_list_path.' },
    ]
  }
}

function listFiles(gateway: Config['gateway']): Pick<ListsParts, 'functionsFile' | 'queriesFile' | 'firstSchema'> {
  return {
    functionsFile: gateway.rpcAllowlistPath,
    queriesFile: gateway.allowListPath,
    firstSchema: gateway.schemas[0] ?? 'public',
  }
}

async function openLists({ gateway }: Config, record: string | null, emit: Emit): Promise<Lists> {
  const lists = await loadLists({
    ...listFiles(gateway),
    record,
    onProblem: message => emit(unusableFile(message, 'the list read before stays in force')),
    onUnrecorded: message => emit({ kind: 'warning', message, fix: null }),
  })
  if (record !== null) {
    emit({
      kind: 'warning',
      message: 'shapes of queries are recorded: every query may be asked, and allow_list_path is not in force',
      fix: null,
    })
  }
  return lists
}

const NO_POLICIES: Policies = { rightsOf: () => EVERYTHING, async reload() {} }

/** Made when it is first asked for. */
function onDemand<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}

async function openPolicies(config: Config, catalog: CatalogSource, emit: Emit): Promise<Policies> {
  const files = policyFiles(config)
  if (files.nativeFile === null && files.routeFile === null) return NO_POLICIES
  const { createPolicies } = await import('./access/policy/policies.ts')
  const { searchLanguage } = config.gateway
  return createPolicies({
    ...files,
    schema: () => ({ catalog: catalog.current(), searchLanguage }),
    onProblem: message => emit(unusableFile(message, 'the policies read before stay in force')),
  })
}

interface HooksParts {
  readonly config: Config
  readonly pool: Pool
  readonly catalog: CatalogSource
  readonly installed: Installed
  readonly environment: Environment
  readonly emit: Emit
}

/** Null: no file names any. */
async function openWebhooks({
  config,
  pool,
  catalog,
  installed,
  environment,
  emit,
}: HooksParts): Promise<Hooks | null> {
  const { gateway, devMode } = config
  if (gateway.eventsPath === null) return null
  // Only who has triggers waits for what delivers them to load.
  const { openHooks } = await import('./webhooks/open.ts')
  return openHooks({
    ...{ file: gateway.eventsPath, tenantColumn: gateway.tenantColumn, environment, emit },
    guard: createAddressGuard({ allow: gateway.webhookAllow, loopback: devMode ? 'allowed' : 'refused' }),
    database: pool,
    catalog: () => catalog.current(),
    captured: () => installed.current()?.captured ?? null,
    userAgent: `svc/${VERSION}`,
  })
}

/** A page by its path. */
function reading([path, answer]: readonly [string, Page]): readonly [string, InternalAnswer] {
  return [path, { method: 'GET', answer: ({ headers }) => answer(headers) }]
}

function operationsOf(webhooks: Webhooks): WebhookOperations {
  return {
    status: () => webhookStatus(webhooks),
    stats: () => webhooks.stats(),
    answers: webhookAnswers(webhooks),
  }
}

/** Gateways that share the secret of the tokens can read each other's cursors; without one, each reads its own. */
function cursorKey(config: Config): string {
  return createHmac('sha256', config.jwtSecret ?? randomBytes(32))
    .update('svc cursor')
    .digest('hex')
}
