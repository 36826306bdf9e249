/** Where the keys of an issuer are, and which of them a token may have been signed with. */
import type { JwtAlgorithm } from '../../config/config.ts'
import type { Token } from '../token.ts'
import type { SigningKey } from './signing-key.ts'

export interface KeySource {
  /** Null: there are none, not yet or not any more. */
  current(): readonly SigningKey[] | null
  /** A token names a key that is not there. `failed`: whether it exists is not known. Never rejects. */
  lookAgain(): Promise<LookedAgain>
  /** When to ask again, while there are none. */
  retryAfterSeconds(): number
}

export type LookedAgain = 'fetched' | 'failed'

/** A token without `kid` is tried with no more than these: each costs a verification. */
const KEYS_TRIED_MAX = 4

type Choosing = Pick<Token, 'kid'> & { readonly alg: JwtAlgorithm }

/** The keys with the token's `kid`, else those without one, that are of the type its algorithm needs. */
export function keysFor({ kid, alg }: Choosing, keys: readonly SigningKey[]): readonly SigningKey[] {
  const named = kid === null ? keys : keys.filter(key => key.kid === kid)
  const chosen = named.length > 0 ? named : keys.filter(key => key.kid === null)
  return chosen.filter(key => key.algorithms.includes(alg)).slice(0, KEYS_TRIED_MAX)
}

/** Neither has the set this key nor one that verifies tokens with any `kid`: it may be new. */
export function isUnknownKid({ kid }: Pick<Token, 'kid'>, keys: readonly SigningKey[]): boolean {
  return kid !== null && !keys.some(key => key.kid === kid || key.kid === null)
}

/** The keys that are in force from now on: those that stay are the same objects, and those that are gone say so. */
export function succeed(before: readonly SigningKey[], next: readonly SigningKey[]): readonly SigningKey[] {
  const byId = new Map(before.map(key => [key.id, key]))
  const keys = next.map(key => byId.get(key.id) ?? key)
  for (const key of before) if (!keys.includes(key)) key.isWithdrawn = true
  return keys
}

/** Keys that do not change while the gateway runs. */
export function fixedKeys(keys: readonly SigningKey[]): KeySource {
  return { current: () => keys, lookAgain: async () => 'fetched', retryAfterSeconds: () => 1 }
}
