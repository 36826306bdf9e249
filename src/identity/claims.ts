/**
 * Converts verified claims to an `Identity` (docs/reference/rest-api.md#authentication): the claims that a
 * token must have, and their meaning.
 */
import type { ClaimPath, ClaimSource, IssuerConfig, RequiredClaim } from '../config/config.ts'
import { isArray, isNumber, isObject, type Json, type JsonObject, printJson } from '../json/text/values.ts'
import type { TokenFacts } from './denylist.ts'
import type { Identity } from './identity.ts'
import { refusedToken } from './refused-token.ts'
import { audiencesOf } from './token.ts'

/** The claims that a token must have. */
export interface ClaimRules {
  readonly requireExp: boolean
  /** The tolerated difference between clocks (RFC 7519, 4.1.4). */
  readonly leewaySeconds: number
  /** The required `iss`; null: `iss` is not checked. */
  readonly issuer: string | null
  /** The accepted audiences; null: `aud` is not checked. */
  readonly audience: readonly string[] | null
  /** True if a token without `aud` is accepted; false if omitted. */
  readonly isAudienceOptional?: boolean
  readonly required: ReadonlyMap<string, RequiredClaim>
  /** The source of each property of the identity; null for its usual claim. */
  readonly mapping: Mapping
}

/** The source of each property of an identity. */
export type Mapping = Pick<IssuerConfig, 'tenant' | 'user' | 'role' | 'scopes' | 'agent' | 'roleMap'>

/** The mapping of tokens without a configured one. */
export const USUAL_CLAIMS: Mapping = Object.freeze({
  ...{ tenant: null, user: null, role: null, scopes: null, agent: null, roleMap: null },
})

/** The leeway for tokens that `JWT_SECRET` signed. */
export const LEEWAY_SECONDS = 30

/** The result of an accepted token. */
export interface Accepted {
  readonly identity: Identity
  /** The end of its validity in seconds since the epoch, including the leeway; null if it never expires. */
  readonly endsAt: number | null
}

/** Receives a note for each check that the token passes. */
export type Note = (passed: string) => void

/** Ignores all notes. */
export const ignore: Note = () => {}

/** Checks the claims and returns the identity. Throws UNAUTHORIZED with the failed check. */
export function acceptClaims(claims: JsonObject, rules: ClaimRules, nowMs: number, note: Note = ignore): Accepted {
  const expiresAt = timeClaim(claims, 'exp')
  const endsAt = expiresAt === null ? null : expiresAt + rules.leewaySeconds
  if (expiresAt === null && rules.requireExp) throw refusedToken('it has no expiry (exp), and one is required')
  if (isOver(endsAt, nowMs)) throw expired()
  const nbf = timeClaim(claims, 'nbf')
  if (nbf !== null && nowMs / 1_000 < nbf - rules.leewaySeconds) throw refusedToken('it is not valid yet (nbf)')
  note(`exp and nbf: within ${rules.leewaySeconds} s of leeway`)
  checkParties(claims, rules)
  note(rules.audience === null ? 'aud: not checked' : 'aud: names this gateway')
  for (const [name, required] of rules.required) {
    if (!isAsRequired(claimAt(claims, required.claim), required.value)) {
      throw refusedToken(`its claim ${name} is missing or not what this gateway requires`)
    }
  }
  if (rules.required.size > 0) note(`required_claims: ${[...rules.required.keys()].join(', ')}`)
  return { identity: identityOf(claims, rules.mapping, expiresAt), endsAt }
}

/** The facts that a revocation is compared with. Without `sub`, the user is the subject. */
function factsOf(claims: JsonObject, userId: string): TokenFacts {
  return {
    jti: plainText(claims.get('jti')),
    sub: plainText(claims.get('sub')) ?? (userId === '' ? null : userId),
    iat: secondsOf(claims.get('iat')),
  }
}

function plainText(value: Json | undefined): string | null {
  if (isNumber(value)) return value.digits
  return typeof value === 'string' ? value : null
}

/** True if the token has expired; `endsAt` is in seconds. */
export function isOver(endsAt: number | null, nowMs: number): boolean {
  return endsAt !== null && nowMs / 1_000 >= endsAt
}

/** The error for an expired token. */
export function expired(): Error {
  return refusedToken('it has expired (exp)')
}

function checkParties(claims: JsonObject, { issuer, audience, isAudienceOptional = false }: ClaimRules): void {
  if (issuer !== null && claims.get('iss') !== issuer) {
    throw refusedToken('its issuer (iss) is missing or not the one this gateway accepts')
  }
  if (audience === null) return
  const audiences = audiencesOf(claims)
  if (isAudienceOptional && audiences.every(one => one == null)) return
  if (!audiences.some(one => typeof one === 'string' && audience.includes(one))) {
    throw refusedToken('its audience (aud) is missing or does not name this gateway')
  }
}

/**
 * `true` requires that the claim is present and not `false`: `email_verified = true` must reject an
 * unverified address.
 */
function isAsRequired(claim: Json | undefined, value: RequiredClaim['value']): boolean {
  if (value === true) return claim !== undefined && claim !== null && claim !== false
  return isNumber(claim) ? Number(claim.digits) === value : claim === value
}

// --- what the claims mean ---

function identityOf(claims: JsonObject, mapping: Mapping, expiresAt: number | null): Identity {
  const { tenant, user, role, scopes, agent, roleMap } = mapping
  const named = textOf(claims, role, 'role')
  const userId = textOf(claims, user, claims.has('user_id') ? 'user_id' : 'sub')
  return Object.freeze({
    source: 'jwt',
    tenantId: textOf(claims, tenant, 'tenant_id'),
    userId,
    agentId: textOf(claims, agent, 'agent_id'),
    role: roleMap === null ? named : (roleMap.get(named) ?? ''),
    scopes: scopes === null ? usualScopes(claims) : mappedScopes(claims, scopes),
    claims: printJson(claims),
    expiresAt,
    token: factsOf(claims, userId),
  })
}

/** The claim with exactly this name, or else the value at the path; undefined for none. */
export function claimAt(claims: JsonObject, { text, steps }: ClaimPath): Json | undefined {
  if (claims.has(text) || steps === null) return claims.get(text)
  let at: Json | undefined = claims
  for (const step of steps) {
    if (typeof step === 'number') at = isArray(at) ? at[step] : undefined
    else at = isObject(at) ? at.get(step) : undefined
  }
  return at
}

function textOf(claims: JsonObject, source: ClaimSource | null, usual: string): string {
  if (source?.kind === 'constant') return source.value
  const [value, name] =
    source === null ? [claims.get(usual), usual] : [claimAt(claims, source.claim), source.claim.text]
  if (value === undefined) return ''
  if (typeof value === 'string') return value
  // A number keeps the digits of its text: it is never converted to a JavaScript number.
  if (isNumber(value)) return value.digits
  throw refusedToken(`its claim ${name} is neither a string nor a number`)
}

function timeClaim(claims: JsonObject, name: 'exp' | 'nbf'): number | null {
  const value = claims.get(name)
  if (value === undefined) return null
  return secondsOf(value) ?? notSeconds(name)
}

/** NumericDate of RFC 7519, 2: seconds, possibly with a fraction. Null for anything else. */
function secondsOf(value: Json | undefined): number | null {
  const seconds = isNumber(value) ? Number(value.digits) : Number.NaN
  return Number.isFinite(seconds) ? seconds : null
}

function notSeconds(name: string): never {
  throw refusedToken(`its claim ${name} is not a number of seconds`)
}

/** The union of `scope` (RFC 8693, 4.2) and `scopes`, without duplicates, in the order of the token. */
function usualScopes(claims: JsonObject): readonly string[] {
  const scope = claims.has('scope') ? claims.get('scope') : ''
  if (typeof scope !== 'string') throw refusedToken('its claim scope is not a string of scopes separated by spaces')
  const scopes = claims.has('scopes') ? claims.get('scopes') : []
  return distinct([...words(scope), ...scopeList(scopes, 'scopes')])
}

function mappedScopes(claims: JsonObject, source: ClaimSource): readonly string[] {
  if (source.kind === 'constant') return distinct(words(source.value))
  const value = claimAt(claims, source.claim)
  if (value === undefined) return distinct([])
  return distinct(typeof value === 'string' ? words(value) : scopeList(value, source.claim.text))
}

const words = (text: string): readonly string[] => text.split(' ').filter(word => word !== '')

function scopeList(value: Json | undefined, name: string): readonly string[] {
  if (isArray(value) && value.every(isScope)) return value
  throw refusedToken(`its claim ${name} is not an array of strings without spaces`)
}

// Scopes are sent to the database separated by spaces, so a space within a scope would make two of it.
const isScope = (value: Json): value is string => typeof value === 'string' && /^\S+$/.test(value)

const distinct = (scopes: readonly string[]): readonly string[] => Object.freeze([...new Set(scopes)])
