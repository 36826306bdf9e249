/**
 * The parts of a request other than a GET: shared by wrk, the first check of the response, and the statements
 * for PostgreSQL.
 */

export interface Sending {
  readonly method: 'POST' | 'PATCH'
  readonly body: string
}

/** Sent with every request that has a body. */
export const JSON_TYPE: Readonly<Record<string, string>> = { 'Content-Type': 'application/json' }

/** wrk and pgbench receive the body as an argument, which Linux limits (MAX_ARG_STRLEN). */
const BODY_BYTES_MAX = 128 * 1024 - 64

export function sending(method: Sending['method'], value: unknown): Sending {
  const body = JSON.stringify(value)
  const size = Buffer.byteLength(body)
  if (size > BODY_BYTES_MAX)
    throw new Error(`a body of ${size} bytes is too large for an argument; ${BODY_BYTES_MAX} fit`)
  return { method, body }
}
