/**
 * Fetches from a real server: which responses contain keys, their lifetime, and the hosts that a fetch can
 * contact.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type TestProvider, testKey, testProvider } from '../../../test/support/issuer.ts'
import { createAddressGuard } from '../../outbound/address-guard.ts'
import { type FetchedKeys, fetchKeys } from './provider.ts'

const key = testKey('ES256', 'k')
const guard = createAddressGuard({ allow: [], loopback: 'refused', traffic: 'fetches of keys' })

let provider: TestProvider
beforeEach(async () => {
  provider = await testProvider([key])
})
afterEach(() => provider.close())

const byUrl = (jwksUrl: string = provider.jwksUrl): Promise<FetchedKeys> =>
  fetchKeys({ config: { issuer: 'me', jwksUrl }, guard, userAgent: 'svc/test' })
const byDiscovery = (issuer: string = provider.url): Promise<FetchedKeys> =>
  fetchKeys({ config: { issuer, jwksUrl: null }, guard, userAgent: 'svc/test' })

async function failure(fetching: Promise<unknown>): Promise<string> {
  return fetching.then(
    () => 'fetched',
    error => (error as Error).message,
  )
}

test('keys are fetched from jwks_url or by discovery', async () => {
  expect((await byUrl()).keys.map(({ kid }) => kid)).toEqual(['k'])
  expect((await byDiscovery()).keys.map(({ kid }) => kid)).toEqual(['k'])
  expect((await byDiscovery(`${provider.url}`)).keys).toHaveLength(1)
  expect(provider.server.received[0]?.headers).toMatchObject({
    'user-agent': 'svc/test',
    'accept-encoding': 'identity',
  })
})

test.each([
  [undefined, 300],
  ['no-cache', 300],
  ['public, max-age=600', 600],
  ['max-age=1', 5],
  ['max-age=0, must-revalidate', 5],
  ['MAX-AGE=99999999', 86_400],
  ['s-maxage=10', 300],
  ['max-age=x', 300],
])('Cache-Control: %s keeps the keys for %d seconds', async (cacheControl, seconds) => {
  provider.publish([key], cacheControl === undefined ? {} : { 'cache-control': cacheControl })
  expect((await byUrl()).maxAgeMs).toBe(seconds * 1_000)
})

describe('responses that are errors', () => {
  test.each([201, 204, 304, 401, 404, 429, 500])('status %d', async status => {
    provider.answer(response => response.writeHead(status).end())
    expect(await failure(byUrl())).toBe(`${provider.jwksUrl}: the response has status ${status}; expected 200`)
  })

  test.each(['', '<html>', '[]', '{"keys":1}'])('%j', async body => {
    provider.answer(response => response.end(body))
    expect(await failure(byUrl())).toMatch(/: it is not a JWK Set/)
  })

  test('more than 1 MiB, even of a valid set', async () => {
    const set = (bytes: number) =>
      JSON.stringify({ keys: [key.jwk], padding: '' }).replace('""', `"${'x'.repeat(bytes)}"`)
    const room = 1_048_576 - set(0).length
    provider.answer(response => response.end(set(room)))
    expect((await byUrl()).keys).toHaveLength(1)
    provider.answer(response => response.end(set(room + 1)))
    expect(await failure(byUrl())).toBe(`${provider.jwksUrl}: the response has more than 1048576 bytes`)
  })

  test('no server at the address', async () => {
    await provider.close()
    expect(await failure(byUrl())).toMatch(/ECONNREFUSED/)
  })

  test('a response that is cut off', async () => {
    provider.answer(response => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"keys":', () => response.destroy())
    })
    expect(await failure(byUrl())).not.toBe('fetched')
  })
})

test('Content-Type is ignored, and a set without a usable key is valid', async () => {
  provider.answer(response => response.writeHead(200, { 'content-type': 'text/html' }).end('{"keys":[{"kty":"oct"}]}'))
  expect(await byUrl()).toMatchObject({ keys: [], unusable: ['key 1: its kty is not RSA, EC or OKP'] })
})

describe('discovery', () => {
  const answer = (document: unknown) =>
    provider.server.respond(response =>
      response.end(typeof document === 'string' ? document : JSON.stringify(document)),
    )

  test('a document of another issuer is rejected', async () => {
    answer({ issuer: 'https://id.example', jwks_uri: provider.jwksUrl })
    expect(await failure(byDiscovery())).toBe(
      `${provider.url}/.well-known/openid-configuration: its issuer is not "${provider.url}"`,
    )
  })

  test.each(['[]', '', '{}', 'null'])('%j is not a discovery document', async text => {
    answer(text)
    expect(await failure(byDiscovery())).toMatch(/it is not a JSON object|its issuer is not/)
  })

  test('jwks_uri on another host is checked by the address guard and must be https', async () => {
    const { port } = new URL(provider.url)
    answer({ issuer: provider.url, jwks_uri: `http://localhost:${port}/jwks` })
    expect(await failure(byDiscovery())).toMatch(/is a loopback address, which is not allowed for fetches of keys/)
    answer({ issuer: provider.url, jwks_uri: 'http://id.example/jwks' })
    expect(await failure(byDiscovery())).toBe('http://id.example/jwks: keys are fetched over https only')
    answer({ issuer: provider.url, jwks_uri: 'https://169.254.169.254/jwks' })
    expect(await failure(byDiscovery())).toMatch(/169\.254\.169\.254 is a link-local address/)
    answer({ issuer: provider.url, jwks_uri: 'file:///etc/passwd' })
    expect(await failure(byDiscovery())).toBe('file:///etc/passwd: keys are fetched over https only')
    answer({ issuer: provider.url, jwks_uri: 7 })
    expect(await failure(byDiscovery())).toMatch(/its jwks_uri is not a URL/)
  })
})

describe('redirects', () => {
  /** Redirects this many times before it answers. */
  const redirect = (times: number, to: (n: number) => string) =>
    provider.server.respond((response, { path }) => {
      const n = Number(path.split('/').at(-1)) || 0
      if (n < times) response.writeHead(302, { location: to(n + 1) }).end()
      else response.end(JSON.stringify({ keys: [key.jwk] }))
    })

  test('three redirects are followed, a fourth is not', async () => {
    redirect(3, n => `/jwks/${n}`)
    expect((await byUrl()).keys).toHaveLength(1)
    redirect(4, n => `/jwks/${n}`)
    expect(await failure(byUrl())).toBe(`${provider.jwksUrl}: more than 3 redirects`)
  })

  test.each([
    ['http://169.254.169.254/latest', 'keys are fetched over https only'],
    ['https://169.254.169.254/latest', 'link-local'],
    ['https://10.0.0.1/', 'private'],
    ['https://[::1]/', 'loopback'],
    ['http://[::1]:1/', 'loopback'],
    ['https://[::ffff:127.0.0.1]/', 'loopback'],
    ['file:///etc/passwd', 'keys are fetched over https only'],
    ['https://user@id.example/', 'keys are fetched over https only'],
    ['http://', 'redirects to an invalid URL'],
  ])('to %s are rejected', async (location, reason) => {
    redirect(1, () => location)
    expect(await failure(byUrl())).toContain(reason)
  })

  test('to another port of the configured host are rejected', async () => {
    const other = await testProvider([key])
    redirect(1, () => other.jwksUrl)
    expect(await failure(byUrl())).toMatch(/loopback/)
    expect(other.fetches()).toBe(0)
    await other.close()
  })
})
