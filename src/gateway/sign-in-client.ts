/** The client that the console is at an identity provider (docs/guides/console.md#sign-in). */
import type { GatewayConfig } from '../config/config.ts'
import { signInIssuer } from '../config/sign-in-problems.ts'
import type { SignInClient } from '../http/console.ts'

/** The client of the configuration; null if it has none, or no console. */
export function signInClientOf(gateway: Pick<GatewayConfig, 'console' | 'issuers'>): SignInClient | null {
  const { enabled, oidcClientId, oidcScopes, oidcParameters } = gateway.console
  const issuer = signInIssuer(gateway)
  if (!enabled || issuer === null || oidcClientId === null) return null
  return { issuer, clientId: oidcClientId, scopes: oidcScopes, parameters: Object.fromEntries(oidcParameters) }
}
