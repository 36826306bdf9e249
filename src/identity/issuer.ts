/** The issuer that verifies a token: the gateway's own secrets, or a configured identity provider. */
import type { IssuerConfig, JwtAlgorithm } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { type Accepted, acceptClaims, type ClaimRules, ignore, type Note } from './claims.ts'
import { isUnknownKid, type KeySource, keysFor } from './keys/key-source.ts'
import type { SigningKey } from './keys/signing-key.ts'
import { refusedToken } from './refused-token.ts'
import { signerOf } from './signature.ts'
import type { ParsedToken } from './token.ts'

/** A token that passed every check. */
export interface Verified extends Accepted {
  readonly key: SigningKey
}

/** Verifies the tokens of one issuer. */
export interface Issuer {
  /** The `iss` of its tokens. */
  readonly name: string
  /** Rejects with UNAUTHORIZED, or with UNAVAILABLE while the keys are unavailable. */
  verify(token: ParsedToken, nowMs: number, note?: Note): Promise<Verified>
}

/** The dependencies of an issuer. */
export interface IssuerParts {
  readonly config: Pick<IssuerConfig, 'issuer' | 'algorithms'>
  readonly keys: KeySource
  readonly rules: ClaimRules
}

/**
 * A fetch in progress may have started before the provider published the key, so the key is looked up a
 * second time.
 */
const LOOKS_MAX = 2

/** An issuer whose keys come from `source`. */
export function createIssuer({ config, keys: source, rules }: IssuerParts): Issuer {
  const { issuer: name, algorithms } = config

  async function candidates(token: ParsedToken & { readonly alg: JwtAlgorithm }): Promise<readonly SigningKey[]> {
    let keys = source.current() ?? unavailable(source)
    for (let look = 0; look < LOOKS_MAX && isUnknownKid(token, keys); look += 1) {
      const outcome = await source.lookAgain()
      keys = source.current() ?? unavailable(source)
      if (outcome === 'failed' && isUnknownKid(token, keys)) unavailable(source)
    }
    const chosen = keysFor(token, keys)
    if (chosen.length > 0) return chosen
    throw refusedToken(
      isUnknownKid(token, keys)
        ? 'its issuer does not publish the key that it names (kid)'
        : 'its issuer has no key of the type that its algorithm (alg) requires',
    )
  }

  return {
    name,
    async verify(token, nowMs, note = ignore) {
      note(`issuer: [[gateway.issuers]] "${name}"`)
      assertType(token)
      if (!isAccepted(token, algorithms)) throw refusedToken('its algorithm (alg) is not accepted from its issuer')
      note(`alg: ${token.alg} is accepted`)
      const keys = await candidates(token)
      note(`key: ${keys.length === 1 ? 'one matches' : `${keys.length} match`} its kid and algorithm`)
      const key = await signerOf(token.compact, token.alg, keys)
      if (key === null) throw refusedToken('its signature does not match')
      note('signature: it matches')
      return { ...acceptClaims(token.claims(), rules, nowMs, note), key }
    },
  }
}

function isAccepted(
  token: ParsedToken,
  algorithms: readonly JwtAlgorithm[] | null,
): token is ParsedToken & { readonly alg: JwtAlgorithm } {
  // Without a list the key decides: `keysFor` returns only keys of the type that the algorithm requires.
  return algorithms === null || (algorithms as readonly string[]).includes(token.alg)
}

/**
 * Rejects tokens that are not access tokens. A provider signs logout tokens and security events with the
 * same keys; their `typ` ends in `+jwt` (RFC 8725, 3.11), and of those types only access tokens are
 * accepted (RFC 9068, 2.1).
 */
function assertType({ typ }: ParsedToken): void {
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type?.endsWith('+jwt') && type !== 'at+jwt') throw refusedToken('its type (typ) is not that of an access token')
}

function unavailable(source: KeySource): never {
  throw new GatewayError(
    'UNAVAILABLE',
    'the keys of the token’s issuer could not be fetched yet, so it cannot be verified; try again',
    { headers: { 'Retry-After': String(source.retryAfterSeconds()) } },
  )
}
