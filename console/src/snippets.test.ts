import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { snippetsOf } from './snippets.ts'

const URL_OF_ROWS = "http://127.0.0.1:8080/api/orders?notes=it's&sort=-id"

test('a shell receives the address and the body unchanged', () => {
  const body = `{"query": "get orders where notes = 'it''s'"}`
  const headers = { 'Idempotency-Key': "it's" }
  const curl =
    snippetsOf({ url: URL_OF_ROWS, method: 'POST', body, headers }).find(({ name }) => name === 'curl')?.text ?? ''
  const shown = execFileSync('sh', ['-c', `curl() { printf '%s\\n' "$@"; }; TOKEN=t; ${curl}`], { encoding: 'utf8' })
  expect(shown.trimEnd().split('\n')).toEqual([
    URL_OF_ROWS,
    ...['-H', 'Authorization: Bearer t', '-H', "Idempotency-Key: it's"],
    ...['-H', 'Content-Type: application/json', '-d', body],
  ])
})

test('the request line has the path and the query, and no snippet has a token', () => {
  const [http] = snippetsOf({ url: URL_OF_ROWS, method: 'GET', body: null })
  expect(http?.text).toBe(
    'GET /api/orders?notes=it%27s&sort=-id HTTP/1.1\nHost: 127.0.0.1:8080\nAuthorization: Bearer …',
  )
})
