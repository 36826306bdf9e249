/**
 * Stores the outcomes of claimed webhooks, many in one statement, since a statement costs more than its work
 * on one row.
 */
import { type FailureReason, type Outcome, wordOf } from '../delivery.ts'
import type { RunInTransaction } from './transaction.ts'

/**
 * Characters of a response stored with an attempt. Dead letters keep all that was read of the last response.
 */
const ATTEMPT_ANSWER_LENGTH = 1_000

/** An attempt as it is stored. */
export interface Attempt {
  /** The number of the attempt, from 1. */
  readonly try: number
  readonly outcome: 'delivered' | 'refused' | FailureReason
  readonly durationMs: number
  readonly status: number | null
  readonly answer: string | null
  readonly message: string
}

/** The stored form of an outcome. `number` counts from 1. */
export function attemptOf(number: number, outcome: Outcome, durationMs: number): Attempt {
  const answered = outcome.kind === 'answered' ? outcome : null
  return {
    ...{ try: number, outcome: wordOf(outcome), durationMs },
    ...{ status: answered?.status ?? null, answer: answered?.body ?? null },
    message: outcome.kind === 'answered' ? `answered ${outcome.status}` : outcome.message,
  }
}

/** The outcome of a claimed webhook. */
export interface Settlement {
  readonly seq: string
  readonly id: string
  readonly trigger: string
  readonly key: string | null
  readonly verdict:
    | { readonly kind: 'delivered' }
    | { readonly kind: 'dead'; readonly reason: string }
    | { readonly kind: 'again'; readonly delayMs: number }
    /** It was not attempted; any gateway may claim it immediately. */
    | { readonly kind: 'back' }
  /** The attempt; null if none was made. */
  readonly attempt: Attempt | null
}

/**
 * A delivered webhook is removed, whichever gateway holds the lease by now. Every other outcome requires the
 * lease: if it has expired, another gateway may be attempting delivery at this moment.
 */
const SETTLE = `WITH s AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1::json) AS s(seq bigint, id text, trigger text, verdict text,
    delay_ms bigint, reason text,
    try integer, outcome text, duration_ms integer, status integer, answer text, message text)
),
tried AS (
  INSERT INTO svc.webhook_attempt (webhook, trigger, try, outcome, duration_ms, status, answer, message)
  SELECT id, trigger, try, outcome, duration_ms, status,
    CASE WHEN outcome <> 'delivered' THEN left(answer, ${ATTEMPT_ANSWER_LENGTH}) END, message
  FROM s WHERE outcome IS NOT NULL
),
again AS (
  UPDATE svc.webhook AS w SET due_at = now() + s.delay_ms * interval '1 millisecond', leased_by = NULL,
    tries = coalesce(s.try, w.tries)
  FROM s WHERE w.seq = s.seq AND s.delay_ms IS NOT NULL AND w.leased_by = $2
),
gone AS (
  DELETE FROM svc.webhook AS w USING s WHERE w.seq = s.seq AND s.delay_ms IS NULL
    AND (s.verdict = 'delivered' OR w.leased_by = $2)
  RETURNING w.*
)
INSERT INTO svc.webhook_dead (id, trigger, "schema", "table", operation, new, old, created_at, key, tenant,
  tries, reason, status, answer, message)
SELECT s.id, g.trigger, g."schema", g."table", g.operation, g.new, g.old, g.created_at, g.key, g.tenant,
  coalesce(s.try, g.tries), s.reason, s.status, s.answer, s.message
FROM gone AS g JOIN s ON s.seq = g.seq WHERE s.verdict = 'dead' ON CONFLICT (id) DO NOTHING`

/**
 * Makes the next webhook of each key due. A separate statement: it must see webhooks stored until the
 * previous one was locked for deletion; otherwise it would miss one that a claim has just put off (claim.ts).
 */
const WAKE_NEXT = `UPDATE svc.webhook AS w SET due_at = now() FROM (
  SELECT DISTINCT (SELECT e.seq FROM svc.webhook AS e
    WHERE e.trigger = k.trigger AND e.key = k.key ORDER BY e.seq LIMIT 1) AS seq
  FROM json_to_recordset($1::json) AS k(trigger text, key text) OFFSET 0
) AS next WHERE w.seq = next.seq AND w.leased_by IS NULL AND w.tries = 0`

/** Stores outcomes in one transaction. Errors of the database are passed on; nothing is stored then. */
export async function writeSettlements(
  ask: RunInTransaction,
  gateway: string,
  settlements: readonly Settlement[],
): Promise<void> {
  const ended = settlements.filter(
    ({ key, verdict: { kind } }) => key !== null && (kind === 'delivered' || kind === 'dead'),
  )
  const command = { text: SETTLE, parameters: [printSettlements(settlements), gateway] }
  if (ended.length === 0) await ask(command)
  else
    await ask(command, {
      text: WAKE_NEXT,
      parameters: [JSON.stringify(ended.map(({ trigger, key }) => ({ trigger, key })))],
    })
}

const RELEASE = `UPDATE svc.webhook SET due_at = now(), leased_by = NULL
WHERE leased_by = $2 AND seq = ANY (ARRAY(SELECT json_array_elements_text($1::json)::bigint))`

/** Ends leases early, so that other gateways can claim the webhooks immediately. */
export async function release(ask: RunInTransaction, gateway: string, seqs: readonly string[]): Promise<void> {
  if (seqs.length > 0) await ask({ text: RELEASE, parameters: [JSON.stringify(seqs), gateway] })
}

/** The settlement without the response and other text from outside, in case the database cannot store it. */
export function withoutAnswer(settlement: Settlement): Settlement {
  const { attempt, verdict } = settlement
  return {
    ...settlement,
    verdict: verdict.kind === 'dead' ? { ...verdict, reason: ascii(verdict.reason) } : verdict,
    attempt: attempt && { ...attempt, answer: null, message: ascii(attempt.message) },
  }
}

function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?')
}

function printSettlements(settlements: readonly Settlement[]): string {
  return JSON.stringify(
    settlements.map(({ seq, id, trigger, verdict, attempt }) => ({
      ...{ seq, id, trigger, verdict: verdict.kind },
      delay_ms: verdict.kind === 'again' ? verdict.delayMs : verdict.kind === 'back' ? 0 : null,
      reason: verdict.kind === 'dead' ? storable(verdict.reason) : null,
      ...(attempt && {
        ...{
          try: attempt.try,
          outcome: attempt.outcome,
          duration_ms: Math.round(attempt.durationMs),
          status: attempt.status,
        },
        ...{ answer: attempt.answer === null ? null : storable(attempt.answer), message: storable(attempt.message) },
      }),
    })),
  )
}

/** PostgreSQL's text has no NUL character, and its JSON no unpaired surrogates. */
function storable(text: string): string {
  return Buffer.from(text.replaceAll('\0', '\ufffd')).toString()
}
