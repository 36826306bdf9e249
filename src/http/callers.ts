/** Identifies the caller of a request from its head. */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { Identity } from '../identity/identity.ts'
import type { HttpBroadcasts } from '../phoenix/http-broadcasts.ts'
import type { Door } from '../postgrest/door.ts'
import { noRoute } from './other-routes.ts'

/** The functions that identify a caller. */
export interface CallerParts {
  /**
   * Authenticates the caller; synchronous for a token that was verified before.
   * @throws {GatewayError} `UNAUTHORIZED`, also as a rejection.
   */
  readonly authenticate: (headers: Incoming['headers'], connection: object) => Identity | Promise<Identity>
  readonly explainEndpoint: 'on' | 'admin' | 'off'
  /** The path of shapes, whose callers are identified as well; null without one. */
  readonly shapesPath: string | null
  /** Broadcasts over HTTP; null without them. */
  readonly broadcasts: Pick<HttpBroadcasts, 'owns' | 'identify'> | null
  /** Reports whether the request carries the admin token. */
  readonly isAdmin: (headers: Incoming['headers']) => boolean
  /** Requests in another dialect, below a separate prefix; null if they are disabled. */
  readonly door: Door | null
}

type Head = Pick<Incoming, 'path' | 'headers' | 'connection'>

/**
 * Returns the caller of a request, or null if the route needs none.
 * @throws {GatewayError} `UNAUTHORIZED`, also as a rejection.
 */
export type Identify = (head: Head) => Identity | null | Promise<Identity>

/** Creates the function that identifies callers. */
export function createIdentify(parts: CallerParts): Identify {
  const { door, broadcasts } = parts
  return head => {
    if (broadcasts?.owns(head.path)) return broadcasts.identify(head)
    if (door?.owns(head.path)) return door.identify(head)
    return isOfApi(head) || head.path === parts.shapesPath ? callerOf(head, parts) : null
  }
}

/** Reports whether a path belongs to a request for data, which can have a body. */
export function createIsData({
  door,
  shapesPath,
  broadcasts,
}: Pick<CallerParts, 'door' | 'shapesPath' | 'broadcasts'>): (path: string) => boolean {
  return path =>
    path.startsWith('/api/') || path === shapesPath || door?.owns(path) === true || broadcasts?.owns(path) === true
}

/** Reports whether the path is below `/api/`. */
export function isOfApi({ path }: Pick<Head, 'path'>): boolean {
  return path.startsWith('/api/')
}

/**
 * The caller of a request for data.
 * @throws {GatewayError} `UNAUTHORIZED`, also as a rejection.
 */
export function callerOf(head: Head, parts: CallerParts): Identity | Promise<Identity> {
  return isAdminExplaining(head, parts) ? ANONYMOUS : parts.authenticate(head.headers, head.connection)
}

/**
 * Reports whether `_explain` is called with the admin token. The admin token names neither a tenant nor a
 * user, so the request has no identity.
 */
export function isAdminExplaining({ path, headers }: Head, { explainEndpoint, isAdmin }: CallerParts): boolean {
  return explainEndpoint === 'admin' && path.endsWith('/_explain') && isAdmin(headers)
}

/**
 * Checks that `_explain` is available. With `explain_endpoint = "off"` the route does not exist; with
 * `"admin"` it requires the admin token.
 * @throws {GatewayError} `NOT_FOUND` or `UNAUTHORIZED`.
 */
export function assertExplainable(incoming: Incoming, { explainEndpoint, isAdmin }: CallerParts): void {
  if (explainEndpoint === 'off') throw noRoute(incoming)
  if (explainEndpoint === 'on' || isAdmin(incoming.headers)) return
  throw new GatewayError('UNAUTHORIZED', '_explain needs the admin token: Authorization: Bearer <admin_token>', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
