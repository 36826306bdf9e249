/** The table of docs/reference/errors.md. Its test compares the two, and rewrites the page with `-u`. */
import { type ErrorCode, STATUS_OF } from './errors.ts'

/** When a code is answered; Markdown, as the page has it. */
const WHEN: Readonly<Record<ErrorCode, string>> = {
  PARSE_ERROR:
    "the request cannot be understood: an unknown column or relation, a malformed parameter or body, a value the column's type cannot hold, a query text with an error; then `details` has its `line` and `column`",
  QUERY_ERROR:
    "PostgreSQL refused the query: a unique key, a foreign key, a check, an error that a function raised; the message is PostgreSQL's",
  UNAUTHORIZED: 'no token where one is needed, or a token that fails any check',
  FORBIDDEN:
    'the database role or a policy does not allow it, or there is an [allow-list](../guides/allow-list.md) and the query has none of its shapes; then `hint` has the one it has',
  NOT_FOUND: 'no such route, table, or row that the caller may see',
  METHOD_NOT_ALLOWED: 'the route exists for other methods; `Allow` names them',
  TIMEOUT: 'the query ran longer than `statement_timeout_ms` and was cancelled',
  PAYLOAD_TOO_LARGE:
    'a body of more than 2 MiB, or a batch of more than `max_batch_rows` rows or `max_batch_key_sets` sets of columns',
  UNSUPPORTED_MEDIA_TYPE: 'a body whose `Content-Type` is missing or malformed; `application/json` is expected',
  QUERY_TOO_EXPENSIVE:
    'PostgreSQL estimates more cost or rows for the read than `explain_max_cost` or `explain_max_rows` allows; it was not run. [How it is decided](reading.md#cost-guard)',
  RATE_LIMITED:
    'the address has sent more than `rate_limit_burst` requests at once, or more than `rate_limit_rate` a second for a while; `Retry-After: 1`',
  CONCURRENCY_LIMIT:
    'the tenant has `tenant_max_concurrent` requests running already, or the tenant or address holds as much of `/ws` as it may; `Retry-After` says when to try again',
  HEADERS_TOO_LARGE: 'a request line and headers of more than 64 KiB together',
  INTERNAL: 'a defect; the log has it under the `request_id`',
  UNAVAILABLE:
    'the database is away, its connections are all busy for longer than `acquire_timeout_ms`, the gateway is shutting down, or has more to do than it can, or one of the [limits](limits.md) on connections, request bodies and unread answers is reached; also a deadlock or a serialization failure. Try again after `Retry-After` seconds – a write only if there is no `hint` that it may have been made',
}

/** By their statuses. */
export function printErrors(): string {
  const codes = Object.entries(STATUS_OF) as [ErrorCode, number][]
  const rows = codes
    .toSorted(([, a], [, b]) => a - b)
    .map(([code, status]) => `| \`${code}\` | ${status} | ${WHEN[code]} |`)
  return ['| Code | Status | When |', '|---|---|---|', ...rows].join('\n')
}
