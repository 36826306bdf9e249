/**
 * docs/guides/webhooks.md: its trigger fires, its payload is as shown, and its code accepts exactly the
 * signed payloads.
 */
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { fileNamed } from '../support/page.ts'
import { type Received, receiver } from '../support/receiver.ts'
import { sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/webhooks.md')
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
const OTHER = `whsec_${Buffer.alloc(32, 6).toString('base64')}`

let received: Received
const database = databaseFixture(sampleDatabase)
const hook = fixture(receiver)
const folder = folderFixture()
const file = join(folder, 'triggers.yaml')
beforeAll(() =>
  writeFile(file, fileNamed(PAGE, 'triggers.yaml').replace('https://shop.example.com/hooks/orders', hook.url)),
)
const gateway = gatewayFixture(database, {
  toml: `events_path = ${JSON.stringify(file)}\nwebhook_allow = ["127.0.0.1"]`,
  environment: { ORDERS_HOOK_SECRET: SECRET },
})

beforeAll(async () => {
  const [tenant] = database.tenants
  const as = { tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' }
  const { id } = (await gateway.get('/api/orders?limit=1&status=pending', { as })).json.data[0]
  const headers = { 'Content-Type': 'application/json' }
  await gateway.get(`/api/orders/${id}`, { as, method: 'PATCH', headers, body: '{"status": "paid"}' })
  const [first] = await hook.until(1)
  if (first === undefined) throw new Error('nothing was received')
  received = first
})

test('the payload has the form shown on the page', () => {
  const shown = JSON.parse(/^```json\n([\s\S]*?)^```/m.exec(PAGE)?.[1] ?? '')
  const form = (value: unknown): unknown =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).map(([key, inner]) => [key, form(inner)])
      : typeof value
  expect(form(received.json)).toEqual(form(shown))
  expect(received.json).toMatchObject({
    operation: 'UPDATE',
    data: { old: { status: 'pending' }, new: { status: 'paid' } },
  })
  expect(received.headers['x-source']).toBe('svc')
})

type Verify = (headers: Readonly<Record<string, unknown>>, body: Buffer, secret: string) => boolean | Promise<boolean>

/** Programs that read a request from standard input and print `true` or `false`. */
const PYTHON = `
import base64, json, sys
from verify import verify
given = json.load(sys.stdin)
print(json.dumps(verify(given["headers"], base64.b64decode(given["body"]), given["secret"])))
`
const PHP = `
require 'verify.php';
$given = json_decode(stream_get_contents(STDIN), true);
echo json_encode(verify($given['headers'], base64_decode($given['body']), $given['secret']));
`
const GO = `
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func main() {
	var given struct {
		Headers map[string]any
		Body    []byte
		Secret  string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	headers := http.Header{}
	for name, value := range given.Headers {
		if text, ok := value.(string); ok {
			headers.Set(name, text)
		}
	}
	fmt.Println(Verify(headers, given.Body, given.Secret))
}
`

function isThere(program: string, ...argv: readonly string[]): boolean {
  const found = spawnSync(program, argv).status === 0
  if (!found) process.stderr.write(`webhooks-guide.pg.test.ts: the code for ${program} was not run, for want of it\n`)
  return found
}

function asking(program: string, ...argv: readonly string[]): Verify {
  return (headers, body, secret) => {
    const input = JSON.stringify({ headers, body: body.toString('base64'), secret })
    const { stdout, stderr } = spawnSync(program, argv, { cwd: folder, input, encoding: 'utf8' })
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout) as boolean
  }
}

const RUNTIMES: readonly (readonly [string, boolean, (code: string) => Promise<Verify>])[] = [
  [
    'verify.mjs',
    true,
    async code => {
      const file = join(folder, 'verify.mjs')
      await writeFile(file, code)
      const { verify } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { readonly verify: Verify }
      return verify
    },
  ],
  [
    'verify.py',
    isThere('python3', '--version'),
    async code => {
      await writeFile(join(folder, 'verify.py'), code)
      return asking('python3', '-c', PYTHON)
    },
  ],
  [
    'verify.php',
    isThere('php', '--version'),
    async code => {
      await writeFile(join(folder, 'verify.php'), code)
      return asking('php', '-r', PHP)
    },
  ],
  [
    'verify.go',
    isThere('go', 'version'),
    async code => {
      await writeFile(join(folder, 'go.mod'), 'module webhook\n\ngo 1.19\n')
      await writeFile(join(folder, 'verify.go'), code.replace('package webhook', 'package main'))
      await writeFile(join(folder, 'main.go'), GO)
      const { status, stderr } = spawnSync('go', ['build', '-o', 'verify', '.'], { cwd: folder, encoding: 'utf8' })
      if (status !== 0) throw new Error(stderr)
      return asking(join(folder, 'verify'))
    },
  ],
]

describe.each(RUNTIMES)('%s', (name, canRun, load) => {
  // Without the runtime the code cannot be executed.
  test.runIf(canRun)(
    'accepts signed requests, and rejects modified, outdated and foreign ones',
    // Some runtimes compile first.
    { timeout: 60_000 },
    async () => {
      const verify = await load(fileNamed(PAGE, name))
      const { headers } = received
      const body = Buffer.from(received.text)
      expect(await verify(headers, body, SECRET)).toBe(true)
      const several = { ...headers, 'webhook-signature': `v1,AAAA ${headers['webhook-signature']}` }
      expect(await verify(several, body, SECRET)).toBe(true)
      expect(await verify(headers, body, OTHER)).toBe(false)
      expect(await verify(headers, Buffer.from(received.text.replace('paid', 'sent')), SECRET)).toBe(false)
      expect(await verify({ ...headers, 'webhook-id': 'msg_other' }, body, SECRET)).toBe(false)
      const later = String(Number(headers['webhook-timestamp']) + 1)
      expect(await verify({ ...headers, 'webhook-timestamp': later }, body, SECRET)).toBe(false)
      expect(await verify({ ...headers, 'webhook-signature': undefined }, body, SECRET)).toBe(false)
      expect(await verify({ ...headers, 'webhook-timestamp': 'never' }, body, SECRET)).toBe(false)
      expect(await verify({ ...headers, 'webhook-signature': 'v1,é v2 x,' }, body, SECRET)).toBe(false)
    },
  )

  // Without the runtime the code cannot be executed.
  test.runIf(canRun)('rejects an outdated signature', { timeout: 60_000 }, async () => {
    const { signatureHeaders } = await import('../../src/webhooks/signature.ts')
    const verify = await load(fileNamed(PAGE, name))
    const body = Buffer.from('{}')
    const signed = (ageMs: number) => signatureHeaders([SECRET], 'msg_1', Date.now() - ageMs, body)
    expect(await verify(signed(0), body, SECRET)).toBe(true)
    expect(await verify(signed(600_000), body, SECRET)).toBe(false)
  })
})
