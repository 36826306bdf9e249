import { expect, test } from 'vitest'
import { pageWithParts } from '../../test/support/page.ts'
import { createInternal, type InternalOptions } from '../ops/internal.ts'
import { operatorRequests } from '../webhooks/operator-requests.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { printRoutes, ROUTE_ROWS } from './routes-reference.ts'

const PAGE = 'docs/reference/rest-api.md'

/** To update the page, run `npx vitest run src/http/routes-reference.test.ts -u`. */
test(`${PAGE} documents every route`, async () => {
  await expect(pageWithParts(PAGE, { routes: printRoutes() })).toMatchFileSnapshot(`../../${PAGE}`)
})

test('the routes outside the API are those of the operator', () => {
  // Only the paths are used.
  const webhooks = { answers: operatorRequests({} as Webhooks) }
  const { routes: internal } = createInternal({ webhooks, now: () => 0 } as unknown as InternalOptions)
  const there = [...internal].map(([pattern, { method }]) => `${method} ${pattern}`)
  const elsewhere = [
    'GET /',
    'GET /ws',
    'GET /docs',
    'GET /documentation',
    'GET /console',
    'GET /health',
    'GET /.well-known/oauth-protected-resource',
  ]
  const told = ROUTE_ROWS.filter(({ pattern }) => !pattern.startsWith('/api/'))
  expect(told.map(({ method, pattern }) => `${method} ${pattern}`).toSorted()).toEqual(
    [...there, ...elsewhere].toSorted(),
  )
})

test('the reference has a row for each route', () => {
  expect(printRoutes()).toContain('| `PATCH /api/{table}/{id}` | 200 `{"data": row}` | [change](writing.md#change) |')
})
