/** Identifies callers by PostgREST's rules, with its error codes. */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../errors.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { Identity } from '../identity/identity.ts'
import type { Verified } from '../identity/issuer.ts'
import type { TokenVerifier } from '../identity/jwt.ts'
import { invalidClaims, invalidToken, noSecret } from './errors.ts'

/**
 * Returns at once for a token that was verified before, and for a request without one. `connection`: an
 * object that lives as long as the client connection.
 */
export type AuthenticateRole = (headers: IncomingHttpHeaders, connection?: object) => Identity | Promise<Identity>

/** The header that a connection sent last, and its verified token. */
interface Shown {
  readonly authorization: string
  readonly verified: Verified
}

/** Creates the function. `tokens`: null if the gateway has nothing to verify tokens with. */
export function createAuthenticate(tokens: Pick<TokenVerifier, 'verify' | 'stands'> | null): AuthenticateRole {
  // Mostly the same token is sent again, and comparing is cheaper than a digest.
  const lastOn = new WeakMap<object, Shown>()
  return ({ authorization }, connection) => {
    if (authorization === undefined) return ANONYMOUS
    const last = connection === undefined ? undefined : lastOn.get(connection)
    if (last?.authorization === authorization && tokens?.stands(last.verified)) return last.verified.identity
    const token = tokenOf(authorization)
    if (token === null) return ANONYMOUS
    if (tokens === null) throw noSecret()
    assertForm(token)
    const verified = verifiedBy(tokens, token)
    if (verified instanceof Promise) return verified.then(({ identity }) => accepted(identity))
    const identity = accepted(verified.identity)
    if (connection !== undefined) lastOn.set(connection, { authorization, verified })
    return identity
  }
}

/** @throws {PostgrestError} for a token that cannot be verified, also as a rejection. */
function verifiedBy(tokens: Pick<TokenVerifier, 'verify'>, token: string): Verified | Promise<Verified> {
  const refuse = (error: unknown): never => {
    throw translated(error, token)
  }
  try {
    const verified = tokens.verify(token)
    return verified instanceof Promise ? verified.catch(refuse) : verified
  } catch (error) {
    return refuse(error)
  }
}

/** Identities whose claims were checked before. */
const known = new WeakSet<Identity>()

/** A token can be issued by a server whose clock is this far ahead. */
const CLOCK_SKEW_SECONDS = 30

/** Checks the claims that the gateway's own rules leave to the application. */
function accepted(identity: Identity): Identity {
  if (known.has(identity)) return identity
  const { iat, aud }: { iat?: unknown; aud?: unknown } = JSON.parse(identity.claims)
  if (iat != null && typeof iat !== 'number') throw invalidClaims("The JWT 'iat' claim must be a number")
  if (typeof iat === 'number' && iat > Date.now() / 1_000 + CLOCK_SKEW_SECONDS) {
    throw invalidClaims('JWT issued at future')
  }
  const isAudience = Array.isArray(aud) ? aud.every(one => typeof one === 'string') : typeof aud === 'string'
  if (aud != null && !isAudience) {
    throw invalidClaims("The JWT 'aud' claim must be a string or an array of strings")
  }
  known.add(identity)
  return identity
}

const BEARER = /^bearer(?: +(.*))?$/is

/** The token of the header; null for another scheme, which PostgREST ignores. */
function tokenOf(authorization: string): string | null {
  const found = BEARER.exec(authorization.trim())
  return found === null ? null : (found[1] ?? '').trim()
}

function assertForm(token: string): void {
  if (token === '') throw invalidToken('Empty JWT is sent in Authorization header')
  const parts = token.split('.').length
  if (parts !== 3) throw invalidToken(`Expected 3 parts in JWT; got ${parts}`)
}

/**
 * Chooses the code by the reason that `identity/` gives. Other errors, such as an unreachable provider, are
 * unchanged.
 */
const MESSAGES: readonly (readonly [reason: RegExp, make: (cause: unknown) => Error])[] = [
  [/expired \(exp\)/, cause => invalidClaims('JWT expired', cause)],
  [/not valid yet/, cause => invalidClaims('JWT not yet valid', cause)],
  [/audience \(aud\)/, cause => invalidClaims('JWT not in audience', cause)],
  [/claim exp is not a number/, cause => invalidClaims("The JWT 'exp' claim must be a number", cause)],
  [/claim nbf is not a number/, cause => invalidClaims("The JWT 'nbf' claim must be a number", cause)],
  [/algorithm/, cause => noKey('No suitable key was found to decode the JWT', cause)],
  [/its payload|its claim/, cause => invalidClaims('Parsing claims failed', cause)],
  [/signature|issuer|key|revoked/, cause => noKey('None of the keys was able to decode the JWT', cause)],
]

function noKey(details: string, cause: unknown): Error {
  return invalidToken('No suitable key or wrong key type', { details, cause })
}

function translated(error: unknown, token: string): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'UNAUTHORIZED') return error
  if (isUnsigned(token)) {
    const details = "JWT is unsecured but expected 'alg' was not 'none'"
    return invalidToken('Wrong or unsupported encoding algorithm', { details, cause: error })
  }
  const found = MESSAGES.find(([reason]) => reason.test(error.message))
  return found === undefined ? invalidToken('JWT cryptographic operation failed', { cause: error }) : found[1](error)
}

/** True if a refused token says that it has no signature, which only chooses the message. */
function isUnsigned(token: string): boolean {
  const [header = ''] = token.split('.', 1)
  return /"alg"\s*:\s*"none"/.test(Buffer.from(header, 'base64url').toString())
}
