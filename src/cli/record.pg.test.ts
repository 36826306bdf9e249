/**
 * docs/guides/allow-list.md#recording: `svc check --record` writes the shapes that it sees to a file, which
 * is then used as the allow-list. The test runs all commands of a recording.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { databaseFixture } from '../../test/support/fixtures.ts'
import { killSvc, type Svc, startSvc } from '../../test/support/process.ts'
import { mintToken } from '../identity/mint.ts'

const SECRET = 'a secret of 32 bytes, or of more'

const database = databaseFixture(`create table notes (id int primary key, body text, secret text);
     insert into notes values (1, 'hello', 'x'), (2, 'bye', 'y');
     grant select, insert, update, delete on notes to public`)
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-record-'))
})
afterEach(() => {
  killSvc()
  rmSync(folder, { recursive: true })
})

const file = () => join(folder, 'allow.txt')

/** `toml`: lines of `svc.toml`, below `[gateway]`. */
function start(argv: readonly string[], toml = ''): Svc {
  const config = join(folder, 'svc.toml')
  writeFileSync(config, `[gateway]\n${toml}\n`)
  const environment = { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' }
  return startSvc([...argv, '--config', config], environment)
}

const listening = (svc: Svc) => svc.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)"/)

async function stop(svc: Svc): Promise<void> {
  svc.child.kill('SIGINT')
  expect(await svc.exited).toEqual([0, null])
}

async function ask(url: string, [method, path, body, headers = {}]: Request): Promise<number> {
  const token = await mintToken(SECRET, { tenantId: 't', expiresInSeconds: 60 }, Date.now())
  const type = body === undefined ? {} : { 'content-type': path === '/api/_query' ? 'text/plain' : 'application/json' }
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...type, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  await response.arrayBuffer()
  return response.status
}

type Request = readonly [method: string, path: string, body?: string, headers?: Record<string, string>]

const ASKED: readonly Request[] = [
  ['GET', '/api/notes?select=id,body&body=hello&sort=-id&limit=5'],
  ['GET', '/api/notes/1?select=body'],
  ['POST', '/api/notes?returning=id', '{"id": 7, "body": "seven"}', { 'X-Upsert': 'true' }],
  ['DELETE', '/api/notes?id=in.(7,8)'],
  ['POST', '/api/_query', "get notes fields id where body = 'bye' and id in (1, 2)"],
]

const ALIKE: readonly Request[] = [
  ['GET', '/api/notes?body.eq=bye&sort=id:desc&select=id,body'],
  ['GET', '/api/notes/2?select=body'],
  ['DELETE', '/api/notes?id.in=7'],
  ['POST', '/api/_query', "get notes fields id where body = 'hello' and id in (1)"],
]

const OTHERS: readonly Request[] = [
  ['GET', '/api/notes'],
  ['GET', '/api/notes?select=id,secret&body=hello&sort=-id'],
  ['GET', '/api/notes/1'],
  ['POST', '/api/notes?returning=id', '{"id": 8}'],
  ['DELETE', '/api/notes?id=7'],
  ['POST', '/api/_query', "get notes fields secret where body = 'bye' and id in (1, 2)"],
]

/** The request failed while the shapes were recorded. */
const FAILED: readonly Request[] = [
  ['GET', '/api/notes?absent=1'],
  ['GET', '/api/notes/99'],
  ['POST', '/api/_query', 'get absent'],
]

const statuses = async (url: string, requests: readonly Request[]) => {
  const found: number[] = []
  for (const request of requests) found.push(await ask(url, request))
  return found
}

test('exactly the recorded queries are allowed afterwards', async () => {
  writeFileSync(file(), '# written by hand\nGET /api/notes/aggregate?fn=count\n')
  const recording = start(['check', '--record', file()])
  const open = await listening(recording)
  expect(recording.said.out).toContain('every query is allowed')
  expect(await statuses(open, [...ASKED, ...ASKED])).toEqual([200, 200, 201, 204, 200, 200, 200, 201, 204, 200])
  expect(await statuses(open, FAILED)).toEqual([400, 404, 404])
  expect(await ask(open, ['GET', '/api/notes/aggregate?fn=count'])).toBe(200)
  await stop(recording)
  expect(recording.said.out).toMatch(/"file":"[^"]*allow\.txt","shapes":5,"msg":"recorded"/)
  expect(readFileSync(file(), 'utf8')).toBe(
    `# written by hand
GET /api/notes/aggregate?fn=count
DELETE /api/notes?id.in
GET /api/notes/{id}?select=body
GET /api/notes?body.eq&select=id,body&sort=-id
POST /api/notes?X-Upsert=true&returning=id
get notes fields id where body = ? and id in (?)
`,
  )

  const serving = start(['serve'], "allow_list_path = 'allow.txt'")
  const closed = await listening(serving)
  expect(await statuses(closed, ASKED)).toEqual([200, 200, 201, 204, 200])
  expect(await statuses(closed, ALIKE)).toEqual([200, 200, 204, 200])
  expect(await statuses(closed, [...OTHERS, ...FAILED.slice(0, 1)])).toEqual([403, 403, 403, 403, 403, 403, 403])

  // The file is read again on SIGHUP; an invalid file leaves the old list in force.
  writeFileSync(file(), 'nonsense\n')
  serving.child.kill('SIGHUP')
  await serving.says(/allow\.txt:1: [^\n]*the list read before stays in effect/)
  expect(await statuses(closed, ALIKE)).toEqual([200, 200, 204, 200])
  await stop(serving)
})

test('without a file argument it records to allow_list_path, which is not in force and can be missing', async () => {
  const recording = start(['check', '--record'], "allow_list_path = 'allow.txt'")
  const url = await listening(recording)
  expect(await ask(url, ['GET', '/api/notes?body.eq=hello'])).toBe(200)
  await stop(recording)
  expect(readFileSync(file(), 'utf8')).toBe('GET /api/notes?body.eq\n')
})

test('without any file it reports an error', async () => {
  const recording = start(['check', '--record'])
  expect(await recording.exited).toEqual([2, null])
  expect(recording.said.error).toContain('svc check --record FILE, or set allow_list_path')
})

test('a file that is not a list is left unchanged', async () => {
  writeFileSync(file(), 'nonsense\n')
  const recording = start(['check', '--record', file()])
  expect(await recording.exited).toEqual([1, null])
  expect(recording.said.error).toContain('allow.txt:1: ')
  expect(readFileSync(file(), 'utf8')).toBe('nonsense\n')
})
