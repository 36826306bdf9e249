/**
 * Answers the requests of operators about webhooks, which `svc webhooks` prints: JSON without row contents,
 * except for a single dead letter requested by its id.
 */
import type { DeadLetter } from './dead-letters.ts'
import { describeOutcome, wordOf } from './delivery.ts'
import type { DeadLetterCursor, DeadLetterDetails, StoredDeadLetter } from './outbox/dead-letter-store.ts'
import { totalOf } from './outbox/depth.ts'
import { PAYLOAD_BYTES_MAX, printPayload } from './payload.ts'
import { endpointOf } from './trigger.ts'
import type { WebhookStats, Webhooks } from './webhooks.ts'

/** Parameters of the query string. */
export type RequestParameters = ReadonlyMap<string, string>

/** One request of the operator interface. */
export interface OperatorRequest {
  readonly method: 'GET' | 'POST'
  /** Produces the response body; null if what was requested does not exist. */
  readonly respond: (parameters: RequestParameters) => unknown
}

/** Limit on the dead letters in one response. The newest come first. */
export const DEAD_LETTERS_SHOWN_MAX = 100

/** The operator requests about webhooks, by path. */
export function operatorRequests(webhooks: Webhooks): ReadonlyMap<string, OperatorRequest> {
  return new Map<string, OperatorRequest>([
    [
      '/internal/webhooks',
      { method: 'GET', respond: parameters => overview(webhooks, parameters.get('before') ?? null) },
    ],
    [
      '/internal/webhooks/dead-letter',
      { method: 'GET', respond: parameters => readDetails(webhooks, parameters.get('id') ?? '') },
    ],
    ['/internal/webhooks/redeliver', deadLetterRequest(webhooks, 'redeliver', 'redelivered')],
    ['/internal/webhooks/purge', deadLetterRequest(webhooks, 'purge', 'purged')],
    [
      '/internal/webhooks/test',
      {
        method: 'POST',
        async respond(parameters) {
          const tested = await webhooks.test(parameters.get('trigger') ?? '')
          if (tested === null) return null
          const { id, outcome } = tested
          const answer = outcome.kind === 'answered' ? { status: outcome.status, body: outcome.body } : null
          return { id, outcome: wordOf(outcome), message: describeOutcome(outcome), answer }
        },
      },
    ],
  ])
}

/** A request that applies `action` to dead letters and returns their number as `count`. */
function deadLetterRequest(webhooks: Webhooks, action: 'redeliver' | 'purge', count: string): OperatorRequest {
  return {
    method: 'POST',
    respond: async parameters => ({ [count]: await applyToDeadLetters(webhooks, parameters, action) }),
  }
}

/**
 * Applies an action to one dead letter, or to all of them, in memory and in the outbox. Returns how many were
 * affected.
 */
async function applyToDeadLetters(
  webhooks: Webhooks,
  parameters: RequestParameters,
  action: 'redeliver' | 'purge',
): Promise<number> {
  const id = parameters.get('id')
  if (id === undefined && parameters.get('all') !== 'true') return 0
  const ids = id === undefined ? webhooks.deadLetters().map(({ delivery }) => delivery.id) : [id]
  const inMemory = ids.filter(heldId => webhooks[action](heldId)).length
  return inMemory + ((await webhooks.outbox?.[action](id ?? null)) ?? 0)
}

/**
 * Lists triggers, queues and dead letters. With `before`, the id of a dead letter, only older dead letters
 * are listed; null if no dead letter has that id.
 */
async function overview(webhooks: Webhooks, before: string | null): Promise<unknown> {
  const cursor = before === null ? null : await cursorOf(webhooks, before)
  if (before !== null && cursor === null) return null
  const stats = await webhooks.stats()
  const held = webhooks.deadLetters().map(ofMemory)
  const stored = (await webhooks.outbox?.deadLetters(cursor, DEAD_LETTERS_SHOWN_MAX + 1)) ?? []
  const letters = [...held.filter(letter => cursor === null || isBefore(letter, cursor)), ...stored.map(ofOutbox)].sort(
    (a, b) => (isBefore(a, b) ? 1 : -1),
  )
  const shown = letters.slice(0, DEAD_LETTERS_SHOWN_MAX)
  return {
    triggers: webhooks.triggers().map(({ trigger, isActive, storage }) => ({
      ...{
        name: trigger.name,
        table: trigger.table,
        operations: trigger.operations,
        source: trigger.source,
        order: trigger.order,
      },
      // The path of the URL may contain a secret.
      endpoint: endpointOf(trigger),
      signed: trigger.secrets.length > 0,
      state: isActive ? 'active' : trigger.enabled ? 'disabled by 410' : 'off',
      storage,
      queue: queueOf(trigger.name, stats),
    })),
    ...statusOf(webhooks, stats),
    dead_letters: shown.map(describe),
    older_than: letters.length > shown.length ? (shown.at(-1)?.id ?? null) : null,
  }
}

/** The state of the queues, also included in `/health/internal`. */
export async function webhookStatus(webhooks: Webhooks): Promise<Readonly<Record<string, unknown>>> {
  return statusOf(webhooks, await webhooks.stats())
}

function statusOf(webhooks: Webhooks, stats: WebhookStats): Readonly<Record<string, unknown>> {
  const storages = webhooks.triggers().map(({ trigger, storage }) => [trigger.name, storage] as const)
  const kinds = new Set(storages.map(([, storage]) => storage))
  const { ready, waiting, inFlight } = totalOf(stats.outbox)
  const oldest = oldestOf(stats)
  return {
    storage: kinds.size > 1 ? 'mixed' : kinds.has('outbox') ? 'outbox' : 'memory',
    trigger_storage: Object.fromEntries(storages),
    queue: {
      ...{
        ready: stats.ready + ready,
        waiting: stats.waiting + waiting,
        in_flight: stats.inFlight + inFlight,
        bytes: stats.bytes,
      },
      oldest: oldest === null ? null : new Date(oldest).toISOString(),
    },
    failing_endpoints: stats.throttled,
    ...{ disabled_triggers: stats.disabled, undelivered_changes: stats.undelivered },
    ...{ dead_letter_count: stats.deadLetters, dead_letters_dropped: stats.dropped },
  }
}

function oldestOf({ oldestMs, outbox }: WebhookStats): number | null {
  const all = [oldestMs, ...[...outbox.byTrigger.values()].map(queue => queue.oldestMs)].filter(each => each !== null)
  return all.length === 0 ? null : Math.min(...all)
}

/** Queue figures of a trigger in the outbox. In-memory deliveries are not counted per trigger. */
function queueOf(trigger: string, { outbox }: WebhookStats): unknown {
  const queue = outbox.byTrigger.get(trigger)
  if (queue === undefined) return null
  const { ready, waiting, inFlight, oldestMs } = queue
  return { ready, waiting, in_flight: inFlight, oldest: oldestMs === null ? null : new Date(oldestMs).toISOString() }
}

interface ListedDeadLetter
  extends DeadLetterCursor,
    Pick<StoredDeadLetter, 'trigger' | 'table' | 'operation' | 'tries' | 'reason' | 'createdAtMs'> {
  readonly storage: 'outbox' | 'memory'
}

function ofMemory({ delivery, reason, atMs }: DeadLetter): ListedDeadLetter {
  const { id, trigger, table, operation, tries, createdAtMs } = delivery
  return { id, trigger, table, operation, tries, reason, createdAtMs, givenUpAtMs: atMs, storage: 'memory' }
}

function ofOutbox(letter: StoredDeadLetter): ListedDeadLetter {
  return { ...letter, storage: 'outbox' }
}

function isBefore(a: DeadLetterCursor, b: DeadLetterCursor): boolean {
  return a.givenUpAtMs < b.givenUpAtMs || (a.givenUpAtMs === b.givenUpAtMs && a.id < b.id)
}

async function cursorOf(webhooks: Webhooks, id: string): Promise<DeadLetterCursor | null> {
  const held = webhooks.deadLetter(id)
  return held === undefined ? ((await webhooks.outbox?.deadLetter(id, 0)) ?? null) : ofMemory(held)
}

function describe({
  id,
  trigger,
  table,
  operation,
  tries,
  reason,
  createdAtMs,
  givenUpAtMs,
  storage,
}: ListedDeadLetter) {
  return {
    ...{ id, trigger, table, operation, tries, reason, storage },
    created_at: new Date(createdAtMs).toISOString(),
    given_up_at: new Date(givenUpAtMs).toISOString(),
  }
}

/**
 * A dead letter with its attempts, or only the attempts of a webhook that was delivered or is still queued.
 */
async function readDetails(webhooks: Webhooks, id: string): Promise<unknown> {
  const held = webhooks.deadLetter(id)
  if (held !== undefined) return describeInMemory(held)
  const letter = (await webhooks.outbox?.deadLetter(id, PAYLOAD_BYTES_MAX)) ?? null
  const attempts = (await webhooks.outbox?.attempts(id)) ?? []
  if (letter !== null) return { ...describeInOutbox(letter, webhooks), attempts }
  return attempts.length === 0 ? null : { id, attempts }
}

function describeInMemory(letter: DeadLetter): unknown {
  const { outcome, delivery } = letter
  const text = delivery.body.toString()
  return {
    ...describe(ofMemory(letter)),
    last_answer: outcome?.kind === 'answered' ? { status: outcome.status, body: outcome.body } : null,
    last_error: outcome?.kind === 'failed' ? describeOutcome(outcome) : null,
    // As text, because parsing it as JSON would lose digits of large numbers.
    payload: text === '' ? null : text,
  }
}

function describeInOutbox(letter: DeadLetterDetails, webhooks: Webhooks): object {
  const { status, answer, message } = letter
  return {
    ...describe(ofOutbox(letter)),
    last_answer: status === null ? null : { status, body: answer ?? '' },
    last_error: status === null ? message : null,
    payload: payloadOf(letter, webhooks),
  }
}

/** The body as it would be sent now. */
function payloadOf(letter: DeadLetterDetails, webhooks: Webhooks): string | null {
  const { trigger: name, operation, after, before, createdAtMs, table } = letter
  const trigger = webhooks.triggers().find(each => each.trigger.name === name)?.trigger ?? { name, columns: null }
  if (after === null && before === null) return null
  return printPayload(trigger, { table, operation, after, before, atMs: createdAtMs }).toString()
}
