/**
 * Requests to the gateway: ordinary requests of the signed-in caller. The console has no other access to
 * data, and sends the token to its own origin only.
 */
import { type Json, parseJson } from './json.ts'

/** The gateway's base URL, which can be a path behind a proxy. */
export const BASE = new URL('.', globalThis.location?.href ?? 'http://localhost/')

/** A caller. The token is null if the gateway accepts requests without one. */
export interface Session {
  readonly token: string | null
}

export interface Reply {
  readonly headers: Headers
  readonly body: Json
}

export interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/** An error of the gateway, with the texts of its envelope. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string | null
  readonly details: Json
  constructor(status: number, code: string, message: string, hint: string | null, details: Json) {
    super(message)
    this.status = status
    this.code = code
    this.hint = hint
    this.details = details
  }
}

function ask({ token }: Session, path: string, { method = 'GET', headers, body, signal }: RequestOptions) {
  return fetch(addressOf(path), {
    method,
    headers: {
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    // A cached response would hide the change that was just made.
    cache: 'no-store',
    credentials: 'omit',
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  })
}

/** Sends a request. Throws ApiError for an error response, TypeError if the gateway does not answer. */
export async function send(session: Session, path: string, options: RequestOptions = {}): Promise<Reply> {
  const response = await ask(session, path, options)
  const text = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('application/x-ndjson') === true
  const parsed = text === '' ? null : isStream ? parseStream(text) : parseJson(text)
  if (!response.ok) throw errorOf(response.status, parsed)
  return { headers: response.headers, body: parsed }
}

/** The response to a GET whose body is not JSON, not yet read. Throws as `send` does. */
export async function open(
  session: Session,
  path: string,
  options: Pick<RequestOptions, 'headers' | 'signal'>,
): Promise<Response> {
  const response = await ask(session, path, options)
  if (!response.ok) throw errorOf(response.status, parseJson(await response.text()))
  return response
}

/** The text of a response that is not JSON. Throws as `send` does. */
export async function fetchText(session: Session, path: string, signal: AbortSignal): Promise<string> {
  return (await open(session, path, { signal })).text()
}

/** The address of a path below the gateway's base URL. */
export function addressOf(path: string): URL {
  return new URL(path, BASE)
}

/** A stream is shown like a list. An error after the first byte is its last line. */
function parseStream(text: string): Json {
  const rows = text.trimEnd().split('\n').map(parseJson)
  const last = rows.at(-1) ?? null
  if (member(member(last, 'error'), 'code') !== null) throw errorOf(500, last)
  return { data: rows }
}

/** The error of a response, from its envelope. */
export function errorOf(status: number, body: Json): ApiError {
  const error = member(member(body, 'error'), 'message') === null ? null : member(body, 'error')
  const text = (name: string): string | null => {
    const value = member(error, name)
    return typeof value === 'string' ? value : null
  }
  const [code, message] = [text('code') ?? 'ERROR', text('message') ?? `status ${status}`]
  return new ApiError(status, code, message, text('hint'), member(error, 'details'))
}

/** A member of an object; null if the object does not have it. */
export function member(value: Json, name: string): Json {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null
  return Object.hasOwn(value, name) ? ((value as Readonly<Record<string, Json>>)[name] ?? null) : null
}
