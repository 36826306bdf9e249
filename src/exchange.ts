/** A request and a response as the pipeline sees them: HTTP messages, independent of the server. */
import type { IncomingHttpHeaders } from 'node:http'
import type { TraceContext } from './trace-context.ts'
import type { Usage } from './usage.ts'

export interface Incoming {
  readonly method: string
  /** Path as sent, percent-encoded, without the query. Begins with `/`. */
  readonly path: string
  /** Query as sent, without `?`; empty if absent. */
  readonly query: string
  readonly headers: IncomingHttpHeaders
  /** Empty if absent. */
  readonly body: Buffer
  /** A body of any length that is read while it is processed; `body` is then empty. */
  readonly upload?: UploadedBody
  /**
   * The body is larger than `large_body_bytes`: what was read of it is used in the next turn of the event
   * loop.
   */
  readonly isLarge: boolean
  readonly requestId: string
  /** The trace of the caller; null if it sent none. */
  readonly trace: TraceContext | null
  /** The position in the batch; undefined for a request outside of one. */
  readonly operation?: number
  readonly usage: Usage
  /** The same for all requests of one connection. */
  readonly connection: object
  /** Calls back once if the client disconnects before the response is complete. */
  onAbort(listener: () => void): void
}

/** A body that is read in parts. */
export interface UploadedBody {
  /**
   * The next part; null at the end.
   * @throws {GatewayError} `TIMEOUT` if the client disconnects or sends too slowly.
   */
  read(): Promise<Buffer | null>
  /** Reads and discards a limited part of the rest. Returns true if nothing is left. */
  discard(): Promise<boolean>
}

/** The response to a request, before it is written to the connection. */
export interface Answer {
  readonly status: number
  /** The reason phrase; by default, the standard one of the status. */
  readonly reason?: string
  readonly headers: Readonly<Record<string, string>>
  /** The values of `Set-Cookie`: each has its own header, because a cookie can contain commas. */
  readonly cookies?: readonly string[]
  /** The number of rows read or written, if the request is about rows. A stream counts them in `Usage`. */
  readonly rows?: number
  /**
   * Bytes are sent with a Content-Length, the output of a generator in chunks; an error thrown into it
   * becomes its last line. Null without a body.
   */
  readonly body: Buffer | Latin1 | AsyncGenerator<Buffer> | null
}

/** Bytes as text, one character each, which Node sends in one write with the headers. For small bodies. */
export interface Latin1 {
  readonly latin1: string
}
