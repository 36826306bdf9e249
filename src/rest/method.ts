/** Methods that a resource does not take (decisions 8). */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../http/types.ts'

/** `METHOD_NOT_ALLOWED`, with what is allowed. */
export function methodNotAllowed({ method, path }: Incoming, allowed: readonly string[]): GatewayError {
  const list = allowed.join(', ')
  return new GatewayError('METHOD_NOT_ALLOWED', `${method} is not possible on ${path.slice(0, 200)}; use ${list}`, {
    headers: { Allow: list },
  })
}
