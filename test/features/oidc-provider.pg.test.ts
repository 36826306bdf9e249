/**
 * docs/guides/authentication.md with a certified OpenID provider, `oidc-provider`: discovery, its access
 * tokens in each algorithm, key rotation during requests, and an outage.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { createCondition } from '../support/condition.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { type PublicAlgorithm, type TestKey, testKey } from '../support/issuer.ts'
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'

const AUDIENCE = 'urn:example:svc'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await execute(
    database.adminUrl,
    `create table invoices (id int primary key, tenant_id text not null);
     insert into invoices values (1, 't1'), (2, 't2');
     alter table invoices enable row level security;
     create policy own on invoices using (tenant_id = current_setting('app.current_tenant_id', true));
     grant select on invoices to app`,
  )
})
afterAll(() => database.drop())

interface Authority {
  readonly issuer: string
  /** Signs with the first key and publishes all. */
  use(...keys: readonly TestKey[]): Promise<void>
  goDown(): void
  /** Requests an access token as the client. */
  token(): Promise<string>
  close(): Promise<void>
}

async function authority(...keys: readonly TestKey[]): Promise<Authority> {
  let handle: RequestListener = (_request, response) => response.writeHead(503).end()
  const server: Server = createServer((request, response) => handle(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  async function use(...published: readonly TestKey[]): Promise<void> {
    handle = await providerOf(issuer, published)
  }
  await use(...keys)
  return {
    issuer,
    use,
    goDown() {
      handle = (request, response) => {
        request.resume()
        response.destroy()
      }
    },
    async token() {
      const body = new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE, scope: 'invoices:read' })
      const authorization = `Basic ${Buffer.from('client:secret').toString('base64')}`
      const response = await fetch(`${issuer}/token`, { method: 'POST', body, headers: { authorization } })
      const answer = (await response.json()) as { readonly access_token?: string }
      expect(answer).toMatchObject({ access_token: expect.any(String) })
      return answer.access_token ?? ''
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

async function providerOf(issuer: string, keys: readonly TestKey[]): Promise<RequestListener> {
  // @ts-expect-error: the package has no types
  const { Provider } = await import('oidc-provider')
  const jwks = keys.map(({ privateKey, kid, alg }) => ({
    ...privateKey.export({ format: 'jwk' }),
    kid,
    alg,
    use: 'sig',
  }))
  const alg = keys[0]?.alg
  const provider = new Provider(issuer, {
    jwks: { keys: jwks },
    clients: [
      {
        ...{ client_id: 'client', client_secret: 'secret', grant_types: ['client_credentials'] },
        ...{ redirect_uris: [], response_types: [] },
        ...{ id_token_signed_response_alg: alg },
      },
    ],
    enabledJWA: { idTokenSigningAlgValues: [alg] },
    scopes: ['invoices:read'],
    extraTokenClaims: () => ({ tenant_id: 't1' }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          ...{ scope: 'invoices:read', audience: AUDIENCE, accessTokenFormat: 'jwt', jwt: { sign: { alg } } },
        }),
      },
    },
  })
  return provider.callback() as RequestListener
}

let events: Event[] = []
let condition = createCondition()
const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

async function world(
  ...keys: readonly TestKey[]
): Promise<{ readonly provider: Authority; readonly gateway: TestGateway }> {
  events = []
  condition = createCondition()
  const provider = await authority(...keys)
  opened.push(provider)
  const gateway = await testGateway(database.url, {
    toml: [
      '[[gateway.issuers]]',
      `issuer = "${provider.issuer}"`,
      'discovery = true',
      `audience = "${AUDIENCE}"`,
      'user = "client_id"',
    ].join('\n'),
    emit(event) {
      events.push(event)
      condition.notify()
    },
  })
  opened.push(gateway)
  return { provider, gateway }
}

const heard = (event: string, count = 1): Promise<void> =>
  condition.waitUntil(() => events.filter(one => one.kind === 'identity' && one.event === event).length >= count)

async function ask(gateway: TestGateway, token: string): Promise<readonly [status: number, ids: readonly number[]]> {
  const reply = await gateway.get('/api/invoices?select=id', {
    as: null,
    headers: { Authorization: `Bearer ${token}` },
  })
  return [reply.status, reply.status === 200 ? reply.json.data.map(({ id }: { id: number }) => id) : []]
}

test.each<PublicAlgorithm>(['RS256', 'PS256', 'ES256', 'EdDSA'])(
  'an access token signed with %s shows the rows of its tenant',
  async alg => {
    const { provider, gateway } = await world(testKey(alg, 'k1'))
    await heard('keys fetched')
    expect(await ask(gateway, await provider.token())).toEqual([200, [1]])
  },
)

describe('rotation and outage', () => {
  test('no request fails while keys are rotated', async () => {
    const [first, second] = [testKey('RS256', 'k1'), testKey('RS256', 'k2')]
    const { provider, gateway } = await world(first)
    await heard('keys fetched')
    const old = await provider.token()
    const statuses = new Set<number>()
    let isRotating = true
    const asking = Array.from({ length: 4 }, async () => {
      while (isRotating) statuses.add((await ask(gateway, old))[0])
    })
    await provider.use(second, first)
    expect(await ask(gateway, await provider.token())).toEqual([200, [1]])
    isRotating = false
    await Promise.all(asking)
    expect(statuses).toEqual(new Set([200]))
    // The old key is removed: after the next refresh, its tokens are rejected.
    await provider.use(second)
    await gateway.gateway.reload()
    await heard('keys fetched', 3)
    expect((await ask(gateway, old))[0]).toBe(401)
    expect(await ask(gateway, await provider.token())).toEqual([200, [1]])
  })

  test('tokens are still accepted while the provider is unreachable', async () => {
    const { provider, gateway } = await world(testKey('ES256', 'k1'))
    await heard('keys fetched')
    const [one, other] = [await provider.token(), await provider.token()]
    expect(await ask(gateway, one)).toEqual([200, [1]])
    provider.goDown()
    await gateway.gateway.reload()
    await heard('keys could not be fetched again; the old keys stay in use')
    expect(await ask(gateway, one)).toEqual([200, [1]])
    expect(await ask(gateway, other)).toEqual([200, [1]])
  })
})
