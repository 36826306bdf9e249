/** Where the keys of an issuer come from, and which of them may have signed a token. */
import type { JwtAlgorithm } from '../../config/config.ts'
import type { ParsedToken } from '../token.ts'
import type { SigningKey } from './signing-key.ts'

/** The current keys of an issuer. */
export interface KeySource {
  /** The keys; null if they are not available yet, or no longer. */
  current(): readonly SigningKey[] | null
  /**
   * Fetches the keys again because a token names an unknown one. Never rejects; `failed` means that the key
   * may exist.
   */
  lookAgain(): Promise<LookedAgain>
  /** The time after which to try again, while the keys are unavailable. */
  retryAfterSeconds(): number
}

/** The outcome of fetching the keys again. */
export type LookedAgain = 'fetched' | 'failed'

/** The maximum number of keys tried for a token without `kid`: each costs a verification. */
const KEYS_TRIED_MAX = 4

type Choosing = Pick<ParsedToken, 'kid'> & { readonly alg: JwtAlgorithm }

/**
 * The keys of the type that the token's algorithm requires: those with its `kid`, or else those without a
 * `kid`.
 */
export function keysFor({ kid, alg }: Choosing, keys: readonly SigningKey[]): readonly SigningKey[] {
  const named = kid === null ? keys : keys.filter(key => key.kid === kid)
  const chosen = named.length > 0 ? named : keys.filter(key => key.kid === null)
  return chosen.filter(key => key.algorithms.includes(alg)).slice(0, KEYS_TRIED_MAX)
}

/** True if the set has neither the key with this `kid` nor one without a `kid`: the key may be new. */
export function isUnknownKid({ kid }: Pick<ParsedToken, 'kid'>, keys: readonly SigningKey[]): boolean {
  return kid !== null && !keys.some(key => key.kid === kid || key.kid === null)
}

/**
 * The keys to use from now on. Keys that stay keep their objects; keys that are removed are marked as
 * withdrawn.
 */
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
