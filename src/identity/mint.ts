/** Makes tokens for development and tests: `svc token`, `svc demo`. */
import { SignJWT } from 'jose/jwt/sign'

/** The claims and lifetime of a token to make. */
export interface TokenRequest {
  readonly tenantId?: string | undefined
  readonly userId?: string | undefined
  readonly agentId?: string | undefined
  readonly role?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly issuer?: string | null
  readonly audience?: string | null
  readonly expiresInSeconds: number
}

/**
 * Makes an HS256 token with the claims of docs/reference/rest-api.md#authentication; omitted claims are
 * left out. `nowMs` is milliseconds since the epoch.
 */
export function mintToken(secret: string, request: TokenRequest, nowMs: number): Promise<string> {
  const now = Math.floor(nowMs / 1000)
  const claims = {
    tenant_id: request.tenantId,
    user_id: request.userId,
    agent_id: request.agentId,
    role: request.role,
    scopes: request.scopes?.length ? request.scopes : undefined,
    iss: request.issuer ?? undefined,
    aud: request.audience ?? undefined,
    iat: now,
    exp: now + request.expiresInSeconds,
  }
  const given = Object.entries(claims).filter(([, value]) => value !== undefined)
  return new SignJWT(Object.fromEntries(given))
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .sign(Buffer.from(secret))
}
