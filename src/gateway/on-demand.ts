/** Features that few gateways use, loaded only when needed, because each module adds to startup time. */
import type { Policies } from '../access/policy/policies.ts'
import { EVERYTHING } from '../access/rights.ts'
import type { Catalog } from '../catalog/model.ts'
import type { CatalogSource } from '../catalog/reload.ts'
import type { ChangeReader, ReaderStats } from '../changes/reader.ts'
import type { LogReaders } from '../changes/readers.ts'
import type { Peers } from '../cluster/peers.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/expand.ts'
import { policyFiles } from '../config/policy-files.ts'
import { type Emit, unusableFile } from '../events.ts'
import type { Installed } from '../install/installed.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import type { Database } from '../postgres/types.ts'
import type { ResultCache } from '../run/cache/cache.ts'
import type { SettingsSource } from '../run/settings.ts'
import type { SharedState } from '../shared/shared-state.ts'
import { VERSION } from '../version.ts'
import type { WebhookModule } from '../webhooks/open-webhooks.ts'
import { openTokens } from './database.ts'
import { type Feed, feedTarget } from './feed.ts'

interface CacheParts {
  readonly config: Config
  readonly catalog: CatalogSource
  readonly settings: SettingsSource
  readonly installed: Installed
  /** Connections of the feed role. */
  readonly database: Pick<Database, 'run'>
  /** The other workers; null if there is only this process. */
  readonly peers: Peers | null
  /** The gateways of other machines; null if nothing is shared with them. */
  readonly shared: SharedState | null
  readonly now: () => number
}

interface OpenedCache {
  readonly cache: ResultCache
  /**
   * Learns soon which tables have changed, because changes from the write-ahead log have been stored. Results
   * of these tables, if they are known, are outdated at once.
   */
  wake(tables: readonly string[] | null): void
  close(): void
}

/** Null if the feature is disabled; requests then have no overhead. */
export async function openCache(parts: CacheParts): Promise<OpenedCache | null> {
  const { catalog, settings, installed, database, peers, shared, now } = parts
  const { gateway } = parts.config
  const { enabled, maxEntries, ttlSecs, maxStalenessMs } = gateway.cache
  if (!enabled) return null
  const [{ ResultCache }, { WEIGHT_MAX }] = await Promise.all([
    import('../run/cache/cache.ts'),
    import('../run/cache/cached-results.ts'),
  ])
  const { watchChangedTables } = await import('../realtime/changed-tables.ts')
  const isUsable = () => (installed.current()?.captured.size ?? 0) > 0
  const cache = new ResultCache({
    knownUntil: () => (isUsable() ? changed.knownUntil() : null),
    stalenessMsMax: maxStalenessMs,
    changedElsewhere: changedElsewhere(peers, shared),
    catalog: () => catalog.current(),
    settings,
    entriesMax: maxEntries,
    weightMax: Math.floor(WEIGHT_MAX / (peers?.count ?? 1)),
    ttlMs: ttlSecs * 1_000,
    statementTimeoutMs: gateway.statementTimeoutMs,
    now,
    after: (delayMs, call) => void setTimeout(call, delayMs).unref(),
  })
  const oidsOf = createOids(() => catalog.current())
  const changed = watchChangedTables({
    ...{ database, now, isUsable },
    shareRead: peers === null ? null : peers.read,
    onChanged: tables => cache.changed(oidsOf(tables)),
    onDoubt: () => cache.changed(null),
  })
  const wake = (tables: readonly string[] | null) => {
    if (tables !== null) cache.changed(oidsOf(tables))
    changed.wake()
  }
  return { cache, wake, close: changed.close }
}

interface ChangesParts {
  readonly config: Config
  /** The readers of the log in this process. */
  readonly readers: LogReaders
  readonly feed: Feed
  readonly installed: Installed
  readonly emit: Emit
  readonly now: () => number
}

/** The reader of the write-ahead log, which starts when changes are captured from there. */
export interface Changes {
  /** Called whenever the installation has changed. */
  look(): void
  /** Null while it has not started. */
  stats(): ReaderStats | null
  close(): Promise<void>
}

/** Creates the reader, not yet started. */
export function createChanges({ config, readers, feed, installed, emit, now }: ChangesParts): Changes {
  let starting: Promise<ChangeReader> | null = null
  let reader: ChangeReader | null = null
  const isUsable = () => installed.current()?.usesWal === true

  async function start(): Promise<ChangeReader> {
    const { startChangeReader } = await import('../changes/reader.ts')
    reader = startChangeReader({
      ...{ database: feed.database, readers, role: feed.role, isUsable, now },
      async replication() {
        const target = feedTarget(config, feed.role() ?? '')
        return { target, gss: await openTokens(target, config, emit) }
      },
      keepBytesMax: config.gateway.walKeepMb * 1024 * 1024,
      warn: (message, fix) => emit({ kind: 'warning', message, fix }),
    })
    return reader
  }

  return {
    look() {
      if (isUsable()) starting ??= start()
    },
    stats: () => reader?.stats() ?? null,
    async close() {
      await (await starting)?.close()
    },
  }
}

/** Passes on which results are outdated; null if no other process has any. */
function changedElsewhere(
  peers: Peers | null,
  shared: SharedState | null,
): ((relations: readonly number[] | null) => Promise<void>) | null {
  const all = [peers, shared].filter(each => each !== null)
  if (all.length === 0) return null
  return async relations => void (await Promise.all(all.map(each => each.changed(relations))))
}

/** Opens the state that gateways on several machines share, if it is configured. */
export async function openShared({ gateway }: Config, emit: Emit, now: () => number): Promise<SharedState | null> {
  const { url, prefix, timeoutMs } = gateway.shared
  if (url === null) return null
  const { openSharedState } = await import('../shared/shared-state.ts')
  const state = openSharedState({ ...gateway, url, prefix, timeoutMs, emit, now })
  await state.ready()
  return state
}

/**
 * Creates a function that converts tables (`schema.name`) to OIDs. It returns null if one of them is not
 * published, because cached results can depend on that table too.
 */
function createOids(current: () => Catalog): (tables: readonly string[]) => readonly number[] | null {
  let of: Catalog | null = null
  let byName: ReadonlyMap<string, number> = new Map()
  return tables => {
    const catalog = current()
    if (catalog !== of) {
      of = catalog
      byName = new Map([...catalog.tables.values()].map(({ schema, name, oid }) => [`${schema}.${name}`, oid]))
    }
    const oids = tables.flatMap(table => byName.get(table) ?? [])
    return oids.length === tables.length ? oids : null
  }
}

const NO_POLICIES: Policies = { rightsOf: () => EVERYTHING, async reload() {} }

/** Opens the access policies, if they are configured. */
export async function openPolicies(config: Config, catalog: CatalogSource, emit: Emit): Promise<Policies> {
  const files = policyFiles(config)
  if (files.nativeFile === null && files.routeFile === null) return NO_POLICIES
  const { createPolicies } = await import('../access/policy/policies.ts')
  const { searchLanguage } = config.gateway
  return createPolicies({
    ...files,
    schema: () => ({ catalog: catalog.current(), searchLanguage }),
    onProblem: message => emit(unusableFile(message, 'the policies read before stay in effect')),
  })
}

interface HooksParts {
  readonly config: Config
  /** Connections of the feed role. */
  readonly database: Pick<Database, 'run'>
  readonly catalog: CatalogSource
  readonly installed: Installed
  readonly environment: Environment
  readonly emit: Emit
}

/** Null: no file names any. */
export async function openConfiguredWebhooks({
  config,
  database,
  catalog,
  installed,
  environment,
  emit,
}: HooksParts): Promise<WebhookModule | null> {
  const { gateway, devMode } = config
  if (gateway.eventsPath === null) return null
  // Only gateways with triggers load the delivery modules.
  const { openWebhooks: openHooks } = await import('../webhooks/open-webhooks.ts')
  return openHooks({
    ...{ file: gateway.eventsPath, tenantColumn: gateway.tenantColumn, environment, emit },
    guard: createAddressGuard({ allow: gateway.webhookAllow, loopback: devMode ? 'allowed' : 'refused' }),
    database,
    catalog: () => catalog.current(),
    captured: () => installed.current()?.captured ?? null,
    userAgent: `svc/${VERSION}`,
  })
}
