/**
 * docs/guides/authentication.md at every entry point: below `/api`, in the dialect of PostgREST, shapes, and
 * the sockets of both protocols. Tokens of a provider, their rejection, its outage and revocation.
 */
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { signToken, type TestProvider, testKey, testProvider } from '../support/issuer.ts'
import { execute } from '../support/postgres.ts'
import { uniqueName } from '../support/server.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const author = uniqueName('author')
const key = testKey('ES256', 'k')

const database = databaseFixture()
let provider: TestProvider
/** Accepts connections and closes them at once. */
const down = createServer(socket => socket.destroy())
const downUrl = (): string => {
  const address = down.address()
  return typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : ''
}

beforeAll(async () => {
  const login = decodeURIComponent(new URL(database.url).username)
  await execute(
    database.adminUrl,
    `create role ${author} nologin; grant ${author} to "${login}"; grant usage on schema public to ${author};
     create table notes (id int primary key); insert into notes values (1);
     grant select on notes to ${author}, app;
     create table revoked_tokens (jti text, sub text, iat timestamptz);
     grant select on revoked_tokens to ${author}, app`,
  )
  await installed(database, [{ schema: 'public', table: 'notes' }])
  provider = await testProvider([key])
  await new Promise<void>(resolve => down.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  await provider.close()
  await new Promise(resolve => down.close(resolve))
  await execute(database.adminUrl, `drop owned by ${author}; drop role ${author}`)
})
beforeEach(() => execute(database.adminUrl, 'truncate revoked_tokens'))

const gateway = gatewayFixture(database, () => ({
  toml: `jwt_denylist_table = "revoked_tokens"
[[gateway.issuers]]
issuer = "${provider.url}"
discovery = true
[[gateway.issuers]]
issuer = "${downUrl()}"
discovery = true
[postgrest]
enabled = true
realtime = true
[shapes]
enabled = true
long_poll_ms = 300000`,
}))

const token = (more: object = {}): string =>
  signToken(key, {
    claims: { iss: provider.url, exp: Math.floor(Date.now() / 1_000) + 600, tenant_id: 't1', role: author, ...more },
  })

/** `body`: null for a GET. */
type Entry = readonly [name: string, path: string, body: string | null]

const ENTRIES: readonly Entry[] = [
  ['/api', '/api/notes', null],
  ['/api/_batch', '/api/_batch', '{"operations": [{"method": "GET", "path": "/api/notes"}]}'],
  ['/rest/v1', '/rest/v1/notes', null],
  ['/v1/shape', '/v1/shape?table=notes&offset=-1', null],
]

function ask(bearer: string, path: string, body: string | null = null): Promise<Reply> {
  const headers = { Authorization: `Bearer ${bearer}` }
  if (body === null) return gateway.get(path, { as: null, headers })
  return gateway.get(path, {
    ...{ as: null, method: 'POST', body },
    headers: { ...headers, 'Content-Type': 'application/json' },
  })
}

describe.each(ENTRIES)('%s', (_, path, body) => {
  test('accepts a token of a provider', async () => {
    expect((await ask(token(), path, body)).status).toBe(200)
  })

  test('names the metadata in the 401 for a bad token, and without a token', async () => {
    const named = `resource_metadata="${gateway.url}/.well-known/oauth-protected-resource"`
    const bad = await ask(signToken(testKey('ES256', 'k'), { claims: { iss: provider.url } }), path, body)
    const challenge = bad.headers.get('www-authenticate') ?? ''
    expect([bad.status, challenge]).toEqual([401, expect.stringMatching(/^Bearer error="invalid_token", /)])
    expect(challenge.endsWith(`, ${named}`)).toBe(true)
    const none = await fetch(gateway.url + path, body === null ? {} : { method: 'POST', body })
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, `Bearer ${named}`])
  })

  test('answers 503 with Retry-After while the keys of the issuer cannot be fetched', async () => {
    const reply = await ask(token({ iss: downUrl() }), path, body)
    expect(reply.status).toBe(503)
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })
})

test('the 401 to an upgrade names the metadata', async () => {
  const upgrade = request(`${gateway.url}/ws`, {
    headers: {
      ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
      ...{ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==', Authorization: 'Bearer a.b.c' },
    },
  }).end()
  const [response] = await once(upgrade, 'response')
  response.resume()
  const named = `resource_metadata="${gateway.url}/.well-known/oauth-protected-resource"`
  expect([response.statusCode, response.headers['www-authenticate']]).toEqual([
    401,
    `Bearer error="invalid_token", ${named}`,
  ])
})

test('no entry point serves the table of revoked tokens, although the roles can read it', async () => {
  const statuses = await Promise.all(
    ENTRIES.map(async ([, path, body]) => {
      const reply = await ask(
        token(),
        path.replace('notes', 'revoked_tokens'),
        body?.replace('notes', 'revoked_tokens'),
      )
      expect(reply.text).not.toContain('"jti"')
      return reply.status
    }),
  )
  expect(statuses).toEqual([404, 404, 404, 400])
  const root = await ask(token(), '/rest/v1/')
  expect([root.text.includes('notes'), root.text.includes('revoked_tokens')]).toEqual([true, false])
})

describe('revocation ends', () => {
  const revoke = (sub: string) =>
    execute(database.adminUrl, `insert into revoked_tokens (sub, iat) values ('${sub}', now())`)

  test('the use of an accepted token at every entry point, and its socket', async () => {
    const mine = token({ sub: 'dan' })
    const statuses = async () =>
      (await Promise.all(ENTRIES.map(([, path, body]) => ask(mine, path, body)))).map(({ status }) => status)
    expect(await statuses()).toEqual([200, 200, 200, 200])
    const socket = await openSocket(gateway.url, { token: mine })
    await revoke('dan')
    expect(await socket.closed).toEqual([4401, 'the token has been revoked'])
    expect(await statuses()).toEqual([401, 401, 401, 401])
  })

  test('the channels of /realtime/v1 that the token joined, and no others', async () => {
    const [ann, bob] = [await join('ann'), await join('bob')]
    await revoke('ann')
    expect(await ann.next()).toMatchObject([
      '1',
      null,
      'realtime:a',
      'system',
      { status: 'error', message: 'the token has been revoked' },
    ])
    expect(await ann.next()).toMatchObject(['1', null, 'realtime:a', 'phx_close', {}])
    bob.socket.send(JSON.stringify([null, '7', 'phoenix', 'heartbeat', {}]))
    expect(await bob.next()).toEqual(['7', '7', 'phoenix', 'phx_reply', { status: 'ok', response: {} }])
    ann.socket.send(joining(token({ sub: 'ann' })))
    expect(await ann.next()).toMatchObject(['1', '1', 'realtime:a', 'phx_reply', { status: 'error' }])
    await Promise.all([ann.close(), bob.close()])
  })

  test('the waiting requests of shapes', async () => {
    const mine = token({ sub: 'eve' })
    const first = await ask(mine, '/v1/shape?table=notes&offset=-1')
    const at = `handle=${first.headers.get('electric-handle')}&offset=${first.headers.get('electric-offset')}`
    const waiting = ask(mine, `/v1/shape?table=notes&live=true&${at}`)
    await revoke('eve')
    // It would wait for five minutes.
    expect((await waiting).status).toBe(200)
    expect((await ask(mine, `/v1/shape?table=notes&live=true&${at}`)).status).toBe(401)
  })
})

const joining = (access_token: string): string =>
  JSON.stringify(['1', '1', 'realtime:a', 'phx_join', { config: {}, access_token }])

/** Joins a channel as this user. */
async function join(sub: string): Promise<TestSocket> {
  const socket = await openSocket(gateway.url, { path: '/realtime/v1/websocket?apikey=key&vsn=2.0.0' })
  socket.socket.send(joining(token({ sub })))
  expect(await socket.next()).toMatchObject(['1', '1', 'realtime:a', 'phx_reply', { status: 'ok' }])
  return socket
}
