/** `svc webhooks` against a running gateway (docs/guides/webhooks.md#manage-failed-deliveries). */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { databaseFixture, fixture, folderFixture, gatewayFixture } from '../../test/support/fixtures.ts'
import { OK, receiver } from '../../test/support/receiver.ts'

const database = databaseFixture('create table notes (id int primary key); grant all on notes to app')
const hook = fixture(receiver)
const folder = folderFixture()
const file = join(folder, 'triggers.yaml')
beforeAll(() =>
  writeFile(
    file,
    `- { name: notes, table: notes, operations: [create], webhook_url: "${hook.url}?key=hidden", retry_count: 0 }\n`,
  ),
)
const gateway = gatewayFixture(database, {
  toml: `events_path = ${JSON.stringify(file)}\nwebhook_allow = ["127.0.0.1"]`,
  environment: { SVC_ADMIN_TOKEN: 'the-token' },
})

let errors: readonly string[] = []
async function svc(argv: readonly string[], token: string | null = 'the-token'): Promise<readonly [number, string]> {
  const { code, out, error } = await runCommand(['webhooks', ...argv], {
    environment: {
      SVC_BIND: gateway.url.replace('http://', ''),
      ...(token === null ? {} : { SVC_ADMIN_TOKEN: token }),
    },
  })
  errors = error
  return [code, out.join('\n')]
}

let next = 1
/** A dead letter's id. */
async function dead(): Promise<string> {
  hook.respond(response => response.writeHead(500).end('no\u001b[31m'))
  await gateway.get('/api/notes', {
    ...{ method: 'POST', body: JSON.stringify({ id: next++ }) },
    headers: { 'Content-Type': 'application/json' },
  })
  for (;;) {
    const [, text] = await svc(['list', '--json'])
    const { dead_letters: letters } = JSON.parse(text)
    if (letters.length > 0) return letters[0].id
  }
}

beforeEach(async () => {
  await svc(['purge', '--all'])
})

test('list prints triggers without the path of the URL, and dead letters', async () => {
  const { origin } = new URL(hook.url)
  expect((await svc(['list']))[1]).toBe(
    [
      `TRIGGER  STATE   TABLE  OPERATIONS  ${'ENDPOINT'.padEnd(origin.length)}  STORAGE  QUEUE`,
      `notes    active  notes  create      ${origin}  memory`,
      '\n0 ready or in flight, 0 waiting for a retry, 0 dead',
    ].join('\n'),
  )
  const id = await dead()
  const [code, text] = await svc(['list'])
  expect(code).toBe(0)
  expect(text).toMatch(new RegExp(`${id}  notes    \\S+Z  failed 1 times: answered 500$`))
  expect(text).not.toContain('hidden')
})

test('show prints the last response and the payload', async () => {
  const [code, text] = await svc(['show', await dead()])
  expect(code).toBe(0)
  const letter = JSON.parse(text)
  expect(letter).toMatchObject({ operation: 'INSERT', last_answer: { status: 500, body: 'no\u001b[31m' } })
  expect(JSON.parse(letter.payload).data.new.id).toBe(next - 1)
  expect(text).not.toContain('\u001b')
})

test('redeliver sends a dead letter again; purge deletes it', async () => {
  const id = await dead()
  const count = hook.received.length
  hook.respond(OK)
  expect(await svc(['redeliver', id])).toEqual([0, '1 redelivered'])
  await hook.until(count + 1)
  expect(await svc(['redeliver', id])).toEqual([1, '0 redelivered'])
  await dead()
  expect(await svc(['purge', '--all'])).toEqual([0, '1 purged'])
})

test('the command test reports whether the message arrives', async () => {
  hook.respond(OK)
  const [code, text] = await svc(['test', 'notes'])
  expect(code).toBe(0)
  expect(text).toMatch(/^delivered: answered 200 \(msg_\S+\)$/)
  hook.respond(response => response.writeHead(403).end())
  expect((await svc(['test', 'notes']))[0]).toBe(1)
})

test('missing arguments are reported', async () => {
  expect((await svc(['redeliver']))[0]).toBe(2)
  expect(errors).toEqual(['svc webhooks redeliver takes the id of a dead letter, or --all'])
  expect((await svc(['list'], null))[0]).toBe(2)
  expect(errors[0]).toContain('no admin token is configured')
  expect((await svc(['list'], 'another'))[0]).toBe(1)
  expect(errors[0]).toContain('answered 401: /internal/webhooks needs the admin token')
  expect((await svc(['list', '--url', 'http://127.0.0.1:1']))[0]).toBe(1)
  expect(errors[0]).toContain('no gateway responds at http://127.0.0.1:1')
  expect((await svc(['show', 'nothing']))[0]).toBe(1)
  expect(errors[0]).toContain('there is no such trigger or dead letter')
})
