/** Headers of every response (docs/reference/rest-api.md#headers), wherever it is made: by a route, by the CORS plugin, on a bare socket, in a handshake. */
import { printServerTiming, type Timing } from '../ops/server-timing.ts'

/** Of responses that a page of another origin may read. */
export const EXPOSED_HEADERS: readonly string[] = [
  'X-Request-Id',
  'X-Response-Time',
  'X-Cache',
  'X-Svc-Txid',
  'Location',
  'Retry-After',
  'Allow',
  'Preference-Applied',
  'WWW-Authenticate',
]

/**
 * Names and values in turn: the form that Node sends without looking anything up. `timing`: null where the request did not reach the pipeline.
 */
export type ResponseHeaders = (requestId: string, durationMs: number, timing: Timing | null) => string[]

/** `serverTiming`: every response has the header `Server-Timing`. */
export function responseHeaders(serverTiming: boolean): ResponseHeaders {
  return (requestId, durationMs, timing) => {
    const headers = [
      'X-Content-Type-Options',
      'nosniff',
      'X-Frame-Options',
      'DENY',
      'X-Request-Id',
      requestId,
      'X-Response-Time',
      `${Math.round(durationMs)}ms`,
    ]
    if (serverTiming) headers.push('Server-Timing', printServerTiming(timing, durationMs))
    return headers
  }
}

export function pairs(list: readonly string[]): readonly (readonly [string, string])[] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ''] as const] : []))
}
