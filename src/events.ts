/** Everything that happens and may interest somebody who watches: the log is one listener, metrics are another. */
import type { ErrorCode } from './errors.ts'
import type { LimitName } from './statement-limits.ts'

export type Event =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'closing' }
  | { readonly kind: 'recorded'; readonly file: string; readonly shapes: number }
  | { readonly kind: 'closed' }
  | {
      readonly kind: 'request'
      readonly method: string
      /** The route's pattern, never the path. */
      readonly route: string
      readonly status: number
      /** Of the error that was answered, or that broke the answer off; null if all went well. */
      readonly code: ErrorCode | null
      readonly durationMs: number
      readonly requestId: string
      /** Empty without one. A listener that writes it anywhere hashes it first. */
      readonly tenantId: string
      /** Null until the caller is known. */
      readonly role: string | null
      /** Path and query without values; null where nothing answers, and while nobody logs requests. */
      readonly path: string | null
      /** By their resource names, of which a request has one or none. */
      readonly table: string | null
      readonly function: string | null
      /** Read or written; null where rows are not what it is about. */
      readonly rows: number | null
      /** From sending to the database's answer; null if nothing was sent. */
      readonly databaseMs: number | null
      readonly cache: 'HIT' | 'MISS' | null
    }
  /** Statements of a request were executed, well or not. */
  | {
      readonly kind: 'statement'
      readonly requestId: string | null
      /** Texts; values are parameters and are not in it. */
      readonly sql: readonly string[]
      readonly durationMs: number
    }
  /** A request was refused for being above one of the limits on statements. */
  | { readonly kind: 'statement refused'; readonly limit: LimitName }
  | { readonly kind: 'request failed'; readonly requestId: string; readonly error: unknown }
  | { readonly kind: 'warning'; readonly message: string; readonly fix: string | null }
  /** The gateway is starting and has not reached its database yet. */
  | { readonly kind: 'waiting for database'; readonly message: string }
  | { readonly kind: 'database'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  /** The circuit that guards attempts to connect with Kerberos changed (docs/guides/database-connections.md#kerberos). */
  | { readonly kind: 'circuit'; readonly from: CircuitKind; readonly to: CircuitKind; readonly error: Error | null }
  | { readonly kind: 'catalogue'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  /** Keys of an identity provider were fetched, or could not be. */
  | { readonly kind: 'identity'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  | { readonly kind: 'webhooks'; readonly event: string; readonly detail: Readonly<Record<string, unknown>> }
  | {
      /** A try to deliver is over. */
      readonly kind: 'webhook attempt'
      readonly outcome: 'delivered' | 'refused' | 'timeout' | 'address' | 'connection'
      readonly durationMs: number
      readonly trigger: string
      readonly id: string
      readonly tries: number
      /** What came of it, in a few words. */
      readonly message: string
    }

export type CircuitKind = 'closed' | 'open' | 'half-open'

export type Emit = (event: Event) => void

/** A file was read again and cannot be used; `kept` says what is in force. */
export function unusableFile(message: string, kept: string): Event {
  return { kind: 'warning', message: `${message}; ${kept}`, fix: 'Mend the file and send SIGHUP again.' }
}
