/**
 * Whether a request is looked at at all: the rate limit of its address (docs/reference/limits.md#requests-per-address), and the load of the whole
 * process (docs/reference/limits.md#load). Both are asked before the body is read and before the token is verified, so a refusal costs next to nothing.
 */
import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { Address } from '../limits/address.ts'
import type { ClientAddress } from '../limits/client-address.ts'
import type { RateLimit } from '../limits/rate.ts'

/** Null: it may come in. */
export type Admit = (request: IncomingMessage) => GatewayError | null

export interface AdmissionParts {
  readonly clientAddress: ClientAddress
  /** Null: no limit. */
  readonly rate: RateLimit | null
  readonly isOverloaded: () => boolean
}

export function createAdmission({ clientAddress, rate, isOverloaded }: AdmissionParts): Admit {
  return request => {
    if (rate !== null && !rate.take(addressOf(request, clientAddress))) return RATE_LIMITED
    // Health and what operators look at are needed most when there is too much to do.
    return isOverloaded() && targetOf(request).startsWith('/api/') ? OVERLOADED : null
  }
}

export function addressOf({ socket, headers }: IncomingMessage, clientAddress: ClientAddress): Address {
  const forwarded = headers['x-forwarded-for']
  return clientAddress(socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join() : forwarded)
}

/** Path and query, as sent. Who asks through a proxy may send the whole URL (RFC 9112, 3.2.2: "a server MUST accept the absolute-form"). */
export function targetOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  if (url.startsWith('/')) return url
  const path = url.replace(ABSOLUTE, '')
  return path === '' || path.startsWith('?') ? `/${path}` : path
}

export function pathOf(request: Pick<IncomingMessage, 'url'>): string {
  const target = targetOf(request)
  const mark = target.indexOf('?')
  return mark < 0 ? target : target.slice(0, mark)
}

const ABSOLUTE = /^https?:\/\/[^/?]*/i

// Made once: who is refused is refused often, and the trace of an error costs more than all the rest.
const RATE_LIMITED = new GatewayError(
  'RATE_LIMITED',
  'too many requests from this address (rate_limit_rate, rate_limit_burst); send fewer a second',
  { headers: { 'Retry-After': '1' } },
)

const OVERLOADED = new GatewayError('UNAVAILABLE', 'the gateway has more to do than it can; try again', {
  headers: { 'Retry-After': '1' },
})
