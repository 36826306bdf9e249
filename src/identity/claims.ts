/** From a verified payload to an `Identity`: the claims of a token (docs/reference/rest-api.md#who-asks). */
import {
  isArray,
  isNumber,
  isObject,
  type Json,
  JsonError,
  type JsonObject,
  parseJson,
  printJson,
} from '../json/text/values.ts'
import type { Identity } from './identity.ts'
import { refused } from './refused.ts'

export interface ClaimRules {
  readonly requireExp: boolean
  readonly jwtIssuer: string | null
  readonly jwtAudience: string | null
}

/** For clocks that disagree (RFC 7519, 4.1.4). */
export const LEEWAY_SECONDS = 30

/** Throws UNAUTHORIZED saying which check failed. */
export function identityOfPayload(payload: Uint8Array, rules: ClaimRules, nowMs: number): Identity {
  const claims = parsePayload(payload)
  const expiresAt = timeClaim(claims, 'exp')
  checkTimes(expiresAt, timeClaim(claims, 'nbf'), rules, nowMs / 1000)
  checkParties(claims, rules)
  return Object.freeze({
    source: 'jwt',
    tenantId: textClaim(claims, 'tenant_id'),
    userId: claims.has('user_id') ? textClaim(claims, 'user_id') : textClaim(claims, 'sub'),
    agentId: textClaim(claims, 'agent_id'),
    role: textClaim(claims, 'role'),
    scopes: scopesOf(claims),
    claims: printJson(claims),
    expiresAt,
  })
}

function parsePayload(payload: Uint8Array): JsonObject {
  const claims = decodeJson(payload)
  if (!isObject(claims)) throw refused('its payload is not a JSON object')
  return claims
}

function decodeJson(payload: Uint8Array): Json {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload))
  } catch (error) {
    throw refused(error instanceof JsonError ? `its payload ${error.message}` : 'its payload is not UTF-8')
  }
}

/** Until the leeway is over; the same rule decides how long a verified token is kept. */
export function isExpired(expiresAt: number | null, nowMs: number): boolean {
  return expiresAt !== null && nowMs / 1000 >= expiresAt + LEEWAY_SECONDS
}

function checkTimes(exp: number | null, nbf: number | null, rules: ClaimRules, now: number): void {
  if (exp === null && rules.requireExp) throw refused('it has no expiry (exp), and one is required')
  if (isExpired(exp, now * 1000)) throw refused('it has expired (exp)')
  if (nbf !== null && now < nbf - LEEWAY_SECONDS) throw refused('it is not valid yet (nbf)')
}

function checkParties(claims: JsonObject, rules: ClaimRules): void {
  if (rules.jwtIssuer !== null && claims.get('iss') !== rules.jwtIssuer) {
    throw refused('its issuer (iss) is missing or not the one this gateway accepts')
  }
  const audience = claims.get('aud')
  const audiences = isArray(audience) ? audience : [audience]
  if (rules.jwtAudience !== null && !audiences.includes(rules.jwtAudience)) {
    throw refused('its audience (aud) is missing or does not name this gateway')
  }
}

/** NumericDate of RFC 7519, 2: seconds, possibly with a fraction. */
function timeClaim(claims: JsonObject, name: 'exp' | 'nbf'): number | null {
  const value = claims.get(name)
  if (value === undefined) return null
  const seconds = isNumber(value) ? Number(value.digits) : Number.NaN
  if (!Number.isFinite(seconds)) throw refused(`its claim ${name} is not a number of seconds`)
  return seconds
}

/** A number keeps the digits it was written with, however many: it is never passed through a JavaScript number. */
function textClaim(claims: JsonObject, name: string): string {
  const value = claims.get(name)
  if (value === undefined) return ''
  if (typeof value === 'string') return value
  if (isNumber(value)) return value.digits
  throw refused(`its claim ${name} is neither a string nor a number`)
}

/** `scope` (RFC 8693, 4.2) and `scopes` united, each once, in the order given. */
function scopesOf(claims: JsonObject): readonly string[] {
  const scope = claims.has('scope') ? claims.get('scope') : ''
  if (typeof scope !== 'string') throw refused('its claim scope is not a string of scopes with spaces between')
  const scopes = claims.has('scopes') ? claims.get('scopes') : []
  if (!isArray(scopes) || !scopes.every(isScope))
    throw refused('its claim scopes is not an array of strings without spaces')
  return Object.freeze([...new Set([...scope.split(' ').filter(part => part !== ''), ...scopes])])
}

// The database is told scopes with spaces between: one with a space inside would become two there.
const isScope = (value: Json): value is string => typeof value === 'string' && /^\S+$/.test(value)
