/** Who calls: the one question that the pipeline asks about identity (specification 5.1 and 5.2, decisions 6). */
import type { IncomingHttpHeaders } from 'node:http'
import type { Config, GatewayConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import type { ClaimRules } from './claims.ts'
import { identityOfHeaders } from './headers.ts'
import type { Identity } from './identity.ts'
import { createTokenVerifier } from './jwt.ts'
import { refused } from './refused.ts'

/**
 * Answers at once, but for a token that is seen for the first time. Throws or rejects with UNAUTHORIZED. The same
 * object is answered for the same token as long as it is remembered, so what is derived from an identity can be kept
 * in a `WeakMap`.
 */
export type Authenticate = (headers: IncomingHttpHeaders) => Identity | Promise<Identity>

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
  return headers => {
    const { authorization } = headers
    // Whoever shows a token is judged by it alone: a bad one is never downgraded to headers or anonymous.
    if (authorization !== undefined) {
      const token = bearerToken(authorization)
      if (verify === null) throw refused('this gateway has no secret to verify tokens with')
      return verify(token)
    }
    const claimed = config.devMode ? identityOfHeaders(headers) : null
    if (claimed !== null) return claimed
    if (config.gateway.requireAuth)
      throw unauthenticated('authentication is required: send "Authorization: Bearer <token>"')
    return ANONYMOUS
  }
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
function unauthenticated(message: string): GatewayError {
  return new GatewayError('UNAUTHORIZED', message, { headers: { 'WWW-Authenticate': 'Bearer' } })
}
