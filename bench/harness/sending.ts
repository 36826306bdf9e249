/** What makes a request more than a GET: the same for wrk, for a first look at the answer, and for what PostgreSQL is sent. */

export interface Sending {
  readonly method: 'POST' | 'PATCH'
  readonly body: string
}

/** Of every request with a body. */
export const JSON_TYPE: Readonly<Record<string, string>> = { 'Content-Type': 'application/json' }

/** wrk and pgbench are given the body as an argument, which on Linux must be shorter (MAX_ARG_STRLEN). */
const BODY_BYTES_MAX = 128 * 1024 - 64

export function sending(method: Sending['method'], value: unknown): Sending {
  const body = JSON.stringify(value)
  const size = Buffer.byteLength(body)
  if (size > BODY_BYTES_MAX)
    throw new Error(`a body of ${size} bytes is too large for an argument; ${BODY_BYTES_MAX} fit`)
  return { method, body }
}
