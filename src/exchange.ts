/** A request and an answer as the pipeline sees them: what HTTP carried, without the server that carried it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Usage } from './usage.ts'

export interface Incoming {
  readonly method: string
  /** Path as sent, percent-encoded, without the query. Begins with `/`. */
  readonly path: string
  /** Query as sent, without `?`; empty when there is none. */
  readonly query: string
  readonly headers: IncomingHttpHeaders
  /** Empty when there is none. */
  readonly body: Buffer
  /** The body is larger than `large_body_bytes`: what was read of it is used in the next turn of the event loop. */
  readonly isLarge: boolean
  readonly requestId: string
  readonly usage: Usage
  /** The same for all requests of one connection. */
  readonly connection: object
  /** Calls back once if the client goes away before the answer is complete. */
  onAbort(listener: () => void): void
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** How many rows were read or written, where rows are what it is about. A stream counts in `Usage`. */
  readonly rows?: number
  /** Bytes are sent with a Content-Length, a generator chunked as it comes; an error thrown into it becomes its last line. It is null without a body. */
  readonly body: Buffer | Latin1 | AsyncGenerator<Buffer> | null
}

/** Bytes as text, one character for each: what Node joins with the headers into one write. For small bodies. */
export interface Latin1 {
  readonly latin1: string
}
