/**
 * Verifies tokens: HS256 and nothing else, whatever the token's own header asks for (RFC 8725, 3.1). What was
 * verified once is kept, so that the second request with a token costs one hash and one look-up, synchronously.
 */
import { hash, webcrypto } from 'node:crypto'
import { compactVerify } from 'jose/jws/compact/verify'
import { LRUCache } from 'lru-cache'
import { type ClaimRules, identityOfPayload, isExpired } from './claims.ts'
import type { Identity } from './identity.ts'
import { refused } from './refused.ts'

/** Answers at once for a token it has seen; throws or rejects with UNAUTHORIZED. */
export type VerifyToken = (token: string) => Identity | Promise<Identity>

/** Longer than any token of ours, shorter than what Node lets a header be. */
const TOKEN_CHARACTERS_MAX = 8_192
const CACHED_TOKENS_MAX = 20_000
/** Of claims, scopes and names together, as characters: what an identity mostly consists of. */
const CACHED_CHARACTERS_MAX = 16_777_216
/** What an entry costs beside its texts: key, object, links. */
const ENTRY_CHARACTERS = 512

/** `secret` must not be empty; `identity/boot` has seen to that. `clock` gives milliseconds since the epoch. */
export function createTokenVerifier(secret: string, rules: ClaimRules, clock: () => number): VerifyToken {
  const key = importKey(secret)
  const verified = new LRUCache<string, Identity>({ max: CACHED_TOKENS_MAX, maxSize: CACHED_CHARACTERS_MAX })

  const verifyNew = async (token: string, digest: string): Promise<Identity> => {
    const payload = await verifiedPayload(token, await key)
    const identity = identityOfPayload(payload, rules, clock())
    verified.set(digest, identity, { size: sizeOf(identity) })
    return identity
  }

  return token => {
    if (token.length > TOKEN_CHARACTERS_MAX) throw refused(`it is longer than ${TOKEN_CHARACTERS_MAX} characters`)
    // The token itself is not kept. A digest is also the faster key: a map hashes a long string it has not seen no
    // faster.
    const digest = hash('sha256', token, 'binary')
    const known = verified.get(digest)
    if (known === undefined) return verifyNew(token, digest)
    if (!isExpired(known.expiresAt, clock())) return known
    verified.delete(digest)
    throw refused('it has expired (exp)')
  }
}

function importKey(secret: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('raw', Buffer.from(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** RFC 7515, 5.2. The comparison of signatures is WebCrypto's, in constant time. */
async function verifiedPayload(token: string, key: webcrypto.CryptoKey): Promise<Uint8Array> {
  if (!COMPACT.test(token)) throw refused('it is not three base64url parts with dots between')
  const { payload, protectedHeader } = await compactVerify(token, key, { algorithms: ['HS256'] }).catch(
    (error: unknown) => {
      throw refused(reasonOf(error), error)
    },
  )
  // `crit` can announce an unencoded payload, which RFC 7797, 7 forbids for tokens, and nothing else that jose knows.
  if (protectedHeader.crit !== undefined) throw refused('its header has critical extensions (crit)')
  return payload
}

/** The codes of jose's errors; what has none of these is a token that could not be read. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ERR_JOSE_ALG_NOT_ALLOWED') return 'its algorithm is not HS256'
  if (code === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') return 'its signature does not match'
  return 'it is malformed'
}

function sizeOf(identity: Identity): number {
  return ENTRY_CHARACTERS + 2 * identity.claims.length
}
