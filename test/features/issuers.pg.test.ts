/**
 * docs/guides/authentication.md: tokens of identity providers over HTTP and `/ws`, with a provider that
 * rotates its keys and becomes unreachable.
 */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { createCondition } from '../support/condition.ts'
import { parseExposition } from '../support/exposition.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { type Reply, SECRET, type TestGateway, testGateway } from '../support/gateway.ts'
import { signHmac, signToken, type TestKey, type TestProvider, testKey, testProvider } from '../support/issuer.ts'
import { openSocket } from '../support/socket.ts'

const [first, second] = [testKey('RS256', 'first'), testKey('ES256', 'second')]

const database = databaseFixture(`
  create view settings with (security_invoker = true) as select name, current_setting(name, true) as value
    from unnest(array[
    'app.current_tenant_id', 'app.current_user_id', 'app.current_agent_id', 'app.current_role',
    'app.current_scopes']) as name;
  grant select on settings to app
`)

let provider: TestProvider
let folder: string
const opened: TestGateway[] = []
let events: Event[] = []
let condition = createCondition()
beforeEach(async () => {
  provider = await testProvider([first])
  folder = await mkdtemp(join(tmpdir(), 'svc-issuers-'))
  events = []
  condition = createCondition()
})
afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway.close()
  await provider.close()
  await rm(folder, { recursive: true })
})

async function gatewayWith(toml: string, environment: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const gateway = await testGateway(database.url, {
    ...{ toml, environment },
    emit(event) {
      events.push(event)
      condition.notify()
    },
  })
  opened.push(gateway)
  return gateway
}

/** Resolves once this number of key events have been received. */
const heard = (event: string, count = 1): Promise<void> =>
  condition.waitUntil(() => events.filter(one => one.kind === 'identity' && one.event === event).length >= count)

const now = () => Math.floor(Date.now() / 1_000)
const token = (key: TestKey, more: object = {}): string =>
  signToken(key, { claims: { iss: provider.url, exp: now() + 600, tenant_id: 't1', ...more } })
const ask = (gateway: TestGateway, bearer: string): Promise<Reply> =>
  gateway.get('/api/settings', { as: null, headers: { Authorization: `Bearer ${bearer}` } })

const issuer = (lines: string): string => `[[gateway.issuers]]\nissuer = "${provider.url}"\n${lines}`
const discovered = (): string => issuer('discovery = true')

test('a token becomes session settings according to its issuer’s mapping', async () => {
  const gateway = await gatewayWith(
    issuer(`discovery = true
      audience = "svc"
      tenant = "app_metadata.tenant_id"
      user = "sub"
      role = "realm_access.roles[0]"
      role_map = { staff = "clerk" }
      scopes = "https://shop.example/scopes"
      agent = { value = "robot" }`),
  )
  await heard('keys fetched')
  const claims = {
    ...{ aud: ['svc', 'x'], sub: 's1', app_metadata: { tenant_id: 't2' }, realm_access: { roles: ['staff', 'x'] } },
    'https://shop.example/scopes': ['a:read', 'b'],
  }
  const reply = await ask(gateway, token(first, claims))
  expect([reply.status, reply.json.data]).toEqual([
    200,
    [
      { name: 'app.current_tenant_id', value: 't2' },
      { name: 'app.current_user_id', value: 's1' },
      { name: 'app.current_agent_id', value: 'robot' },
      { name: 'app.current_role', value: 'clerk' },
      { name: 'app.current_scopes', value: 'a:read b' },
    ],
  ])
  const foreign = await ask(gateway, token(first, { ...claims, aud: 'other' }))
  expect([foreign.status, foreign.json.error.code]).toEqual([401, 'UNAUTHORIZED'])
  expect(foreign.headers.get('www-authenticate')).toContain('error="invalid_token"')
})

test('the gateway’s own secrets remain valid next to issuers', async () => {
  const environment = {
    JWT_SECRET_PREVIOUS: 'the secret before, of 32 bytes or so',
    K1: 'the secret called k1, of 32 bytes',
  }
  const gateway = await gatewayWith(`jwt_secrets = { k1 = "\${K1}" }\n${discovered()}`, environment)
  const claims = { tenant_id: 't1' }
  expect((await gateway.get('/api/settings')).status).toBe(200)
  expect((await ask(gateway, signHmac(environment.JWT_SECRET_PREVIOUS, { claims }))).status).toBe(200)
  expect((await ask(gateway, signHmac(environment.K1, { claims, header: { kid: 'k1' } }))).status).toBe(200)
  expect((await ask(gateway, signHmac(environment.K1, { claims }))).status).toBe(401)
  expect((await ask(gateway, signHmac(SECRET, { claims, header: { kid: 'k1' } }))).status).toBe(401)
  expect((await ask(gateway, signHmac(SECRET, { claims: { ...claims, iss: provider.url } }))).status).toBe(401)
})

describe('rotation', () => {
  test('a new key is fetched when the first token refers to it, and tokens of a removed key are rejected', async () => {
    const gateway = await gatewayWith(discovered())
    await heard('keys fetched')
    const old = token(first)
    expect((await ask(gateway, old)).status).toBe(200)
    provider.publish([first, second])
    const replies = await Promise.all(Array.from({ length: 20 }, () => ask(gateway, token(second))))
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(provider.fetches()).toBe(2)
    // During the cool-down the provider is not asked about other keys.
    expect((await ask(gateway, token(testKey('ES256', 'third')))).status).toBe(401)
    expect(provider.fetches()).toBe(2)
    expect((await ask(gateway, old)).status).toBe(200)
    provider.publish([second])
    await gateway.gateway.reload()
    await heard('keys fetched', 3)
    expect((await ask(gateway, old)).status).toBe(401)
    expect((await ask(gateway, token(second))).status).toBe(200)
  })

  test('a key set without a usable key is answered with 401, not 503', async () => {
    provider.answer(response => response.end('{"keys":[]}'))
    const gateway = await gatewayWith(issuer(`jwks_url = "${provider.jwksUrl}"`))
    await heard('keys fetched')
    expect((await ask(gateway, token(first))).status).toBe(401)
  })

  test('keys in a file are read again on SIGHUP, and an invalid file changes nothing', async () => {
    const file = join(folder, 'keys.pem')
    await writeFile(file, first.pem)
    const gateway = await gatewayWith(issuer(`public_key_path = "${file}"`))
    const tokens = [token(first), token(second)]
    const statuses = async () => (await Promise.all(tokens.map(one => ask(gateway, one)))).map(({ status }) => status)
    expect(await statuses()).toEqual([200, 401])
    await writeFile(file, second.pem)
    await gateway.gateway.reload()
    expect(await statuses()).toEqual([401, 200])
    await writeFile(file, 'nothing')
    await gateway.gateway.reload()
    expect(events).toContainEqual(
      expect.objectContaining({
        kind: 'warning',
        message: expect.stringContaining('the keys read before stay in effect'),
      }),
    )
    expect(await statuses()).toEqual([401, 200])
  })

  test('a file without a key prevents the start', async () => {
    const file = join(folder, 'keys.pem')
    await writeFile(file, 'nothing')
    await expect(gatewayWith(issuer(`public_key_path = "${file}"`))).rejects.toThrow(
      `issuer "${provider.url}": ${file}: it is not a JWK Set`,
    )
  })
})

describe('an outage of the provider', () => {
  test('at start-up causes 503 with Retry-After for its tokens only, until the provider answers', async () => {
    provider.answer(response => response.writeHead(500).end())
    const gateway = await gatewayWith(discovered())
    await heard('keys could not be fetched')
    const reply = await ask(gateway, token(first))
    expect([reply.status, reply.json.error.code]).toEqual([503, 'UNAVAILABLE'])
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect((await gateway.get('/api/settings')).status).toBe(200)
    expect((await ask(gateway, 'a.b.c')).status).toBe(401)
    provider.publish([first])
    await heard('keys fetched')
    expect((await ask(gateway, token(first))).status).toBe(200)
  })

  test('an upgrade to /ws is answered with 503 and Retry-After, a first message with close code 1013', async () => {
    provider.answer(response => response.writeHead(500).end())
    const gateway = await gatewayWith(discovered())
    await heard('keys could not be fetched')
    const upgrade = request(`${gateway.url}/ws`, {
      headers: {
        ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
        ...{ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==', Authorization: `Bearer ${token(first)}` },
      },
    }).end()
    const [response] = await once(upgrade, 'response')
    response.resume()
    expect(response.statusCode).toBe(503)
    expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    await expect(openSocket(gateway.url, { token: token(first) })).rejects.toThrow('503')
    const socket = await openSocket(gateway.url)
    socket.say({ type: 'auth', token: token(first), id: 'a' })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'a', code: 'UNAVAILABLE' })
    expect((await socket.closed)[0]).toBe(1013)
  })

  test('keys fetched before remain in use, and the metrics show the outage', async () => {
    const gateway = await gatewayWith(issuer(`jwks_url = "${provider.jwksUrl}"`))
    await heard('keys fetched')
    provider.answer(response => response.destroy())
    await gateway.gateway.reload()
    await heard('keys could not be fetched again; the old keys stay in use')
    expect((await ask(gateway, token(first))).status).toBe(200)
    const families = parseExposition((await gateway.get('/metrics', { as: null })).text)
    const value = (name: string, outcome?: string) =>
      families.get(name)?.samples.find(({ labels }) => labels.issuer === provider.url && labels.outcome === outcome)
        ?.value
    expect(value('svc_issuer_keys')).toBe(1)
    expect(value('svc_issuer_key_fetches_total', 'fetched')).toBe(1)
    expect(value('svc_issuer_key_fetches_total', 'failed')).toBeGreaterThanOrEqual(1)
    const details = (await gateway.get('/health/internal', { as: null })).json
    expect(details.issuers).toEqual([expect.objectContaining({ issuer: provider.url, keys: 1, fetched: 1 })])
  })
})

describe('metadata for OAuth clients (RFC 9728)', () => {
  const WELL_KNOWN = '/.well-known/oauth-protected-resource'

  test('without an issuer it is absent, and rejections do not refer to it', async () => {
    const gateway = await gatewayWith('')
    expect((await gateway.get(WELL_KNOWN, { as: null })).status).toBe(404)
    expect((await ask(gateway, 'a.b.c')).headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
  })

  test('lists the providers and the gateway’s listening address, whatever the Host header contains', async () => {
    const gateway = await gatewayWith(discovered())
    const reply = await gateway.get(WELL_KNOWN, { as: null, headers: { 'X-Forwarded-Host': 'evil.example' } })
    expect([reply.status, reply.json]).toEqual([
      200,
      { resource: gateway.url, authorization_servers: [provider.url], bearer_methods_supported: ['header'] },
    ])
    const named = `resource_metadata="${gateway.url}${WELL_KNOWN}"`
    expect((await ask(gateway, 'a.b.c')).headers.get('www-authenticate')).toBe(`Bearer error="invalid_token", ${named}`)
    const none = await gateway.get('/api/settings', { as: null, headers: { Host: 'evil.example' } })
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, `Bearer ${named}`])
  })

  test('has public_url as the resource, or without it the address that a trusted proxy reports', async () => {
    const named = await gatewayWith(`public_url = "https://shop.example/data"\n${discovered()}`)
    for (const path of [WELL_KNOWN, `${WELL_KNOWN}/data`]) {
      expect((await named.get(path, { as: null })).json.resource).toBe('https://shop.example/data')
    }
    expect((await ask(named, 'a.b.c')).headers.get('www-authenticate')).toContain(
      `resource_metadata="https://shop.example${WELL_KNOWN}/data"`,
    )
    const behind = await gatewayWith(`trusted_proxies = ["127.0.0.1"]\n${discovered()}`)
    const headers = { 'X-Forwarded-Host': 'shop.example', 'X-Forwarded-Proto': 'https' }
    expect((await behind.get(WELL_KNOWN, { as: null, headers })).json.resource).toBe('https://shop.example')
  })
})
