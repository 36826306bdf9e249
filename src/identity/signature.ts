/** Verifies a token's signature. WebCrypto does the comparison and the mathematics. */
import { compactVerify } from 'jose/jws/compact/verify'
import type { JwtAlgorithm } from '../config/config.ts'
import type { SigningKey } from './keys/signing-key.ts'
import { refusedToken } from './refused-token.ts'

/**
 * The first of the keys that verifies the signature; null if none does. Throws UNAUTHORIZED for a token
 * that cannot be verified at all.
 */
export async function signerOf(
  compact: string,
  algorithm: JwtAlgorithm,
  keys: readonly SigningKey[],
): Promise<SigningKey | null> {
  for (const key of keys) if (await isSignedBy(compact, algorithm, key)) return key
  return null
}

async function isSignedBy(compact: string, algorithm: JwtAlgorithm, key: SigningKey): Promise<boolean> {
  const material = await key.material(algorithm)
  try {
    await compactVerify(compact, material, { algorithms: [algorithm] })
    return true
  } catch (error) {
    if (codeOf(error) === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') return false
    throw refusedToken('it is malformed', error)
  }
}

/** The code of an error of jose. */
function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null
}
