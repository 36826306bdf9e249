/**
 * Each route of docs/reference/rest-api.md#routes responds as its row says, and rejects methods without a
 * row.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { ROUTE_ROWS } from '../../src/http/routes-reference.ts'
import type { TokenRequest } from '../../src/identity/mint.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { sampleDatabase } from '../support/sample.ts'

const ROWS = ROUTE_ROWS.filter(({ pattern }) => pattern.startsWith('/api/'))

/** In the order of the rows: a later row can delete what an earlier one created. */
const ASKED: Readonly<Record<string, readonly [path: string, body?: string]>> = {
  'GET /api/{table}': ['/api/tags?limit=2'],
  'POST /api/{table}': ['/api/tags', '{"name": "of the reference"}'],
  'PATCH /api/{table}': ['/api/tags?name=of the reference', '{"name": "changed"}'],
  'DELETE /api/{table}': ['/api/tags?name=changed'],
  'GET /api/{table}/{id}': ['/api/orders/5'],
  'PATCH /api/{table}/{id}': ['/api/orders/5', '{"notes": "changed"}'],
  'DELETE /api/{table}/{id}': ['/api/order_items/5,1'],
  'GET /api/{table}/{id}/{child}': ['/api/customers/934/orders'],
  'GET /api/{table}/aggregate': ['/api/orders/aggregate?fn=count'],
  'GET /api/{table}/_explain': ['/api/orders/_explain?limit=1'],
  'POST /api/_query': ['/api/_query', '{"query": "get tags limit 1"}'],
  'POST /api/_batch': ['/api/_batch', '{"operations": [{"query": "get tags limit 1"}]}'],
  'POST /api/_inspect': ['/api/_inspect', '{"request": "/api/tags/1"}'],
  'GET /api/_imports/{id}': ['/api/_imports/of-the-reference'],
  'GET /api/rpc/{function}': ['/api/rpc/slugify?value=A b'],
  'POST /api/rpc/{function}': ['/api/rpc/slugify', '["A b"]'],
  'GET /api/_rpc/contracts': ['/api/_rpc/contracts'],
  'GET /api/_schema': ['/api/_schema'],
  'GET /api/_openapi': ['/api/_openapi'],
}

const database = databaseFixture(sampleDatabase)
const gateway = gatewayFixture(database)

beforeAll(async () => {
  const headers = { 'Content-Type': 'text/csv', 'X-Request-Id': 'of-the-reference' }
  await gateway.get('/api/tags', { as: clerk(), method: 'POST', headers, body: 'name\nimported\n' })
})

function clerk(): Partial<TokenRequest> {
  const [tenant] = database.tenants
  return { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk', scopes: ['svc:explain'] }
}

async function ask(method: string, path: string, body?: string): Promise<Reply> {
  const as = clerk()
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' }
  return gateway.get(encodeURI(path), { as, method, headers, ...(body === undefined ? {} : { body }) })
}

function askedOf(method: string, pattern: string): readonly [path: string, body?: string] {
  const asked = ASKED[`${method} ${pattern}`]
  if (asked === undefined) throw new Error(`say how ${method} ${pattern} is asked`)
  return asked
}

test.each(ROWS)('$method $pattern is answered with $answer', async ({ method, pattern, answer }) => {
  const reply = await ask(method, ...askedOf(method, pattern))
  expect([reply.status, reply.text]).toEqual([Number(answer.slice(0, 3)), expect.anything()])
  const form = /^\d+ `(.*?)`/.exec(answer)?.[1] ?? ''
  const members = [...form.matchAll(/"(\w+)"/g)].map(([, name = '']) => name)
  if (members.length > 0) expect(Object.keys(reply.json)).toEqual(expect.arrayContaining(members))
})

describe('other methods are rejected with the list of existing ones', () => {
  test.each([...new Set(ROWS.map(({ pattern }) => pattern))])('%s', async pattern => {
    const methods = ROWS.filter(row => row.pattern === pattern).map(({ method }) => method)
    const [path] = askedOf(methods[0] ?? '', pattern)
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(one => !methods.includes(one))) {
      const { status, headers } = await ask(method, path, method === 'GET' ? undefined : '{}')
      expect([method, status]).toEqual([method, 405])
      const told = headers.get('allow')?.split(', ') ?? []
      expect(told).toEqual(methods.flatMap(one => (one === 'GET' ? ['GET', 'HEAD'] : [one])))
    }
  })
})
