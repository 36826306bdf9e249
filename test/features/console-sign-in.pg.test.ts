/**
 * docs/guides/console.md#sign-in-with-an-identity-provider: in a real browser, with a certified OpenID
 * provider on another origin.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BROWSER_MISSING, openBrowser } from '../support/browser.ts'
import { auditScreen, tabTo, VIEWS } from '../support/console.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { testKey } from '../support/issuer.ts'
import { sampleDatabase } from '../support/sample.ts'

const PATIENT = { timeout: 60_000 }
const AUDIENCE = 'urn:example:svc'
const CLIENT = 'svc-console'

const database = databaseFixture(sampleDatabase)
let server: Server
let issuer = ''
let handle: RequestListener = (_request, response) => response.writeHead(503).end()
let gateway: TestGateway

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/favicon.ico') response.writeHead(204).end()
    else handle(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  gateway = await testGateway(database.url, {
    toml: `
      [gateway.console]
      enabled = true
      oidc_client_id = "${CLIENT}"
      oidc_scopes = ["openid", "orders:read"]
      oidc_parameters = { resource = "${AUDIENCE}" }
      [[gateway.issuers]]
      issuer = "${issuer}"
      discovery = true
      audience = "${AUDIENCE}"
      user = "sub"`,
  })
  await provide([`${gateway.url}/console`])
  // The keys did not exist when the gateway started.
  await gateway.gateway.reload()
})
afterAll(async () => {
  await gateway?.close()
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

const key = testKey('ES256', 'k1')

/** Replaces the provider by one without sessions. Every user is a clerk of the first tenant. */
async function provide(redirectUris: readonly string[]): Promise<void> {
  // @ts-expect-error: the package has no types
  const { Provider } = await import('oidc-provider')
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.kid, alg: key.alg, use: 'sig' }] },
    clients: [
      {
        ...{ client_id: CLIENT, token_endpoint_auth_method: 'none', redirect_uris: redirectUris },
        ...{ grant_types: ['authorization_code'], response_types: ['code'], id_token_signed_response_alg: key.alg },
      },
    ],
    enabledJWA: { idTokenSigningAlgValues: [key.alg] },
    cookies: { keys: ['a key of this test'] },
    pkce: { required: () => true },
    clientBasedCORS: (_context: unknown, origin: string) => origin === gateway.url,
    extraTokenClaims: () => ({ tenant_id: database.tenants[0]?.id, role: 'clerk' }),
    features: {
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          ...{ scope: 'orders:read', audience: AUDIENCE, accessTokenFormat: 'jwt' },
          jwt: { sign: { alg: key.alg } },
        }),
      },
    },
  })
  // Its pages load a font from another host.
  provider.use(async (context: { body: unknown }, next: () => Promise<void>) => {
    await next()
    if (typeof context.body === 'string') context.body = context.body.replace(/@import[^;]*;/, '')
  })
  handle = provider.callback() as RequestListener
}

test('the page permits requests to its gateway and to the provider, and learns how to sign in', async () => {
  const page = await gateway.get('/console', { as: null })
  const policy = page.headers.get('content-security-policy')
  expect(policy).toContain(`; connect-src 'self' ${issuer};`)
  expect(policy?.replace(issuer, '')).not.toMatch(/unsafe|https?:|\*/)
  for (const path of ['/', '/docs']) {
    const other = await gateway.get(path, { as: null, headers: { Accept: 'text/html' } })
    expect(other.headers.get('content-security-policy')).toMatch(/connect-src 'self'(;|$)/)
  }
  expect((await gateway.get('/front/state', { as: null })).json.provider).toEqual({
    ...{ issuer, clientId: CLIENT, scopes: ['openid', 'orders:read'], parameters: { resource: AUDIENCE } },
  })
})

if (BROWSER_MISSING !== null) process.stderr.write(`console-sign-in: nothing is opened: ${BROWSER_MISSING}\n`)

// Without a browser these tests are skipped; the message above says so.
describe.skipIf(BROWSER_MISSING !== null)('in a browser', () => {
  const page = fixture(openBrowser)
  beforeEach(async () => {
    await provide([`${gateway.url}/console`])
    await page.show(1280, 'light')
    await page.open(gateway.url)
    await page.evaluate('sessionStorage.clear()')
    page.complaints.length = 0
    ;(page.requested as string[]).length = 0
  })

  const BUTTON = `document.querySelector('.sign-in .main')`
  const ALERT = `document.querySelector('.sign-in [role=alert]')`
  const kept = (name: string): Promise<string | null> => page.evaluate(`sessionStorage.getItem('${name}')`)

  async function openSignIn(address = ''): Promise<void> {
    await page.open(`${gateway.url}/console${address}`)
    await page.until(`${BUTTON} !== null`)
  }
  const submit = (label: RegExp) =>
    page.follow(() =>
      page.evaluate(`[...document.querySelectorAll('button, a')].find(b => ${label}.test(b.textContent)).click()`),
    )

  test('a user signs in by keyboard, and returns to the same screen as the caller of the token', PATIENT, async () => {
    await openSignIn('#/explore/orders?status=paid')
    await tabTo(page, `element === ${BUTTON}`)
    await page.follow(() => page.press('Enter'))
    expect(await page.evaluate('location.origin')).toBe(issuer)
    await page.evaluate(`document.querySelector('[name=login]').focus()`)
    await page.type('ann')
    await page.evaluate(`document.querySelector('[name=password]').focus()`)
    await page.type('any')
    await page.follow(() => page.press('Enter'))
    await submit(/Continue/)
    await page.until(`document.querySelectorAll('.table-view > .scroll tbody tr').length > 0`)
    expect(await page.evaluate('location.href')).toBe(`${gateway.url}/console#/explore/orders?status=paid`)
    expect(await page.evaluate(`document.querySelector('.caller summary').innerText`)).toBe('Signed in: clerk')
    await tabTo(page, `element.matches('.caller summary')`)
    await page.press('Enter')
    expect(await page.evaluate(`document.querySelector('.caller dl').innerText`)).toMatch(/sub\s+ann/)
    const reply = await fetch(`${gateway.url}/api/orders?limit=1`, {
      headers: { Authorization: `Bearer ${await kept('svc-token')}` },
    })
    expect(((await reply.json()) as { data: { tenant_id: string }[] }).data[0]?.tenant_id).toBe(database.tenants[0]?.id)
    expect(await kept('svc-console-sign-in')).toBeNull()
    expect(new Set(page.requested.filter(url => !url.startsWith('data:')).map(url => new URL(url).origin))).toEqual(
      new Set([gateway.url, issuer]),
    )
    expect(page.requested.filter(url => url.startsWith(gateway.url) && /[?&]code=/.test(url))).toHaveLength(1)
    expect(page.complaints).toEqual([])
  })

  test('a user who cancels sees the reason of the provider', PATIENT, async () => {
    await openSignIn()
    await page.follow(() => page.evaluate(`${BUTTON}.click()`))
    await submit(/Cancel/)
    await page.until(`${ALERT} !== null`)
    expect(await page.evaluate(`${ALERT}.innerText`)).toContain(`${issuer} refused the sign-in: access_denied`)
    expect(await page.evaluate('location.href')).toBe(`${gateway.url}/console`)
  })

  test('a link with the code of another sign-in is refused', PATIENT, async () => {
    await page.open(`${gateway.url}/console?code=stolen&state=guessed#/query`)
    await page.until(`${ALERT} !== null`)
    expect(await page.evaluate(`${ALERT}.innerText`)).toContain('does not belong to a sign-in of this tab')
    expect(await page.evaluate('location.search')).toBe('')
    expect(await kept('svc-token')).toBeNull()
    expect(page.requested.filter(url => url.startsWith(issuer))).toEqual([])
  })

  test('a provider that does not answer is named', PATIENT, async () => {
    handle = (request, response) => {
      request.resume()
      response.destroy()
    }
    await openSignIn()
    await page.evaluate(`${BUTTON}.click()`)
    await page.until(`${ALERT} !== null`)
    expect(await page.evaluate(`${ALERT}.innerText`)).toContain(`${issuer} does not answer this browser`)
  })

  test(
    'after an error of the provider about the redirect URI, the form names the one to register',
    PATIENT,
    async () => {
      await provide(['https://elsewhere.example/console'])
      await openSignIn()
      await page.follow(() => page.evaluate(`${BUTTON}.click()`))
      expect(await page.evaluate('document.body.innerText')).toContain('redirect_uri')
      await page.open(`${gateway.url}/console`)
      await page.until(`${ALERT} !== null`)
      expect(await page.evaluate(`${ALERT}.innerText`)).toContain(`register ${gateway.url}/console there`)
    },
  )

  test.each(VIEWS)('the form: $width px, $theme', PATIENT, async view => {
    await page.show(view.width, view.theme)
    await openSignIn()
    await auditScreen(page, 'sign-in-provider', view)
  })
})
