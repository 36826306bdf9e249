/** The error responses of requests, and the events that report their ends. */
import { errorBody } from '../envelope.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Emit, RequestEvent } from '../events.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { SlowRequests } from '../ops/slow-requests.ts'
import { maskedPath } from '../rest/allow-list/line.ts'
import type { ResourceRoute } from '../rest/path.ts'
import type { TraceContext } from '../trace-context.ts'
import type { Tracing } from '../tracing/tracing.ts'
import type { RequestProgress } from './pipeline.ts'

/** The parts of the event that reports a request. */
export interface Ended {
  readonly method: string
  readonly requestId: string
  readonly status: number
  readonly durationMs: number
  readonly progress: RequestProgress
  readonly incoming?: Incoming
  readonly answer?: Answer
}

/** Reports requests, and the operations of batches. */
export interface Reports {
  /** Creates the response to a failed request, whatever the error is. */
  errorAnswer(error: unknown, requestId: string, progress: RequestProgress): Answer
  /** Emits the event of a finished request. */
  ended(request: Ended): void
}

/** Creates the reports. `logsRequests`: whether request paths are logged. */
export function createReports({
  emit,
  logsRequests,
  tracing,
  slow,
}: {
  readonly emit: Emit
  readonly logsRequests: boolean
  /** Null if requests are not traced. */
  readonly tracing: Pick<Tracing, 'ended'> | null
  /** Lists the slowest requests for operators; null without an admin token. */
  readonly slow: Pick<SlowRequests, 'note'> | null
}): Reports {
  return {
    errorAnswer(error, requestId, progress) {
      const known = error instanceof GatewayError
      progress.code = codeOf(error)
      if (known && error.limit !== undefined) emit({ kind: 'statement refused', limit: error.limit })
      if (!known || error.status >= 500) emit({ kind: 'request failed', requestId, trace: progress.trace, error })
      return {
        status: known ? error.status : 500,
        headers: { 'Content-Type': 'application/json; charset=utf-8', ...(known ? error.headers : {}) },
        body: errorBody(error, requestId, progress.trace),
      }
    },
    ended({ method, requestId, status, durationMs, progress, incoming, answer }) {
      const { route, code, tenantId, at, written, caller } = progress
      const usage = incoming?.usage
      const databaseMs = usage?.databaseMs() ?? null
      if (at !== null) slow?.note(durationMs, databaseMs, () => `${method} ${maskedPath(at, written)}`)
      const event: RequestEvent = {
        kind: 'request',
        method,
        route,
        status,
        code,
        durationMs: toHundredths(durationMs),
        requestId,
        trace: progress.trace,
        tenantId,
        role: caller === null ? null : caller.role,
        path: (logsRequests || tracing !== null) && at !== null ? maskedPath(at, written) : null,
        table: at === null ? null : (tableOf(at) ?? usage?.table ?? null),
        function: at?.kind === 'rpc' ? at.function : null,
        rows: answer?.rows ?? usage?.rows ?? null,
        databaseMs: databaseMs === null ? null : toHundredths(databaseMs),
        cache: (answer?.headers['X-Cache'] ?? null) as 'HIT' | 'MISS' | null,
      }
      emit(event)
      tracing?.ended({
        event,
        timing: progress.timing,
        isOperation: incoming?.operation !== undefined,
      })
    },
  }
}

/** The progress of a request that has just arrived. */
export function noProgress(trace: TraceContext | null = null): RequestProgress {
  return { route: 'none', at: null, written: null, tenantId: '', caller: null, code: null, timing: null, trace }
}

/** The code of an error in a response. */
export function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'INTERNAL'
}

/** The table whose rows are read or written, or null. */
function tableOf(route: ResourceRoute): string | null {
  if (route.kind === 'children') return route.child
  return 'table' in route ? route.table : null
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
