/** What the operator asks of webhooks, and `svc webhooks` shows: JSON, without bodies of rows but where one is asked for by its id. */
import type { DeadLetter } from './dead-letters.ts'
import { describeOutcome, wordOf } from './delivery.ts'
import { totalOf } from './outbox/depth.ts'
import type { LetterPlace, StoredLetter, WholeLetter } from './outbox/letters.ts'
import type { Outbox } from './outbox/outbox.ts'
import { PAYLOAD_BYTES_MAX, printPayload } from './payload.ts'
import { endpointOf } from './trigger.ts'
import type { WebhookStats, Webhooks } from './webhooks.ts'

export type Asked = ReadonlyMap<string, string>

export interface WebhookAnswer {
  readonly method: 'GET' | 'POST'
  /** Null: what was asked for is not there. */
  readonly answer: (asked: Asked) => unknown
}

/** Dead letters in one answer; there may be many, and the newest say most. */
export const LETTERS_SHOWN_MAX = 100

export function webhookAnswers(webhooks: Webhooks): ReadonlyMap<string, WebhookAnswer> {
  return new Map<string, WebhookAnswer>([
    ['/internal/webhooks', { method: 'GET', answer: asked => overview(webhooks, asked.get('before') ?? null) }],
    ['/internal/webhooks/dead-letter', { method: 'GET', answer: asked => whole(webhooks, asked.get('id') ?? '') }],
    [
      '/internal/webhooks/redeliver',
      {
        method: 'POST',
        answer: async asked => ({
          redelivered: await each(
            webhooks,
            asked,
            held => webhooks.redeliver(held),
            id => webhooks.outbox?.redeliver(id),
          ),
        }),
      },
    ],
    [
      '/internal/webhooks/purge',
      {
        method: 'POST',
        answer: async asked => ({
          purged: await each(
            webhooks,
            asked,
            held => webhooks.purge(held),
            id => webhooks.outbox?.purge(id),
          ),
        }),
      },
    ],
    [
      '/internal/webhooks/test',
      {
        method: 'POST',
        async answer(asked) {
          const tested = await webhooks.test(asked.get('trigger') ?? '')
          if (tested === null) return null
          const { id, outcome } = tested
          const answer = outcome.kind === 'answered' ? { status: outcome.status, body: outcome.body } : null
          return { id, outcome: wordOf(outcome), message: describeOutcome(outcome), answer }
        },
      },
    ],
  ])
}

/** Does something to one dead letter, or all, in memory and in the outbox; answers to how many. */
async function each(
  webhooks: Webhooks,
  asked: Asked,
  held: (id: string) => boolean,
  stored: Outbox['purge'] | ((id: string | null) => Promise<number> | undefined),
): Promise<number> {
  const id = asked.get('id')
  if (id === undefined && asked.get('all') !== 'true') return 0
  const ids = id === undefined ? webhooks.deadLetters().map(({ delivery }) => delivery.id) : [id]
  return ids.filter(held).length + ((await stored(id ?? null)) ?? 0)
}

/** `before`: the id of a dead letter; those are listed that were given up before it. Null if there is no such letter. */
async function overview(webhooks: Webhooks, before: string | null): Promise<unknown> {
  const place = before === null ? null : await placeOf(webhooks, before)
  if (before !== null && place === null) return null
  const stats = await webhooks.stats()
  const held = webhooks.deadLetters().map(ofMemory)
  const stored = (await webhooks.outbox?.letters(place, LETTERS_SHOWN_MAX + 1)) ?? []
  const letters = [...held.filter(letter => place === null || isBefore(letter, place)), ...stored.map(ofOutbox)].sort(
    (a, b) => (isBefore(a, b) ? 1 : -1),
  )
  const shown = letters.slice(0, LETTERS_SHOWN_MAX)
  return {
    triggers: webhooks.triggers().map(({ trigger, isActive, storage }) => ({
      ...{
        name: trigger.name,
        table: trigger.table,
        operations: trigger.operations,
        source: trigger.source,
        order: trigger.order,
      },
      // The path may be the secret.
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

/** How it goes, for `/health/internal` too. */
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
    failing_endpoints: stats.narrow,
    ...{ disabled_triggers: stats.disabled, untold_changes: stats.untold },
    ...{ dead_letter_count: stats.deadLetters, dead_letters_forgotten: stats.forgotten },
  }
}

function oldestOf({ oldestMs, outbox }: WebhookStats): number | null {
  const all = [oldestMs, ...[...outbox.byTrigger.values()].map(queue => queue.oldestMs)].filter(each => each !== null)
  return all.length === 0 ? null : Math.min(...all)
}

/** Of the outbox; what is in memory is not told apart by triggers. */
function queueOf(trigger: string, { outbox }: WebhookStats): unknown {
  const queue = outbox.byTrigger.get(trigger)
  if (queue === undefined) return null
  const { ready, waiting, inFlight, oldestMs } = queue
  return { ready, waiting, in_flight: inFlight, oldest: oldestMs === null ? null : new Date(oldestMs).toISOString() }
}

interface Letter
  extends LetterPlace,
    Pick<StoredLetter, 'trigger' | 'table' | 'happened' | 'tries' | 'reason' | 'createdAtMs'> {
  readonly storage: 'outbox' | 'memory'
}

function ofMemory({ delivery, reason, atMs }: DeadLetter): Letter {
  const { id, trigger, table, happened, tries, createdAtMs } = delivery
  return { id, trigger, table, happened, tries, reason, createdAtMs, givenUpAtMs: atMs, storage: 'memory' }
}

function ofOutbox(letter: StoredLetter): Letter {
  return { ...letter, storage: 'outbox' }
}

function isBefore(a: LetterPlace, b: LetterPlace): boolean {
  return a.givenUpAtMs < b.givenUpAtMs || (a.givenUpAtMs === b.givenUpAtMs && a.id < b.id)
}

async function placeOf(webhooks: Webhooks, id: string): Promise<LetterPlace | null> {
  const held = webhooks.deadLetter(id)
  return held === undefined ? ((await webhooks.outbox?.letter(id, 0)) ?? null) : ofMemory(held)
}

function describe({ id, trigger, table, happened, tries, reason, createdAtMs, givenUpAtMs, storage }: Letter) {
  return {
    ...{ id, trigger, table, operation: happened, tries, reason, storage },
    created_at: new Date(createdAtMs).toISOString(),
    given_up_at: new Date(givenUpAtMs).toISOString(),
  }
}

/** A dead letter, or only the tries of a webhook that has arrived or still waits. */
async function whole(webhooks: Webhooks, id: string): Promise<unknown> {
  const held = webhooks.deadLetter(id)
  if (held !== undefined) return describeHeld(held)
  const letter = (await webhooks.outbox?.letter(id, PAYLOAD_BYTES_MAX)) ?? null
  const attempts = (await webhooks.outbox?.attempts(id)) ?? []
  if (letter !== null) return { ...describeStored(letter, webhooks), attempts }
  return attempts.length === 0 ? null : { id, attempts }
}

function describeHeld(letter: DeadLetter): unknown {
  const { outcome, delivery } = letter
  const text = delivery.body.toString()
  return {
    ...describe(ofMemory(letter)),
    last_answer: outcome?.kind === 'answered' ? { status: outcome.status, body: outcome.body } : null,
    last_error: outcome?.kind === 'failed' ? describeOutcome(outcome) : null,
    // As text: read as JSON it would lose digits.
    payload: text === '' ? null : text,
  }
}

function describeStored(letter: WholeLetter, webhooks: Webhooks): object {
  const { status, answer, message } = letter
  return {
    ...describe(ofOutbox(letter)),
    last_answer: status === null ? null : { status, body: answer ?? '' },
    last_error: status === null ? message : null,
    payload: payloadOf(letter, webhooks),
  }
}

/** As it would be sent now. */
function payloadOf(letter: WholeLetter, webhooks: Webhooks): string | null {
  const { trigger: name, happened, after, before, createdAtMs, table } = letter
  const trigger = webhooks.triggers().find(each => each.trigger.name === name)?.trigger ?? { name, columns: null }
  if (after === null && before === null) return null
  return printPayload(trigger, { table, happened, after, before, atMs: createdAtMs }).toString()
}
