/** Every error that can be answered: one envelope, one response for each status (specification 7, decisions 8). */
import { type ErrorCode, STATUS_OF } from '../../errors.ts'
import { type HeaderName, headersWith } from './headers.ts'
import { type ErrorKind, type Response, type Schema, schemaRef } from './model.ts'

export type ErrorStatus = (typeof STATUS_OF)[ErrorCode]

const MEANING: Readonly<Record<ErrorStatus, string>> = {
  400: 'The request is malformed or names what is not there, or the database refused it.',
  401: 'No token, or one that is not valid.',
  403: 'A policy, row-level security or an allow-list forbids it.',
  404: 'There is no such table, function or row, or none that the caller may see.',
  405: 'The method is not possible here.',
  408: 'The statement took longer than `statement_timeout_ms`, and was cancelled.',
  413: 'The body has too many bytes, or the batch too many rows.',
  415: 'The body is not of a type that is accepted here.',
  422: 'The read is too expensive by the estimate of the database; it was not run.',
  429: 'Too many requests from this address, or at once from this tenant.',
  431: 'The request line and headers are too large.',
  500: 'Something unexpected; the log has it under the id of the request.',
  503: 'The database is away, or the gateway is closing or at its limits.',
}

const EXTRA_HEADERS: Readonly<Partial<Record<ErrorStatus, readonly HeaderName[]>>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const STATUSES = [...new Set(Object.values(STATUS_OF))].sort((a, b) => a - b)

function codesOf(status: ErrorStatus): readonly ErrorCode[] {
  return (Object.keys(STATUS_OF) as ErrorCode[]).filter(code => STATUS_OF[code] === status)
}

const EXPENSIVE = 422

export const ERROR_SCHEMAS: readonly (readonly [string, Schema])[] = STATUSES.map(status => [
  `svc-error-${status}`,
  status === EXPENSIVE ? expensive(envelope(status)) : envelope(status),
])

export const ERROR_RESPONSES: readonly (readonly [string, Response])[] = STATUSES.map(status => [
  `error-${status}`,
  {
    description: MEANING[status],
    headers: headersWith(...(EXTRA_HEADERS[status] ?? [])),
    content: { 'application/json': { schema: schemaRef(`svc-error-${status}`) } },
  },
])

function envelope(status: ErrorStatus): Schema {
  return {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: {
          code: { type: 'string', enum: codesOf(status) },
          message: { type: 'string', description: 'What failed, what was expected, what to do.' },
          status: { type: 'integer', minimum: status, maximum: status },
          request_id: { type: 'string' },
          details: {
            description:
              'Of an error of the database: `sqlstate`, `table`, `column`, `constraint`. Of a query text: `line` and `column`.',
          },
          hint: { type: 'string' },
        },
        required: ['code', 'message', 'status', 'request_id'],
      },
    },
    required: ['error'],
  }
}

/** Told flat as well (decisions 7). */
function expensive(inner: Schema): Schema {
  return {
    ...inner,
    properties: {
      code: { type: 'string', enum: codesOf(EXPENSIVE) },
      message: { type: 'string' },
      details: {
        type: 'string',
        description:
          'JSON with `estimated_cost`, `cost_limit`, `estimated_rows`, `row_limit` and `suggestions`, a list of texts.',
      },
      ...inner.properties,
    },
    required: ['code', 'message', 'details', 'error'],
  }
}

/** What any request for data can end with. */
const ALWAYS = [400, 401, 403, 404, 408, 429, 431, 500, 503] as const

/** Of each kind, the statuses that can be answered. */
export const STATUSES_OF: Readonly<Record<ErrorKind, readonly ErrorStatus[]>> = {
  /** Anybody may ask, and its 503 is an answer of its own. */
  health: [429, 431, 500],
  /** A document or a figure: nothing is asked of the database. */
  document: [401, 429, 431, 500, 503],
  read: [...ALWAYS, 422],
  change: ALWAYS,
  /** With a body. */
  write: [...ALWAYS, 413, 415],
  call: [...ALWAYS, 405, 413, 415],
  query: [...ALWAYS, 413, 415, 422],
}
