/** The one form of "this token is not accepted" (RFC 6750, 3.1). */
import { GatewayError } from '../errors.ts'

/** `reason` completes "the token was refused: …" and never holds a secret or what would have been right. */
export function refused(reason: string, cause?: unknown): GatewayError {
  const headers = { 'WWW-Authenticate': 'Bearer error="invalid_token"' }
  return new GatewayError('UNAUTHORIZED', `the token was refused: ${reason}`, { headers, cause })
}
