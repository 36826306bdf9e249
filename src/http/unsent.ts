/**
 * Answers that were made and whose clients have not read them yet. Their bytes are counted for the whole process and for each tenant, and each of them keeps
 * a permit of its tenant: who does not read cannot ask for more than who does.
 */
import { GatewayError } from '../errors.ts'
import { type Budget, callerKey, type Exceeded } from '../limits/budget.ts'
import type { Gate, GateCaller } from '../limits/gate.ts'

export interface Unsent {
  /** Throws UNAVAILABLE for a request that must not be started now. */
  assertRoom(caller: GateCaller, method: string): void
  /** What to answer in place of a large answer to a request that only read; null: the answer itself. */
  refusal(caller: GateCaller | null): GatewayError | null
  /** Counts bytes that wait to be sent; `caller` is null where none is known. Returns what takes them back. */
  count(caller: GateCaller | null, bytes: number): () => void
  /** The same for what is left of a complete answer, which also keeps a permit. */
  hold(caller: GateCaller | null, bytes: number): () => void
}

export interface UnsentParts {
  readonly budget: Budget<string | null>
  readonly gate: Gate | null
  /** As configured, for the messages. */
  readonly maxUnsentBytes: number
  readonly tenantMaxUnsentBytes: number
}

/** Answers that the kernel mostly takes at once are never refused: their number is that of the connections. */
export const SMALL_ANSWER_BYTES: number = 64 * 1024

export function createUnsent({ budget, gate, maxUnsentBytes, tenantMaxUnsentBytes }: UnsentParts): Unsent {
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
    budget.refuse(limit)
    return refusals[limit]
  }

  function count(caller: GateCaller | null, bytes: number): () => void {
    const key = caller === null ? null : callerKey(caller)
    budget.take(key, bytes)
    return () => budget.give(key, bytes)
  }

  return {
    assertRoom(caller, method) {
      if (budget.taken === 0) return
      const limit = budget.exceeded(callerKey(caller))
      // A read is judged when the size of its answer is known, a change before it is made.
      if (limit === 'share' || (limit === 'total' && method !== 'GET' && method !== 'HEAD')) throw refused(limit)
    },
    refusal(caller) {
      if (budget.taken === 0) return null
      const limit = budget.exceeded(caller === null ? null : callerKey(caller))
      return limit === null ? null : refused(limit)
    },
    count,
    hold(caller, bytes) {
      const uncount = count(caller, bytes)
      if (caller === null || gate === null) return uncount
      gate.hold(caller)
      return () => {
        uncount()
        gate.leave(caller)
      }
    },
  }
}

function unavailable(message: string): GatewayError {
  return new GatewayError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' } })
}
