/** The keys of `JWT_SECRET`: the secret itself, or the keys of a JWK or JWK Set (RFC 7517). */
import type { JwtAlgorithm } from '../../config/config.ts'
import { KeyError, keyOfJwk, keyOfSecret, type SigningKey } from './signing-key.ts'

type Jwk = Readonly<Record<string, unknown>>

const HMAC = ['HS256', 'HS384', 'HS512'] as const

/**
 * The keys of a secret that is not empty. A JWK is never used as the bytes of a secret, because a public one
 * is known to others. Throws `KeyError` for a key that cannot be used.
 */
export function keysOfSecret(secret: string | Buffer): readonly SigningKey[] {
  const jwks = jwksOf(secret.toString())
  return jwks === null ? [keyOfSecret(secret, null, ['HS256'])] : jwks.map(toKey)
}

/** The JWKs of a text; null if it is not a JWK or JWK Set. */
function jwksOf(text: string): readonly Jwk[] | null {
  if (!text.trimStart().startsWith('{')) return null
  const value = parseObject(text)
  if (value === null) return null
  if (typeof value.kty === 'string') return [value]
  return Array.isArray(value.keys) && value.keys.every(isObject) ? value.keys : null
}

function parseObject(text: string): Jwk | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function isObject(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function toKey(jwk: Jwk): SigningKey {
  if (jwk.kty !== 'oct') return keyOfJwk(jwk)
  const { k, kid = null, alg } = jwk
  if (typeof k !== 'string' || k === '') throw new KeyError('its k is missing')
  if (kid !== null && typeof kid !== 'string') throw new KeyError('its kid is not a string')
  const algorithms = alg === undefined ? HMAC : HMAC.filter(name => name === alg)
  if (algorithms.length === 0) throw new KeyError('its alg is not HS256, HS384 or HS512')
  return keyOfSecret(Buffer.from(k, 'base64url'), kid, algorithms)
}

/** The algorithms that keys accept, for messages. */
export function algorithmsOfKeys(keys: readonly SigningKey[]): readonly JwtAlgorithm[] {
  return [...new Set(keys.flatMap(({ algorithms }) => algorithms))]
}
