/** Adds the `/health/internal` of several workers, and their answers to requests about webhooks. */
import type { WorkerStatus } from '../cluster/peers.ts'
import { DEAD_LETTERS_SHOWN_MAX } from '../webhooks/operator-requests.ts'
import { SLOW_REQUESTS_MAX } from './slow-requests.ts'

type Json = Readonly<Record<string, unknown>>

/** Parts of the response that are sums over the workers. The others are those of the worker that answers. */
const ADDED = ['pool', 'cache', 'realtime'] as const

/** `own` is the response of the worker that answers, which is also in `all`. */
export function mergeDetails(
  own: Json,
  all: readonly Json[],
  { limits, workers }: { readonly limits: Json; readonly workers: readonly WorkerStatus[] },
): Json {
  const added = ADDED.map(part => [part, all.map(of => of[part]).reduce(add)] as const)
  return {
    ...own,
    ...Object.fromEntries(added),
    webhooks: isInMemory(own.webhooks) ? all.map(of => of.webhooks).reduce(add) : own.webhooks,
    limits,
    warnings: distinct(all.flatMap(of => of.warnings as readonly unknown[])),
    ...slowestOf(all),
    workers: [...workers]
      .sort((one, other) => one.number - other.number)
      .map(({ number, pid, state, uptimeMs, restarts }) => ({
        ...{ number, pid, state },
        uptime_secs: Math.round(uptimeMs / 1_000),
        restarts,
      })),
  }
}

/** The slowest requests of all workers; nothing if they are not listed. */
function slowestOf(all: readonly Json[]): Json {
  const listed = all.flatMap(of => (of.slowest_requests ?? []) as readonly SlowDetails[])
  if (!all.some(of => of.slowest_requests !== undefined)) return {}
  const slowest = listed.toSorted((one, other) => other.duration_ms - one.duration_ms)
  const byRequest = new Map(slowest.toReversed().map(each => [each.request, each]))
  return { slowest_requests: slowest.filter(each => byRequest.get(each.request) === each).slice(0, SLOW_REQUESTS_MAX) }
}

interface SlowDetails {
  readonly request: string
  readonly duration_ms: number
}

/** Workers have the same outbox, and each has its own deliveries in memory. */
function isInMemory(webhooks: unknown): boolean {
  return (webhooks as Json).storage === 'memory'
}

/**
 * The answer of all workers to an operator's request about webhooks; null if none has what was requested. The
 * answer of the worker that was asked comes first.
 */
export function mergeWebhooks(path: string, answers: readonly unknown[]): unknown {
  const given = answers.filter(isObject)
  const [first] = given
  if (first === undefined) return null
  if (path === '/internal/webhooks') return mergeOverviews(first, given)
  // The numbers of dead letters that were changed. An outbox changes each only once.
  return path === '/internal/webhooks/dead-letter' ? first : given.reduce<unknown>(add, undefined)
}

function mergeOverviews(first: Json, all: readonly Json[]): Json {
  const added = isInMemory(first) ? (all.reduce<unknown>(add, undefined) as Json) : first
  const letters = all.flatMap(of => of.dead_letters as readonly DeadLetter[])
  const newest = [...new Map(letters.map(letter => [letter.id, letter])).values()].sort((one, other) =>
    other.given_up_at < one.given_up_at ? -1 : 1,
  )
  const shown = newest.slice(0, DEAD_LETTERS_SHOWN_MAX)
  const hasOlder = newest.length > shown.length || all.some(of => of.older_than !== null)
  return {
    ...added,
    triggers: first.triggers,
    dead_letters: shown,
    older_than: hasOlder ? (shown.at(-1)?.id ?? null) : null,
  }
}

interface DeadLetter {
  readonly id: string
  readonly given_up_at: string
}

/** Numbers are added, and a flag is set if one is; of anything else, the first is returned. */
function add(one: unknown, other: unknown): unknown {
  if (typeof one === 'number' && typeof other === 'number') return one + other
  if (typeof one === 'boolean' && typeof other === 'boolean') return one || other
  if (!isObject(one) || !isObject(other)) return one ?? other
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map(name => [name, add(one[name], other[name])]))
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function distinct(values: readonly unknown[]): readonly unknown[] {
  return [...new Map(values.map(value => [JSON.stringify(value), value])).values()]
}
