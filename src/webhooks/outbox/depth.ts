/**
 * Counts what is queued in the outbox. Counting stops at a limit, because exact figures beyond it are not
 * needed.
 */
import type { RunInTransaction } from './transaction.ts'

/** Limit on what is counted per trigger, and of dead letters. */
export const COUNTED_MAX = 100_000

/** How long a result is cached, however often it is requested. */
const CACHE_MS = 3_000

/** How long a caller waits for a fresh result before it gets the cached one. */
const WAIT_MS = 1_000

/** Figures of one trigger's queue. */
export interface TriggerQueue {
  readonly ready: number
  /** Waiting for a retry, or for an earlier webhook with the same key. */
  readonly waiting: number
  readonly inFlight: number
  /** When the oldest of the counted webhooks was created; null for none. */
  readonly oldestMs: number | null
}

/** Figures of the whole outbox. */
export interface OutboxDepth {
  readonly byTrigger: ReadonlyMap<string, TriggerQueue>
  readonly deadLetters: number
  /** Age of the oldest webhook by the database's clock, in milliseconds. */
  readonly oldestAgeMs: number | null
}

/** The figures of an empty outbox. */
export const EMPTY_OUTBOX: OutboxDepth = { byTrigger: new Map(), deadLetters: 0, oldestAgeMs: null }

/** The sums over all triggers. */
export function totalOf({ byTrigger }: OutboxDepth): Omit<TriggerQueue, 'oldestMs'> {
  const queues = [...byTrigger.values()]
  const sum = (of: 'ready' | 'waiting' | 'inFlight') => queues.reduce((total, queue) => total + queue[of], 0)
  return { ready: sum('ready'), waiting: sum('waiting'), inFlight: sum('inFlight') }
}

const DEPTH = `WITH RECURSIVE triggers AS (
  SELECT (SELECT w.trigger FROM svc.webhook AS w ORDER BY w.trigger LIMIT 1) AS name
  UNION ALL
  SELECT (SELECT w.trigger FROM svc.webhook AS w WHERE w.trigger > t.name ORDER BY w.trigger LIMIT 1)
  FROM triggers AS t WHERE t.name IS NOT NULL
)
SELECT t.name, q.ready, q.waiting, q.in_flight, q.oldest, q.age FROM triggers AS t CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE w.due_at <= now()) AS ready,
    count(*) FILTER (WHERE w.due_at > now() AND w.leased_by IS NULL) AS waiting,
    count(*) FILTER (WHERE w.due_at > now() AND w.leased_by IS NOT NULL) AS in_flight,
    floor(extract(epoch FROM min(w.created_at)) * 1000)::bigint AS oldest,
    greatest(0, floor(extract(epoch FROM now() - min(w.created_at)) * 1000))::bigint AS age
  FROM (SELECT w.due_at, w.leased_by, w.created_at FROM svc.webhook AS w WHERE w.trigger = t.name
    LIMIT ${COUNTED_MAX}) AS w
) AS q WHERE t.name IS NOT NULL`

const DEAD = `SELECT count(*) FROM (SELECT FROM svc.webhook_dead LIMIT ${COUNTED_MAX}) AS d`

/** Reads the figures from the database. */
export async function readDepth(ask: RunInTransaction): Promise<OutboxDepth> {
  const [triggers = [], [[dead] = []] = []] = await ask({ text: DEPTH, parameters: [] }, { text: DEAD, parameters: [] })
  const ages = triggers.flatMap(row => (row[5] == null ? [] : [Number(row[5])]))
  return {
    byTrigger: new Map(
      triggers.map(([name, ready, waiting, inFlight, oldest]) => [
        name ?? '',
        {
          ...{ ready: Number(ready), waiting: Number(waiting), inFlight: Number(inFlight) },
          oldestMs: oldest == null ? null : Number(oldest),
        },
      ]),
    ),
    deadLetters: Number(dead),
    oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
  }
}

/**
 * Caches the figures for a few seconds. While the database is unavailable, the last known figures are
 * returned.
 */
export function cachedDepth(read: () => Promise<OutboxDepth>, now: () => number): () => Promise<OutboxDepth> {
  let cached = EMPTY_OUTBOX
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> = Promise.resolve()
  return async () => {
    if (now() - readAtMs >= CACHE_MS) {
      readAtMs = now()
      reading = read().then(
        depth => {
          cached = depth
        },
        () => {},
      )
    }
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>(resolve => {
      timer = setTimeout(resolve, WAIT_MS)
    })
    await Promise.race([reading, timeout])
    clearTimeout(timer)
    return cached
  }
}
