/**
 * The runners of a gateway, from the database outwards. Each layer takes a runner and returns one. A
 * statement passes the outermost layer first, so read the layers of `createRunners` from the last to the
 * first.
 */
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import type { TenantLimit } from '../limits/tenant-limit.ts'
import type { Database } from '../postgres/types.ts'
import type { WriteCapture } from '../realtime/realtime.ts'
import type { ResultCache } from '../run/cache/cache.ts'
import { captureChanges } from '../run/capture.ts'
import { guardCost } from '../run/cost-guard.ts'
import { chooseRunner } from '../run/fewer-settings.ts'
import { createLimitedRunner } from '../run/limited-runner.ts'
import { observeStatements } from '../run/observed-statements.ts'
import type { ReadRoutes } from '../run/replicas/read-routes.ts'
import { createRunner, type Runner } from '../run/run.ts'
import { createSessionReset } from '../run/session-reset.ts'
import type { SettingsSource } from '../run/settings.ts'
import { createStatementLog } from '../run/statement-log.ts'
import type { Tracing } from '../tracing/tracing.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { listeningUrl } from './database.ts'

interface Parts {
  readonly config: Config
  readonly database: Database
  /** Runs reads on replicas; null if none are configured. */
  readonly routes: ReadRoutes | null
  readonly settings: SettingsSource
  /** For the requests of one caller: without settings that nothing can read, or `settings` itself. */
  readonly fewerSettings: SettingsSource
  readonly catalog: () => Catalog
  readonly capture: WriteCapture
  /** Null: results are not cached. */
  readonly cache: ResultCache | null
  /** Null without webhooks. */
  readonly webhooks: Webhooks | null
  /** Null: tenants may run any number of statements at once. */
  readonly gate: TenantLimit | null
  /** Holds the id of the current request; null: statements are not logged. */
  readonly requestIds: AsyncLocalStorage<string> | null
  /** Null: requests are not traced. */
  readonly tracing: Pick<Tracing, 'observe'> | null
  /** Called when a statement names something that the database does not have. */
  readonly onStaleSchema: () => void
  readonly emit: Emit
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

interface Runners {
  /** Takes no permit: for the gateway's own reads on behalf of subscribers. */
  readonly unlimited: Runner
  /** Permit and run: for writes and calls. */
  readonly requests: Runner
  /** Permit, cache, cost guard and run: for statements that only read. */
  readonly reads: Runner
  /** `reads` without the cache: a cached result may be older than the change that a subscriber expects. */
  readonly uncachedReads: Runner
  /** `uncachedReads` with all settings: callers that policies cannot distinguish share what it reads. */
  readonly sharedReads: Runner
}

/** Creates the runners of a gateway. */
export function createRunners(parts: Parts): Runners {
  const { config, database, routes, capture, cache, webhooks, gate, requestIds, tracing, emit, now } = parts
  const runnerWith = (settings: SettingsSource): Runner => {
    const plain = createRunner({
      ...{ database, routes, settings },
      reset: createSessionReset(parts.catalog),
      onStaleSchema: parts.onStaleSchema,
      announcements: listeningUrl(config) === null ? null : capture.announcements,
    })
    const traced = tracing === null ? plain : observeStatements(plain, tracing.observe)
    const logged =
      requestIds === null
        ? traced
        : observeStatements(traced, createStatementLog({ emit, requestId: () => requestIds.getStore() ?? null }))
    const watched = cache?.watching(logged) ?? logged
    return webhooks === null ? watched : captureChanges(watched, webhooks)
  }
  // A write that reads its result is not a read, so only reads pass the cost guard.
  const guard = (runner: Runner): Runner => guardCost(runner, { limits: config.gateway, now })
  const unlimited = runnerWith(parts.settings)
  const ofRequests =
    parts.fewerSettings === parts.settings ? unlimited : chooseRunner(unlimited, runnerWith(parts.fewerSettings))
  const guarded = guard(ofRequests)
  const uncachedReads = createLimitedRunner(guarded, gate)
  return {
    unlimited,
    requests: createLimitedRunner(ofRequests, gate),
    reads: createLimitedRunner(cache?.serving(guarded) ?? guarded, gate),
    uncachedReads,
    sharedReads: ofRequests === unlimited ? uncachedReads : createLimitedRunner(guard(unlimited), gate),
  }
}
