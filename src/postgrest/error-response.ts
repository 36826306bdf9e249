/** Translates every error to a response in PostgREST's form. */
import { allows, EVERYTHING, type View } from '../access/rights.ts'
import { UndefinedOperatorError } from '../access/typed.ts'
import { resourceName } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { PostgrestError } from './errors.ts'

/** Creates the response to a failed request. */
export function respondError(error: unknown, { verbosity, isAuthenticated, view }: ErrorRules): Answer {
  const { status, reason, code, message, details, hint, headers } = describe(error, isAuthenticated, view)
  const body = verbosity === 'verbose' ? { code, details, hint, message } : { code, message }
  return {
    status,
    ...(reason === undefined ? {} : { reason }),
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Proxy-Status': `PostgREST; error=${code}`,
      ...headers,
    },
    body: Buffer.from(JSON.stringify(body)),
  }
}

/** Options for the response to an error. */
export interface ErrorRules {
  readonly verbosity: 'verbose' | 'minimal'
  /** True if the request had a valid token: a missing privilege is then 403 instead of 401. */
  readonly isAuthenticated: boolean
  /** The schema and rights of the caller; null if the caller is not known. */
  readonly view: View | null
}

interface Described {
  readonly status: number
  /** The reason phrase that the database chose. */
  readonly reason?: string
  readonly code: string
  readonly message: string
  readonly details: unknown
  readonly hint: string | null
  readonly headers: Readonly<Record<string, string>>
}

function describe(error: unknown, isAuthenticated: boolean, view: View | null): Described {
  if (error instanceof PostgrestError) {
    const { status, sqlCode, message, details, hint, headers } = error
    return { status, code: sqlCode, message, details: details ?? null, hint: hint ?? null, headers }
  }
  if (!(error instanceof GatewayError))
    return describeOther(new GatewayError('INTERNAL', 'an unexpected error occurred'))
  // The gateway checks types before PostgreSQL does; its message names the column.
  if (error instanceof UndefinedOperatorError) return { ...describeOther(error), status: 404, code: '42883' }
  // PostgreSQL's message does not name the limit.
  if (error.limit !== undefined) return describeOther(error)
  // Errors whose message would not help the caller keep the gateway's own message.
  const own = error.code === 'INTERNAL' || error.code === 'UNAVAILABLE'
  if (error.cause instanceof DatabaseError && !own) return describeDatabase(error.cause, isAuthenticated, view)
  if (error.cause instanceof DatabaseError && isAboutRequest(error.cause)) {
    return describeDatabase(error.cause, isAuthenticated, view)
  }
  return describeOther(error)
}

/**
 * True if PostgREST returns PostgreSQL's message for the error: for all errors except those of the
 * connection.
 */
function isAboutRequest({ sqlstate }: DatabaseError): boolean {
  return !/^(?:08|57P|XX|26)/.test(sqlstate)
}

function describeOther({ status, code, message, details, hint, headers }: GatewayError): Described {
  return { status, code, message, details: details ?? null, hint: hint ?? null, headers }
}

function describeDatabase(error: DatabaseError, isAuthenticated: boolean, view: View | null): Described {
  const { sqlstate, message, hint } = error
  const detail = view !== null && hidesDetail(error, view) ? null : error.detail
  if (sqlstate === 'PGRST') return describeRaised(message, error.detail)
  const status = statusOf(error, isAuthenticated)
  const headers: Record<string, string> = status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}
  return { status, code: sqlstate, message, details: detail, hint, headers }
}

/**
 * The detail of a constraint violation has the values of the row, or the name of another table. PostgreSQL
 * leaves out columns that the role cannot read, but does not know the access policy.
 */
function hidesDetail({ sqlstate, schema, table: name }: DatabaseError, { catalog, rights }: View): boolean {
  if (rights === EVERYTHING || !sqlstate.startsWith('23')) return false
  const table = name === null ? undefined : catalog.tables.get(resourceName({ schema, name }, catalog.schemas))
  if (table === undefined || FOREIGN_KEY.has(sqlstate)) return true
  const { read } = rights.of(table)
  return !table.columns.every(column => allows(read, column.name))
}

const FOREIGN_KEY: ReadonlySet<string> = new Set(['23001', '23503'])

/** The status for an SQLSTATE, otherwise for its class; 400 for all others. */
const STATUS: Readonly<Record<string, number>> = {
  ...{ '08': 503, '09': 500, '0L': 403, '0P': 403, '23503': 409, '23505': 409, '25006': 405, '25': 500 },
  ...{ '28': 403, '2D': 500, '38': 500, '39': 500, '3B': 500, '40': 500, '53400': 500, '53': 503, '54': 500 },
  ...{ '55': 500, '57P01': 503, '57': 500, '58': 500, F0: 500, HV: 500, P0001: 400, P0: 500, XX: 500 },
  ...{ '42883': 404, '42P01': 404, '42P17': 500 },
}

function statusOf({ sqlstate, message }: DatabaseError, isAuthenticated: boolean): number {
  if (sqlstate === '42501') return isAuthenticated ? 403 : 401
  if (sqlstate === '21000') return message.endsWith('requires a WHERE clause') ? 400 : 500
  if (sqlstate === '22023') return /^role .* does not exist$/s.test(message) ? 401 : 400
  if (sqlstate === '42883' && message.startsWith('function xmlagg(')) return 406
  if (sqlstate.startsWith('PT')) return raisedStatus(sqlstate.slice(2))
  return STATUS[sqlstate] ?? STATUS[sqlstate.slice(0, 2)] ?? 400
}

/** `RAISE SQLSTATE 'PT402'` chooses the status. */
function raisedStatus(text: string): number {
  const status = /^\d{3}$/.test(text) ? Number(text) : 500
  return status >= 200 && status <= 599 ? status : 500
}

/**
 * `RAISE SQLSTATE 'PGRST'`: the message is the body, and the detail has the status, its reason phrase and
 * headers, both JSON.
 */
function describeRaised(message: string, detail: string | null): Described {
  const body = parseObject(message)
  if (body === null || typeof body.code !== 'string' || typeof body.message !== 'string') {
    return describeUnreadable(
      `Invalid JSON value for MESSAGE: '${message}'`,
      "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.",
    )
  }
  const how = detail === null ? null : parseObject(detail)
  if (how === null || !isStatus(how.status) || !isHeaders(how.headers) || !isReason(how.status_text)) {
    const reason =
      detail === null ? 'DETAIL is missing in the RAISE statement' : `Invalid JSON value for DETAIL: '${detail}'`
    return describeUnreadable(
      reason,
      "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'.",
    )
  }
  return {
    ...{ status: how.status, code: body.code, message: body.message, headers: withoutFraming(how.headers) },
    ...(how.status_text == null ? {} : { reason: how.status_text }),
    details: typeof body.details === 'string' ? body.details : null,
    hint: typeof body.hint === 'string' ? body.hint : null,
  }
}

function describeUnreadable(details: string, hint: string): Described {
  const message = `Could not parse JSON in the "RAISE SQLSTATE 'PGRST'" error`
  return { status: 500, code: 'PGRST121', message, details, hint, headers: {} }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

function isStatus(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 200 && value <= 599
}

/** A reason phrase (RFC 9112, 4), or none. */
function isReason(value: unknown): value is string | null | undefined {
  return value == null || isHeaderValue(value)
}

function isHeaders(value: unknown): value is Readonly<Record<string, string>> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(([name, text]) => isHeaderName(name) && isHeaderValue(text))
  )
}

/** Headers of the connection, and those that decide where the response ends (RFC 9110, 7.6.1 and 8.6). */
const FRAMING: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  'upgrade',
])

/** True for a header that statements cannot set, because clients would misread the response. */
export function isFraming(name: string): boolean {
  return FRAMING.has(name.toLowerCase())
}

function withoutFraming(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isFraming(name)))
}

/** A field name (RFC 9110, 5.1). */
export function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)
}

/** A field value without line breaks (RFC 9110, 5.5). */
export function isHeaderValue(value: unknown): value is string {
  return typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}
