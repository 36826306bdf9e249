/**
 * The caller according to the development headers (docs/guides/your-own-database.md#4-send-a-request). The
 * code that calls this decides whether to trust them.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Identity } from './identity.ts'

/** The identity that the headers describe; null if none of the three is present. */
export function identityOfHeaders(headers: IncomingHttpHeaders): Identity | null {
  const tenantId = header(headers, 'x-tenant-id')
  const userId = header(headers, 'x-user-id')
  const role = header(headers, 'x-user-role')
  if (tenantId === '' && userId === '' && role === '') return null
  return { source: 'headers', tenantId, userId, agentId: '', role, scopes: [], claims: '{}', expiresAt: null }
}

/** Node decodes header bytes as latin1; curl sends UTF-8. */
function header(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name] ?? ''
  const bytes = Buffer.from(typeof value === 'string' ? value : value.join(', '), 'latin1')
  const text = bytes.toString('utf8')
  return text.includes('\uFFFD') ? bytes.toString('latin1') : text
}
