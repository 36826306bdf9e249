/**
 * `X-Request-Id`: a valid one from the client is kept, any other is replaced
 * (docs/reference/rest-api.md#headers).
 */
import { randomBytes } from 'node:crypto'

const VALID = /^[A-Za-z0-9._-]{1,128}$/

/** Creates request ids: a random prefix makes them unique across processes, a counter within one. */
export function createRequestIds(
  prefix: string = randomBytes(6).toString('hex'),
): (received: string | undefined) => string {
  let count = 0
  return received => {
    if (received !== undefined && VALID.test(received)) return received
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
