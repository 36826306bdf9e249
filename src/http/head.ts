/** What makes the head of a request unacceptable, whatever it asks for. Asked before its body is read and before its caller is known. */
import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'
import type { Hosts } from './hosts.ts'

/** Null: it is acceptable. */
export type JudgeHead = (request: IncomingMessage) => GatewayError | null

export interface HeadRules {
  /** Under which names development mode is reached; null outside of it, where every request proves who sends it. */
  readonly hosts: Hosts | null
  readonly corsAllowedOrigins: readonly string[]
}

export function createHeadJudge({ hosts, corsAllowedOrigins }: HeadRules): JudgeHead {
  const anyOrigin = corsAllowedOrigins.includes('*')
  const origins = new Set(corsAllowedOrigins)

  return request => {
    const { headers, httpVersionMinor } = request
    const repeated = repeatedField(request.rawHeaders)
    if (repeated !== null) return repeated
    const { host, origin } = headers
    // RFC 9112, 3.2. Node's own check answers without the envelope.
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

/** Node keeps the first of several; a proxy in front may have looked at another one. */
function repeatedField(rawHeaders: readonly string[]): GatewayError | null {
  let hosts = 0
  let authorizations = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    // Of nearly all other names the length alone tells.
    if (name.length === HOST.length) hosts += name.toLowerCase() === HOST ? 1 : 0
    else if (name.length === AUTHORIZATION.length) authorizations += name.toLowerCase() === AUTHORIZATION ? 1 : 0
  }
  if (hosts > 1) return TWO_HOSTS
  return authorizations > 1 ? TWO_AUTHORIZATIONS : null
}

// Made once: the trace of an error costs more than all the rest.
const NO_HOST = new GatewayError('PARSE_ERROR', 'the header Host is missing; HTTP/1.1 requires it (RFC 9112, 3.2)')
const TWO_HOSTS = new GatewayError('PARSE_ERROR', 'the header Host is given more than once; send it once')
const TWO_AUTHORIZATIONS = new GatewayError(
  'PARSE_ERROR',
  'the header Authorization is given more than once; send it once',
)

function foreignHost(host: string | undefined): GatewayError {
  const found = host === undefined ? 'the header Host is missing' : `the host "${shorten(host)}" is not known`
  return new GatewayError(
    'FORBIDDEN',
    `${found}; in development mode the gateway answers to localhost, loopback addresses and the names in allowed_hosts`,
  )
}

function foreignOrigin(origin: string): GatewayError {
  return new GatewayError(
    'FORBIDDEN',
    `pages of the origin "${shorten(origin)}" may not call the gateway in development mode; add the origin to cors_allowed_origins to allow it`,
  )
}
