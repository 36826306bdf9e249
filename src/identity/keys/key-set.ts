/** Sets of keys as they are published: a JWK Set (RFC 7517, 5), or PEM blocks in a file. */
import { KeyError, keyOfJwk, keyOfPem, type SigningKey } from './signing-key.ts'

/** A parsed set of keys. */
export interface KeySet {
  readonly keys: readonly SigningKey[]
  /** One sentence for each key that is skipped. */
  readonly unusable: readonly string[]
}

/** Providers publish two or three keys. */
const KEYS_MAX = 100

/**
 * Parses a JWK Set; keys that cannot be used are skipped (RFC 7517, 5). Throws `KeyError` if the text is
 * not a JWK Set.
 */
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
    throw new KeyError('it is not a JWK Set: expected a JSON object with an array "keys" of objects')
  }
  return jwks
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new KeyError('it is not a JWK Set, because it is not valid JSON')
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The line that begins or ends a block (RFC 7468, 2), or the beginning of such a line. */
const BOUNDARY = /-----(BEGIN|END)(?: ([A-Z0-9 ]{1,40})-----)?/g
const PUBLIC_BLOCKS: ReadonlySet<string> = new Set(['PUBLIC KEY', 'RSA PUBLIC KEY', 'CERTIFICATE'])

/** Reads a key file, PEM or JWK Set. Throws `KeyError` if a key is missing or cannot be used. */
export function parseKeyFile(text: string): readonly SigningKey[] {
  const keys = /-----(?:BEGIN|END)/.test(text) ? parsePem(text) : parseOwnSet(text)
  if (keys.length === 0) throw new KeyError('it has no key')
  if (keys.length > KEYS_MAX) throw new KeyError(`it has ${keys.length} keys; at most ${KEYS_MAX} are read`)
  return keys
}

function parsePem(text: string): readonly SigningKey[] {
  return pemBlocks(text).map(({ label, pem }, index) => {
    if (!PUBLIC_BLOCKS.has(label)) {
      throw new KeyError(`block ${index + 1} is a ${label}; expected PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE`)
    }
    try {
      return keyOfPem(pem)
    } catch (error) {
      throw error instanceof KeyError ? new KeyError(`block ${index + 1}: ${error.message}`) : error
    }
  })
}

interface PemBlock {
  readonly label: string
  readonly pem: string
}

/** Throws for a block that is cut off: skipping it would drop a key silently. */
function pemBlocks(text: string): readonly PemBlock[] {
  const blocks: PemBlock[] = []
  const boundaries = [...text.matchAll(BOUNDARY)]
  for (let at = 0; at < boundaries.length; at += 2) {
    const [begin, end] = [boundaries[at], boundaries[at + 1]]
    const number = blocks.length + 1
    if (begin?.[1] !== 'BEGIN' || begin[2] === undefined) {
      throw new KeyError(`block ${number} does not begin with a line "-----BEGIN PUBLIC KEY-----" or the like`)
    }
    const label = begin[2]
    if (end?.[1] !== 'END' || end[2] !== label) {
      throw new KeyError(`block ${number} is cut off: expected a line "-----END ${label}-----" before the next block`)
    }
    blocks.push({ label, pem: text.slice(begin.index, end.index + end[0].length) })
  }
  return blocks
}

function parseOwnSet(text: string): readonly SigningKey[] {
  const { keys, unusable } = parseJwkSet(text)
  const [first] = unusable
  if (first !== undefined) throw new KeyError(first)
  return keys
}
