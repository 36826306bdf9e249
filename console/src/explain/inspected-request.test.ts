import { describe, expect, test } from 'vitest'
import { batchOf } from './batch.ts'
import { inspectBodyOf, inspectHeadersOf, pastedRequest } from './inspected-request.ts'

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
  [
    `curl -X PATCH 'https://gateway.example/svc/api/orders/1' -H 'Content-Type: application/json-patch+json' \\
      --data-binary '[{"op": "remove", "path": "/notes"}]'`,
    {
      request: 'PATCH /api/orders/1',
      body: [{ op: 'remove', path: '/notes' }],
      content_type: 'application/json-patch+json',
    },
  ],
  [
    'PATCH /api/orders/1\n\n{"site": "https://a.example/api/x"}',
    {
      request: 'PATCH /api/orders/1',
      body: { site: 'https://a.example/api/x' },
    },
  ],
  ['get orders where id = 5', { query: 'get orders where id = 5' }],
  ['', { query: '' }],
])('%s', (text, body) => {
  expect(inspectBodyOf(text, BASE)).toEqual(body)
})

test('the headers that apply to an inspected request are kept, and no others', () => {
  const options = `-H "Authorization: Bearer $TOKEN" -H 'X-Upsert: true' -d '{}'`
  const curl = `curl 'https://gateway.example/svc/api/orders' ${options}`
  expect(inspectHeadersOf(curl, BASE)).toEqual({ 'x-upsert': 'true' })
  const lines = 'PATCH /api/orders/1 HTTP/1.1\nHost: x\nIf-Match: "1"\n\n{"note": "Prefer: nothing"}'
  expect(inspectHeadersOf(lines, BASE)).toEqual({ 'if-match': '"1"' })
  expect(inspectHeadersOf('get orders', BASE)).toEqual({})
})

describe('a batch', () => {
  const OPERATIONS = [
    { id: 'tag', method: 'POST', path: '/api/tags', headers: { 'X-Upsert': 'ignore' }, body: { name: '$5 off' } },
    { method: 'PATCH', path: '/api/tags/$0.data.id', body: { name: 'x' } },
    { query: 'get tags where id = $1', parameters: [{ $ref: 'tag.id' }] },
    { query: 'get tags where id = $1', parameters: [5] },
    { method: 'PATCH', path: '/api/tags/1', body: { note: [{ $ref: 'a.b', more: 1 }], other: '$0.data.id' } },
    { query: 'get tags' },
  ]
  const JSON_OF = JSON.stringify({ operations: OPERATIONS, atomic: false })
  const batch = batchOf(pastedRequest(`POST /api/_batch HTTP/1.1\nIdempotency-Key: a-1\n\n${JSON_OF}`, BASE))

  test('is recognized with its key and the text of its body', () => {
    expect(batch).toMatchObject({ text: JSON_OF, isAtomic: false, key: 'a-1' })
    const curl = `curl 'https://gateway.example/svc/api/_batch' -d '${JSON_OF}'`
    expect(batchOf(pastedRequest(curl, BASE))).toMatchObject({ text: JSON_OF, key: '' })
  })

  test('lists its operations as single requests', () => {
    expect(batch?.operations.map(({ title }) => title)).toEqual([
      ...['POST /api/tags', 'PATCH /api/tags/$0.data.id', 'get tags where id = $1', 'get tags where id = $1'],
      ...['PATCH /api/tags/1', 'get tags'],
    ])
    const [create, , , query] = (batch?.operations ?? []).map(({ request }) => request)
    expect(inspectBodyOf(create ?? '', BASE)).toEqual({ request: 'POST /api/tags', body: { name: '$5 off' } })
    expect(inspectHeadersOf(create ?? '', BASE)).toEqual({ 'x-upsert': 'ignore' })
    expect(inspectBodyOf(query ?? '', BASE)).toEqual({ query: 'get tags where id = $1', parameters: [5] })
  })

  test('knows which operations use an earlier response', () => {
    expect(batch?.operations.map(({ hasReference }) => hasReference)).toEqual([false, true, true, false, true, false])
  })

  test('is not recognized in other requests', () => {
    for (const text of [
      '/api/_batch',
      'POST /api/_batch\n\n{"operations": 1}',
      `POST /api/tags\n\n${JSON_OF}`,
      'get a',
    ])
      expect(batchOf(pastedRequest(text, BASE))).toBeNull()
  })
})
