/**
 * A key that verifies signatures, bound to the algorithms of its type (RFC 8725, 3.1): an RSA key does not
 * verify ES256, and a public key is never used as the secret of an HMAC.
 */
import { createHash, createPublicKey, type KeyObject, webcrypto } from 'node:crypto'
import type { JwtAlgorithm } from '../../config/config.ts'

/** A key with its algorithms. */
export interface SigningKey {
  /** The key id; null if the key verifies tokens with any `kid` or none. */
  readonly kid: string | null
  readonly algorithms: readonly JwtAlgorithm[]
  /** An id derived from the key itself: the same key has the same id wherever it was read. */
  readonly id: string
  /** The key in the form that `compactVerify` takes. */
  material(algorithm: JwtAlgorithm): KeyObject | Promise<webcrypto.CryptoKey>
  /** Set when the key has left its key set: tokens that it signed are no longer accepted. */
  isWithdrawn: boolean
}

/** The reason why a key cannot be used, in a few words. */
export class KeyError extends Error {
  override readonly name = 'KeyError'
}

/** The bounds of RFC 7518, 3.3, and of the time that a verification may take. */
const RSA_BITS_MIN = 2_048
const RSA_BITS_MAX = 8_192
/** The largest exponent that OpenSSL accepts for keys above 3 072 bits; in practice it is always 65 537. */
const RSA_EXPONENT_MIN = 3n
const RSA_EXPONENT_MAX = 2n ** 32n

const RSA: readonly JwtAlgorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const CURVES: Readonly<Record<string, JwtAlgorithm>> = {
  ...{ prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' },
}

/** The public members of each key type (RFC 7518, 6; RFC 8037, 2); of a private key only these are read. */
const PUBLIC_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  ...{ RSA: ['kty', 'n', 'e'], EC: ['kty', 'crv', 'x', 'y'], OKP: ['kty', 'crv', 'x'] },
}

/** Parses a JSON Web Key. Throws `KeyError`. */
export function keyOfJwk(jwk: Readonly<Record<string, unknown>>): SigningKey {
  const { kty, use, key_ops: operations, alg, kid = null } = jwk
  const members = typeof kty === 'string' && Object.hasOwn(PUBLIC_MEMBERS, kty) ? PUBLIC_MEMBERS[kty] : undefined
  if (members === undefined) throw new KeyError('its kty is not RSA, EC or OKP')
  if (use !== undefined && use !== 'sig') throw new KeyError('its use is not "sig"')
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    throw new KeyError('its key_ops do not include "verify"')
  }
  if (kid !== null && typeof kid !== 'string') throw new KeyError('its kid is not a string')
  const key = Object.fromEntries(members.map(name => [name, jwk[name]]))
  const all = keyOf(() => createPublicKey({ key, format: 'jwk' }), kid)
  if (alg === undefined) return all
  const algorithms = all.algorithms.filter(name => name === alg)
  if (algorithms.length === 0) throw new KeyError('its alg does not match its type, or is not accepted')
  return signingKey(all.key, kid, algorithms)
}

/** Parses `pem`, one block with a public key or a certificate. Throws `KeyError`. */
export function keyOfPem(pem: string): SigningKey {
  return keyOf(() => createPublicKey(pem), null)
}

type PublicSigningKey = SigningKey & { readonly key: KeyObject }

function keyOf(read: () => KeyObject, kid: string | null): PublicSigningKey {
  let key: KeyObject
  try {
    key = read()
  } catch (error) {
    throw new KeyError(`it cannot be read: ${(error as Error).message}`)
  }
  return signingKey(key, kid, algorithmsOf(key))
}

function algorithmsOf({
  asymmetricKeyType: type,
  asymmetricKeyDetails: details = {},
}: KeyObject): readonly JwtAlgorithm[] {
  if (type === 'rsa') {
    const { modulusLength: bits = 0, publicExponent: exponent = 0n } = details
    if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX) {
      throw new KeyError(`it has ${bits} bits; ${RSA_BITS_MIN} to ${RSA_BITS_MAX} are accepted`)
    }
    if (exponent < RSA_EXPONENT_MIN || exponent > RSA_EXPONENT_MAX) throw new KeyError('its exponent is out of bounds')
    return RSA
  }
  if (type === 'ed25519') return ['EdDSA']
  const curve = details.namedCurve ?? ''
  const algorithm = type === 'ec' && Object.hasOwn(CURVES, curve) ? CURVES[curve] : undefined
  if (algorithm === undefined) throw new KeyError(`its type ${type === 'ec' ? `EC on ${curve}` : type} is not accepted`)
  return [algorithm]
}

function signingKey(key: KeyObject, kid: string | null, algorithms: readonly JwtAlgorithm[]): PublicSigningKey {
  const id = createHash('sha256')
    .update(JSON.stringify([kid, algorithms]))
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64')
  return { key, kid, algorithms, id, material: () => key, isWithdrawn: false }
}

const HASHES = { HS256: 'SHA-256', HS384: 'SHA-384', HS512: 'SHA-512' } as const

/** A key made of a secret. It is not fetched, so it is never withdrawn. `secret` must not be empty. */
export function keyOfSecret(
  secret: string | Buffer,
  kid: string | null,
  algorithms: readonly (keyof typeof HASHES)[],
): SigningKey {
  const imported = new Map<string, Promise<webcrypto.CryptoKey>>()
  return {
    ...{ kid, algorithms, id: '', isWithdrawn: false },
    material(algorithm) {
      const hash = HASHES[algorithm as keyof typeof HASHES]
      const known = imported.get(hash)
      if (known !== undefined) return known
      const importing = webcrypto.subtle.importKey('raw', Buffer.from(secret), { name: 'HMAC', hash }, false, [
        'verify',
      ])
      imported.set(hash, importing)
      return importing
    },
  }
}
