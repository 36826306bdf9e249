/** A delivery of one webhook, and the outcome of an attempt. */
import type { Event } from '../events.ts'
import type { RowOperation } from './trigger.ts'

/** A webhook that is queued or in flight. */
export interface Delivery {
  /** The `webhook-id` header: the same for every attempt. */
  readonly id: string
  /** The trigger's name: each attempt uses the definition as it is at that time. */
  readonly trigger: string
  readonly endpoint: string
  readonly table: string
  readonly operation: RowOperation
  readonly body: Buffer
  readonly createdAtMs: number
  /** The header `traceparent` of every attempt; null if the change belongs to no trace. */
  readonly traceparent: string | null
  /** Attempts made so far. */
  readonly tries: number
}

/** The outcome of one attempt. */
export type Outcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The `Retry-After` header as received. */
      readonly retryAfter: string | null
      /** The beginning of the response body. */
      readonly body: string
    }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly message: string }

/** Why no response was received. `address`: the address guard refused the connection. */
export type FailureReason = 'timeout' | 'address' | 'connection'

/** The outcome as a word, for metrics and the log. */
export type OutcomeWord = 'delivered' | 'refused' | FailureReason

/** The word for an outcome. */
export function wordOf(outcome: Outcome): OutcomeWord {
  if (outcome.kind === 'failed') return outcome.reason
  return isSuccess(outcome.status) ? 'delivered' : 'refused'
}

/** True if a status is in the range 200 to 299. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** A description for messages: `answered 503`, `connection: connect ECONNREFUSED …`. */
export function describeOutcome(outcome: Outcome): string {
  return outcome.kind === 'answered' ? `answered ${outcome.status}` : `${outcome.reason}: ${outcome.message}`
}

/** The event for an attempt. `tries` includes this attempt. */
export function attemptEvent(
  { id, trigger, tries }: Pick<Delivery, 'id' | 'trigger' | 'tries'>,
  outcome: Outcome,
  durationMs: number,
): Event {
  const message = describeOutcome(outcome)
  return { kind: 'webhook attempt', outcome: wordOf(outcome), durationMs, trigger, id, tries, message }
}

const ID_BYTES = 16

/** Creates a webhook id. Ids are random, so that they do not reveal how many webhooks there are. */
export function newId(randomBytes: (size: number) => Buffer): string {
  return `msg_${randomBytes(ID_BYTES).toString('base64url')}`
}
