import { execFileSync, spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
// @ts-expect-error the page's script has no types
import { SAMPLES } from './samples.js'

const samples: Readonly<Record<'curl' | 'typescript' | 'python', (request: Sample) => string>> = SAMPLES

interface Sample {
  readonly method: string
  readonly url: string
  readonly body: string | null
}

const BASE = 'https://gateway.example/svc/api'
const of = (method: string, path: string, body: string | null = null): Sample => ({ method, url: BASE + path, body })

test.each([
  [of('GET', '/orders'), 'const rows = await client.from("orders").rows()'],
  [
    of('GET', '/orders?status=paid&total.gt=5&total.lte=9&sort=-total&limit=2&expand=nested:items'),
    'const rows = await client.from("orders").where({"status":"paid","total":{"gt":"5","lte":"9"}})' +
      '.orderBy("-total").limit(2).expand("items").rows()',
  ],
  [of('GET', '/orders/5'), 'const row = await client.from("orders").get("5")'],
  [of('POST', '/orders', '{"total": 1}'), 'const row = await client.from("orders").insert({"total": 1})'],
  [of('PATCH', '/orders/5', '{"total": 2}'), 'const row = await client.from("orders").update("5", {"total": 2})'],
  [of('DELETE', '/orders/5'), 'await client.from("orders").delete("5")'],
  [of('POST', '/rpc/f', '{"a": 1}'), 'const result = await client.rpc("f", {"a": 1})'],
  [of('POST', '/_query', '{"query": "get a", "parameters": [1]}'), 'const rows = await client.query("get a", [1])'],
])('TypeScript: $method $url', (request, call) => {
  const text = samples.typescript(request)
  expect(text).toContain('createClient({ url: "https://gateway.example/svc", token: process.env.TOKEN })')
  expect(text.split('\n').at(-1)).toBe(call)
})

test('a request without a method of the client uses fetch', () => {
  expect(samples.typescript(of('GET', '/orders/aggregate?fn=count'))).toContain('await fetch("https://gateway.example')
})

const HOSTILE = of('POST', '/a?x=\'"$(touch nothing)\\', '{"a": "it\'s \\"x\\" $HOME"}')

test('a sample for curl quotes whatever the request contains', () => {
  const printed = execFileSync('sh', ['-c', samples.curl(HOSTILE).replace(/^curl/, 'printf "%s\\n"')], {
    encoding: 'utf8',
  })
  expect(printed.split('\n')).toEqual([
    '-X',
    'POST',
    HOSTILE.url,
    '-H',
    'Authorization: Bearer ',
    '-H',
    'Content-Type: application/json',
    '-d',
    HOSTILE.body,
    '',
  ])
})

// The sample is executed, which needs Python.
test.skipIf(spawnSync('python3', ['-c', '']).status !== 0)('a sample for Python is valid, and sends the same', () => {
  const script = samples
    .python(HOSTILE)
    .replace(
      'import requests',
      'class requests:\n  request = staticmethod(lambda *a, **k: (print(a, k["data"]), exit())[0])',
    )
  const printed = execFileSync('python3', ['-c', script], { encoding: 'utf8', env: { ...process.env, TOKEN: 't' } })
  expect(printed).toContain('POST')
  expect(printed).toContain('$HOME')
})
