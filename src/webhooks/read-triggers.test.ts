// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is what is expanded
/**
 * docs/guides/webhooks.md#define-a-trigger: an invalid definition is reported with all of its problems, their
 * positions, and suggestions.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DocumentProblems, isProblem, readDocument } from '../config/document.ts'
import { printProblem } from '../config/problem.ts'
import { readTriggers, TRIGGERS_MAX } from './read-triggers.ts'
import type { Trigger } from './trigger.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'triggers-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const SECRET = Buffer.alloc(32, 7).toString('base64')

async function read(text: string): Promise<readonly Trigger[] | readonly string[]> {
  const file = join(folder, 'triggers.yaml')
  writeFileSync(file, text)
  const document = await readDocument(file)
  if (isProblem(document)) return [printProblem({ ...document, source: 'f' })]
  const found = readTriggers(document, { environment: { TOKEN: 'tok', SECRET, EVIL: 'a\r\nb' } })
  if (!(found instanceof DocumentProblems)) return found
  return found.found.map(problem => printProblem({ ...problem, source: 'f' }))
}

const one = (rest: string) => `- {name: a, table: t, operations: [create], webhook_url: "https://x.io/h"${rest}}`

test('a trigger can have all fields', async () => {
  const [trigger] = (await read(`
# told of paid orders
- name: paid
  table: orders
  operations: [create, update]
  webhook_url: https://example.com/hook?k=\${TOKEN}
  retry_count: 20
  headers: {X-Token: "Bearer \${TOKEN}", x-static: "\${NONE:-none}"}
  enabled: false
  columns: [id, status]
  secret: ["\${SECRET}", "whsec_${SECRET}"]
  timeout_ms: 100
  source: database
  order: key
`)) as readonly Trigger[]
  expect({ ...trigger, url: trigger?.url.href }).toEqual({
    ...{
      source: 'database',
      order: 'key',
      name: 'paid',
      table: 'orders',
      operations: ['create', 'update'],
      url: 'https://example.com/hook?k=tok',
    },
    ...{ retryCount: 20, headers: { 'x-token': 'Bearer tok', 'x-static': 'none' }, enabled: false },
    ...{ columns: ['id', 'status'], secrets: [SECRET, `whsec_${SECRET}`], timeoutMs: 100 },
  })
})

test('omitted fields have defaults', async () => {
  expect(await read(one(''))).toMatchObject([
    { retryCount: 5, headers: {}, enabled: true, columns: null, secrets: [], timeoutMs: 10_000 },
  ])
  expect(await read('')).toEqual([])
  expect(await read('[]')).toEqual([])
})

test('all missing and malformed fields are reported together, each with its line and key', async () => {
  const text = `- nam: paid
  operations: [crate, read]
  webhook_url: ftp://x.io
  retry_count: 21
  headers: [a]
  enabled: "yes"
  columns: []
  secret: short
  timeout_ms: 99
  source: databse
- just a text
- name: ""
  table: 7
  operations: []
  webhook_url: "https://user:pw@x.io/#top"
  order: by key
`
  expect(await read(text)).toEqual([
    'f:1: 0.nam: unknown key; did you mean name?',
    'f:1: 0: missing name',
    'f:1: 0: missing table',
    'f:2: 0.operations.0: "crate" is not an operation; expected create, update, delete; did you mean create?',
    'f:2: 0.operations.1: "read" is not an operation; expected create, update, delete',
    'f:3: 0.webhook_url: expected a URL that begins with https:// or http://',
    'f:4: 0.retry_count: expected an integer from 0 to 20',
    'f:5: 0.headers: expected a table of keys and values',
    'f:6: 0.enabled: expected true or false',
    'f:7: 0.columns: expected at least one column; to send all columns, remove this key',
    expect.stringMatching(/^f:8: 0.secret: expected base64 of 24 to 64 random bytes/),
    'f:9: 0.timeout_ms: expected an integer from 100 to 60000',
    'f:10: 0.source: expected "gateway" or "database"; did you mean database?',
    'f:11: 1: expected a table of keys and values',
    'f:12: 2.name: expected a name as a string',
    'f:13: 2.table: expected the name of a table as a string',
    'f:14: 2.operations: expected at least one of create, update, delete',
    'f:15: 2.webhook_url: has a user or password in the URL; send headers: { Authorization: "…" } instead',
    'f:15: 2.webhook_url: has a fragment (#…), which is never sent; remove it',
    'f:16: 2.order: expected "none" or "key"',
  ])
})

test('a problem names the trigger it belongs to', async () => {
  const text = `- {name: paid, table: orders, operations: [create], webhook_url: "https://x.io", retries: 3}
- {name: shipped, table: orders, operations: [], webhook_url: "https://x.io", headers: {Host: x}}
`
  expect(await read(text)).toEqual([
    'f:1: trigger "paid": 0.retries: unknown key',
    'f:2: trigger "shipped": 1.operations: expected at least one of create, update, delete',
    expect.stringMatching(/^f:2: trigger "shipped": 1\.headers\.Host: is set by the gateway/),
  ])
})

test.each([
  ['{a: 1}', /expected a list of triggers/],
  ['- {name: a', /^f:\d: cannot be read: /],
  ['- &a [*a, *a]', /expected a table/],
  [`${one('')}\n${one('')}`, /1\.name: "a" is already the name of another trigger/],
  [`- {name: a, name: b}`, /cannot be read/],
  [one(', headers: {Content-Length: "5"}'), /0\.headers\.Content-Length: is set by the gateway/],
  [one(', headers: {Host: x}'), /is set by the gateway/],
  [one(', headers: {Webhook-Signature: x}'), /is set by the gateway/],
  [one(', headers: {Transfer-Encoding: chunked}'), /is set by the gateway/],
  [one(', headers: {"a b": x}'), /"a b" is not a valid header name/],
  [one(', headers: {"a\\r\\nb": x}'), /is not a valid header name/],
  [one(', headers: {A: x, a: y}'), /is given twice/],
  [one(`, headers: {${Array.from({ length: 33 }, (_, at) => `h${at}: x`).join(', ')}}`), /the limit is 32/],
  [one(', headers: {a: 5}'), /expected a string; put numbers in quotes/],
  [one(', headers: {a: "${EVIL}"}'), /0\.headers\.a: expected one line/],
  [one(', headers: {a: "x\\nb"}'), /expected one line/],
  [one(', headers: {a: "€"}'), /Latin-1/],
  [one(', headers: {a: "${MISSING}"}'), /MISSING is not set/],
  [one(', secret: "${MISSING}"'), /0\.secret: the environment variable MISSING is not set/],
  [one(', secret: []'), /a list of 1 to 5/],
  [one(`, secret: [${Array(6).fill(SECRET).join(', ')}]`), /a list of 1 to 5/],
  [one(', retry_count: 1.5'), /an integer from 0 to 20/],
  [one(', retry_count: -1'), /an integer from 0 to 20/],
  [one(', timeout_ms: 60001'), /an integer from 100 to 60000/],
  [one('').replace('https://x.io/h', 'javascript:alert(1)'), /begins with https/],
  [one('').replace('https://x.io/h', 'no url'), /expected a URL/],
  [one('').replace('https://x.io/h', `https://x.io/${'x'.repeat(2_000)}`), /expected a URL/],
  [one('').replace('name: a', `name: "${'n'.repeat(101)}"`), /at most 100 characters/],
  [one('').replace('name: a', 'name: "a\\u001b[2J"'), /control character/],
  [
    Array.from({ length: TRIGGERS_MAX + 1 }, (_, at) => one('').replace('name: a', `name: a${at}`)).join('\n'),
    /the limit is 1000/,
  ],
])('a file of triggers is refused: %.60s', async (text, expected) => {
  const found = await read(text)
  if (expected === null) expect(found).toMatchObject([{ name: 'a' }])
  else expect(found).toEqual(expect.arrayContaining([expect.stringMatching(expected)]))
})

test('no problem repeats a secret', async () => {
  const problems = await read(one(', secret: "${TOKEN}-x", headers: {a: "${TOKEN}€"}').replace('https', '${TOKEN}'))
  expect(problems.length).toBe(3)
  expect(problems.join('\n')).not.toContain('tok')
})
