/** Creates the error envelope (docs/reference/errors.md); nothing else does. */
import { GatewayError } from './errors.ts'
import type { TraceContext } from './trace-context.ts'

/**
 * `{"error": {code, message, status, request_id, trace_id?, details?, hint?}}` as UTF-8. `trace_id` is
 * there if the request belongs to a trace. An error that is not a `GatewayError` reveals nothing. A read that
 * is too expensive also has `code`, `message` and `details` next to `error`, for clients that expect that
 * flat form.
 */
export function errorBody(error: unknown, requestId: string, trace?: TraceContext | null): Buffer {
  const known =
    error instanceof GatewayError
      ? error
      : new GatewayError('INTERNAL', 'an unexpected error occurred; the log has it under this request_id')
  return Buffer.from(
    JSON.stringify({
      ...(known.code === 'QUERY_TOO_EXPENSIVE'
        ? { code: known.code, message: known.message, details: known.details }
        : {}),
      error: {
        code: known.code,
        message: known.message,
        status: known.status,
        request_id: requestId,
        ...(trace == null ? {} : { trace_id: trace.traceId }),
        ...(known.details === undefined ? {} : { details: known.details }),
        ...(known.hint === undefined ? {} : { hint: known.hint }),
      },
    }),
  )
}
