/**
 * Counts the bytes of request bodies that are being received or processed, for the process and for each
 * address.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { Budget, Exceeded } from '../limits/budget.ts'

/** The counted bytes of one body. */
export interface HeldBody {
  /**
   * Counts a part of the body.
   * @throws {GatewayError} if a limit is exceeded; the request is then rejected and no longer counted.
   */
  take(bytes: number): void
}

/** Counts the body of a request until `response` or its connection ends. */
export type HoldBody = (request: IncomingMessage, response: ServerResponse) => HeldBody

/** The dependencies of the body counter. */
export interface BodyParts {
  readonly budget: Budget<string | number | null>
  /** The address that the request comes from. */
  readonly holderOf: (request: IncomingMessage) => string | number
  readonly whenOver: (response: ServerResponse, callback: () => void) => void
  /** The configured limits, for messages. */
  readonly maxInflightBodyBytes: number
  readonly addressMaxInflightBodyBytes: number
}

/** Creates the counter of request bodies. */
export function createBodies(parts: BodyParts): HoldBody {
  const { budget, holderOf, whenOver, maxInflightBodyBytes, addressMaxInflightBodyBytes } = parts
  // Created once, because the stack trace of an error costs more than the rest of a rejection.
  const refusals: Readonly<Record<Exceeded, GatewayError>> = {
    share: unavailable(
      `the request bodies from this address exceed address_max_inflight_body_bytes ` +
        `(${addressMaxInflightBodyBytes}); send fewer at the same time, and try again`,
    ),
    total: unavailable(
      `the request bodies of all clients exceed max_inflight_body_bytes (${maxInflightBodyBytes}); try again`,
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
