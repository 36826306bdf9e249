/** Against a provider that is written by hand, because a correct one sends none of these responses. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { beginSignIn, completeSignIn, type PendingSignIn, readArrival, type SignInProvider } from './oidc.ts'

let server: Server
let provider: SignInProvider
let document: Record<string, unknown> = {}
let answer: (pending: PendingSignIn) => readonly [status: number, body: unknown] = () => [200, {}]
let pending: PendingSignIn
let sent = new URLSearchParams()

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = ''
    request.on('data', chunk => {
      text += chunk
    })
    request.on('end', () => {
      sent = new URLSearchParams(text)
      const [status, body] = request.method === 'POST' ? answer(pending) : [200, document]
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  provider = { issuer, clientId: 'console', scopes: ['openid', 'a'], parameters: { audience: 'api' } }
})
afterAll(() => server.close())

const begin = () => beginSignIn(provider, { redirectUri: 'http://gateway/console', screen: '#/query' })
const arrive = (parameters: Readonly<Record<string, string>> = {}) =>
  completeSignIn(new URLSearchParams({ code: 'c', state: pending.state, ...parameters }), pending)
const idToken = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`
const good = ({ nonce }: PendingSignIn) => ({ iss: provider.issuer, aud: provider.clientId, nonce })

beforeEach(async () => {
  const { issuer } = provider
  document = { issuer, authorization_endpoint: `${issuer}/auth?x=1`, token_endpoint: `${issuer}/token` }
  answer = () => [200, { access_token: 't', id_token: idToken(good(pending)) }]
  pending = (await begin()).pending
})

test.each([
  ['?code=a&state=b', true],
  ['?error=access_denied&state=b', true],
  ['?code=a', false],
  ['?state=b', false],
  ['', false],
])('whether %j comes from a provider: %s', (search, isArrival) => {
  expect(readArrival(search) !== null).toBe(isArrival)
})

test('the request has the hash of the verifier, which only the exchange of the code contains', async () => {
  const { pending: begun, address } = await begin()
  const asked = Object.fromEntries(new URL(address).searchParams)
  const digest = await crypto.subtle.digest('SHA-256', Buffer.from(begun.verifier))
  expect(asked).toEqual({
    ...{ x: '1', audience: 'api', response_type: 'code', client_id: 'console', scope: 'openid a' },
    ...{ redirect_uri: 'http://gateway/console', state: begun.state, nonce: begun.nonce },
    ...{ code_challenge: Buffer.from(digest).toString('base64url'), code_challenge_method: 'S256' },
  })
  expect(new Set([begun.state, begun.nonce, begun.verifier, pending.state]).size).toBe(4)
  expect(await arrive()).toBe('t')
  expect(Object.fromEntries(sent)).toEqual({
    ...{ audience: 'api', grant_type: 'authorization_code', client_id: 'console' },
    ...{ redirect_uri: 'http://gateway/console', code: 'c', code_verifier: pending.verifier },
  })
})

describe('a response is refused', () => {
  test.each([
    ['with another state', { state: 'other' }],
    ['from another issuer', { iss: 'https://other.example' }],
  ])('%s, and its code is not sent', async (_, parameters) => {
    sent = new URLSearchParams()
    await expect(arrive(parameters)).rejects.toThrow('does not belong to a sign-in of this tab')
    expect(sent.size).toBe(0)
  })

  test.each([
    ['another nonce', () => ({ ...good(pending), nonce: 'other' })],
    ['another issuer', () => ({ ...good(pending), iss: 'https://other.example' })],
    ['another client', () => ({ ...good(pending), aud: ['other'] })],
    ['no claims', () => null],
  ])('if the ID token has %s', async (_, claims) => {
    answer = () => [200, { access_token: 't', id_token: claims() === null ? 'x' : idToken(claims() ?? {}) }]
    await expect(arrive()).rejects.toThrow('does not belong to a sign-in of this tab')
  })

  test.each([
    [[400, { error: 'invalid_grant', error_description: 'used' }], 'refused the sign-in: invalid_grant: used.'],
    [[500, 'no'], 'refused the sign-in: it gave no reason.'],
    [[200, { token_type: 'Bearer' }], 'cannot be used: its response has no access_token.'],
  ] as const)('if it is %j', async (reply, message) => {
    answer = () => reply
    await expect(arrive()).rejects.toThrow(message)
  })
})

test.each([
  [{ issuer: 'https://other.example' }, /openid-configuration is not its configuration/],
  [{ authorization_endpoint: 'javascript:alert(1)' }, /authorization_endpoint .* is not a URL with https/],
  [{ authorization_endpoint: 'http://elsewhere.example/auth' }, /authorization_endpoint .* is not a URL with https/],
  [{ token_endpoint: undefined }, /token_endpoint .* is not a URL with https/],
  [{ token_endpoint: 'https://elsewhere.example/token' }, /token_endpoint .* has another origin/],
])('a configuration with %j is refused', async (change, message) => {
  document = { ...document, ...change }
  await expect(begin()).rejects.toThrow(message)
})
