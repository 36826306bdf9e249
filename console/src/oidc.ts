/**
 * Sign-in with an identity provider: the authorization code flow with PKCE (RFC 6749, 4.1; RFC 7636), as a
 * public client. The state of a sign-in is kept for this tab during the visit to the provider.
 */
import { BASE } from './api.ts'
import { decodeClaims } from './session.ts'
import { TEXTS } from './texts.ts'

/** How callers sign in with the identity provider of this gateway. */
export interface SignInProvider {
  readonly issuer: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** More parameters of the requests to the provider, such as `resource`. */
  readonly parameters: Readonly<Record<string, string>>
}

/** A failure with a message for the user. */
export class SignInError extends Error {}

/** A sign-in that has begun. */
export interface PendingSignIn {
  readonly provider: SignInProvider
  readonly tokenEndpoint: string
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** The screen where the sign-in began: the address from `#` on. */
  readonly screen: string
}

/** The parameters with which a provider sends the browser back; null for every other visit. */
export function readArrival(search: string): URLSearchParams | null {
  const parameters = new URLSearchParams(search)
  return parameters.has('state') && (parameters.has('code') || parameters.has('error')) ? parameters : null
}

/** Prepares a sign-in, and the address of the provider that continues it. Rejects with `SignInError`. */
export async function beginSignIn(
  provider: SignInProvider,
  { redirectUri, screen }: Pick<PendingSignIn, 'redirectUri' | 'screen'>,
): Promise<{ readonly pending: PendingSignIn; readonly address: string }> {
  // Browsers have it only on pages that cannot be changed in transit.
  if (crypto.subtle === undefined) throw new SignInError(TEXTS.provider.insecure)
  const { authorization, token: tokenEndpoint } = await discover(provider.issuer)
  const [state, nonce, verifier] = [randomText(), randomText(), randomText()]
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const address = new URL(authorization)
  const parameters = {
    ...provider.parameters,
    ...{ response_type: 'code', client_id: provider.clientId, redirect_uri: redirectUri },
    ...{ scope: provider.scopes.join(' '), state, nonce },
    ...{ code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: 'S256' },
  }
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value)
  return { pending: { provider, tokenEndpoint, redirectUri, state, nonce, verifier, screen }, address: address.href }
}

/** Exchanges the code for an access token. Rejects with `SignInError`. */
export async function completeSignIn(arrival: URLSearchParams, pending: PendingSignIn | null): Promise<string> {
  // Otherwise a link could sign the user in as its author.
  if (pending === null || arrival.get('state') !== pending.state) throw new SignInError(TEXTS.provider.foreign)
  const { provider, redirectUri, nonce, verifier } = pending
  const { issuer, clientId } = provider
  // Not every provider sends its name (RFC 9207).
  if ((arrival.get('iss') ?? issuer) !== issuer) throw new SignInError(TEXTS.provider.foreign)
  const code = arrival.get('code')
  if (code === null)
    throw new SignInError(
      TEXTS.provider.refused(
        issuer,
        reasonOf(name => arrival.get(name)),
      ),
    )
  const body = new URLSearchParams({
    ...provider.parameters,
    ...{ grant_type: 'authorization_code', client_id: clientId, redirect_uri: redirectUri },
    ...{ code, code_verifier: verifier },
  })
  const answer = await fetchObject(issuer, pending.tokenEndpoint, { method: 'POST', body })
  if (!answer.ok)
    throw new SignInError(
      TEXTS.provider.refused(
        issuer,
        reasonOf(name => answer.body[name]),
      ),
    )
  const { access_token: token, id_token: idToken } = answer.body
  if (typeof token !== 'string' || token === '') throw unusable(issuer, TEXTS.provider.noToken)
  if (idToken !== undefined && !belongsTo(idToken, { issuer, clientId, nonce }))
    throw new SignInError(TEXTS.provider.foreign)
  return token
}

/** Reads the addresses that a provider publishes (OpenID Connect Discovery 1.0, 4). */
async function discover(issuer: string): Promise<{ readonly authorization: string; readonly token: string }> {
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { ok, body } = await fetchObject(issuer, address)
  if (!ok || body.issuer !== issuer) throw unusable(issuer, TEXTS.provider.noDocument(address))
  const authorization = endpointOf(body.authorization_endpoint, issuer)
  if (authorization === null) throw unusable(issuer, TEXTS.provider.noEndpoint('authorization_endpoint'))
  const token = endpointOf(body.token_endpoint, issuer)
  if (token === null) throw unusable(issuer, TEXTS.provider.noEndpoint('token_endpoint'))
  // The content security policy of the page permits requests to the origin of the issuer only.
  if (new URL(token).origin !== new URL(issuer).origin) throw unusable(issuer, TEXTS.provider.otherHost)
  return { authorization, token }
}

/** The browser opens the address, so it must not be a script, nor without TLS unless the issuer is. */
function endpointOf(value: unknown, issuer: string): string | null {
  if (typeof value !== 'string' || !URL.canParse(value)) return null
  const { protocol, origin, href } = new URL(value)
  return protocol === 'https:' || origin === new URL(issuer).origin ? href : null
}

interface ProviderAnswer {
  readonly ok: boolean
  /** Empty if the response is not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>
}

async function fetchObject(issuer: string, address: string, init: RequestInit = {}): Promise<ProviderAnswer> {
  let response: Response
  try {
    response = await fetch(address, { ...init, cache: 'no-store', credentials: 'omit', redirect: 'error' })
  } catch {
    throw new SignInError(TEXTS.provider.unreachable(issuer, BASE.origin))
  }
  const body: unknown = await response.json().catch(() => null)
  return body === null || typeof body !== 'object' || Array.isArray(body)
    ? { ok: false, body: {} }
    : { ok: response.ok, body: body as ProviderAnswer['body'] }
}

/** The error of a provider (RFC 6749, 4.1.2.1 and 5.2). */
function reasonOf(member: (name: string) => unknown): string {
  const parts = [member('error'), member('error_description')].filter(part => typeof part === 'string')
  return parts.length === 0 ? TEXTS.provider.noReason : parts.join(': ')
}

const unusable = (issuer: string, reason: string) => new SignInError(TEXTS.provider.unusable(issuer, reason))

/**
 * The ID token came from the provider itself, so its signature need not be verified (OpenID Connect Core 1.0,
 * 3.1.3.7). The gateway verifies the access token.
 */
function belongsTo(
  idToken: unknown,
  { issuer, clientId, nonce }: { readonly issuer: string; readonly clientId: string; readonly nonce: string },
): boolean {
  const { iss, aud, nonce: given } = (typeof idToken === 'string' ? decodeClaims(idToken) : null) ?? {}
  return iss === issuer && given === nonce && (Array.isArray(aud) ? aud : [aud]).includes(clientId)
}

const randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)))

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
