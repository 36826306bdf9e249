/** Who calls, which is known from the head of a request alone. */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { Identity } from '../identity/identity.ts'
import { noRoute } from './other-routes.ts'

export interface CallerParts {
  /** Synchronous for a token that was verified before. Throws or rejects with UNAUTHORIZED. */
  readonly authenticate: (headers: Incoming['headers'], connection: object) => Identity | Promise<Identity>
  readonly explainEndpoint: 'on' | 'admin' | 'off'
  /** Reports whether the request carries the admin token. */
  readonly isAdmin: (headers: Incoming['headers']) => boolean
}

type Head = Pick<Incoming, 'path' | 'headers' | 'connection'>

/** The caller of a request, or null where the route needs none. Throws or rejects with UNAUTHORIZED. */
export type Identify = (head: Head) => Identity | null | Promise<Identity>

export function createIdentify(parts: CallerParts): Identify {
  return head => (isOfApi(head) ? callerOf(head, parts) : null)
}

export function isOfApi({ path }: Pick<Head, 'path'>): boolean {
  return path.startsWith('/api/')
}

export function callerOf(head: Head, parts: CallerParts): Identity | Promise<Identity> {
  return isAdminExplaining(head, parts) ? ANONYMOUS : parts.authenticate(head.headers, head.connection)
}

/** The admin token names no tenant and no user, so `_explain` with it runs without an identity. */
export function isAdminExplaining({ path, headers }: Head, { explainEndpoint, isAdmin }: CallerParts): boolean {
  return explainEndpoint === 'admin' && path.endsWith('/_explain') && isAdmin(headers)
}

/**
 * With `explain_endpoint = "off"` the route does not exist; with `"admin"` it answers 401 without the token.
 */
export function assertExplainable(incoming: Incoming, { explainEndpoint, isAdmin }: CallerParts): void {
  if (explainEndpoint === 'off') throw noRoute(incoming)
  if (explainEndpoint === 'on' || isAdmin(incoming.headers)) return
  throw new GatewayError('UNAUTHORIZED', '_explain needs the admin token: Authorization: Bearer <admin_token>', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
