/** The error for a token that is not accepted (RFC 6750, 3.1). */
import { GatewayError } from '../errors.ts'

/**
 * `reason` completes "the token was refused: …". It contains neither a secret nor the value that would have
 * been accepted.
 */
export function refusedToken(reason: string, cause?: unknown): GatewayError {
  const headers = { 'WWW-Authenticate': 'Bearer error="invalid_token"' }
  return new GatewayError('UNAUTHORIZED', `the token was refused: ${reason}`, { headers, cause })
}
