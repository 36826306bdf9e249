/** Problems between the identity providers and the settings with which the console signs in. */
import type { GatewayConfig } from './config.ts'
import { isProviderUrl } from './kinds.ts'
import type { Problem } from './problem.ts'
import type { TomlFile } from './toml-file.ts'

type Settings = Pick<GatewayConfig, 'console' | 'issuers'>

/** The issuer that the console signs in with; null if it is not configured, or not clear. */
export function signInIssuer({ console, issuers }: Settings): string | null {
  if (console.oidcClientId === null) return null
  const named = issuers.filter(({ issuer }) => (console.oidcIssuer ?? issuer) === issuer)
  return named.length === 1 ? (named[0]?.issuer ?? null) : null
}

/** Parameters of the flow itself, whose values are not for the operator to choose. */
const OWN_PARAMETERS: ReadonlySet<string> = new Set([
  ...['response_type', 'response_mode', 'client_id', 'client_secret', 'redirect_uri', 'scope', 'state', 'nonce'],
  ...['code', 'code_challenge', 'code_challenge_method', 'code_verifier', 'grant_type', 'request', 'request_uri'],
])

/** The problems of `[gateway.console]` with the configured issuers. */
export function signInProblems(settings: Settings, file: TomlFile): readonly Problem[] {
  return messages(settings).map(([key, message]) => {
    const path = ['gateway', 'console', key]
    return { source: file.name, line: file.lineOf(path), key: path.join('.'), message, nearest: null }
  })
}

type KeyMessage = readonly [key: string, message: string]

function messages({ console, issuers }: Settings): readonly KeyMessage[] {
  const { oidcClientId, oidcIssuer, oidcParameters } = console
  if (oidcClientId === null) {
    const needs = 'needs oidc_client_id, the id under which the console is registered at the identity provider'
    return [
      ...(oidcIssuer === null ? [] : [['oidc_issuer', needs] as const]),
      ...(oidcParameters.size === 0 ? [] : [['oidc_parameters', needs] as const]),
    ]
  }
  const own = [...oidcParameters.keys()].filter(name => OWN_PARAMETERS.has(name))
  const ownProblem = own.length === 0 ? [] : [['oidc_parameters', `${own.join(', ')} cannot be set`] as const]
  return [...issuerMessages({ console, issuers }), ...ownProblem]
}

function issuerMessages(settings: Settings): readonly KeyMessage[] {
  const { oidcIssuer } = settings.console
  const known = settings.issuers.map(({ issuer }) => `"${issuer}"`).join(', ')
  if (known === '') return [['oidc_client_id', 'needs an identity provider, configured as [[gateway.issuers]]']]
  const issuer = signInIssuer(settings)
  if (issuer === null) {
    return oidcIssuer === null
      ? [['oidc_client_id', `needs oidc_issuer, because there are several issuers: ${known}`]]
      : [['oidc_issuer', `expected the issuer of one of [[gateway.issuers]] (${known}), not "${oidcIssuer}"`]]
  }
  if (URL.canParse(issuer) && isProviderUrl(new URL(issuer))) return []
  const expected = 'needs an issuer that is an https:// URL, or http:// on a loopback address'
  return [[oidcIssuer === null ? 'oidc_client_id' : 'oidc_issuer', `${expected}, not "${issuer}"`]]
}
