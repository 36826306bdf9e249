/**
 * The error codes of responses (docs/reference/errors.md), their HTTP statuses, and the error class that has
 * them.
 */

import type { LimitName } from './statement-limits.ts'

export const STATUS_OF = {
  PARSE_ERROR: 400,
  QUERY_ERROR: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  TIMEOUT: 408,
  TEST_FAILED: 409,
  IDEMPOTENCY_KEY_IN_USE: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  QUERY_TOO_EXPENSIVE: 422,
  PATH_NOT_FOUND: 422,
  IDEMPOTENCY_KEY_REUSED: 422,
  PRECONDITION_REQUIRED: 428,
  HEADERS_TOO_LARGE: 431,
  RATE_LIMITED: 429,
  CONCURRENCY_LIMIT: 429,
  INTERNAL: 500,
  NOT_IMPLEMENTED: 501,
  UNAVAILABLE: 503,
} as const

export type ErrorCode = keyof typeof STATUS_OF

export interface ErrorExtras {
  readonly details?: unknown
  readonly hint?: string
  /** Response headers that go with the error, e.g. `Allow`, `Retry-After`, `WWW-Authenticate`. */
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
  /** Offsets in the query text at which the error is; ignored for requests without a query text. */
  readonly span?: { readonly start: number; readonly end: number }
  /** The limit on statements that the request exceeds, for metrics. */
  readonly limit?: LimitName
}

/** An error whose message is for the caller: it states what failed, what was expected and what to do. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly details: unknown
  readonly hint: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly span: ErrorExtras['span']
  readonly limit: LimitName | undefined

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = 'GatewayError'
    this.code = code
    this.details = extras.details
    this.hint = extras.hint
    this.headers = extras.headers ?? {}
    this.span = extras.span
    this.limit = extras.limit
  }

  get status(): number {
    return STATUS_OF[this.code]
  }
}
