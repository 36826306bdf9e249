/** The events of the gateway, for listeners such as the log and the metrics. */
import type { ErrorCode } from './errors.ts'
import type { LimitName } from './statement-limits.ts'
import type { TraceContext } from './trace-context.ts'

/** A request has ended. */
export interface RequestEvent {
  readonly kind: 'request'
  readonly method: string
  /** The route's pattern, never the path. */
  readonly route: string
  readonly status: number
  /** The code of the error that was sent or that interrupted the response; null without an error. */
  readonly code: ErrorCode | null
  readonly durationMs: number
  readonly requestId: string
  /** The span of the request, or of its caller if the gateway makes no spans; null without a trace. */
  readonly trace: TraceContext | null
  /** Empty without one. A listener must hash it before writing it anywhere. */
  readonly tenantId: string
  /** Null until the caller is known. */
  readonly role: string | null
  /** Path and query without values; null if no route matches or requests are not logged. */
  readonly path: string | null
  /** Resource names; a request has at most one of the two. */
  readonly table: string | null
  readonly function: string | null
  /** The number of rows read or written; null if the request is not about rows. */
  readonly rows: number | null
  /** Time from sending to the database's response; null if nothing was sent. */
  readonly databaseMs: number | null
  readonly cache: 'HIT' | 'MISS' | null
}

export type Event =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'closing' }
  | { readonly kind: 'recorded'; readonly file: string; readonly shapes: number }
  | { readonly kind: 'closed' }
  | RequestEvent
  /** Statements of a request were executed, successfully or not. */
  | {
      readonly kind: 'statement'
      readonly requestId: string | null
      /** The statements' texts, without values, which are parameters. */
      readonly sql: readonly string[]
      readonly durationMs: number
    }
  /** A request was rejected because it exceeded one of the limits on statements. */
  | { readonly kind: 'statement refused'; readonly limit: LimitName }
  | {
      readonly kind: 'request failed'
      readonly requestId: string
      readonly trace: TraceContext | null
      readonly error: unknown
    }
  | { readonly kind: 'warning'; readonly message: string; readonly fix: string | null }
  /** The gateway is starting and has not reached its database yet. */
  | { readonly kind: 'waiting for database'; readonly message: string }
  | { readonly kind: 'database'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  /**
   * The circuit that guards attempts to connect with Kerberos changed
   * (docs/guides/database-connections.md#kerberos).
   */
  | { readonly kind: 'circuit'; readonly from: CircuitKind; readonly to: CircuitKind; readonly error: Error | null }
  | { readonly kind: 'catalog'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  /** Keys of an identity provider were fetched, or could not be. */
  | { readonly kind: 'identity'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  /** A worker process was started, has ended or was replaced. */
  | { readonly kind: 'worker'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  | { readonly kind: 'webhooks'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  | {
      /** An attempt to deliver has ended. */
      readonly kind: 'webhook attempt'
      readonly outcome: 'delivered' | 'refused' | 'timeout' | 'address' | 'connection'
      readonly durationMs: number
      readonly trigger: string
      readonly id: string
      readonly tries: number
      /** The outcome, in a few words. */
      readonly message: string
    }

export type CircuitKind = 'closed' | 'open' | 'half-open'

export type Emit = (event: Event) => void

/** Reports a file that was read again and cannot be used; `kept` says what stays in force. */
export function unusableFile(message: string, kept: string): Event {
  return { kind: 'warning', message: `${message}; ${kept}`, fix: 'Fix the file and send SIGHUP again.' }
}
