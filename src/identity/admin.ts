/**
 * The operator's admin token (docs/guides/monitoring.md#the-admin-token). It is not a caller's token and
 * does not identify a caller.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/**
 * Returns whether a request carries the admin token; without a configured one, none does. A wrong token
 * always takes the same time.
 */
export function createAdminCheck(adminToken: string | null): (headers: IncomingHttpHeaders) => boolean {
  if (adminToken === null || adminToken === '') return () => false
  const expected = digest(`Bearer ${adminToken}`)
  return ({ authorization = '' }) => timingSafeEqual(digest(authorization.replace(SCHEME, 'Bearer ')), expected)
}

/** The scheme in any case (RFC 9110, 11.1), as in the tokens of callers. */
const SCHEME = /^bearer +/i

/** Digests have one length, whatever was sent, so the time of a comparison reveals no common prefix. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
