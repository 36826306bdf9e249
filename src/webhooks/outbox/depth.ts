/** How much waits in the outbox. Counting stops at a limit: who has millions waiting need not know how many. */
import type { Ask } from './ask.ts'

/** Counted of one trigger, and of dead letters. */
export const COUNTED_MAX = 100_000

/** Between two times that the database is asked, whoever wants to know. */
const KEPT_MS = 3_000

/** How long somebody waits for an answer before what was known is good enough. */
const WAIT_MS = 1_000

export interface Queue {
  readonly ready: number
  /** For another try, or for an earlier one of their key. */
  readonly waiting: number
  readonly inFlight: number
  /** When the oldest of those that were counted was written; null if there are none. */
  readonly oldestMs: number | null
}

export interface Depth {
  readonly byTrigger: ReadonlyMap<string, Queue>
  readonly deadLetters: number
  /** By the database's clock, seconds since the oldest. */
  readonly oldestAgeMs: number | null
}

export const EMPTY: Depth = { byTrigger: new Map(), deadLetters: 0, oldestAgeMs: null }

export function totalOf({ byTrigger }: Depth): Omit<Queue, 'oldestMs'> {
  const queues = [...byTrigger.values()]
  const sum = (of: 'ready' | 'waiting' | 'inFlight') => queues.reduce((total, queue) => total + queue[of], 0)
  return { ready: sum('ready'), waiting: sum('waiting'), inFlight: sum('inFlight') }
}

const DEPTH = `WITH RECURSIVE triggers AS (
  SELECT (SELECT w.trigger FROM svc.webhook AS w ORDER BY w.trigger LIMIT 1) AS name
  UNION ALL
  SELECT (SELECT w.trigger FROM svc.webhook AS w WHERE w.trigger > t.name ORDER BY w.trigger LIMIT 1) FROM triggers AS t WHERE t.name IS NOT NULL
)
SELECT t.name, q.ready, q.waiting, q.in_flight, q.oldest, q.age FROM triggers AS t CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE w.due_at <= now()) AS ready, count(*) FILTER (WHERE w.due_at > now() AND w.leased_by IS NULL) AS waiting,
    count(*) FILTER (WHERE w.due_at > now() AND w.leased_by IS NOT NULL) AS in_flight,
    floor(extract(epoch FROM min(w.created_at)) * 1000)::bigint AS oldest, greatest(0, floor(extract(epoch FROM now() - min(w.created_at)) * 1000))::bigint AS age
  FROM (SELECT w.due_at, w.leased_by, w.created_at FROM svc.webhook AS w WHERE w.trigger = t.name LIMIT ${COUNTED_MAX}) AS w
) AS q WHERE t.name IS NOT NULL`

const DEAD = `SELECT count(*) FROM (SELECT FROM svc.webhook_dead LIMIT ${COUNTED_MAX}) AS d`

export async function readDepth(ask: Ask): Promise<Depth> {
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

/** As it was at most a few seconds ago; while the database does not answer, as it was last. */
export function createGauge(read: () => Promise<Depth>, now: () => number): () => Promise<Depth> {
  let known = EMPTY
  let askedAtMs = Number.NEGATIVE_INFINITY
  let asking: Promise<void> = Promise.resolve()
  return async () => {
    if (now() - askedAtMs >= KEPT_MS) {
      askedAtMs = now()
      asking = read().then(
        depth => {
          known = depth
        },
        () => {},
      )
    }
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>(resolve => {
      timer = setTimeout(resolve, WAIT_MS)
    })
    await Promise.race([asking, patience])
    clearTimeout(timer)
    return known
  }
}
