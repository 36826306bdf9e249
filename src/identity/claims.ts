/** From verified claims to an `Identity` (docs/reference/rest-api.md#authentication): what a token must say, and what it means. */
import type { ClaimPath, ClaimSource, IssuerConfig, RequiredClaim } from '../config/config.ts'
import { isArray, isNumber, isObject, type Json, type JsonObject, printJson } from '../json/text/values.ts'
import type { TokenFacts } from './denylist.ts'
import type { Identity } from './identity.ts'
import { refused } from './refused.ts'
import { audiencesOf } from './token.ts'

/** What a token must say. */
export interface ClaimRules {
  readonly requireExp: boolean
  /** For clocks that disagree (RFC 7519, 4.1.4). */
  readonly leewaySeconds: number
  /** Null: `iss` is not looked at. */
  readonly issuer: string | null
  /** Null: `aud` is not looked at. */
  readonly audience: readonly string[] | null
  readonly required: ReadonlyMap<string, RequiredClaim>
  /** Where an identity comes from; null for each that keeps its usual claim. */
  readonly mapping: Mapping
}

export type Mapping = Pick<IssuerConfig, 'tenant' | 'user' | 'role' | 'scopes' | 'agent' | 'roleMap'>

export const USUAL_CLAIMS: Mapping = Object.freeze({
  ...{ tenant: null, user: null, role: null, scopes: null, agent: null, roleMap: null },
})

/** Of tokens that `JWT_SECRET` signed. */
export const LEEWAY_SECONDS = 30

/** What a token is, once it is accepted. */
export interface Accepted {
  readonly identity: Identity
  /** Seconds since the epoch, with the leeway, or null: it never ends. */
  readonly endsAt: number | null
  readonly facts: TokenFacts
}

/** Hears of each check that is passed, for whoever wants to know. */
export type Note = (passed: string) => void

export const ignore: Note = () => {}

/** Throws UNAUTHORIZED saying which check failed. */
export function acceptClaims(claims: JsonObject, rules: ClaimRules, nowMs: number, note: Note = ignore): Accepted {
  const expiresAt = timeClaim(claims, 'exp')
  const endsAt = expiresAt === null ? null : expiresAt + rules.leewaySeconds
  if (expiresAt === null && rules.requireExp) throw refused('it has no expiry (exp), and one is required')
  if (isOver(endsAt, nowMs)) throw expired()
  const nbf = timeClaim(claims, 'nbf')
  if (nbf !== null && nowMs / 1_000 < nbf - rules.leewaySeconds) throw refused('it is not valid yet (nbf)')
  note(`exp and nbf: within ${rules.leewaySeconds} s of leeway`)
  checkParties(claims, rules)
  note(rules.audience === null ? 'aud: not looked at' : 'aud: names this gateway')
  for (const [name, required] of rules.required) {
    if (!isAsRequired(claimAt(claims, required.claim), required.value)) {
      throw refused(`its claim ${name} is missing or not what this gateway requires`)
    }
  }
  if (rules.required.size > 0) note(`required_claims: ${[...rules.required.keys()].join(', ')}`)
  const identity = identityOf(claims, rules.mapping, expiresAt)
  return { identity, endsAt, facts: factsOf(claims, identity) }
}

/** The facts that a revocation is compared with. Without `sub`, the user is the subject. */
function factsOf(claims: JsonObject, { userId }: Identity): TokenFacts {
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

/** `endsAt` in seconds. */
export function isOver(endsAt: number | null, nowMs: number): boolean {
  return endsAt !== null && nowMs / 1_000 >= endsAt
}

export function expired(): Error {
  return refused('it has expired (exp)')
}

function checkParties(claims: JsonObject, { issuer, audience }: ClaimRules): void {
  if (issuer !== null && claims.get('iss') !== issuer) {
    throw refused('its issuer (iss) is missing or not the one this gateway accepts')
  }
  if (audience !== null && !audiencesOf(claims).some(one => typeof one === 'string' && audience.includes(one))) {
    throw refused('its audience (aud) is missing or does not name this gateway')
  }
}

/** `true` requires presence. `email_verified = true` refuses an unverified address, so `false` is not enough. */
function isAsRequired(claim: Json | undefined, value: RequiredClaim['value']): boolean {
  if (value === true) return claim !== undefined && claim !== null && claim !== false
  return isNumber(claim) ? Number(claim.digits) === value : claim === value
}

// --- what the claims mean ---

function identityOf(claims: JsonObject, mapping: Mapping, expiresAt: number | null): Identity {
  const { tenant, user, role, scopes, agent, roleMap } = mapping
  const named = textOf(claims, role, 'role')
  return Object.freeze({
    source: 'jwt',
    tenantId: textOf(claims, tenant, 'tenant_id'),
    userId: textOf(claims, user, claims.has('user_id') ? 'user_id' : 'sub'),
    agentId: textOf(claims, agent, 'agent_id'),
    role: roleMap === null ? named : (roleMap.get(named) ?? ''),
    scopes: scopes === null ? usualScopes(claims) : mappedScopes(claims, scopes),
    claims: printJson(claims),
    expiresAt,
  })
}

/** The claim called exactly so, else what the path leads to; undefined where there is nothing. */
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
  // A number keeps the digits it was written with, however many: it is never passed through a JavaScript number.
  if (isNumber(value)) return value.digits
  throw refused(`its claim ${name} is neither a string nor a number`)
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
  throw refused(`its claim ${name} is not a number of seconds`)
}

/** `scope` (RFC 8693, 4.2) and `scopes` united, each once, in the order given. */
function usualScopes(claims: JsonObject): readonly string[] {
  const scope = claims.has('scope') ? claims.get('scope') : ''
  if (typeof scope !== 'string') throw refused('its claim scope is not a string of scopes with spaces between')
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
  throw refused(`its claim ${name} is not an array of strings without spaces`)
}

// The database is told scopes with spaces between: one with a space inside would become two there.
const isScope = (value: Json): value is string => typeof value === 'string' && /^\S+$/.test(value)

const distinct = (scopes: readonly string[]): readonly string[] => Object.freeze([...new Set(scopes)])
