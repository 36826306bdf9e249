/**
 * Prints the route table in `docs/reference/rest-api.md`. Its test compares the two and rewrites the page
 * with `-u`.
 */
import { METHODS_OF } from '../rest/method.ts'
import { type ResourceRoute, ROUTE_PATTERN } from '../rest/path.ts'

type Kind = ResourceRoute['kind']
type About = readonly [answer: string, details: string]

/** A row of the table. */
export interface RouteRow {
  readonly method: string
  readonly pattern: string
  readonly answer: string
  readonly details: string
}

/** The description of every method of every route; the type makes a missing one a compile error. */
const OF_API: { readonly [K in Kind]: Readonly<Record<(typeof METHODS_OF)[K][number], About>> } = {
  list: {
    GET: [
      '200 `{"data": [row…], "count", "limit", "offset", "next_cursor"}`',
      '[filters](reading.md#filters), [columns](reading.md#columns), ' +
        '[order and pages](reading.md#order-and-pages), [streams](reading.md#streams)',
    ],
    POST: [
      '201 `{"data": row}`, or for an array `{"data": [row…], "count"}`',
      '[create](writing.md#create), [upsert](writing.md#upsert)',
    ],
    PATCH: ['200 `{"data": [row…], "count"}`', 'all rows that [filters](writing.md#many-rows-at-once) match'],
    DELETE: [
      '204, with `returning` 200 `{"data": [row…], "count"}`',
      'all rows that [filters](writing.md#many-rows-at-once) match',
    ],
  },
  one: {
    GET: ['200 `{"data": row}`', '[names and ids](reading.md#names)'],
    PATCH: ['200 `{"data": row}`', '[change](writing.md#change)'],
    DELETE: ['204, with `returning` 200 `{"data": row}`', '[delete](writing.md#delete)'],
  },
  children: { GET: ['200, a list', '[related rows](reading.md#related-rows)'] },
  aggregate: {
    GET: [
      '200 `{"data": {"<fn>": value}}`, by group an array',
      '[aggregates](reading.md#aggregates); also `_aggregate`',
    ],
  },
  explain: { GET: ['200 `{"query", "parameters", "plan"}`', '[explain](reading.md#explain)'] },
  query: { POST: ['200 `{"data": [row…], "count"}`', '[query language](language.md#over-http)'] },
  batch: { POST: ['200 `{"results": […]}`', '[batches](batches.md)'] },
  inspect: {
    POST: [
      '200 `{"request", "failure", "caller", "tables", …}`',
      '[inspect](inspect.md), with the scope `svc:explain`',
    ],
  },
  progress: { GET: ['200 `{"data": {…}}`', '[progress of an import](import.md#progress)'] },
  rpc: {
    GET: ['200 `{"data", "function", "result_format"}`', '[functions](functions.md) that change nothing'],
    POST: ['200 `{"data", "function", "result_format"}`', '[functions](functions.md)'],
  },
  contracts: { GET: ['200 `{"functions": […], "count"}`', '[functions](functions.md)'] },
  schema: { GET: ['200 `{"tables": {…}}`', '[the schema](#the-schema)'] },
  openapi: { GET: ['200, an OpenAPI 3.0.3 document', '[OpenAPI](../guides/openapi.md)'] },
}

const MONITORING = '[monitoring](../guides/monitoring.md)'
const WEBHOOKS =
  '[webhooks](../guides/webhooks.md#manage-failed-deliveries), with the admin token; 403 if none is configured'

/** The routes outside the API; a test compares them with the routes that are served. */
const BESIDE: readonly (readonly [method: string, pattern: string, ...About])[] = [
  ['GET', '/', '200, a page, for browsers; 404 for other clients', '[quick start](../guides/quick-start.md)'],
  ['GET', '/console', '200, a page; 404 unless it is enabled', '[console](../guides/console.md)'],
  ['GET', '/ws', '101, a WebSocket', '[realtime](realtime.md)'],
  ['GET', '/docs', '200, a page', '[OpenAPI](../guides/openapi.md#the-reference-in-the-browser)'],
  ['GET', '/documentation', '200, a page of this documentation: `?page=docs/README.md`', '[contents](../README.md)'],
  [
    'GET',
    '/.well-known/oauth-protected-resource',
    '200, the identity providers as JSON (RFC 9728); 404 without one',
    '[authentication](../guides/authentication.md#metadata-for-clients)',
  ],
  ['GET', '/health', '200 `{"status": "ok", "version"}`, or 503', MONITORING],
  [
    'GET',
    '/health/internal',
    '200, status of the gateway, as JSON',
    `${MONITORING}, with the admin token if one is configured`,
  ],
  [
    'GET',
    '/internal/checks',
    '200, the findings of the checks, as JSON',
    '[checking](../guides/checking.md#findings-of-a-running-gateway), with the admin token; 403 if none is configured',
  ],
  ['GET', '/metrics', '200, metrics for Prometheus', `${MONITORING}, with the admin token if one is configured`],
  ['GET', '/internal/webhooks', '200, triggers and deliveries', WEBHOOKS],
  ['GET', '/internal/webhooks/dead-letter', '200, the dead letter of `?id=`', WEBHOOKS],
  [
    'POST',
    '/internal/webhooks/redeliver',
    '200 `{"redelivered"}`: the dead letter of `?id=`, or all with `?all=true`',
    WEBHOOKS,
  ],
  [
    'POST',
    '/internal/webhooks/purge',
    '200 `{"purged"}`: the dead letter of `?id=`, or all with `?all=true`',
    WEBHOOKS,
  ],
  ['POST', '/internal/webhooks/test', '200, the outcome for `?trigger=`', WEBHOOKS],
]

/** All rows of the table. */
export const ROUTE_ROWS: readonly RouteRow[] = [
  ...(Object.keys(METHODS_OF) as Kind[]).flatMap(kind => {
    const abouts: Readonly<Record<string, About>> = OF_API[kind]
    return Object.entries(abouts).map(([method, [answer, details]]) => ({
      ...{ method, answer, details },
      pattern: ROUTE_PATTERN[kind],
    }))
  }),
  ...BESIDE.map(([method, pattern, answer, details]) => ({ method, pattern, answer, details })),
]

/** Prints the table. */
export function printRoutes(): string {
  const rows = ROUTE_ROWS.map(
    ({ method, pattern, answer, details }) => `| \`${method} ${pattern}\` | ${answer} | ${details} |`,
  )
  return `| Request | Answer | |\n|---|---|---|\n${rows.join('\n')}\n`
}
