/** The signed-in caller. The token is kept for this tab, and `/`, `/docs` and `/demo/orders` use it too. */
import { BASE } from './api.ts'

const KEY = 'svc-token'

/** A caller of the demo. */
export interface SampleCaller {
  readonly title: string
  readonly token: string
}

/** How callers can sign in to this gateway. */
export interface FrontState {
  readonly requiresToken: boolean
  readonly callers: readonly SampleCaller[]
}

export function keptToken(): string | null {
  return sessionStorage.getItem(KEY)
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, token)
}

export async function readFrontState(): Promise<FrontState> {
  return (await (await fetch(new URL('front/state', BASE))).json()) as FrontState
}

/**
 * The claims that identify the caller, for display only: the gateway verifies the token. Null if the text is
 * not a JSON Web Token.
 */
export function claimsOf(token: string): readonly (readonly [name: string, value: string])[] | null {
  try {
    const part = token.split('.')[1]?.replaceAll('-', '+').replaceAll('_', '/') ?? ''
    const bytes = Uint8Array.from(atob(part), letter => letter.charCodeAt(0))
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    if (claims === null || typeof claims !== 'object') return null
    const known = ['tenant_id', 'user_id', 'sub', 'role', 'agent_id']
    return Object.entries(claims)
      .filter(([name]) => known.includes(name))
      .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
  } catch {
    return null
  }
}
