/**
 * Webhooks queued in the database: stored in the transaction of the change, delivered by any gateway
 * (decision 0023).
 */
import type { Catalog } from '../../catalog/model.ts'
import { tableNamed } from '../../catalog/table-names.ts'
import type { Clock } from '../../clock.ts'
import type { Emit } from '../../events.ts'
import type { PostWebhook } from '../post.ts'
import type { Sender } from '../sender.ts'
import type { Triggers } from '../triggers.ts'
import {
  type DeadLetterCursor,
  type DeadLetterDetails,
  purgeDeadLetters,
  readAttempts,
  readDeadLetter,
  readDeadLetters,
  redeliverDeadLetters,
  type StoredAttempt,
  type StoredDeadLetter,
} from './dead-letter-store.ts'
import { cachedDepth, EMPTY_OUTBOX, type OutboxDepth, readDepth } from './depth.ts'
import { deadLetterOrphans, ORPHAN_BATCH } from './register.ts'
import type { RunInTransaction } from './transaction.ts'
import { Worker } from './worker.ts'

/** Interval between searches for webhooks whose trigger no longer exists. */
const ORPHANS_INTERVAL_MS = 30_000

/** Part of the shutdown time reserved for releasing leases. */
const RELEASE_MS_MAX = 300

/** The dependencies of an outbox. */
export interface OutboxParts {
  readonly ask: RunInTransaction
  /** True if an outbox is installed in the database. */
  readonly isUsable: () => boolean
  readonly gateway: string
  readonly triggers: Triggers
  readonly catalog: () => Catalog
  readonly sender: Sender
  readonly post: PostWebhook
  readonly clock: Clock
  readonly elapsedMs: () => number
  readonly random: () => number
  readonly emit: Emit
}

/**
 * The outbox as operators see it. Errors of the database are passed on; if no outbox is installed, results
 * are empty.
 */
export interface Outbox extends Pick<Worker, 'wake' | 'throttled'> {
  /** Figures that are at most a few seconds old. */
  depth(): Promise<OutboxDepth>
  deadLetters(before: DeadLetterCursor | null, limit: number): Promise<readonly StoredDeadLetter[]>
  deadLetter(id: string, bytesMax: number): Promise<DeadLetterDetails | null>
  attempts(id: string): Promise<readonly StoredAttempt[]>
  /** Redelivers dead letters whose trigger is active; `id` null selects all. Returns how many. */
  redeliver(id: string | null): Promise<number>
  purge(id: string | null): Promise<number>
  /** Waits for requests in flight and releases the remaining leases. */
  close(options: { readonly deadlineMs: number }): Promise<void>
}

/** Opens the outbox and starts its worker. */
export function createOutbox(parts: OutboxParts): Outbox {
  const { ask, isUsable, triggers, catalog, sender, elapsedMs, clock, emit } = parts
  const worker = new Worker({ ...parts, resourceOf: resourceNames(catalog) })
  const gauge = cachedDepth(() => (isUsable() ? readDepth(ask) : Promise.resolve(EMPTY_OUTBOX)), elapsedMs)
  const orphanTimer = setInterval(() => {
    if (isUsable()) deadLetterAllOrphans().catch(() => {})
  }, ORPHANS_INTERVAL_MS)
  orphanTimer.unref()

  const active = (): readonly string[] =>
    triggers.all().flatMap(trigger => (triggers.isActive(trigger) ? [trigger.name] : []))

  async function deadLetterAllOrphans(): Promise<void> {
    for (let count = ORPHAN_BATCH; count === ORPHAN_BATCH; ) {
      count = await deadLetterOrphans(ask, active())
      if (count === 0) return
      const error = new Error(`${count} queued webhooks belong to a trigger that was removed or disabled`)
      emit({ kind: 'webhooks', event: 'dead letters', detail: { error, deliveries: count } })
    }
  }

  return {
    wake: names => worker.wake(names),
    throttled: () => worker.throttled(),
    depth: gauge,
    deadLetters: async (before, limit) => (isUsable() ? readDeadLetters(ask, before, limit) : []),
    deadLetter: async (id, bytesMax) => (isUsable() ? readDeadLetter(ask, id, bytesMax) : null),
    attempts: async id => (isUsable() ? readAttempts(ask, id) : []),
    async redeliver(id) {
      if (!isUsable()) return 0
      const count = await redeliverDeadLetters(ask, id, active())
      worker.wake(active())
      return count
    },
    purge: async id => (isUsable() ? purgeDeadLetters(ask, id) : 0),
    async close({ deadlineMs }) {
      clearInterval(orphanTimer)
      let cancel = (): void => {}
      const timeout = new Promise<void>(resolve => {
        cancel = clock.after(Math.max(0, deadlineMs - RELEASE_MS_MAX), resolve)
      })
      await Promise.race([worker.drain(), timeout])
      cancel()
      const released = worker.stop()
      await sender.close()
      // If the release fails, the leases expire.
      const releaseTimeout = new Promise<void>(resolve => {
        cancel = clock.after(RELEASE_MS_MAX, resolve)
      })
      await Promise.race([released.catch(() => {}), releaseTimeout])
      cancel()
    },
  }
}

/** The names of tables in bodies; for a dropped table, its name in the database. */
function resourceNames(catalog: () => Catalog): (schema: string, table: string) => string {
  let cachedFor: Catalog | null = null
  let names = new Map<string, string>()
  return (schema, table) => {
    if (cachedFor !== catalog()) {
      cachedFor = catalog()
      names = new Map()
    }
    const key = JSON.stringify([schema, table])
    const name = names.get(key) ?? tableNamed(schema, table, cachedFor)?.resource ?? table
    names.set(key, name)
    return name
  }
}
