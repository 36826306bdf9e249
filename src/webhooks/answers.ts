/** What the operator asks of webhooks, and `svc webhooks` shows: JSON, without bodies of rows but where one is asked for by its id. */
import type { DeadLetter } from './dead-letters.ts'
import { describeOutcome, wordOf } from './delivery.ts'
import { endpointOf } from './trigger.ts'
import type { Webhooks } from './webhooks.ts'

export type Asked = ReadonlyMap<string, string>

export interface WebhookAnswer {
  readonly method: 'GET' | 'POST'
  /** Null: what was asked for is not there. */
  readonly answer: (asked: Asked) => unknown
}

/** Dead letters in one answer; there may be many, and the newest say most. */
export const LETTERS_SHOWN_MAX = 100

export function webhookAnswers(webhooks: Webhooks): ReadonlyMap<string, WebhookAnswer> {
  const ids = (asked: Asked): readonly string[] => {
    const id = asked.get('id')
    if (id !== undefined) return [id]
    return asked.get('all') === 'true' ? webhooks.deadLetters().map(({ delivery }) => delivery.id) : []
  }
  return new Map<string, WebhookAnswer>([
    ['/internal/webhooks', { method: 'GET', answer: () => overview(webhooks) }],
    [
      '/internal/webhooks/dead-letter',
      {
        method: 'GET',
        answer(asked) {
          const letter = webhooks.deadLetter(asked.get('id') ?? '')
          return letter === undefined ? null : describeWhole(letter)
        },
      },
    ],
    [
      '/internal/webhooks/redeliver',
      { method: 'POST', answer: asked => ({ redelivered: ids(asked).filter(id => webhooks.redeliver(id)).length }) },
    ],
    [
      '/internal/webhooks/purge',
      { method: 'POST', answer: asked => ({ purged: ids(asked).filter(id => webhooks.purge(id)).length }) },
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

function overview(webhooks: Webhooks): unknown {
  const letters = webhooks.deadLetters()
  return {
    triggers: webhooks.triggers().map(({ trigger, isActive }) => ({
      ...{ name: trigger.name, table: trigger.table, operations: trigger.operations },
      // The path may be the secret.
      endpoint: endpointOf(trigger),
      signed: trigger.secrets.length > 0,
      state: isActive ? 'active' : trigger.enabled ? 'disabled by 410' : 'off',
    })),
    ...webhookStatus(webhooks),
    dead_letters: letters.slice(-LETTERS_SHOWN_MAX).reverse().map(describe),
  }
}

/** How it goes, for `/health/internal` too. */
export function webhookStatus(webhooks: Webhooks): Readonly<Record<string, unknown>> {
  const stats = webhooks.stats()
  return {
    storage: 'memory',
    queue: {
      ...{ ready: stats.ready, waiting: stats.waiting, in_flight: stats.inFlight, bytes: stats.bytes },
      oldest: stats.oldestMs === null ? null : new Date(stats.oldestMs).toISOString(),
    },
    failing_endpoints: stats.narrow,
    ...{ disabled_triggers: stats.disabled, untold_changes: stats.untold },
    ...{ dead_letter_count: stats.deadLetters, dead_letters_forgotten: stats.forgotten },
  }
}

function describe({ delivery, reason, atMs }: DeadLetter) {
  const { id, trigger, table, happened, tries, createdAtMs } = delivery
  return {
    ...{ id, trigger, table, operation: happened, tries, reason },
    created_at: new Date(createdAtMs).toISOString(),
    given_up_at: new Date(atMs).toISOString(),
  }
}

function describeWhole(letter: DeadLetter): unknown {
  const { outcome, delivery } = letter
  const text = delivery.body.toString()
  return {
    ...describe(letter),
    last_answer: outcome?.kind === 'answered' ? { status: outcome.status, body: outcome.body } : null,
    last_error: outcome?.kind === 'failed' ? describeOutcome(outcome) : null,
    // As text: read as JSON it would lose digits.
    payload: text === '' ? null : text,
  }
}
