/** The operator's admin token (docs/guides/monitoring.md#the-admin-token), which is no token of a caller and says nothing about one. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Whether a request carries it; without one configured, none does. Takes as long for every wrong token. */
export function createAdminCheck(adminToken: string | null): (headers: IncomingHttpHeaders) => boolean {
  if (adminToken === null || adminToken === '') return () => false
  const expected = digest(`Bearer ${adminToken}`)
  return ({ authorization = '' }) => timingSafeEqual(digest(authorization.replace(SCHEME, 'Bearer ')), expected)
}

/** In any case (RFC 9110, 11.1), as with the tokens of callers. */
const SCHEME = /^bearer +/i

/** Digests have one length, whatever was sent, and tell nothing of a common beginning. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
