/** Webhooks that wait in the database: stored in the transaction of the change, delivered by any gateway (decision 0023). */
import type { Catalog } from '../../catalog/model.ts'
import { tableNamed } from '../../catalog/written.ts'
import type { Clock } from '../../clock.ts'
import type { Emit } from '../../events.ts'
import type { PostWebhook } from '../post.ts'
import type { Sender } from '../sender.ts'
import type { Triggers } from '../triggers.ts'
import type { Ask } from './ask.ts'
import { createGauge, type Depth, EMPTY, readDepth } from './depth.ts'
import {
  type LetterPlace,
  purgeLetters,
  readAttempts,
  readLetter,
  readLetters,
  redeliverLetters,
  type StoredAttempt,
  type StoredLetter,
  type WholeLetter,
} from './letters.ts'
import { admit, BURIED_AT_ONCE, buryOrphans } from './register.ts'
import { Worker } from './worker.ts'

/** Between two looks for webhooks whose trigger is gone. */
const ORPHANS_INTERVAL_MS = 30_000

/** Left of the time to close in, for a database that may be away. */
const RELEASE_MS_MAX = 300

export interface OutboxParts {
  readonly ask: Ask
  /** There is one in the database. */
  readonly isUsable: () => boolean
  readonly gateway: string
  readonly ticket: string
  readonly triggers: Triggers
  readonly catalog: () => Catalog
  readonly sender: Sender
  readonly post: PostWebhook
  readonly clock: Clock
  readonly elapsedMs: () => number
  readonly random: () => number
  readonly emit: Emit
}

/** What asks the database rejects as that does; without an outbox there is nothing in it. */
export interface Outbox extends Pick<Worker, 'wake' | 'narrow'> {
  /** As it was at most a few seconds ago. */
  depth(): Promise<Depth>
  letters(before: LetterPlace | null, limit: number): Promise<readonly StoredLetter[]>
  letter(id: string, bytesMax: number): Promise<WholeLetter | null>
  attempts(id: string): Promise<readonly StoredAttempt[]>
  /** Those whose trigger is active; null: all. Answers how many. */
  redeliver(id: string | null): Promise<number>
  purge(id: string | null): Promise<number>
  /** Waits for what is on its way, and gives the rest back. */
  close(options: { readonly deadlineMs: number }): Promise<void>
}

export function createOutbox(parts: OutboxParts): Outbox {
  const { ask, isUsable, triggers, catalog, sender, elapsedMs, clock, emit } = parts
  const worker = new Worker({ ...parts, resourceOf: createNames(catalog) })
  const gauge = createGauge(() => (isUsable() ? readDepth(ask) : Promise.resolve(EMPTY)), elapsedMs)
  const burying = setInterval(() => {
    if (!isUsable()) return
    admit(ask, parts.ticket).catch(() => {})
    bury().catch(() => {})
  }, ORPHANS_INTERVAL_MS)
  burying.unref()

  const active = (): readonly string[] =>
    triggers.all().flatMap(trigger => (triggers.isActive(trigger) ? [trigger.name] : []))

  async function bury(): Promise<void> {
    for (let count = BURIED_AT_ONCE; count === BURIED_AT_ONCE; ) {
      count = await buryOrphans(ask, active())
      if (count === 0) return
      const error = new Error(`${count} webhooks waited whose trigger is gone or disabled`)
      emit({ kind: 'webhooks', event: 'dead letters', detail: { error, deliveries: count } })
    }
  }

  return {
    wake: names => worker.wake(names),
    narrow: () => worker.narrow(),
    depth: gauge,
    letters: async (before, limit) => (isUsable() ? readLetters(ask, before, limit) : []),
    letter: async (id, bytesMax) => (isUsable() ? readLetter(ask, id, bytesMax) : null),
    attempts: async id => (isUsable() ? readAttempts(ask, id) : []),
    async redeliver(id) {
      if (!isUsable()) return 0
      const count = await redeliverLetters(ask, id, active())
      worker.wake(active())
      return count
    },
    purge: async id => (isUsable() ? purgeLetters(ask, id) : 0),
    async close({ deadlineMs }) {
      clearInterval(burying)
      let cancel = (): void => {}
      const late = new Promise<void>(resolve => {
        cancel = clock.after(Math.max(0, deadlineMs - RELEASE_MS_MAX), resolve)
      })
      await Promise.race([worker.drain(), late])
      cancel()
      const released = worker.stop()
      await sender.close()
      // Otherwise the leases run out.
      const patience = new Promise<void>(resolve => {
        cancel = clock.after(RELEASE_MS_MAX, resolve)
      })
      await Promise.race([released.catch(() => {}), patience])
      cancel()
    },
  }
}

/** Names of tables in bodies; of one that has been dropped, the one that it had. */
function createNames(catalog: () => Catalog): (schema: string, table: string) => string {
  let of: Catalog | null = null
  let known = new Map<string, string>()
  return (schema, table) => {
    if (of !== catalog()) {
      of = catalog()
      known = new Map()
    }
    const key = JSON.stringify([schema, table])
    const name = known.get(key) ?? tableNamed(schema, table, of)?.resource ?? table
    known.set(key, name)
    return name
  }
}
