/**
 * Verifies tokens. The issuer is chosen by `iss`; without a configured issuer for it, the gateway's own
 * secrets verify the token, with HS256 only, whatever the token's header requests (RFC 8725, 3.1).
 * Verified tokens are cached: the second request with a token takes one hash and one look-up,
 * synchronously, whatever its algorithm.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { GatewayConfig } from '../config/config.ts'
import {
  acceptClaims,
  type ClaimRules,
  expired,
  ignore,
  isOver,
  LEEWAY_SECONDS,
  type Note,
  USUAL_CLAIMS,
} from './claims.ts'
import { type Denylist, NOTHING_DENIED, type TokenFacts } from './denylist.ts'
import type { Identity } from './identity.ts'
import type { Issuer, Verified } from './issuer.ts'
import { algorithmsOfKeys, keysOfSecret } from './keys/secret-keys.ts'
import { keyOfSecret, type SigningKey } from './keys/signing-key.ts'
import { refusedToken } from './refused-token.ts'
import { signerOf } from './signature.ts'
import { type ParsedToken, parseToken, TOKEN_CHARACTERS_MAX } from './token.ts'

/** Verifies tokens and caches the results. */
export interface TokenVerifier {
  /** Returns at once for a cached token. Throws or rejects with UNAUTHORIZED or UNAVAILABLE. */
  verify(compact: string): Verified | Promise<Verified>
  /** Verifies a token without the cache and notes each check that it passes. */
  explain(compact: string, note: Note): Promise<Verified>
  /** True if an earlier result is still valid. */
  stands(verified: Verified): boolean
  /** True if the identity belongs to a token that has been revoked, whichever verifier accepted the token. */
  isRevoked(identity: Identity): boolean
}

/** The settings that verification reads. */
export interface VerifierConfig {
  readonly jwtSecret: string | Buffer | null
  readonly jwtSecretPrevious: string | Buffer | null
  readonly gateway: Pick<GatewayConfig, 'requireExp' | 'jwtIssuer' | 'jwtAudience' | 'jwtSecrets'>
  /** True if a token without `aud`, or with an empty one, is accepted although an audience is configured. */
  readonly isAudienceOptional?: boolean
}

const CACHED_TOKENS_MAX = 20_000
/** The size of claims, scopes and names in characters, which are most of an identity's memory. */
const CACHED_CHARACTERS_MAX = 16_777_216
/** The overhead of a cache entry: key, objects, links. */
const ENTRY_CHARACTERS = 512

/** Makes a verifier. `clock` returns milliseconds since the epoch. */
export function createTokenVerifier(
  config: VerifierConfig,
  issuers: readonly Issuer[],
  clock: () => number,
  denylist: Denylist = NOTHING_DENIED,
): TokenVerifier {
  const byName = new Map(issuers.map(issuer => [issuer.name, issuer]))
  const ours = createSecretsIssuer(config)
  /** The denylist's result for each token, and its version: a new version requires a new look-up. */
  const judged = new WeakMap<TokenFacts, { readonly version: number; readonly isDenied: boolean }>()
  const cache = new LRUCache<string, Verified>({ max: CACHED_TOKENS_MAX, maxSize: CACHED_CHARACTERS_MAX })

  async function verifyNew(compact: string, digest: string, note: Note = ignore): Promise<Verified> {
    const token = parseToken(compact)
    note(`form: three parts; alg ${token.alg}, kid ${token.kid ?? 'none'}, iss ${token.iss ?? 'none'}`)
    const verified = await issuerOf(token).verify(token, clock(), note)
    if (isRevoked(verified.identity)) throw revoked()
    if (denylist !== NOTHING_DENIED) note('revocation: jwt_denylist_table does not list it')
    cache.set(digest, verified, { size: sizeOf(verified.identity) })
    return verified
  }

  function isRevoked({ token }: Identity): boolean {
    if (denylist === NOTHING_DENIED || token === undefined) return false
    const version = denylist.version()
    const known = judged.get(token)
    if (known?.version === version) return known.isDenied
    const isDenied = denylist.denies(token)
    judged.set(token, { version, isDenied })
    return isDenied
  }

  function issuerOf(token: ParsedToken): Pick<Issuer, 'verify'> {
    const named = token.iss === null ? undefined : byName.get(token.iss)
    if (named !== undefined) return named
    if (issuers.length > 0 && token.alg !== 'HS256')
      throw refusedToken('its issuer (iss) is not accepted by this gateway')
    if (ours === null) throw refusedToken('this gateway has no secret to verify tokens with')
    return ours
  }

  return {
    async explain(compact, note) {
      assertLength(compact)
      return verifyNew(compact, digestOf(compact), note)
    },
    verify(compact) {
      assertLength(compact)
      // The token itself is not kept. A digest is also no slower as a key: a map must hash a long new
      // string too.
      const digest = digestOf(compact)
      const known = cache.get(digest)
      if (known === undefined) return verifyNew(compact, digest)
      if (isRevoked(known.identity)) throw revoked()
      if (!known.key.isWithdrawn && !isOver(known.endsAt, clock())) return known
      cache.delete(digest)
      if (known.key.isWithdrawn) return verifyNew(compact, digest)
      throw expired()
    },
    stands: ({ identity, key, endsAt }) => !key.isWithdrawn && !isOver(endsAt, clock()) && !isRevoked(identity),
    isRevoked,
  }
}

function assertLength(compact: string): void {
  if (compact.length > TOKEN_CHARACTERS_MAX) throw refusedToken(`it is longer than ${TOKEN_CHARACTERS_MAX} characters`)
}

const digestOf = (compact: string): string => hash('sha256', compact, 'binary')

const revoked = (): Error => refusedToken('it has been revoked')

/**
 * The issuer for `JWT_SECRET`, `JWT_SECRET_PREVIOUS` and `jwt_secrets`; null if none is configured. None of
 * them is empty (identity/boot.ts).
 */
function createSecretsIssuer({
  jwtSecret,
  jwtSecretPrevious,
  gateway,
  isAudienceOptional = false,
}: VerifierConfig): Pick<Issuer, 'verify'> | null {
  const byKid = new Map([...gateway.jwtSecrets].map(([kid, secret]) => [kid, [keyOfSecret(secret, kid, ['HS256'])]]))
  const general = [jwtSecret, jwtSecretPrevious].flatMap(secret =>
    secret === null || secret.length === 0 ? [] : keysOfSecret(secret),
  )
  if (byKid.size === 0 && general.length === 0) return null
  const rules: ClaimRules = {
    requireExp: gateway.requireExp,
    leewaySeconds: LEEWAY_SECONDS,
    issuer: gateway.jwtIssuer,
    audience: gateway.jwtAudience === null ? null : [gateway.jwtAudience],
    isAudienceOptional,
    required: new Map(),
    mapping: USUAL_CLAIMS,
  }
  const keysOf = ({ kid }: ParsedToken): readonly SigningKey[] =>
    (kid === null ? undefined : byKid.get(kid)) ?? general.filter(key => key.kid === null || key.kid === kid)
  return {
    async verify(token, nowMs, note = ignore) {
      note('issuer: no configured issuer has its iss, so the gateway’s own secrets are used')
      const keys = keysOf(token)
      const algorithm = algorithmsOfKeys(keys).find(name => name === token.alg)
      if (algorithm === undefined) {
        const accepted = algorithmsOfKeys(keys.length === 0 ? general : keys)
        throw refusedToken(`its algorithm is not ${accepted.join(' or ') || 'HS256'}`)
      }
      const usable = keys.filter(({ algorithms }) => algorithms.includes(algorithm))
      const key = await signerOf(token.compact, algorithm, usable)
      if (key === null) throw refusedToken('its signature does not match')
      note(`signature: it matches ${key.kid === null ? 'JWT_SECRET or JWT_SECRET_PREVIOUS' : `jwt_secrets.${key.kid}`}`)
      return { ...acceptClaims(token.claims(), rules, nowMs, note), key }
    },
  }
}

function sizeOf(identity: Identity): number {
  return ENTRY_CHARACTERS + 2 * identity.claims.length
}
