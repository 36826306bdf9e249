/**
 * Security schemes: the callers' tokens (docs/reference/rest-api.md#authentication), and the admin token
 * (docs/guides/monitoring.md#the-admin-token).
 */
import type { OperationObject } from './model.ts'

type Security = NonNullable<OperationObject['security']>

/** The ways to authenticate. */
export const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An HS256 token with the claims of the caller: tenant_id, user_id, role, scope.',
  },
  admin: { type: 'http', scheme: 'bearer', description: 'The admin token of the gateway (`admin_token`).' },
} as const

/** The security of a route that needs no token. */
export const NO_SECURITY: Security = []
/** The security of a route that needs the admin token. */
export const ADMIN_SECURITY: Security = [{ admin: [] }]

/** The security of calls. Without `require_auth`, a caller without a token is anonymous. */
export function callerSecurity(requireAuth: boolean): Security {
  return requireAuth ? [{ bearer: [] }] : [{ bearer: [] }, {}]
}
