/** Who verifies a token: the secrets of the gateway, or an identity provider that is configured. */
import type { IssuerConfig, JwtAlgorithm } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { type Accepted, acceptClaims, type ClaimRules, ignore, type Note } from './claims.ts'
import { isUnknownKid, type KeySource, keysFor } from './keys/key-source.ts'
import type { SigningKey } from './keys/signing-key.ts'
import { refused } from './refused.ts'
import { signerOf } from './signature.ts'
import type { Token } from './token.ts'

export interface Verified extends Accepted {
  readonly key: SigningKey
}

export interface Issuer {
  /** The `iss` of its tokens. */
  readonly name: string
  /** Rejects with UNAUTHORIZED, or with UNAVAILABLE while there are no keys to verify with. */
  verify(token: Token, nowMs: number, note?: Note): Promise<Verified>
}

export interface IssuerParts {
  readonly config: Pick<IssuerConfig, 'issuer' | 'algorithms'>
  readonly keys: KeySource
  readonly rules: ClaimRules
}

/** A fetch that was under way may have begun before the provider had the key; then once more. */
const LOOKS_MAX = 2

export function createIssuer({ config, keys: source, rules }: IssuerParts): Issuer {
  const { issuer: name, algorithms } = config

  async function candidates(token: Token & { readonly alg: JwtAlgorithm }): Promise<readonly SigningKey[]> {
    let keys = source.current() ?? unavailable(source)
    for (let look = 0; look < LOOKS_MAX && isUnknownKid(token, keys); look += 1) {
      const outcome = await source.lookAgain()
      keys = source.current() ?? unavailable(source)
      if (outcome === 'failed' && isUnknownKid(token, keys)) unavailable(source)
    }
    const chosen = keysFor(token, keys)
    if (chosen.length > 0) return chosen
    throw refused(
      isUnknownKid(token, keys)
        ? 'its issuer does not publish the key that it names (kid)'
        : 'its issuer has no key of the type that its algorithm (alg) needs',
    )
  }

  return {
    name,
    async verify(token, nowMs, note = ignore) {
      note(`issuer: [[gateway.issuers]] "${name}"`)
      assertType(token)
      if (!isAccepted(token, algorithms)) throw refused('its algorithm (alg) is none that is accepted of its issuer')
      note(`alg: ${token.alg} is accepted`)
      const keys = await candidates(token)
      note(`key: ${keys.length === 1 ? 'one fits' : `${keys.length} fit`} its kid and algorithm`)
      const key = await signerOf(token.compact, token.alg, keys)
      if (key === null) throw refused('its signature does not match')
      note('signature: it matches')
      return { ...acceptClaims(token.claims(), rules, nowMs, note), key }
    },
  }
}

function isAccepted(
  token: Token,
  algorithms: readonly JwtAlgorithm[] | null,
): token is Token & { readonly alg: JwtAlgorithm } {
  // Without a list the key decides: `keysFor` finds none that is not of the type of the algorithm.
  return algorithms === null || (algorithms as readonly string[]).includes(token.alg)
}

/**
 * A provider also signs what is no access token, with the same keys: logout tokens, security events. Their types end so
 * (RFC 8725, 3.11); of those that end so, only access tokens count (RFC 9068, 2.1).
 */
function assertType({ typ }: Token): void {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type?.endsWith('+jwt') && type !== 'at+jwt') throw refused('its type (typ) is not that of an access token')
}

function unavailable(source: KeySource): never {
  throw new GatewayError(
    'UNAVAILABLE',
    'the keys of the token’s issuer could not be fetched yet, so it cannot be verified; try again',
    { headers: { 'Retry-After': String(source.retryAfterSeconds()) } },
  )
}
