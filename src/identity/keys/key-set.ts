/** Sets of keys as they are published: a JWK Set (RFC 7517, 5), or PEM blocks in a file. */
import { KeyError, keyOfJwk, keyOfPem, type SigningKey } from './signing-key.ts'

export interface KeySet {
  readonly keys: readonly SigningKey[]
  /** One sentence for each that is left aside. */
  readonly unusable: readonly string[]
}

/** Providers publish two or three. */
const KEYS_MAX = 100

/** Throws `KeyError` for what is no JWK Set; keys in it that cannot be used are left aside (RFC 7517, 5). */
export function parseJwkSet(text: string): KeySet {
  const jwks = membersOf(text)
  if (jwks.length > KEYS_MAX) throw new KeyError(`it has ${jwks.length} keys; at most ${KEYS_MAX} are read`)
  const keys: SigningKey[] = []
  const unusable: string[] = []
  for (const [index, jwk] of jwks.entries()) {
    try {
      keys.push(keyOfJwk(jwk))
    } catch (error) {
      if (!(error instanceof KeyError)) throw error
      unusable.push(`key ${index + 1}: ${error.message}`)
    }
  }
  return { keys, unusable }
}

function membersOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  const root = parse(text)
  const jwks = isObject(root) ? root.keys : undefined
  if (!Array.isArray(jwks) || !jwks.every(isObject)) {
    throw new KeyError('it is no JWK Set: expected a JSON object with an array "keys" of objects')
  }
  return jwks
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new KeyError('it is no JWK Set: it is not JSON')
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]*-----END \1-----/g
const PUBLIC_BLOCKS: ReadonlySet<string> = new Set(['PUBLIC KEY', 'RSA PUBLIC KEY', 'CERTIFICATE'])

/** The keys of a file of the operator's, PEM or JWK Set. Throws `KeyError` where one cannot be used, or none is there. */
export function parseKeyFile(text: string): readonly SigningKey[] {
  const keys = text.includes('-----BEGIN ') ? parsePem(text) : parseOwnSet(text)
  if (keys.length === 0) throw new KeyError('it has no key')
  if (keys.length > KEYS_MAX) throw new KeyError(`it has ${keys.length} keys; at most ${KEYS_MAX} are read`)
  return keys
}

function parsePem(text: string): readonly SigningKey[] {
  return [...text.matchAll(BLOCK)].map(([block, label = '']) => {
    if (!PUBLIC_BLOCKS.has(label)) {
      throw new KeyError(`it has a block ${label}; expected PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE`)
    }
    return keyOfPem(block)
  })
}

function parseOwnSet(text: string): readonly SigningKey[] {
  const { keys, unusable } = parseJwkSet(text)
  const [first] = unusable
  if (first !== undefined) throw new KeyError(first)
  return keys
}
