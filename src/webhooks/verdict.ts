/** The consequence of an attempt: the delivery is done, retried, or becomes a dead letter. */
import { describeOutcome, isSuccess, type Outcome } from './delivery.ts'
import { delayBefore, parseRetryAfter } from './retry.ts'
import type { Trigger } from './trigger.ts'

/** The consequence of an attempt. */
export type Verdict =
  | { readonly kind: 'delivered' }
  /** The endpoint asks for no more webhooks of this trigger. */
  | { readonly kind: 'gone'; readonly reason: string }
  | { readonly kind: 'dead'; readonly reason: string }
  | { readonly kind: 'again'; readonly delayMs: number }

const GONE = 410

/** Decides what follows from an outcome. `tries` includes this attempt; `random` is from 0 to 1. */
export function verdictOf(
  outcome: Outcome,
  { retryCount }: Pick<Trigger, 'retryCount'>,
  { tries, nowMs, random }: { readonly tries: number; readonly nowMs: number; readonly random: number },
): Verdict {
  if (outcome.kind === 'answered' && isSuccess(outcome.status)) return { kind: 'delivered' }
  if (outcome.kind === 'answered' && outcome.status === GONE) {
    return { kind: 'gone', reason: 'the endpoint answered 410 Gone' }
  }
  if (tries > retryCount) return { kind: 'dead', reason: `failed ${tries} times: ${describeOutcome(outcome)}` }
  const asked = outcome.kind === 'answered' ? parseRetryAfter(outcome.retryAfter, nowMs) : null
  return { kind: 'again', delayMs: delayBefore(tries, random, asked) }
}
