import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, test } from 'vitest'
import { secretVerifier } from '../../test/support/verifier.ts'
import { GatewayError } from '../errors.ts'
import { type Authenticate, createAuthenticator } from './authenticate.ts'
import type { Identity } from './identity.ts'
import { mintToken } from './mint.ts'

const SECRET = 'a secret of 32 bytes, or of more'
const TOKEN = await mintToken(SECRET, { tenantId: 't1', userId: 'u1', expiresInSeconds: 60 }, Date.now())

interface Options {
  readonly jwtSecret?: string | null
  readonly devMode?: boolean
  readonly requireAuth?: boolean
}

function authenticator(options: Options = {}, clock: () => number = Date.now): Authenticate {
  const { jwtSecret = SECRET, devMode = false, requireAuth = true } = options
  return createAuthenticator({ devMode, gateway: { requireAuth } }, secretVerifier(jwtSecret, {}, clock))
}

async function authenticate(headers: IncomingHttpHeaders, options: Options = {}): Promise<Identity> {
  return authenticator(options)(headers)
}

async function refusal(
  headers: IncomingHttpHeaders,
  options: Options = {},
): Promise<readonly [string, string | undefined]> {
  const error = await authenticate(headers, options).then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof GatewayError)) throw new Error('it was accepted', { cause: error })
  expect(error.code).toBe('UNAUTHORIZED')
  return [error.message, error.headers['WWW-Authenticate']]
}

test('a token cached for a connection is compared and its expiry is checked on each request', async () => {
  let nowMs = Date.now()
  const judge = authenticator({}, () => nowMs)
  const connection = {}
  const ask = (token: string) => judge({ authorization: `Bearer ${token}` }, connection)
  const other = await mintToken(SECRET, { tenantId: 't2', userId: 'u2', expiresInSeconds: 600 }, nowMs)
  for (let round = 0; round < 3; round++) {
    expect(await ask(TOKEN)).toMatchObject({ tenantId: 't1' })
    expect(await ask(TOKEN)).toBe(await ask(TOKEN))
    expect(await ask(other)).toMatchObject({ tenantId: 't2' })
    expect(() => judge({}, connection)).toThrow('authentication is required')
  }
  await ask(TOKEN)
  nowMs += 120_000
  expect(() => ask(TOKEN)).toThrow('expired')
  expect(await ask(other)).toMatchObject({ tenantId: 't2' })
})

describe('Bearer', () => {
  test.each(['Bearer ', 'bearer ', 'BEARER   '])('the scheme %sis accepted in any case', async scheme => {
    expect(await authenticate({ authorization: `${scheme}${TOKEN}` })).toMatchObject({ source: 'jwt', tenantId: 't1' })
  })

  test.each(['Basic dTpw', 'Negotiate x', 'x', '', 'Bearerx y'])(
    '%j is rejected as another scheme',
    async authorization => {
      expect(await refusal({ authorization })).toEqual([
        'only "Authorization: Bearer <token>" is accepted, not another scheme',
        'Bearer',
      ])
    },
  )

  test.each(['Bearer', 'Bearer ', 'bearer  '])('%j is rejected because it has no token', async authorization => {
    expect(await refusal({ authorization })).toEqual([
      'the token was refused: the header Authorization contains no token: send "Authorization: Bearer <token>"',
      'Bearer error="invalid_token"',
    ])
  })

  test.each(['Bearer a b', 'Bearer a.b.c d', 'Bearer a.b.c '])(
    '%j is rejected because the token is malformed',
    async authorization => {
      expect(await refusal({ authorization })).toEqual([
        'the token was refused: it does not consist of three base64url parts separated by dots',
        'Bearer error="invalid_token"',
      ])
    },
  )

  test('a gateway without a secret rejects every token', async () => {
    const message = 'the token was refused: this gateway has no secret to verify tokens with'
    for (const jwtSecret of [null, '']) {
      expect(await refusal({ authorization: `Bearer ${TOKEN}` }, { jwtSecret, requireAuth: false })).toEqual([
        message,
        'Bearer error="invalid_token"',
      ])
    }
  })

  test('a token signed with an empty secret is rejected if no secret is configured', async () => {
    const input = `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${Buffer.from('{}').toString('base64url')}`
    const token = `${input}.${createHmac('sha256', '').update(input).digest('base64url')}`
    expect(await refusal({ authorization: `Bearer ${token}` }, { jwtSecret: '' })).toHaveLength(2)
  })

  test('a bad token never falls back to the headers or to anonymous access', async () => {
    const headers = { authorization: `Bearer ${TOKEN}x`, 'x-tenant-id': 't2' }
    expect(await refusal(headers, { devMode: true, requireAuth: false })).toEqual([
      'the token was refused: its signature does not match',
      'Bearer error="invalid_token"',
    ])
    expect(
      await refusal({ authorization: 'Basic dTpw', 'x-tenant-id': 't2' }, { devMode: true, requireAuth: false }),
    ).toHaveLength(2)
  })
})

describe('development headers', () => {
  const headers = { 'x-tenant-id': 't2', 'x-user-id': 'u2', 'x-user-role': 'editor' }

  test('identify the caller in development mode', async () => {
    expect(await authenticate(headers, { devMode: true })).toEqual({
      source: 'headers',
      tenantId: 't2',
      userId: 'u2',
      agentId: '',
      role: 'editor',
      scopes: [],
      claims: '{}',
      expiresAt: null,
    })
  })

  test('one header is enough, and it is decoded as UTF-8', async () => {
    const latin1 = Buffer.from('تست', 'utf8').toString('latin1')
    expect(await authenticate({ 'x-tenant-id': latin1 }, { devMode: true })).toMatchObject({
      tenantId: 'تست',
      userId: '',
      role: '',
    })
    expect(await authenticate({ 'x-tenant-id': 'caf\u00e9' }, { devMode: true })).toMatchObject({ tenantId: 'café' })
  })

  test('are ignored outside development mode', async () => {
    expect(await refusal(headers)).toEqual([
      'authentication is required: send "Authorization: Bearer <token>"',
      'Bearer',
    ])
    expect(await authenticate(headers, { requireAuth: false })).toMatchObject({ source: 'anonymous', tenantId: '' })
  })

  test('are ignored next to a valid token', async () => {
    expect(await authenticate({ ...headers, authorization: `Bearer ${TOKEN}` }, { devMode: true })).toMatchObject({
      source: 'jwt',
      tenantId: 't1',
      role: '',
    })
  })

  test('are required in development mode for a request without a token', async () => {
    expect(await refusal({}, { devMode: true })).toHaveLength(2)
    expect(await refusal({ 'x-tenant-id': '' }, { devMode: true })).toHaveLength(2)
  })
})

describe('a request without a token', () => {
  test('is rejected without an error code (RFC 6750, 3.1)', async () => {
    expect(await refusal({})).toEqual(['authentication is required: send "Authorization: Bearer <token>"', 'Bearer'])
  })

  test('is anonymous if require_auth is false', async () => {
    expect(await authenticate({}, { requireAuth: false })).toEqual({
      source: 'anonymous',
      tenantId: '',
      userId: '',
      agentId: '',
      role: 'anonymous',
      scopes: [],
      claims: '{}',
      expiresAt: null,
    })
  })
})

test('a cached token is verified synchronously', async () => {
  const ask = authenticator()
  const first = await ask({ authorization: `Bearer ${TOKEN}` })
  expect(ask({ authorization: `Bearer ${TOKEN}` })).toBe(first)
})
