/** Trace context in the headers of requests (W3C Trace Context, https://www.w3.org/TR/trace-context/). */

/** The place of a request in a trace. */
export interface TraceContext {
  /** 32 lowercase hexadecimal digits, not all zero. */
  readonly traceId: string
  /** The span that caused the work: 16 lowercase hexadecimal digits, not all zero. */
  readonly spanId: string
  /** Two hexadecimal digits; the lowest bit says that the trace is recorded. */
  readonly flags: string
  /** `tracestate` as received, for the tracing systems that it names; empty without one. */
  readonly state: string
}

/** `version-trace-span-flags`; later versions can append fields. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const VERSION = '00'
const INVALID_VERSION = 'ff'
const ZEROS = /^0+$/

/** Limit on `tracestate`, which the recommendation asks participants to propagate at least to this length. */
const STATE_CHARACTERS_MAX = 512
const STATE = /^[\x20-\x7e]+$/

/**
 * Parses the context in the headers of a request; null if `traceparent` is missing or invalid. Node
 * joins repeated headers with a comma.
 */
export function parseTraceContext({ traceparent, tracestate }: NodeJS.Dict<string | string[]>): TraceContext | null {
  if (typeof traceparent !== 'string') return null
  const [, version, traceId = '', spanId = '', flags = '', rest] = TRACEPARENT.exec(traceparent) ?? []
  if (version === undefined || version === INVALID_VERSION || (version === VERSION && rest !== undefined)) return null
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return null
  const isKept = typeof tracestate === 'string' && tracestate.length <= STATE_CHARACTERS_MAX && STATE.test(tracestate)
  return { traceId, spanId, flags, state: isKept ? tracestate : '' }
}

/** Prints the header `traceparent` for a request that the gateway sends on. */
export function printTraceparent({ traceId, spanId, flags }: TraceContext): string {
  return `${VERSION}-${traceId}-${spanId}-${flags}`
}

/** Reports whether the caller records the trace. */
export function isSampled({ flags }: TraceContext): boolean {
  return (Number.parseInt(flags, 16) & 1) === 1
}
