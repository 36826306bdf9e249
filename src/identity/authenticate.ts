/** Who calls (docs/reference/rest-api.md#who-asks): the one question that the pipeline asks about identity. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Config, GatewayConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { type ClaimRules, isExpired } from './claims.ts'
import { identityOfHeaders } from './headers.ts'
import type { Identity } from './identity.ts'
import { createTokenVerifier } from './jwt.ts'
import { refused } from './refused.ts'

/**
 * Answers at once, but for a token that is seen for the first time. Throws or rejects with UNAUTHORIZED. The same
 * object is answered for the same token as long as it is remembered, so what is derived from an identity can be kept
 * in a `WeakMap`. `connection`: whatever lives as long as the one that the headers came on.
 */
export type Authenticate = (headers: IncomingHttpHeaders, connection?: object) => Identity | Promise<Identity>

export interface AuthenticatorConfig extends Pick<Config, 'jwtSecret' | 'devMode'> {
  readonly gateway: Pick<GatewayConfig, 'requireAuth'> & ClaimRules
}

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

/** `clock` gives milliseconds since the epoch. */
export function createAuthenticator(config: AuthenticatorConfig, clock: () => number): Authenticate {
  const verify = config.jwtSecret ? createTokenVerifier(config.jwtSecret, config.gateway, clock) : null
  /** Who came last on a connection: mostly the same comes again, and comparing costs less than a digest. */
  const lastOn = new WeakMap<object, Shown>()

  function identityOf(authorization: string, connection: object | undefined): Identity | Promise<Identity> {
    const last = connection === undefined ? undefined : lastOn.get(connection)
    if (last?.authorization === authorization && !isExpired(last.identity.expiresAt, clock())) return last.identity
    const token = bearerToken(authorization)
    if (verify === null) throw refused('this gateway has no secret to verify tokens with')
    const identity = verify(token)
    if (connection !== undefined && !(identity instanceof Promise)) lastOn.set(connection, { authorization, identity })
    return identity
  }

  return (headers, connection) => {
    const { authorization } = headers
    // Whoever shows a token is judged by it alone: a bad one is never downgraded to headers or anonymous.
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
}

interface Shown {
  readonly authorization: string
  readonly identity: Identity
}

const BEARER = /^bearer +(\S+)$/i

/** RFC 6750, 2.1; the scheme in any case (RFC 9110, 11.1). What the token looks like is the verifier's business. */
function bearerToken(authorization: string): string {
  // As everybody writes it: no need to look at each character twice on the way of every request.
  if (authorization.startsWith('Bearer ') && authorization.length > 7 && authorization[7] !== ' ') {
    return authorization.slice(7)
  }
  const [, token] = BEARER.exec(authorization) ?? []
  if (token !== undefined) return token
  if (/^bearer *$/i.test(authorization)) {
    throw refused('the header holds no token: send "Authorization: Bearer <token>"')
  }
  throw unauthenticated('only "Authorization: Bearer <token>" is accepted, not another scheme')
}

/** Without an error code: nothing was presented that could be invalid (RFC 6750, 3.1). */
function unauthenticated(message: string, hint?: string): GatewayError {
  const headers = { 'WWW-Authenticate': 'Bearer' }
  return new GatewayError('UNAUTHORIZED', message, { headers, ...(hint === undefined ? {} : { hint }) })
}

const BROWSER_HINT =
  'a browser sends no token when it opens an address; use curl -H "Authorization: Bearer $TOKEN" and this address, with a token from your identity provider or, for development, from "svc token"'
