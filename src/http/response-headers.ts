/**
 * The headers of every response (docs/reference/rest-api.md#headers), whether it comes from a route, the CORS
 * plugin, a bare socket or a handshake.
 */
import { printServerTiming, type RequestTiming } from '../ops/server-timing.ts'

/** The headers that a page of another origin can read. */
export const EXPOSED_HEADERS: readonly string[] = [
  'X-Request-Id',
  'X-Response-Time',
  'X-Cache',
  'X-Svc-Txid',
  'X-Svc-LSN',
  'Location',
  'ETag',
  'X-Next-Cursor',
  'X-Total-Count',
  'Retry-After',
  'Allow',
  'Preference-Applied',
  'Idempotency-Replayed',
  'Content-Range',
  'Content-Location',
  'Content-Profile',
  'Proxy-Status',
  'WWW-Authenticate',
]

/**
 * Alternating names and values, the form that Node sends without lookups. `timing` is null if the request did
 * not reach the pipeline.
 */
export type ResponseHeaders = (requestId: string, durationMs: number, timing: RequestTiming | null) => string[]

/** Creates the headers. If `serverTiming` is true, every response has `Server-Timing`. */
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

/** Groups alternating names and values into pairs. */
export function headerPairs(list: readonly string[]): readonly (readonly [string, string])[] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ''] as const] : []))
}
