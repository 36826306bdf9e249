/**
 * OAuth 2.0 Protected Resource Metadata (RFC 9728): which identity providers issue tokens for this gateway.
 * The `WWW-Authenticate` header of a 401 response points clients to the document.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** The gateway as a protected resource. */
export interface ProtectedResource {
  /** The paths that serve the document. */
  readonly paths: readonly string[]
  document(address: RequestAddress): object
  /** The URL of the document, as the client can reach it. */
  metadataUrl(address: RequestAddress): string
}

/** The parts of a request from which the gateway's own URL is derived. */
export interface RequestAddress {
  readonly headers: IncomingHttpHeaders
  /** The socket of the request; undefined if it is unknown. */
  readonly connection: object | undefined
}

/** The dependencies of the metadata. */
export interface ResourceParts {
  /** The `iss` of each issuer. */
  readonly issuers: readonly string[]
  readonly publicUrl: string | null
  /** The URL that the gateway listens on. */
  readonly ownUrl: () => string
  readonly isProxy: (socketAddress: string | undefined) => boolean
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** The metadata; null without an issuer. */
export function createProtectedResource(parts: ResourceParts): ProtectedResource | null {
  const { publicUrl, ownUrl, isProxy } = parts
  // An authorization server is an https URL (RFC 8414, 2); issuers that are plain names have no document.
  const servers = parts.issuers.filter(issuer => URL.canParse(issuer) && /^https?:/.test(issuer))
  if (parts.issuers.length === 0) return null
  const publicPath = publicUrl === null ? '' : pathOf(publicUrl)

  /**
   * Clients choose their own `Host`, and a document that repeated it would mislead others (RFC 9728, 7.4).
   */
  function resourceOf({ headers, connection }: RequestAddress): string {
    if (publicUrl !== null) return publicUrl
    return (isProxy(addressOf(connection)) ? forwarded(headers) : null) ?? ownUrl()
  }

  return {
    paths: [...new Set([WELL_KNOWN, `${WELL_KNOWN}${publicPath}`])],
    document: address => ({
      resource: resourceOf(address),
      ...(servers.length === 0 ? {} : { authorization_servers: servers }),
      bearer_methods_supported: ['header'],
    }),
    metadataUrl(address) {
      // The path of the resource follows the well-known path (RFC 9728, 3.1).
      const { origin } = new URL(resourceOf(address))
      return `${origin}${WELL_KNOWN}${publicPath}`
    },
  }
}

/** A `WWW-Authenticate` challenge with the link to the metadata (RFC 9728, 5.1). */
export function withMetadataUrl(challenge: string, url: string): string {
  return `${challenge}${challenge.includes(' ') ? ',' : ''} resource_metadata="${url}"`
}

function pathOf(url: string): string {
  return new URL(url).pathname.replace(/\/$/, '')
}

function addressOf(connection: object | undefined): string | undefined {
  const address = connection !== undefined && 'remoteAddress' in connection ? connection.remoteAddress : undefined
  return typeof address === 'string' ? address : undefined
}

const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** The URL that a trusted proxy received the request for; null if the request came directly. */
function forwarded(headers: IncomingHttpHeaders): string | null {
  const host = firstOf(headers['x-forwarded-host']) ?? headers.host
  const scheme = firstOf(headers['x-forwarded-proto']) ?? 'http'
  if (host === undefined || !HOST.test(host) || !/^https?$/i.test(scheme)) return null
  const url = `${scheme}://${host}`
  return URL.canParse(url) ? new URL(url).origin : null
}

function firstOf(header: string | readonly string[] | undefined): string | undefined {
  return header === undefined ? undefined : String(header).split(',')[0]?.trim()
}
