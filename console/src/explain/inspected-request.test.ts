import { expect, test } from 'vitest'
import { inspectBodyOf } from './inspected-request.ts'

const BASE = new URL('https://gateway.example/svc/')

test.each([
  ['GET /api/orders?status=paid', { request: 'GET /api/orders?status=paid' }],
  ['/api/orders/5', { request: 'GET /api/orders/5' }],
  ['/api/orders?notes.like=für Ann', { request: 'GET /api/orders?notes.like=f%C3%BCr%20Ann' }],
  ['GET /api/orders HTTP/1.1\nHost: gateway.example', { request: 'GET /api/orders' }],
  ['https://gateway.example/svc/api/orders?limit=1', { request: 'GET /api/orders?limit=1' }],
  [
    'curl \'https://gateway.example/svc/api/orders\' \\\n  -H "Authorization: Bearer $TOKEN"',
    { request: 'GET /api/orders' },
  ],
  ["curl -X DELETE 'https://gateway.example/svc/api/orders/1'", { request: 'DELETE /api/orders/1' }],
  [
    `curl 'https://gateway.example/svc/api/_query' \\
      -d '{"query": "get a where b = :b", "parameters": {"b": "it'\\''s"}}'`,
    { query: 'get a where b = :b', parameters: { b: "it's" } },
  ],
  [
    `curl 'https://gateway.example/svc/api/orders' -d '{"total": 5}'`,
    { request: 'POST /api/orders', body: { total: 5 } },
  ],
  ['PATCH /api/orders/1\n\n{"total": 5}', { request: 'PATCH /api/orders/1', body: { total: 5 } }],
  ['POST /api/_query HTTP/1.1\nHost: x\n\n{"query": "get a"}', { query: 'get a' }],
  ['get orders where id = 5', { query: 'get orders where id = 5' }],
  ['', { query: '' }],
])('%s', (text, body) => {
  expect(inspectBodyOf(text, BASE)).toEqual(body)
})
