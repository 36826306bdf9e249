/**
 * OAuth 2.0 Protected Resource Metadata (RFC 9728): which identity providers issue tokens for this gateway. A client that
 * was refused finds the document by the `WWW-Authenticate` of the refusal.
 */
import type { IncomingHttpHeaders } from 'node:http'

export interface ProtectedResource {
  /** Where the document is. */
  readonly paths: readonly string[]
  document(asked: Asked): object
  /** The URL of the document, as the client can reach it. */
  metadataUrl(asked: Asked): string
}

export interface Asked {
  readonly headers: IncomingHttpHeaders
  /** The socket that the request came on; undefined where it is not known. */
  readonly connection: object | undefined
}

export interface ResourceParts {
  /** `iss` of each. */
  readonly issuers: readonly string[]
  readonly publicUrl: string | null
  /** Where the gateway listens. */
  readonly ownUrl: () => string
  readonly isProxy: (socketAddress: string | undefined) => boolean
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** Null: there is no issuer, so nobody could be named. */
export function createProtectedResource(parts: ResourceParts): ProtectedResource | null {
  const { publicUrl, ownUrl, isProxy } = parts
  // An authorization server is an https URL (RFC 8414, 2); issuers that are mere names have no document of their own.
  const servers = parts.issuers.filter(issuer => URL.canParse(issuer) && /^https?:/.test(issuer))
  if (parts.issuers.length === 0) return null
  const publicPath = publicUrl === null ? '' : pathOf(publicUrl)

  /** Clients choose their own `Host`, and a document that repeated it would lead others astray (RFC 9728, 7.4). */
  function resourceOf({ headers, connection }: Asked): string {
    if (publicUrl !== null) return publicUrl
    return (isProxy(addressOf(connection)) ? forwarded(headers) : null) ?? ownUrl()
  }

  return {
    paths: [...new Set([WELL_KNOWN, `${WELL_KNOWN}${publicPath}`])],
    document: asked => ({
      resource: resourceOf(asked),
      ...(servers.length === 0 ? {} : { authorization_servers: servers }),
      bearer_methods_supported: ['header'],
    }),
    metadataUrl(asked) {
      // The path of the resource stands behind the well-known one (RFC 9728, 3.1).
      const { origin } = new URL(resourceOf(asked))
      return `${origin}${WELL_KNOWN}${publicPath}`
    },
  }
}

function pathOf(url: string): string {
  return new URL(url).pathname.replace(/\/$/, '')
}

function addressOf(connection: object | undefined): string | undefined {
  const address = connection !== undefined && 'remoteAddress' in connection ? connection.remoteAddress : undefined
  return typeof address === 'string' ? address : undefined
}

const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** What a trusted proxy was asked for. */
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
