/** Fetches the keys that an identity provider publishes (OpenID Connect Discovery 1.0, 4; RFC 7517, 5). */
import ipaddr from 'ipaddr.js'
import type { IssuerConfig } from '../../config/config.ts'
import { isProviderUrl } from '../../config/kinds.ts'
import type { AddressGuard } from '../../outbound/address-guard.ts'
import { fetchDocument, GetError, type GetRequest } from '../../outbound/get.ts'
import { type KeySet, parseJwkSet } from './key-set.ts'
import { KeyError } from './signing-key.ts'

/** The keys that a provider published, with their lifetime. */
export interface FetchedKeys extends KeySet {
  /** How long the keys are fresh. */
  readonly maxAgeMs: number
}

/** The inputs for fetching the keys of a provider. */
export interface ProviderParts {
  readonly config: Pick<IssuerConfig, 'issuer' | 'jwksUrl'>
  /** Checks every host except the configured one. */
  readonly guard: AddressGuard
  readonly userAgent: string
}

const TIMEOUT_MS = 10_000
const REDIRECTS_MAX = 3
const BODY_BYTES_MAX = 1_048_576

const MAX_AGE_SECONDS_MIN = 5
const MAX_AGE_SECONDS_MAX = 86_400
const MAX_AGE_SECONDS_DEFAULT = 300

/** Fetches the keys of a provider. Rejects with `GetError` or `KeyError`. */
export async function fetchKeys(parts: ProviderParts): Promise<FetchedKeys> {
  const jwksUrl = parts.config.jwksUrl ?? (await discover(parts))
  const { body, cacheControl } = await fetchDocument(requestFor(new URL(jwksUrl), parts))
  const set = read(jwksUrl, () => parseJwkSet(body.toString()))
  return { ...set, maxAgeMs: maxAgeSeconds(cacheControl) * 1_000 }
}

/** The host that the operator configured; a document or a redirect can name others. */
function configuredHost({ config }: ProviderParts): string {
  return new URL(config.jwksUrl ?? config.issuer).host
}

async function discover(parts: ProviderParts): Promise<string> {
  const { issuer } = parts.config
  const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const { body } = await fetchDocument(requestFor(url, parts))
  const document = read(url.href, () => parseObject(body.toString()))
  // Otherwise one provider could answer for another (OpenID Connect Discovery 1.0, 4.3).
  if (document.issuer !== issuer) throw new KeyError(`${url.href}: its issuer is not "${issuer}"`)
  const { jwks_uri: jwksUri } = document
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri))
    throw new KeyError(`${url.href}: its jwks_uri is not a URL`)
  return jwksUri
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new KeyError('it is not a JSON object')
}

/** Adds the address to the error about its content. */
function read<T>(url: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof KeyError ? new KeyError(`${url}: ${error.message}`) : error
  }
}

function requestFor(url: URL, parts: ProviderParts): GetRequest {
  const configured = configuredHost(parts)
  return {
    ...{ url, accept: 'application/json', userAgent: parts.userAgent },
    ...{ timeoutMs: TIMEOUT_MS, redirectsMax: REDIRECTS_MAX, bodyBytesMax: BODY_BYTES_MAX },
    guardOf(hop) {
      if (!isProviderUrl(hop)) throw new GetError(`${hop.href}: keys are fetched over https only`)
      const refusalReason = hop.host === configured ? () => null : parts.guard.refusalReason
      return hop.protocol === 'https:' ? { refusalReason } : { refusalReason: loopbackAnd(refusalReason) }
    },
  }
}

/** Without TLS only the machine itself may be contacted, whatever address `localhost` resolves to. */
function loopbackAnd(refusalReason: AddressGuard['refusalReason']): AddressGuard['refusalReason'] {
  return address => {
    if (ipaddr.process(address).range() !== 'loopback')
      return `${address} is not a loopback address, and http is accepted for loopback only`
    return refusalReason(address)
  }
}

/** The lifetime from `Cache-Control` (RFC 9111, 5.2.2.1). */
function maxAgeSeconds(cacheControl: string): number {
  const [, seconds] = /(?:^|[\s,])max-age="?(\d{1,10})/i.exec(cacheControl) ?? []
  if (seconds === undefined) return MAX_AGE_SECONDS_DEFAULT
  return Math.min(Math.max(Number(seconds), MAX_AGE_SECONDS_MIN), MAX_AGE_SECONDS_MAX)
}
