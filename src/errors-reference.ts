/** The table of docs/reference/errors.md. Its test compares the two, and rewrites the page with `-u`. */
import { type ErrorCode, STATUS_OF } from './errors.ts'

/** When a code is returned, in the page's Markdown. */
const WHEN: Readonly<Record<ErrorCode, string>> = {
  PARSE_ERROR:
    'the request is invalid: an unknown column or relation, a malformed parameter or body, ' +
    "a value that the column's type cannot represent, or an error in a query text, for which " +
    '`details` has `line` and `column`',
  QUERY_ERROR:
    'PostgreSQL rejected the statement: a unique key, a foreign key, a check, ' +
    "or an error that a function raised; the message is PostgreSQL's",
  UNAUTHORIZED: 'the token is missing or fails a check',
  FORBIDDEN:
    'a privilege of the database role, a row-level security policy or an access policy does not allow it; ' +
    'or the [allow-list](../guides/allow-list.md) does not contain the shape, which `hint` shows',
  NOT_FOUND: 'the route, table or row does not exist, or the caller cannot see it',
  METHOD_NOT_ALLOWED: 'the route supports other methods, which `Allow` lists',
  TIMEOUT: 'the statements took longer than `statement_timeout_ms` and were cancelled',
  TEST_FAILED: 'a `test` of a [JSON Patch](writing.md#partial-changes) is not true; nothing was changed',
  IDEMPOTENCY_KEY_IN_USE:
    'another request with the same [`Idempotency-Key`](writing.md#idempotency-keys) is running; `Retry-After: 1`',
  PRECONDITION_FAILED:
    'the row has changed since the response whose entity tag `If-Match` has; `ETag` has the current one ' +
    '([preconditions](writing.md#preconditions))',
  PAYLOAD_TOO_LARGE:
    'a body of more than 2 MiB, an array of more than `max_batch_rows` rows or `max_batch_key_sets` sets of ' +
    'columns, more than `max_batch_operations` operations or `max_batch_references` references, an ' +
    '[import](limits.md#imports) above its limits, ' +
    'or a response of more than `idempotency_max_response_bytes`, which cannot be stored',
  UNSUPPORTED_MEDIA_TYPE:
    'a body whose `Content-Type` is missing or malformed; `application/json` is expected, for an import also ' +
    '`text/csv` or `application/x-ndjson`',
  QUERY_TOO_EXPENSIVE:
    "PostgreSQL's estimate for the read exceeds `explain_max_cost` or `explain_max_rows`; " +
    'it was not run ([cost guard](reading.md#cost-guard))',
  PATH_NOT_FOUND:
    'an operation of a [JSON Patch](writing.md#partial-changes) has a path that the row does not have; ' +
    'nothing was changed',
  IDEMPOTENCY_KEY_REUSED:
    'the [`Idempotency-Key`](writing.md#idempotency-keys) was used for a request that differs from this one',
  RATE_LIMITED:
    'the address sent more than `rate_limit_burst` requests at once, ' +
    'or more than `rate_limit_rate` per second over some time; `Retry-After: 1`. Or the tenant has ' +
    '`tenant_max_idempotency_keys` stored responses; `Retry-After: 60`',
  CONCURRENCY_LIMIT:
    'the tenant has `tenant_max_concurrent` requests in progress, ' +
    'or the tenant or address has reached a limit of `/ws`; `Retry-After` is the time to wait',
  PRECONDITION_REQUIRED:
    'the table has `require_if_match`, and the PATCH, DELETE or upsert has no `If-Match` ' +
    '([preconditions](writing.md#preconditions))',
  HEADERS_TOO_LARGE: 'the request line and headers exceed 64 KiB',
  INTERNAL: 'a bug in the gateway; the log has the details under the `request_id`',
  NOT_IMPLEMENTED:
    'an [`Idempotency-Key`](writing.md#idempotency-keys) needs [`svc install`](../guides/installation.md)',
  UNAVAILABLE:
    'the database is unavailable; no connection became free within `acquire_timeout_ms`; ' +
    'the gateway is shutting down or overloaded; ' +
    'a [limit](limits.md) on connections, request bodies or unread responses is reached; ' +
    'or a deadlock or serialization failure occurred. ' +
    'Retry after `Retry-After` seconds. ' +
    'Retry a write only if `details.outcome` is not `"unknown"`: with it, the write may have been made',
}

/** Sorted by status. */
export function printErrors(): string {
  const codes = Object.entries(STATUS_OF) as [ErrorCode, number][]
  const rows = codes
    .toSorted(([, a], [, b]) => a - b)
    .map(([code, status]) => `| \`${code}\` | ${status} | ${WHEN[code]} |`)
  return ['| Code | Status | When |', '|---|---|---|', ...rows].join('\n')
}
