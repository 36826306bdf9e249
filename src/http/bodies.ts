/** Bodies of requests that are being received or worked on: their bytes are counted for the whole process and for each address. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { Budget, Exceeded } from '../limits/budget.ts'

/** The bytes of one body. */
export interface HeldBody {
  /** Counts a part of it. What it throws refuses the request, of which nothing is counted any more. */
  take(bytes: number): void
}

/** `response`: with its end, or that of its connection, the body is not counted any more. */
export type HoldBody = (request: IncomingMessage, response: ServerResponse) => HeldBody

export interface BodyParts {
  readonly budget: Budget<string | number | null>
  /** The address that the request comes from. */
  readonly holderOf: (request: IncomingMessage) => string | number
  readonly whenOver: (response: ServerResponse, callback: () => void) => void
  /** As configured, for the messages. */
  readonly maxInflightBodyBytes: number
  readonly addressMaxInflightBodyBytes: number
}

export function createBodies(parts: BodyParts): HoldBody {
  const { budget, holderOf, whenOver, maxInflightBodyBytes, addressMaxInflightBodyBytes } = parts
  // Made once: the trace of an error costs more than all the rest of a refusal.
  const refusals: Readonly<Record<Exceeded, GatewayError>> = {
    share: unavailable(
      `the bodies that this address is sending take more than address_max_inflight_body_bytes (${addressMaxInflightBodyBytes}); send fewer at a time, and try again`,
    ),
    total: unavailable(
      `the bodies that clients are sending take more than max_inflight_body_bytes (${maxInflightBodyBytes}); try again`,
    ),
  }
  return (request, response) => {
    const holder = holderOf(request)
    let held = 0
    const release = () => {
      budget.give(holder, held)
      held = 0
    }
    whenOver(response, release)
    return {
      take(bytes) {
        const limit = budget.exceeded(holder)
        if (limit !== null) {
          release()
          budget.refuse(limit)
          throw refusals[limit]
        }
        held += bytes
        budget.take(holder, bytes)
      },
    }
  }
}

function unavailable(message: string): GatewayError {
  return new GatewayError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' } })
}
