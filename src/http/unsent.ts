/**
 * Tracks responses that clients have not read yet. Their bytes are counted for the process and for each
 * tenant, and each response keeps a permit of its tenant, so a client that does not read cannot request more
 * than one that does.
 */
import type { GatewayError } from '../errors.ts'
import { callerKey } from '../limits/budget.ts'
import type { LimitedCaller, TenantLimit } from '../limits/tenant-limit.ts'
import type { ResponseBytes } from './response-bytes.ts'

/** The responses that clients have not read yet. */
export interface Unsent {
  /** @throws {GatewayError} `UNAVAILABLE` for a request that must not start now. */
  assertRoom(caller: LimitedCaller, method: string): void
  /** The error to send instead of a large response to a read, or null if the response can be sent. */
  refusal(caller: LimitedCaller | null): GatewayError | null
  /**
   * Counts bytes that wait to be sent; `caller` is null if unknown. Returns a function that subtracts them
   * again.
   */
  count(caller: LimitedCaller | null, bytes: number): () => void
  /** The same for the rest of a complete response, which also keeps a permit. */
  hold(caller: LimitedCaller | null, bytes: number): () => void
}

/** The dependencies of the tracker. */
export interface UnsentParts {
  readonly bytes: Pick<ResponseBytes, 'unsent' | 'refused'>
  readonly gate: TenantLimit | null
}

/**
 * Limit on responses that are never rejected, because the kernel usually accepts them at once. Their number
 * is limited by the number of connections.
 */
export const SMALL_ANSWER_BYTES: number = 64 * 1024

/** Creates the tracker. */
export function createUnsent({ bytes: { unsent, refused }, gate }: UnsentParts): Unsent {
  function count(caller: LimitedCaller | null, bytes: number): () => void {
    const key = caller === null ? null : callerKey(caller)
    unsent.take(key, bytes)
    return () => unsent.give(key, bytes)
  }

  return {
    assertRoom(caller, method) {
      if (unsent.taken === 0) return
      const limit = unsent.exceeded(callerKey(caller))
      // A read is checked when the size of its response is known, a write before it starts.
      if (limit === 'share' || (limit === 'total' && method !== 'GET' && method !== 'HEAD')) throw refused(limit)
    },
    refusal(caller) {
      if (unsent.taken === 0) return null
      const limit = unsent.exceeded(caller === null ? null : callerKey(caller))
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
