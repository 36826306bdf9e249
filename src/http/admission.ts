/**
 * Decides whether a request is accepted at all: by the rate limit of its address
 * (docs/reference/limits.md#requests-per-address) and by the load of the process
 * (docs/reference/limits.md#load). Both are checked before the body is read and the token verified, so a
 * rejection is cheap.
 */
import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { IpAddress } from '../limits/address.ts'
import type { ClientAddress } from '../limits/client-address.ts'
import type { RateLimit } from '../limits/rate.ts'

/**
 * Returns the error of a rejected request, or null if it is accepted. The answer is a promise if the rate
 * limit is counted in another process.
 */
export type Admit = (request: IncomingMessage) => GatewayError | null | Promise<GatewayError | null>

/** The dependencies of the admission check. */
export interface AdmissionParts {
  readonly clientAddress: ClientAddress
  /** The rate limit by address, or null for no limit. */
  readonly rate: RateLimit | null
  readonly isOverloaded: () => boolean
  /** Reports whether a path belongs to a request for data. */
  readonly isData: (path: string) => boolean
}

/** Creates the admission check. */
export function createAdmission({ clientAddress, rate, isOverloaded, isData }: AdmissionParts): Admit {
  function judge(request: IncomingMessage, hasToken: boolean): GatewayError | null {
    if (!hasToken) return RATE_LIMITED
    // Health and other operator routes are needed most under overload, so they are always served.
    return isOverloaded() && isData(requestPath(request)) ? OVERLOADED : null
  }

  return request => {
    const hasToken = rate === null ? true : rate.take(addressOf(request, clientAddress))
    return hasToken instanceof Promise ? hasToken.then(has => judge(request, has)) : judge(request, hasToken)
  }
}

/** The client's address, as found behind trusted proxies. */
export function addressOf(
  { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  clientAddress: ClientAddress,
): IpAddress {
  const forwarded = headers['x-forwarded-for']
  return clientAddress(socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join() : forwarded)
}

/**
 * The path and query as sent. A client that uses a proxy can send the whole URL (RFC 9112, 3.2.2: "a server
 * MUST accept the absolute-form").
 */
export function requestTarget({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  if (url.startsWith('/')) return url
  const path = url.replace(ABSOLUTE, '')
  return path === '' || path.startsWith('?') ? `/${path}` : path
}

/** The path as sent, without the query. */
export function requestPath(request: Pick<IncomingMessage, 'url'>): string {
  const target = requestTarget(request)
  const mark = target.indexOf('?')
  return mark < 0 ? target : target.slice(0, mark)
}

const ABSOLUTE = /^https?:\/\/[^/?]*/i

// Created once: rejections are frequent under load, and the stack trace of an error costs more than the rest
// of the response.
const RATE_LIMITED = new GatewayError(
  'RATE_LIMITED',
  'too many requests from this address (rate_limit_rate, rate_limit_burst); send fewer requests per second',
  { headers: { 'Retry-After': '1' } },
)

const OVERLOADED = new GatewayError('UNAVAILABLE', 'the gateway is overloaded; try again', {
  headers: { 'Retry-After': '1' },
})
