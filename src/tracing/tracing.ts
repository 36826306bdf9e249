/**
 * Spans of requests, made with OpenTelemetry's API (docs/guides/tracing.md#spans).
 *
 * Only the span of the request exists while it is processed, because its id is sent on. Its parts are
 * recorded as times, and become spans when the request has ended and only if its trace is recorded.
 */
import type { Attributes, Context, Span, SpanContext, Tracer } from '@opentelemetry/api'
import { GatewayError } from '../errors.ts'
import type { RequestEvent } from '../events.ts'
import type { Incoming } from '../exchange.ts'
import type { RequestTiming } from '../ops/server-timing.ts'
import { tenantHash } from '../ops/tenant-hash.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { ObserveStatements } from '../run/observed-statements.ts'
import type { TraceContext } from '../trace-context.ts'

/** A request that can belong to a trace. */
export interface Traced {
  /** The span of the request, or of its caller if the gateway makes no spans; null without a trace. */
  trace: TraceContext | null
}

/** A request that has ended. */
export interface TracedEnd {
  readonly event: RequestEvent
  readonly timing: RequestTiming | null
  /** True for an operation of a batch, which is a part of the batch's span. */
  readonly isOperation: boolean
}

/** The tracing of requests. */
export interface Tracing {
  /** Wraps the pipeline: each request gets a span. */
  pipeline<P extends Traced, A>(answer: (incoming: Incoming, progress: P) => A): typeof answer
  readonly observe: ObserveStatements
  /** Ends the span of a request and makes those of its parts. */
  ended(end: TracedEnd): void
  stats(): TracingStats
  /** Sends the spans that are left. */
  close(): Promise<void>
}

/** Counts of spans since the start. */
export interface TracingStats {
  readonly exported: number
  /** Spans that could not be sent. */
  readonly failed: number
}

/** The part of OpenTelemetry's API that makes spans. */
export type TraceApi = Pick<
  typeof import('@opentelemetry/api'),
  'trace' | 'ROOT_CONTEXT' | 'SpanKind' | 'SpanStatusCode' | 'createTraceState'
>

/** The dependencies of the tracing. */
export interface TracingParts {
  readonly api: TraceApi
  readonly tracer: Tracer
  readonly stats: () => TracingStats
  readonly close: () => Promise<void>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Limit on the statements of a request that become spans; a batch can run more. */
export const STATEMENT_SPANS_MAX = 100

/** Limit on the characters of `db.query.text`. */
export const QUERY_TEXT_MAX = 4_096

const METHOD = 'http.request.method'

/** A statement that has run; times are in milliseconds of the monotonic clock. */
interface StatementTimes {
  readonly texts: readonly string[]
  readonly startedAt: number
  /** For how long it waited for a permit of the pool and a connection. */
  readonly waitedMs: number
  readonly endedAt: number
  readonly error: unknown
}

interface Recording {
  readonly span: Span
  /** The monotonic clock's zero in milliseconds since the epoch. */
  readonly zero: number
  readonly startedAt: number
  readonly statements: StatementTimes[]
  count: number
}

/** Creates the tracing. */
export function createTracing(parts: TracingParts): Tracing {
  return new RequestTracing(parts)
}

class RequestTracing implements Tracing {
  readonly #parts: TracingParts
  readonly stats: () => TracingStats
  readonly close: () => Promise<void>
  /** The requests that are being processed, by the context that their work names. */
  readonly #recordings = new WeakMap<TraceContext, Recording>()

  constructor(parts: TracingParts) {
    this.#parts = parts
    this.stats = parts.stats
    this.close = parts.close
  }

  pipeline<P extends Traced, A>(answer: (incoming: Incoming, progress: P) => A): typeof answer {
    return (incoming, progress) => {
      const recording = this.#record(this.#parts.now(), startTime =>
        this.#start(incoming.trace, incoming.method, startTime),
      )
      const trace = toTraceContext(recording.span.spanContext())
      this.#recordings.set(trace, recording)
      progress.trace = trace
      incoming.usage.worked = { ms: incoming.usage.worked.ms, trace }
      return answer(incoming, progress)
    }
  }

  readonly observe: ObserveStatements = (statements, worked) => {
    const recording = worked.trace === undefined ? undefined : this.#recordings.get(worked.trace)
    if (recording === undefined || !recording.span.isRecording()) return () => {}
    const { now } = this.#parts
    const startedAt = now()
    const before = worked.ms
    return error => {
      recording.count++
      if (recording.statements.length >= STATEMENT_SPANS_MAX) return
      const endedAt = now()
      const waitedMs = Math.max(0, endedAt - startedAt - (worked.ms - before))
      recording.statements.push({ texts: statements.map(({ text }) => text), startedAt, waitedMs, endedAt, error })
    }
  }

  ended({ event, timing, isOperation }: TracedEnd): void {
    const { trace } = event
    const known = trace === null ? undefined : this.#recordings.get(trace)
    const recording = known !== undefined && !isOperation ? known : this.#recordLate(known ?? null, trace, event)
    const { span, zero } = recording
    const endedAt = this.#parts.now()
    if (span.isRecording()) this.#describe(recording, event, timing, endedAt)
    span.end(zero + endedAt)
  }

  #record(startedAt: number, start: (startTime: number) => Span): Recording {
    const { clock, now } = this.#parts
    const zero = clock() - now()
    return { span: start(zero + startedAt), zero, startedAt, statements: [], count: 0 }
  }

  /** For an operation of a batch, and for a request that was refused before the pipeline. */
  #recordLate(batch: Recording | null, caller: TraceContext | null, { method, durationMs }: RequestEvent): Recording {
    const { tracer, now } = this.#parts
    return this.#record(now() - durationMs, startTime =>
      batch === null
        ? this.#start(caller, method, startTime)
        : tracer.startSpan(method, { startTime, attributes: { [METHOD]: method } }, this.#within(batch.span)),
    )
  }

  /** Starts the span of a request, as a part of its caller's trace if there is one. */
  #start(caller: TraceContext | null, method: string, startTime: number): Span {
    const { api, tracer } = this.#parts
    const options = { kind: api.SpanKind.SERVER, startTime, attributes: { [METHOD]: method } }
    return tracer.startSpan(method, options, this.#contextOf(caller))
  }

  #describe(recording: Recording, event: RequestEvent, timing: RequestTiming | null, endedAt: number): void {
    const { api } = this.#parts
    const { span, startedAt, statements } = recording
    span.updateName(`${event.method} ${event.route}`)
    span.setAttributes(attributesOf(event, recording.count))
    if (event.status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR })
    const authenticatedAt = startedAt + (timing?.auth ?? 0)
    const compiledAt = statements[0]?.startedAt ?? null
    if (timing?.auth != null) this.#part(recording, 'authenticate', startedAt, authenticatedAt)
    if (compiledAt !== null) this.#part(recording, 'compile', authenticatedAt, compiledAt)
    for (const statement of statements) this.#statement(recording, statement)
    const lastAt = Math.max(authenticatedAt, ...statements.map(statement => statement.endedAt))
    this.#part(recording, 'respond', lastAt, endedAt)
  }

  #statement(request: Recording, { texts, startedAt, waitedMs, endedAt, error }: StatementTimes): void {
    const { api, tracer } = this.#parts
    if (waitedMs > 0) this.#part(request, 'wait', startedAt, startedAt + waitedMs)
    const operation = operationOf(texts[0] ?? '')
    const span = tracer.startSpan(
      operation,
      {
        kind: api.SpanKind.CLIENT,
        startTime: request.zero + startedAt + waitedMs,
        attributes: {
          'db.system.name': 'postgresql',
          'db.operation.name': operation,
          'db.query.text': texts.join(';\n').slice(0, QUERY_TEXT_MAX),
          ...errorAttributes(error),
        },
      },
      this.#within(request.span),
    )
    if (error !== undefined) span.setStatus({ code: api.SpanStatusCode.ERROR })
    span.end(request.zero + endedAt)
  }

  #part({ span, zero }: Recording, name: string, fromAt: number, untilAt: number): void {
    const { tracer } = this.#parts
    tracer.startSpan(name, { startTime: zero + fromAt }, this.#within(span)).end(zero + untilAt)
  }

  #within(span: Span): Context {
    const { trace, ROOT_CONTEXT } = this.#parts.api
    return trace.setSpan(ROOT_CONTEXT, span)
  }

  #contextOf(caller: TraceContext | null): Context {
    const { trace, ROOT_CONTEXT, createTraceState } = this.#parts.api
    if (caller === null) return ROOT_CONTEXT
    const { traceId, spanId, flags, state } = caller
    return trace.setSpanContext(ROOT_CONTEXT, {
      ...{ traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true },
      ...(state === '' ? {} : { traceState: createTraceState(state) }),
    })
  }
}

function toTraceContext({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  return { traceId, spanId, flags: traceFlags.toString(16).padStart(2, '0'), state: traceState?.serialize() ?? '' }
}

/** Names of OpenTelemetry's semantic conventions; the gateway's own begin with `svc.`. */
function attributesOf(event: RequestEvent, statements: number): Attributes {
  const { route, path, status, code, requestId, tenantId, role, table, rows, cache } = event
  const known: Record<string, string | number | null> = {
    'http.route': route,
    'http.response.status_code': status,
    // Without the values of the query, which can be personal data.
    'url.path': path?.split('?')[0] ?? null,
    'error.type': status >= 400 ? code : null,
    'svc.request_id': requestId,
    'svc.tenant': tenantId === '' ? null : tenantHash(tenantId),
    'svc.role': role,
    'svc.table': table,
    'svc.function': event.function,
    'svc.rows': rows,
    'svc.cache': cache,
    'svc.statements': statements,
  }
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null)) as Attributes
}

/** The first word of a statement. */
function operationOf(text: string): string {
  return /^\s*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? 'postgresql'
}

function errorAttributes(error: unknown): Attributes {
  if (error === undefined) return {}
  const cause = error instanceof GatewayError ? error.cause : error
  if (cause instanceof DatabaseError) return { 'error.type': cause.sqlstate, 'db.response.status_code': cause.sqlstate }
  return { 'error.type': error instanceof GatewayError ? error.code : 'INTERNAL' }
}
