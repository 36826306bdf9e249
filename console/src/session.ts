/** The signed-in caller. The token is kept for this tab, and `/`, `/docs` and `/demo/orders` use it too. */
import { BASE } from './api.ts'
import type { PendingSignIn, SignInProvider } from './oidc.ts'

const KEY = 'svc-token'
const PENDING = 'svc-console-sign-in'

/** A caller of the demo. */
export interface SampleCaller {
  readonly title: string
  readonly token: string
}

/** How callers can sign in to this gateway. */
export interface FrontState {
  readonly requiresToken: boolean
  readonly callers: readonly SampleCaller[]
  /** Absent if the console is not registered at an identity provider. */
  readonly provider?: SignInProvider
}

export function keptToken(): string | null {
  return sessionStorage.getItem(KEY)
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, token)
}

/** The sign-in with an identity provider that this tab has begun. Null ends it. */
export function keepPending(pending: PendingSignIn | null): void {
  if (pending === null) sessionStorage.removeItem(PENDING)
  else sessionStorage.setItem(PENDING, JSON.stringify(pending))
}

export function keptPending(): PendingSignIn | null {
  return JSON.parse(sessionStorage.getItem(PENDING) ?? 'null') as PendingSignIn | null
}

export async function readFrontState(): Promise<FrontState> {
  return (await (await fetch(new URL('front/state', BASE))).json()) as FrontState
}

/**
 * The claims that identify the caller, for display only: the gateway verifies the token. Null if the text is
 * not a JSON Web Token.
 */
export function claimsOf(token: string): readonly (readonly [name: string, value: string])[] | null {
  const claims = decodeClaims(token)
  if (claims === null) return null
  const known = ['tenant_id', 'user_id', 'sub', 'role', 'agent_id']
  return Object.entries(claims)
    .filter(([name]) => known.includes(name))
    .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
}

/** The claims of a JSON Web Token, not verified. Null for any other text. */
export function decodeClaims(token: string): Readonly<Record<string, unknown>> | null {
  try {
    const part = token.split('.')[1]?.replaceAll('-', '+').replaceAll('_', '/') ?? ''
    const bytes = Uint8Array.from(atob(part), letter => letter.charCodeAt(0))
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return claims === null || typeof claims !== 'object' ? null : (claims as Readonly<Record<string, unknown>>)
  } catch {
    return null
  }
}
