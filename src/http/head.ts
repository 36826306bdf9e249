/** Rejects requests because of their head, before the body is read and the caller is known. */
import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'
import type { Hosts } from './hosts.ts'

/** Returns the error of an unacceptable head, or null if it is acceptable. */
export type JudgeHead = (request: IncomingMessage) => GatewayError | null

/** The rules for request heads. */
export interface HeadRules {
  /**
   * The host names that development mode accepts, or null outside development mode, where every request needs
   * a token.
   */
  readonly hosts: Hosts | null
  readonly corsAllowedOrigins: readonly string[]
}

/** Creates the check of request heads. */
export function createHeadJudge({ hosts, corsAllowedOrigins }: HeadRules): JudgeHead {
  const anyOrigin = corsAllowedOrigins.includes('*')
  const origins = new Set(corsAllowedOrigins)

  return request => {
    const { headers, httpVersionMinor } = request
    const repeated = repeatedField(request.rawHeaders)
    if (repeated !== null) return repeated
    const { host, origin } = headers
    // RFC 9112, 3.2. Node's own check responds without the error envelope.
    if (host === undefined && httpVersionMinor > 0) return NO_HOST
    if (hosts === null) return null
    const { localAddress } = request.socket
    if (!hosts.isOurHost(host, localAddress)) return foreignHost(host)
    if (origin === undefined || anyOrigin || origins.has(origin)) return null
    return hosts.isOurOrigin(origin, localAddress) ? null : foreignOrigin(origin)
  }
}

const HOST = 'host'
const AUTHORIZATION = 'authorization'

/** Node keeps the first of several equal headers, but a proxy in front may have used another one. */
function repeatedField(rawHeaders: readonly string[]): GatewayError | null {
  let hosts = 0
  let authorizations = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    // The length excludes nearly all other names.
    if (name.length === HOST.length) hosts += name.toLowerCase() === HOST ? 1 : 0
    else if (name.length === AUTHORIZATION.length) authorizations += name.toLowerCase() === AUTHORIZATION ? 1 : 0
  }
  if (hosts > 1) return TWO_HOSTS
  return authorizations > 1 ? TWO_AUTHORIZATIONS : null
}

// Created once, because the stack trace of an error costs more than the rest of the response.
const NO_HOST = new GatewayError('PARSE_ERROR', 'the header Host is missing; HTTP/1.1 requires it (RFC 9112, 3.2)')
const TWO_HOSTS = new GatewayError('PARSE_ERROR', 'the header Host is given more than once; send it once')
const TWO_AUTHORIZATIONS = new GatewayError(
  'PARSE_ERROR',
  'the header Authorization is given more than once; send it once',
)

function foreignHost(host: string | undefined): GatewayError {
  const found = host === undefined ? 'the header Host is missing' : `the host "${shorten(host)}" is not accepted`
  return new GatewayError(
    'FORBIDDEN',
    `${found}; in development mode the gateway accepts localhost, loopback addresses and the names in allowed_hosts`,
  )
}

function foreignOrigin(origin: string): GatewayError {
  return new GatewayError(
    'FORBIDDEN',
    `the origin "${shorten(origin)}" is not allowed in development mode; ` +
      'add it to cors_allowed_origins to allow it',
  )
}
