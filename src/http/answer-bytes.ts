/**
 * Bytes of answers in memory: results that are being read from PostgreSQL, and answers that clients have not read yet. One budget bounds both, for the process
 * and for each tenant, so that a client that asks and does not read costs no more than one that does.
 */
import { GatewayError } from '../errors.ts'
import { type Budget, createBudget, type Exceeded } from '../limits/budget.ts'

export interface AnswerBytes {
  /** Answers that clients have not read yet; its limits are those of both, and it counts the refusals. */
  readonly unsent: Budget<string | null>
  /** Results from their first bytes on, until they are answered. Those below 64 KiB are not counted. */
  readonly reading: Omit<Budget<string | null>, 'exceeded' | 'refuse' | 'refusals'>
  /** Counts a refusal. */
  refused(limit: Exceeded): GatewayError
  /** What the connection pool asks and tells (result-budget.ts). */
  readonly results: {
    beforeStart(flow: string, readsOnly: boolean): GatewayError | null
    whileReading(flow: string, own: number): GatewayError | null
    take(flow: string, bytes: number): void
    give(flow: string, bytes: number): void
  }
}

export interface AnswerBytesLimits {
  readonly maxUnsentBytes: number
  readonly tenantMaxUnsentBytes: number
}

export function createAnswerBytes({ maxUnsentBytes, tenantMaxUnsentBytes }: AnswerBytesLimits): AnswerBytes {
  const unsent = createBudget<string>({ max: maxUnsentBytes, shareMax: tenantMaxUnsentBytes })
  const reading = createBudget<string>({ max: 0, shareMax: 0 })
  // Made once: the trace of an error costs more than all the rest of a refusal.
  const refusals: Readonly<Record<Exceeded, GatewayError>> = {
    share: unavailable(
      `answers to this tenant that were not read yet take more than tenant_max_unsent_bytes (${tenantMaxUnsentBytes}); read or close their connections and try again`,
    ),
    total: unavailable(
      `answers that were not read yet take more than max_unsent_bytes (${maxUnsentBytes}) of the gateway; try again`,
    ),
  }

  function refused(limit: Exceeded): GatewayError {
    unsent.refuse(limit)
    return refusals[limit]
  }

  function exceeded(flow: string, own: number): Exceeded | null {
    return unsent.exceeded(flow, reading.takenBy(flow) - own, reading.taken - own)
  }

  return {
    unsent,
    reading,
    refused,
    results: {
      beforeStart(flow, readsOnly) {
        if (unsent.taken + reading.taken === 0) return null
        const limit = exceeded(flow, 0)
        // A small result is read in any case, and a large one is judged while it is.
        return limit === null || (limit === 'total' && readsOnly) ? null : refused(limit)
      },
      whileReading(flow, own) {
        const limit = exceeded(flow, own)
        return limit === null ? null : refused(limit)
      },
      take: (flow, bytes) => reading.take(holderOf(flow), bytes),
      give: (flow, bytes) => reading.give(holderOf(flow), bytes),
    },
  }
}

/** The gateway's own statements count towards the total only. */
function holderOf(flow: string): string | null {
  return flow === '' ? null : flow
}

function unavailable(message: string): GatewayError {
  return new GatewayError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' } })
}
