/**
 * Counts the bytes of responses in memory: results that are being read from PostgreSQL and responses that
 * clients have not read yet. One budget limits both, for the process and for each tenant, so a client that
 * does not read its responses uses no more memory than one that does.
 */
import { GatewayError } from '../errors.ts'
import { type Budget, createBudget, type Exceeded } from '../limits/budget.ts'

/** The budget of response bytes. */
export interface ResponseBytes {
  /**
   * The responses that clients have not read yet. The limits of this budget include `reading`, and it counts
   * rejections.
   */
  readonly unsent: Budget<string | null>
  /**
   * The results being read, from their first bytes until they are sent. Results below 64 KiB are not counted.
   */
  readonly reading: Omit<Budget<string | null>, 'exceeded' | 'refuse' | 'refusals'>
  /** Counts a rejection and returns its error. */
  refused(limit: Exceeded): GatewayError
  /** The callbacks of the connection pool (result-budget.ts). */
  readonly results: {
    beforeStart(flow: string, readsOnly: boolean): GatewayError | null
    whileReading(flow: string, own: number): GatewayError | null
    take(flow: string, bytes: number): void
    give(flow: string, bytes: number): void
  }
}

/** Limits on the bytes of responses, for the process and for each tenant. */
export interface ResponseBytesLimits {
  readonly maxUnsentBytes: number
  readonly tenantMaxUnsentBytes: number
}

/** Creates the budget. */
export function createResponseBytes({ maxUnsentBytes, tenantMaxUnsentBytes }: ResponseBytesLimits): ResponseBytes {
  const unsent = createBudget<string>({ max: maxUnsentBytes, shareMax: tenantMaxUnsentBytes })
  const reading = createBudget<string>({ max: 0, shareMax: 0 })
  // Created once, because the stack trace of an error costs more than the rest of a rejection.
  const refusals: Readonly<Record<Exceeded, GatewayError>> = {
    share: unavailable(
      `responses that this tenant has not read yet exceed tenant_max_unsent_bytes (${tenantMaxUnsentBytes}); ` +
        'read them or close their connections, and try again',
    ),
    total: unavailable(
      `responses that clients have not read yet exceed max_unsent_bytes (${maxUnsentBytes}); try again`,
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
        // A small result is always read; a large one is checked while it is read.
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
