/**
 * Answers that were made and whose clients have not read them yet. Their bytes are counted for the whole process and for each tenant, and each of them keeps
 * a permit of its tenant: who does not read cannot ask for more than who does.
 */
import type { GatewayError } from '../errors.ts'
import { callerKey } from '../limits/budget.ts'
import type { LimitedCaller, TenantLimit } from '../limits/tenant-limit.ts'
import type { AnswerBytes } from './answer-bytes.ts'

export interface Unsent {
  /** Throws UNAVAILABLE for a request that must not be started now. */
  assertRoom(caller: LimitedCaller, method: string): void
  /** What to answer in place of a large answer to a request that only read; null: the answer itself. */
  refusal(caller: LimitedCaller | null): GatewayError | null
  /** Counts bytes that wait to be sent; `caller` is null where none is known. Returns what takes them back. */
  count(caller: LimitedCaller | null, bytes: number): () => void
  /** The same for what is left of a complete answer, which also keeps a permit. */
  hold(caller: LimitedCaller | null, bytes: number): () => void
}

export interface UnsentParts {
  readonly bytes: Pick<AnswerBytes, 'unsent' | 'refused'>
  readonly gate: TenantLimit | null
}

/** Answers that the kernel mostly takes at once are never refused: their number is that of the connections. */
export const SMALL_ANSWER_BYTES: number = 64 * 1024

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
      // A read is judged when the size of its answer is known, a change before it is made.
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
