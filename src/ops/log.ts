/**
 * The log (docs/guides/monitoring.md#the-access-log): one JSON line for each event, without secrets, tokens
 * or row values.
 */
import { type Logger, pino } from 'pino'
import { GatewayError } from '../errors.ts'
import type { Emit, Event } from '../events.ts'
import { createLogDestination } from './log-destination.ts'
import { tenantHash } from './tenant-hash.ts'

/** The log. */
export interface Log {
  readonly emit: Emit
  /** Writes the collected lines; resolves soon, even if they cannot be written. */
  flush(): Promise<void>
}

const STANDARD_OUTPUT = 1

/** A write of this size to a pipe is not mixed with those of other processes (POSIX: PIPE_BUF on Linux). */
const ATOMIC_BYTES_MAX = 4_096

/**
 * Creates the log; `descriptor` is an open file or pipe. With the number of a `worker` in each line, several
 * processes can write to the same one.
 */
export function createLog(
  level: string,
  {
    descriptor = STANDARD_OUTPUT,
    worker = null,
  }: { readonly descriptor?: number; readonly worker?: number | null } = {},
): Log {
  const destination = createLogDestination(descriptor, worker === null ? Number.POSITIVE_INFINITY : ATOMIC_BYTES_MAX)
  const base = worker === null ? null : { worker }
  const logger = pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return {
    emit: event => write(logger, event),
    flush: () => destination.flush(),
  }
}

function write(logger: Logger, event: Event): void {
  switch (event.kind) {
    case 'request': {
      if (!logger.isLevelEnabled('info')) return
      const { kind, method, route, path, table, status, code, rows, cache, role, tenantId } = event
      // A single literal, because spreading objects would cost more than the rest of the line.
      const line = {
        method,
        route,
        path,
        table,
        function: event.function,
        status,
        code,
        duration_ms: event.durationMs,
        database_ms: event.databaseMs,
        rows,
        cache,
        role,
        tenant: tenantId === '' ? null : tenantHash(tenantId),
        request_id: event.requestId,
        // JSON omits both if the request has no trace.
        trace_id: event.trace?.traceId,
        span_id: event.trace?.spanId,
      }
      logger.info(line, kind)
      return
    }
    case 'statement':
      logger.debug({ request_id: event.requestId, duration_ms: event.durationMs, sql: event.sql }, event.kind)
      return
    case 'request failed':
      logger[isOurs(event.error) ? 'error' : 'warn'](
        { request_id: event.requestId, trace_id: event.trace?.traceId, ...describe(event.error) },
        event.kind,
      )
      return
    case 'warning':
      logger.warn(event.fix === null ? {} : { fix: event.fix }, event.message)
      return
    case 'waiting for database':
      logger.warn({}, event.message)
      return
    case 'webhook attempt': {
      const { kind, trigger, id, tries, outcome, durationMs, message } = event
      const line = { trigger, id, tries, outcome, duration_ms: Math.round(durationMs), message }
      logger[outcome === 'delivered' ? 'debug' : 'warn'](line, kind)
      return
    }
    case 'identity':
    case 'worker':
    case 'webhooks':
    case 'database':
    case 'catalog':
      // A failed operation is retried automatically, so no action is needed.
      logger['error' in event.detail ? 'warn' : 'info'](printDetail(event.detail), `${event.kind}: ${event.event}`)
      return
    case 'circuit': {
      const { from, to, error } = event
      const said = { from, to, ...(error === null ? {} : { error: causeOf(error) }) }
      // An open circuit means that no new connection succeeds; the other states are part of recovery.
      logger[to === 'open' ? 'warn' : 'info'](said, `the Kerberos circuit is ${to}`)
      return
    }
    case 'listening':
      logger.info({ url: event.url }, event.kind)
      return
    case 'recorded':
      logger.info({ file: event.file, shapes: event.shapes }, event.kind)
      return
    case 'closing':
    case 'closed':
      logger.info({}, event.kind)
  }
}

/**
 * Reports whether the error is a defect of the gateway, caused neither by the request nor by the database.
 */
function isOurs(error: unknown): boolean {
  return !(error instanceof GatewayError) || error.code === 'INTERNAL'
}

/**
 * Uses the names of the other lines, rounds durations to milliseconds, and prints errors by their message.
 */
function printDetail(detail: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [
      name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
      typeof value === 'number' ? Math.round(value) : value instanceof Error ? causeOf(value) : value,
    ]),
  )
}

/**
 * For an error of the gateway: code and message, which are written for callers. For other errors: the stack.
 */
function describe(error: unknown): Record<string, unknown> {
  if (error instanceof GatewayError) return { code: error.code, message: error.message, cause: causeOf(error.cause) }
  return { stack: error instanceof Error ? error.stack : String(error) }
}

function causeOf(cause: unknown): string | undefined {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : undefined
}
