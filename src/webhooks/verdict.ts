/** What becomes of a delivery after a try: done, tried again, or a dead letter. */
import { describeOutcome, isSuccess, type Outcome } from './delivery.ts'
import { delayBefore, parseRetryAfter } from './retry.ts'
import type { Trigger } from './trigger.ts'

export type Verdict =
  | { readonly kind: 'delivered' }
  /** The endpoint wants no more of this trigger. */
  | { readonly kind: 'gone'; readonly reason: string }
  | { readonly kind: 'dead'; readonly reason: string }
  | { readonly kind: 'again'; readonly delayMs: number }

const GONE = 410

/** `tries`: made so far, this one included. `random` is from 0 to 1. */
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
