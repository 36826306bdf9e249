/**
 * Identifies the caller of a request (docs/reference/rest-api.md#authentication): the only function about
 * identity that the pipeline calls.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Config, GatewayConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { identityOfHeaders } from './headers.ts'
import type { Identity } from './identity.ts'
import type { Verified } from './issuer.ts'
import type { TokenVerifier } from './jwt.ts'
import { refusedToken } from './refused-token.ts'
import { type ProtectedResource, withMetadataUrl } from './resource.ts'

/**
 * Returns at once, except for a token that is not cached. Throws or rejects with UNAUTHORIZED. A cached
 * token always gives the same object, so data derived from an identity can be kept in a `WeakMap`.
 * `connection`: an object that lives as long as the client connection.
 */
export type Authenticate = (headers: IncomingHttpHeaders, connection?: object) => Identity | Promise<Identity>

/** The settings that authentication reads. */
export interface AuthenticatorConfig extends Pick<Config, 'devMode'> {
  readonly gateway: Pick<GatewayConfig, 'requireAuth'>
}

/** The identity of a caller without a token. */
export const ANONYMOUS: Identity = Object.freeze({
  source: 'anonymous',
  tenantId: '',
  userId: '',
  agentId: '',
  role: 'anonymous',
  scopes: Object.freeze([]),
  claims: '{}',
  expiresAt: null,
})

/**
 * Makes the function. `resource`: the metadata that a 401 response links to, so that clients find the token
 * issuer; null for none.
 */
export function createAuthenticator(
  config: AuthenticatorConfig,
  tokens: TokenVerifier,
  resource: Pick<ProtectedResource, 'metadataUrl'> | null = null,
): Authenticate {
  /**
   * The last token of each connection: mostly the same one is sent again, and comparing is cheaper than a
   * digest.
   */
  const lastOn = new WeakMap<object, Shown>()

  function identityOf(authorization: string, connection: object | undefined): Identity | Promise<Identity> {
    const last = connection === undefined ? undefined : lastOn.get(connection)
    if (last?.authorization === authorization && tokens.stands(last.verified)) return last.verified.identity
    const verified = tokens.verify(bearerToken(authorization))
    if (verified instanceof Promise) return verified.then(({ identity }) => identity)
    if (connection !== undefined) lastOn.set(connection, { authorization, verified })
    return verified.identity
  }

  function callerOf(headers: IncomingHttpHeaders, connection: object | undefined): Identity | Promise<Identity> {
    const { authorization } = headers
    // A request with a token is judged by the token alone: an invalid one never falls back to headers or to
    // anonymous access.
    if (authorization !== undefined) return identityOf(authorization, connection)
    const claimed = config.devMode ? identityOfHeaders(headers) : null
    if (claimed !== null) return claimed
    if (config.gateway.requireAuth)
      throw unauthenticated(
        'authentication is required: send "Authorization: Bearer <token>"',
        headers.accept?.includes('text/html') === true ? BROWSER_HINT : undefined,
      )
    return ANONYMOUS
  }

  if (resource === null) return callerOf
  return (headers, connection) => {
    const rethrow = (error: unknown): never => {
      throw withMetadata(error, resource.metadataUrl({ headers, connection }))
    }
    try {
      const caller = callerOf(headers, connection)
      return caller instanceof Promise ? caller.catch(rethrow) : caller
    } catch (error) {
      return rethrow(error)
    }
  }
}

function withMetadata(error: unknown, url: string): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'UNAUTHORIZED') return error
  const challenge = withMetadataUrl(error.headers['WWW-Authenticate'] ?? 'Bearer', url)
  const headers = { ...error.headers, 'WWW-Authenticate': challenge }
  const { hint, cause } = error
  return new GatewayError(error.code, error.message, { headers, cause, ...(hint === undefined ? {} : { hint }) })
}

interface Shown {
  readonly authorization: string
  readonly verified: Verified
}

const BEARER = /^bearer +(\S+)$/i

/**
 * The token of an `Authorization` header (RFC 6750, 2.1), unparsed. The scheme is accepted in any case (RFC
 * 9110, 11.1).
 */
export function bearerToken(authorization: string): string {
  // The usual form, which needs no second pass over the characters of every request.
  if (authorization.startsWith('Bearer ') && authorization.length > 7 && authorization[7] !== ' ') {
    return authorization.slice(7)
  }
  const [, token] = BEARER.exec(authorization) ?? []
  if (token !== undefined) return token
  if (/^bearer *$/i.test(authorization)) {
    throw refusedToken('the header Authorization contains no token: send "Authorization: Bearer <token>"')
  }
  throw unauthenticated('only "Authorization: Bearer <token>" is accepted, not another scheme')
}

/**
 * Without an error code, because the request contained no credentials that could be invalid (RFC 6750,
 * 3.1).
 */
function unauthenticated(message: string, hint?: string): GatewayError {
  const headers = { 'WWW-Authenticate': 'Bearer' }
  return new GatewayError('UNAUTHORIZED', message, { headers, ...(hint === undefined ? {} : { hint }) })
}

const BROWSER_HINT =
  'a browser sends no token when it opens an address; use curl -H "Authorization: Bearer $TOKEN" and this ' +
  'address, with a token from your identity provider or, for development, from "svc token"'
