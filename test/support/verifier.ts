/** A token verifier with one secret, configured like the gateway's. */
import type { Identity } from '../../src/identity/identity.ts'
import { createTokenVerifier, type TokenVerifier, type VerifierConfig } from '../../src/identity/jwt.ts'

export interface SecretRules {
  readonly requireExp?: boolean
  readonly jwtIssuer?: string | null
  readonly jwtAudience?: string | null
  readonly previous?: string | null
  readonly jwtSecrets?: ReadonlyMap<string, string>
}

export function verifierConfig(jwtSecret: string | null, rules: SecretRules = {}): VerifierConfig {
  const { requireExp = false, jwtIssuer = null, jwtAudience = null, previous = null, jwtSecrets = new Map() } = rules
  return { jwtSecret, jwtSecretPrevious: previous, gateway: { requireExp, jwtIssuer, jwtAudience, jwtSecrets } }
}

export function secretVerifier(secret: string | null, rules: SecretRules, clock: () => number): TokenVerifier {
  return createTokenVerifier(verifierConfig(secret, rules), [], clock)
}

export type VerifyToken = (token: string) => Identity | Promise<Identity>

/** Only the identity functions. */
export function secretIdentities(secret: string | null, rules: SecretRules, clock: () => number): VerifyToken {
  const { verify } = secretVerifier(secret, rules, clock)
  return token => {
    const verified = verify(token)
    return verified instanceof Promise ? verified.then(({ identity }) => identity) : verified.identity
  }
}
