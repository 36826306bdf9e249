/** The response of every failed request: one envelope for all statuses (docs/reference/errors.md). */
import { type ErrorCode, STATUS_OF } from '../errors.ts'
import { headersWith } from './headers.ts'
import { type ResponseObject, type SchemaObject, schemaRef } from './model.ts'

/** The status of an error response. */
export type ErrorStatus = (typeof STATUS_OF)[ErrorCode]

const MEANING: Readonly<Record<ErrorStatus, string>> = {
  400: 'The request is malformed, names something that does not exist, or was refused by the database.',
  401: 'The token is missing or invalid.',
  403: 'A policy, row-level security or an allow-list forbids the request.',
  404: 'The table, function or row does not exist, or the caller cannot see it.',
  405: 'The path does not support this method; `Allow` lists the supported ones.',
  408: 'The statement took longer than `statement_timeout_ms` and was cancelled.',
  409: 'A test of a JSON Patch failed, or the `Idempotency-Key` is in use.',
  412: 'The version of the row differs from the one in `If-Match`. `ETag` has the current one.',
  413: 'The body has too many bytes, or an array too many rows.',
  415: 'The media type of the body is not accepted here.',
  422: 'The estimated cost is too high, a path of a JSON Patch is missing, or the key is of another request.',
  428: 'The write needs `If-Match`.',
  429: 'Too many requests from this address, or concurrent requests of this tenant.',
  431: 'The request line and headers are too large.',
  500: 'An unexpected error. The log contains it under the id of the request.',
  501: 'An `Idempotency-Key` needs `svc install`.',
  503: 'The database is unavailable, or the gateway is shutting down or at a limit.',
}

const STATUSES = [...new Set(Object.values(STATUS_OF))].sort((a, b) => a - b)

const CODES = Object.keys(STATUS_OF) as readonly ErrorCode[]

const ERROR: SchemaObject = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', enum: CODES },
        message: { type: 'string', description: 'What failed, what was expected, and what to do.' },
        status: { type: 'integer', minimum: STATUSES[0] ?? 400, maximum: STATUSES.at(-1) ?? 599 },
        request_id: { type: 'string' },
        details: {
          description:
            'For a database error: `sqlstate`, `table`, `constraint` and more. For a query text: `line` and `column`.',
        },
        hint: { type: 'string' },
      },
      required: ['code', 'message', 'status', 'request_id'],
    },
    // For clients that expect its flat form, QUERY_TOO_EXPENSIVE also has these fields beside `error`.
    code: { type: 'string', description: 'Only in a 422, as in `error`.' },
    message: { type: 'string', description: 'Only in a 422, as in `error`.' },
    details: {
      type: 'string',
      description:
        'Only in a 422: JSON with `estimated_cost`, `cost_limit`, `estimated_rows`, ' +
        '`row_limit` and `suggestions`, a list of strings.',
    },
  },
  required: ['error'],
}

/** The shared schema of errors. */
export const ERROR_SCHEMAS: readonly (readonly [string, SchemaObject])[] = [['svc-error', ERROR]]

/** The shared response of errors. */
export const ERROR_RESPONSE: ResponseObject = {
  description: [
    'An error.',
    '',
    ...STATUSES.map(status => `- ${status} (${codesOf(status).join(', ')}): ${MEANING[status]}`),
  ].join('\n'),
  headers: headersWith('Retry-After', 'WWW-Authenticate', 'Allow', 'ETag'),
  content: { 'application/json': { schema: schemaRef('svc-error') } },
}

function codesOf(status: ErrorStatus): readonly ErrorCode[] {
  return CODES.filter(code => STATUS_OF[code] === status)
}
