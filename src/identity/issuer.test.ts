/**
 * Tokens of identity providers (docs/guides/authentication.md): keys, algorithms, required claims and their
 * meaning, and attacks that must fail (RFC 8725). The tests sign them by hand, not with the library that
 * verifies them.
 */
import { createPublicKey, createSecretKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  issuerConfig,
  type PublicAlgorithm,
  signHmac,
  signToken,
  type TestKey,
  testKey,
} from '../../test/support/issuer.ts'
import { type SecretRules, verifierConfig } from '../../test/support/verifier.ts'
import { parseClaimPath } from '../config/claim-path.ts'
import type { ClaimSource, IssuerConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from './identity.ts'
import { createIssuer } from './issuer.ts'
import { createTokenVerifier, type TokenVerifier } from './jwt.ts'
import { parseJwkSet, parseKeyFile } from './keys/key-set.ts'
import { fixedKeys } from './keys/key-source.ts'
import { keyOfSecret, type SigningKey } from './keys/signing-key.ts'

const NOW = 1_700_000_000
const SECRET = 'a secret of 32 bytes, or of more'
const ISS = 'https://id.example'

const rsa = testKey('RS256', 'rsa')
const p256 = testKey('ES256', 'p256')

const published = (...keys: readonly TestKey[]): readonly SigningKey[] =>
  parseJwkSet(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })).keys

interface World extends SecretRules {
  readonly issuer?: Partial<IssuerConfig>
  readonly keys?: readonly SigningKey[]
  readonly secret?: string | null
}

function verifier({ issuer = {}, keys = published(rsa, p256), secret = SECRET, ...rules }: World = {}): TokenVerifier {
  const config = issuerConfig({ issuer: ISS, ...issuer })
  const one = createIssuer({
    ...{ config, keys: fixedKeys(keys) },
    rules: {
      ...{ requireExp: rules.requireExp ?? false, leewaySeconds: config.leewaySeconds, issuer: config.issuer },
      ...{ audience: config.audience, required: config.requiredClaims, mapping: config },
    },
  })
  return createTokenVerifier(verifierConfig(secret, rules), [one], () => NOW * 1_000)
}

async function identityOf(token: string, world: World = {}): Promise<Identity> {
  return (await verifier(world).verify(token)).identity
}

async function refusal(token: string, world: World = {}): Promise<string> {
  try {
    await verifier(world).verify(token)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    expect([error.code, error.headers]).toEqual([
      'UNAUTHORIZED',
      { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    ])
    return error.message.replace('the token was refused: ', '')
  }
  return 'accepted'
}

const claims = (more: object = {}): object => ({ iss: ISS, exp: NOW + 60, ...more })
const token = (key: TestKey, more: object = {}, header = {}): string => signToken(key, { claims: claims(more), header })

function source(text: string): ClaimSource {
  const claim = parseClaimPath(text)
  if (claim === null) throw new Error(`${text} is not a path`)
  return { kind: 'claim', claim }
}

describe('algorithms', () => {
  test.each<PublicAlgorithm>([
    'RS256',
    'RS384',
    'RS512',
    'PS256',
    'PS384',
    'PS512',
    'ES256',
    'ES384',
    'ES512',
    'EdDSA',
  ])('a token signed with %s is accepted', async alg => {
    const key = testKey(alg, 'k')
    expect(await refusal(token(key), { keys: published(key) })).toBe('accepted')
    const [header, , signature] = token(key).split('.')
    const other = Buffer.from(JSON.stringify(claims({ tenant_id: 'x' }))).toString('base64url')
    expect(await refusal(`${header}.${other}.${signature}`, { keys: published(key) })).toBe(
      'its signature does not match',
    )
  })

  test.each(['HS256', 'HS384', 'HS512'] as const)('%s with a secret of the issuer', async alg => {
    const keys = [keyOfSecret('a secret of the provider, of 32 bytes', null, ['HS256', 'HS384', 'HS512'])]
    const signed = signHmac('a secret of the provider, of 32 bytes', { claims: claims() }, alg)
    expect(await refusal(signed, { keys })).toBe('accepted')
    expect(await refusal(signHmac(SECRET, { claims: claims() }, alg), { keys })).toBe('its signature does not match')
  })

  test('only configured algorithms are accepted', async () => {
    expect(await refusal(token(rsa), { issuer: { algorithms: ['ES256'] } })).toBe(
      'its algorithm (alg) is not accepted from its issuer',
    )
    expect(await refusal(token(p256), { issuer: { algorithms: ['ES256'] } })).toBe('accepted')
  })

  test('a key with an alg verifies only that algorithm', async () => {
    expect(await refusal(token({ ...rsa, alg: 'PS256' }))).toBe(
      'its issuer has no key of the type that its algorithm (alg) requires',
    )
    const { alg: _, ...jwk } = rsa.jwk
    expect(await refusal(token({ ...rsa, alg: 'PS256' }), { keys: published({ ...rsa, jwk }) })).toBe('accepted')
  })
})

describe('confusion', () => {
  test.each<[string, () => string]>([
    [
      'the public key as the secret of an HMAC, as PEM',
      () => signHmac(rsa.pem, { claims: claims(), header: { kid: 'rsa' } }),
    ],
    ['the same without kid', () => signHmac(rsa.pem, { claims: claims() })],
    [
      'the public key as the secret, as DER',
      () => {
        const der = createPublicKey(rsa.pem).export({ type: 'spki', format: 'der' })
        return signHmac(createSecretKey(der), { claims: claims(), header: { kid: 'rsa' } })
      },
    ],
    ['the modulus as the secret', () => signHmac(String(rsa.jwk.n), { claims: claims(), header: { kid: 'rsa' } })],
    ['the gateway’s own secret', () => signHmac(SECRET, { claims: claims() })],
    ['alg none', () => `${signToken(rsa, { claims: claims(), header: { alg: 'none' } })}`],
    ['alg nOnE', () => signToken(rsa, { claims: claims(), header: { alg: 'nOnE' } })],
    ['alg rs256', () => signToken(rsa, { claims: claims(), header: { alg: 'rs256' } })],
    ['ES256 signed with RSA', () => signToken(rsa, { claims: claims(), header: { alg: 'ES256' } })],
    ['ES256 signed with RSA, and the kid of the curve', () => token(rsa, {}, { alg: 'ES256', kid: 'p256' })],
    ['RS256 with the kid of the curve', () => token(rsa, {}, { kid: 'p256' })],
    ['ES384 on P-256', () => token({ ...p256, alg: 'ES384' })],
    ['another key with the same kid', () => token(testKey('RS256', 'rsa'))],
    ['an unknown kid', () => token(rsa, {}, { kid: 'other' })],
    ['a kid as a path', () => token(rsa, {}, { kid: '../../dev/null' })],
    ['a signature of zeros', () => token(p256).replace(/[^.]+$/, Buffer.alloc(64).toString('base64url'))],
    [
      'a DER signature',
      () => token(p256).replace(/[^.]+$/, Buffer.from('3006020101020101', 'hex').toString('base64url')),
    ],
    ['an empty signature', () => token(p256).replace(/[^.]+$/, '')],
    ['a cut signature', () => token(rsa).slice(0, -4)],
  ])('%s is rejected', async (_, make) => {
    expect(await refusal(make())).not.toBe('accepted')
  })
})

describe('headers', () => {
  const attacker = testKey('RS256', 'evil')
  test.each<[string, object]>([
    ['jwk', { jwk: attacker.jwk, kid: 'evil' }],
    ['jwk with a kid that is known', { jwk: attacker.jwk, kid: 'rsa' }],
    ['jku', { jku: 'https://evil.example/keys', kid: 'rsa' }],
    ['x5u', { x5u: 'https://evil.example/cert', kid: 'rsa' }],
    ['x5c', { x5c: ['MIIB'], kid: 'rsa' }],
  ])('the header %s is ignored', async (_, header) => {
    expect(await refusal(signToken(attacker, { claims: claims(), header: { ...header } }))).not.toBe('accepted')
    expect(await refusal(signToken(rsa, { claims: claims(), header: { ...header, kid: 'rsa' } }))).toBe('accepted')
  })

  test.each([
    ['{"alg":"RS256","kid":"rsa","crit":["exp"],"exp":1}', 'its header has critical extensions (crit)'],
    ['{"alg":"RS256","kid":"rsa","crit":["b64"],"b64":false}', 'its header has critical extensions (crit)'],
    ['{"alg":"RS256","alg":"RS256","kid":"rsa"}', 'its header repeats a key'],
    ['{"alg":"none","alg":"RS256","kid":"rsa"}', 'its header repeats a key'],
    ['{"alg":"RS256","kid":"rsa","k\\u0069d":"x"}', 'its header repeats a key'],
    ['{"alg":"RS256","kid":1}', 'it is malformed: kid in its header is not a string'],
    ['{"alg":["RS256"],"kid":"rsa"}', 'it is malformed: its header has no algorithm (alg)'],
    ['{"kid":"rsa"}', 'it is malformed: its header has no algorithm (alg)'],
    ['["RS256"]', 'it is malformed: its header is not a JSON object'],
    ['{"alg":"RS256","kid":"rsa"', 'its header is not valid JSON'],
  ])('the header %s is rejected with the reason', async (header, reason) => {
    expect(await refusal(signToken(rsa, { claims: claims(), header }))).toBe(reason)
  })

  test.each([
    ['JWT', 'accepted'],
    ['at+jwt', 'accepted'],
    ['application/at+JWT', 'accepted'],
    ['logout+jwt', 'its type (typ) is not that of an access token'],
    ['secevent+jwt', 'its type (typ) is not that of an access token'],
    ['dpop+jwt', 'its type (typ) is not that of an access token'],
  ])('a token of type %s', async (typ, result) => {
    expect(await refusal(token(rsa, {}, { typ }))).toBe(result)
  })

  test('a token of 8 192 characters is accepted, a longer one is not', async () => {
    const padded = (bytes: number) => token(p256, { x: 'y'.repeat(bytes) })
    const room = Math.floor(((8_192 - padded(0).length) * 3) / 4) - 1
    expect(await refusal(padded(room))).toBe('accepted')
    expect(await refusal(padded(room + 8))).toBe('it is longer than 8192 characters')
  })

  test('a kid can contain any characters', async () => {
    const odd = testKey('ES256', 'ключ/😀" \\')
    expect(await refusal(token(odd), { keys: published(odd) })).toBe('accepted')
    expect(await refusal(token(odd, {}, { kid: 'ключ/😀" ' }), { keys: published(odd) })).not.toBe('accepted')
  })
})

describe('signed but invalid payloads', () => {
  test.each([
    [`{"iss":"${ISS}","iss":"${ISS}"}`, 'its issuer (iss) is not accepted by this gateway'],
    [`{"iss":"${ISS}","tenant_id":"a\\u0000"}`, 'its issuer (iss) is not accepted by this gateway'],
    ['[]', 'its issuer (iss) is not accepted by this gateway'],
    [`{"iss":["${ISS}"]}`, 'its issuer (iss) is not accepted by this gateway'],
    [`{"iss":"${ISS}/"}`, 'its issuer (iss) is not accepted by this gateway'],
    [`{"iss":"${ISS.toUpperCase()}"}`, 'its issuer (iss) is not accepted by this gateway'],
    [`{"iss":"${ISS}","exp":"${NOW + 60}"}`, 'its claim exp is not a number of seconds'],
    [`{"iss":"${ISS}","exp":${NOW - 30}}`, 'it has expired (exp)'],
    [`{"iss":"${ISS}","nbf":${NOW + 31}}`, 'it is not valid yet (nbf)'],
    [`{"iss":"${ISS}","exp":${NOW - 29},"nbf":${NOW + 30}}`, 'accepted'],
  ])('%s', async (payload, reason) => {
    expect(await refusal(signToken(rsa, { claims: payload }))).toBe(reason)
  })

  test('leeway_seconds and require_exp are respected', async () => {
    expect(await refusal(token(rsa, { exp: NOW - 4 }), { issuer: { leewaySeconds: 5 } })).toBe('accepted')
    expect(await refusal(token(rsa, { exp: NOW - 5 }), { issuer: { leewaySeconds: 5 } })).toBe('it has expired (exp)')
    expect(await refusal(token(rsa, { exp: NOW }), { issuer: { leewaySeconds: 0 } })).toBe('it has expired (exp)')
    expect(await refusal(token(rsa, { exp: undefined }), { requireExp: true })).toBe(
      'it has no expiry (exp), and one is required',
    )
  })

  test.each([
    [{ aud: 'svc' }, 'accepted'],
    [{ aud: ['x', 'other'] }, 'accepted'],
    [{ aud: 'svc2' }, 'its audience (aud) is missing or does not name this gateway'],
    [{ aud: ['x'] }, 'its audience (aud) is missing or does not name this gateway'],
    [{ aud: { svc: true } }, 'its audience (aud) is missing or does not name this gateway'],
    [{}, 'its audience (aud) is missing or does not name this gateway'],
  ])('audience: %j', async (more, result) => {
    expect(await refusal(token(rsa, more), { issuer: { audience: ['svc', 'other'] } })).toBe(result)
  })

  const required = (entries: Readonly<Record<string, string | number | boolean>>): Partial<IssuerConfig> => ({
    requiredClaims: new Map(
      Object.entries(entries).map(([name, value]) => {
        const { claim } = source(name) as Extract<ClaimSource, { kind: 'claim' }>
        return [name, { claim, value }] as const
      }),
    ),
  })
  test.each<[Readonly<Record<string, string | number | boolean>>, object, boolean]>([
    [{ email_verified: true }, { email_verified: true }, true],
    [{ email_verified: true }, { email_verified: 'yes' }, true],
    [{ email_verified: true }, { email_verified: false }, false],
    [{ email_verified: true }, {}, false],
    [{ email_verified: true }, { email_verified: null }, false],
    [{ email_verified: false }, { email_verified: false }, true],
    [{ email_verified: false }, {}, false],
    [{ token_use: 'access' }, { token_use: 'access' }, true],
    [{ token_use: 'access' }, { token_use: 'id' }, false],
    [{ token_use: 'access' }, { token_use: ['access'] }, false],
    [{ level: 2 }, { level: 2 }, true],
    [{ level: 2 }, { level: '2' }, false],
    [{ 'firebase.sign_in_provider': 'password' }, { firebase: { sign_in_provider: 'password' } }, true],
    [{ a: 'x', b: 'y' }, { a: 'x' }, false],
  ])('required_claims %j of %j', async (wanted, more, isAccepted) => {
    const result = await refusal(token(rsa, more), { issuer: required(wanted) })
    expect(result === 'accepted').toBe(isAccepted)
    if (!isAccepted) expect(result).toMatch(/^its claim \S+ is missing or not what this gateway requires$/)
  })
})

describe('claims', () => {
  test('without a mapping the gateway’s own claims are used', async () => {
    const more = { tenant_id: 't', sub: 's', role: 'r', scope: 'a b', scopes: ['c'], agent_id: 'x' }
    expect(await identityOf(token(rsa, more))).toMatchObject({
      ...{ tenantId: 't', userId: 's', role: 'r', scopes: ['a', 'b', 'c'], agentId: 'x' },
    })
  })

  test('names, URIs, paths, indexes and constants are mapped', async () => {
    const identity = await identityOf(
      token(rsa, {
        'https://id.example/tenant.id': 't',
        sub: 's',
        realm_access: { roles: ['editor', 'x'] },
        scp: 'a b',
      }),
      {
        issuer: {
          tenant: source('https://id.example/tenant.id'),
          user: source('sub'),
          role: source('realm_access.roles[0]'),
          scopes: source('$.scp'),
          agent: { kind: 'constant', value: 'robot' },
        },
      },
    )
    expect(identity).toMatchObject({ tenantId: 't', userId: 's', role: 'editor', scopes: ['a', 'b'], agentId: 'robot' })
  })

  test('a claim with exactly that name takes precedence over the path', async () => {
    const more = { 'a.b': 'name', a: { b: 'path' } }
    expect(await identityOf(token(rsa, more), { issuer: { tenant: source('a.b') } })).toMatchObject({
      tenantId: 'name',
    })
  })

  test('a URI is never a path', async () => {
    const more = { 'https://id.example/x': { y: 'path' } }
    const issuer = { tenant: source('https://id.example/x.y') }
    expect(await identityOf(token(rsa, more), { issuer })).toMatchObject({ tenantId: '' })
  })

  test.each(['org.id', 'roles[1]', 'roles.x', 'tenant_id.x', 'x', '__proto__', 'constructor'])(
    'what is absent is empty, and does not fall back: %s',
    async path => {
      const more = { tenant_id: 't', user_id: 'u', role: 'r', roles: ['a'], agent_id: 'x', scope: 'a' }
      const all = source(path)
      const issuer = { tenant: all, user: all, role: all, scopes: all, agent: all }
      expect(await identityOf(token(rsa, more), { issuer })).toMatchObject({
        ...{ tenantId: '', userId: '', role: '', scopes: [], agentId: '' },
      })
    },
  )

  test.each<[keyof IssuerConfig, unknown]>([
    ['tenant', ['t']],
    ['tenant', { id: 't' }],
    ['tenant', true],
    ['tenant', null],
    ['role', ['admin']],
    ['role', {}],
    ['user', ['u']],
    ['agent', {}],
  ])('a %s of %j is rejected', async (key, value) => {
    expect(await refusal(token(rsa, { x: value }), { issuer: { [key]: source('x') } })).toBe(
      'its claim x is neither a string nor a number',
    )
  })

  test('role_map maps roles, and a role that it does not list is ignored', async () => {
    const issuer = { roleMap: new Map([['authenticated', 'member']]) }
    expect(await identityOf(token(rsa, { role: 'authenticated' }), { issuer })).toMatchObject({ role: 'member' })
    expect(await identityOf(token(rsa, { role: 'admin' }), { issuer })).toMatchObject({ role: '' })
    expect(await identityOf(token(rsa, { role: 'member' }), { issuer })).toMatchObject({ role: '' })
    expect(await identityOf(token(rsa, {}), { issuer })).toMatchObject({ role: '' })
  })

  test('scopes can be a text or an array', async () => {
    const issuer = { scopes: source('permissions') }
    expect(await identityOf(token(rsa, { permissions: ['a:b', 'c'] }), { issuer })).toMatchObject({
      scopes: ['a:b', 'c'],
    })
    expect(await identityOf(token(rsa, { permissions: 'a:b  c' }), { issuer })).toMatchObject({ scopes: ['a:b', 'c'] })
    for (const permissions of [['a b'], [1], {}, 1, null, ['']]) {
      expect(await refusal(token(rsa, { permissions }), { issuer })).toBe(
        'its claim permissions is not an array of strings without spaces',
      )
    }
  })
})

describe('the choice of the issuer', () => {
  test('a token without iss is verified with the secret only', async () => {
    expect(await refusal(signHmac(SECRET, { claims: {} }))).toBe('accepted')
    expect(await refusal(signToken(rsa, { claims: {} }))).toBe('its issuer (iss) is not accepted by this gateway')
  })

  test('a token with another iss is verified with the secret if it is HS256', async () => {
    const another = { iss: 'https://other.example' }
    expect(await refusal(signHmac(SECRET, { claims: another }))).toBe('accepted')
    expect(await refusal(signHmac(SECRET, { claims: another }), { jwtIssuer: 'me' })).toBe(
      'its issuer (iss) is missing or not the one this gateway accepts',
    )
    expect(await refusal(signToken(rsa, { claims: another }))).toBe('its issuer (iss) is not accepted by this gateway')
  })

  test('jwt_issuer and jwt_audience apply only to tokens signed with the secret', async () => {
    expect(await refusal(token(rsa), { jwtIssuer: 'me', jwtAudience: 'svc' })).toBe('accepted')
  })

  test('without a secret, tokens without a configured issuer are rejected', async () => {
    expect(await refusal(signHmac(SECRET, { claims: {} }), { secret: null })).toBe(
      'this gateway has no secret to verify tokens with',
    )
    expect(await refusal(token(rsa), { secret: null })).toBe('accepted')
  })
})

describe('the choice of the key', () => {
  test('a PEM key has no kid and matches any; several blocks are several keys', async () => {
    const keys = parseKeyFile(rsa.pem + p256.pem)
    for (const kid of ['rsa', 'other', undefined]) {
      expect(await refusal(token(rsa, {}, { kid }), { keys })).toBe('accepted')
      expect(await refusal(token(p256, {}, { kid }), { keys })).toBe('accepted')
    }
  })

  test('a token without kid is tried with four keys of its type', async () => {
    const keys = Array.from({ length: 5 }, (_, n) => testKey('ES256', `k${n}`))
    const world = { keys: published(rsa, ...keys) }
    const results = await Promise.all(keys.map(key => refusal(token(key, {}, { kid: undefined }), world)))
    expect(results).toEqual([...Array(4).fill('accepted'), 'its signature does not match'])
    const [, , , , last = p256] = keys
    expect(await refusal(token(last), world)).toBe('accepted')
  })
})

describe('several secrets of the gateway', () => {
  const OLD = 'the secret before, of 32 bytes or so'
  const world: World = { previous: OLD, jwtSecrets: new Map([['k1', 'the secret called k1, of 32 bytes']]) }

  test.each<[string, string, string | undefined, boolean]>([
    ['JWT_SECRET', SECRET, undefined, true],
    ['JWT_SECRET_PREVIOUS', OLD, undefined, true],
    ['a named one without its name', 'the secret called k1, of 32 bytes', undefined, false],
    ['a named one', 'the secret called k1, of 32 bytes', 'k1', true],
    ['JWT_SECRET under a listed name', SECRET, 'k1', false],
    ['JWT_SECRET under a name that is not listed', SECRET, 'k2', true],
    ['JWT_SECRET_PREVIOUS under a name that is not listed', OLD, 'k2', true],
    ['none of them', 'yet another secret of 32 bytes ….', 'k2', false],
  ])('%s', async (_, secret, kid, isAccepted) => {
    const result = await refusal(signHmac(secret, { claims: {}, header: { kid } }), world)
    expect(result).toBe(isAccepted ? 'accepted' : 'its signature does not match')
  })

  test('a secret with a kid needs no JWT_SECRET', async () => {
    const signed = signHmac('the secret called k1, of 32 bytes', { claims: {}, header: { kid: 'k1' } })
    expect(await refusal(signed, { ...world, secret: null, previous: null })).toBe('accepted')
  })
})

test('a cached token is verified synchronously, whatever signed it', async () => {
  const { verify } = verifier()
  for (const signed of [token(rsa), token(p256)]) {
    const first = await verify(signed)
    expect(verify(signed)).toBe(first)
  }
})

test('cached tokens of a withdrawn key are no longer accepted', async () => {
  const keys = published(rsa)
  const { verify, stands } = verifier({ keys })
  const verified = await verify(token(rsa))
  expect(stands(verified)).toBe(true)
  for (const key of keys) key.isWithdrawn = true
  expect(stands(verified)).toBe(false)
  expect(verify(token(rsa))).toBeInstanceOf(Promise)
})
