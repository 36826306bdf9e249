/** The error of every failed request, subscription and stream. */

/** An error response of the gateway, or a failure to get a response. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  /**
   * The code of the gateway (docs/reference/errors.md), such as `FORBIDDEN`; otherwise `NETWORK` (no
   * response), `CLIENT_TIMEOUT` (no response in time) or `INVALID_ANSWER` (not the response of a gateway).
   */
  readonly code: string
  /** The status of the response; null without one. */
  readonly status: number | null
  /** The suggestion of the gateway, if there is one. */
  readonly hint: string | null
  /** Data about the error, such as `sqlstate`, `constraint` and `columns` of a violated constraint. */
  readonly details: Readonly<Record<string, unknown>> | null
  /** The id under which the gateway's log has the request. */
  readonly requestId: string | null
  /** How long the gateway asks to wait before the next attempt; null if it does not. */
  readonly retryAfterMs: number | null

  constructor(code: string, message: string, about: ErrorParts = {}) {
    super(message, about.cause === undefined ? undefined : { cause: about.cause })
    this.code = code
    this.status = about.status ?? null
    this.hint = about.hint ?? null
    this.details = about.details ?? null
    this.requestId = about.requestId ?? null
    this.retryAfterMs = about.retryAfterMs ?? null
  }
}

export interface ErrorParts {
  readonly status?: number
  readonly hint?: string | null
  readonly details?: Readonly<Record<string, unknown>> | null
  readonly requestId?: string | null
  readonly retryAfterMs?: number | null
  readonly cause?: unknown
}

/** The error in a body, `{"error": …}`, or in the response of a proxy. */
export function errorOf(body: unknown, status: number, retryAfter: string | null = null): ClientError {
  const { error } = (typeof body === 'object' && body !== null ? body : {}) as { readonly error?: Envelope }
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter)
  const retryAfterMs = seconds >= 0 ? seconds * 1_000 : null
  if (typeof error !== 'object' || error === null || typeof error.code !== 'string') {
    return new ClientError('INVALID_ANSWER', `the server answered ${status} without an error of the gateway`, {
      ...{ status, retryAfterMs },
    })
  }
  const { code, message = '', hint = null, details = null, request_id: requestId = null } = error
  return new ClientError(code, message, { status: error.status ?? status, hint, details, requestId, retryAfterMs })
}

interface Envelope {
  readonly code?: unknown
  readonly message?: string
  readonly status?: number
  readonly hint?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly request_id?: string
}
