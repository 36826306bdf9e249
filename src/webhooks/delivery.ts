/** One webhook on its way, and what came of a try. */
import type { Event } from '../events.ts'
import type { Happened } from './trigger.ts'

export interface Delivery {
  /** `webhook-id`: the same on every try. */
  readonly id: string
  /** By its name: a try is made with the definition as it is then. */
  readonly trigger: string
  readonly endpoint: string
  readonly table: string
  readonly happened: Happened
  readonly body: Buffer
  readonly createdAtMs: number
  /** Made so far. */
  readonly tries: number
}

export type Outcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The header as it came. */
      readonly retryAfter: string | null
      /** As much as is kept of it. */
      readonly body: string
    }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly message: string }

/** `address`: the guard did not let it connect. */
export type FailureReason = 'timeout' | 'address' | 'connection'

/** For metrics and the log: few words. */
export type OutcomeWord = 'delivered' | 'refused' | FailureReason

export function wordOf(outcome: Outcome): OutcomeWord {
  if (outcome.kind === 'failed') return outcome.reason
  return isSuccess(outcome.status) ? 'delivered' : 'refused'
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** `503`, `connection: connect ECONNREFUSED …`. */
export function describeOutcome(outcome: Outcome): string {
  return outcome.kind === 'answered' ? `answered ${outcome.status}` : `${outcome.reason}: ${outcome.message}`
}

/** `tries`: this one included. */
export function attemptEvent(
  { id, trigger, tries }: Pick<Delivery, 'id' | 'trigger' | 'tries'>,
  outcome: Outcome,
  durationMs: number,
): Event {
  const message = describeOutcome(outcome)
  return { kind: 'webhook attempt', outcome: wordOf(outcome), durationMs, trigger, id, tries, message }
}

const ID_BYTES = 16

/** Random, so that nobody learns from it how many there are. */
export function newId(randomBytes: (size: number) => Buffer): string {
  return `msg_${randomBytes(ID_BYTES).toString('base64url')}`
}
