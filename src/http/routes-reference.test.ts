import { expect, test } from 'vitest'
import { pageWithParts } from '../../test/support/page.ts'
import { createInternal, type InternalOptions } from '../ops/internal.ts'
import { operatorRequests } from '../webhooks/operator-requests.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { printRoutes, ROUTE_ROWS } from './routes-reference.ts'

const PAGE = 'docs/reference/rest-api.md'

/** Out of date? `npx vitest run src/http/routes-reference.test.ts -u` writes it anew. */
test(`${PAGE} has the routes that there are`, async () => {
  await expect(pageWithParts(PAGE, { routes: printRoutes() })).toMatchFileSnapshot(`../../${PAGE}`)
})

test('the answers beside the API are those that operators get', () => {
  // Nothing is asked of them but their paths.
  const webhooks = { answers: operatorRequests({} as Webhooks) }
  const internal = createInternal({ webhooks, now: () => 0 } as unknown as InternalOptions)
  const there = [...internal].map(([pattern, { method }]) => `${method} ${pattern}`)
  const elsewhere = ['GET /ws', 'GET /docs', 'GET /health', 'GET /.well-known/oauth-protected-resource']
  const told = ROUTE_ROWS.filter(({ pattern }) => !pattern.startsWith('/api/'))
  expect(told.map(({ method, pattern }) => `${method} ${pattern}`).toSorted()).toEqual(
    [...there, ...elsewhere].toSorted(),
  )
})

test('the reference has a row for each route', () => {
  expect(printRoutes()).toContain('| `PATCH /api/{table}/{id}` | 200 `{"data": row}` | [change](writing.md#change) |')
})
