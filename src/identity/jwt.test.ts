/**
 * Verification of tokens by RFC 7515, RFC 7519 and RFC 8725 (docs/reference/rest-api.md#authentication).
 * The tests sign them by hand, not with the library that verifies them.
 */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type SecretRules, secretIdentities, type VerifyToken } from '../../test/support/verifier.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from './identity.ts'

const SECRET = 'a secret of 32 bytes, or of more'
const NOW = 1_700_000_000

const base64url = (text: string | Buffer): string => Buffer.from(text).toString('base64url')

function sign(payload: string | Buffer, header = '{"alg":"HS256","typ":"JWT"}', secret = SECRET): string {
  const input = `${base64url(header)}.${base64url(payload)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

function verifier(rules: SecretRules = {}, secret = SECRET): VerifyToken {
  return secretIdentities(secret, rules, () => NOW * 1000)
}

async function identityOf(payload: string, rules: SecretRules = {}): Promise<Identity> {
  return verifier(rules)(sign(payload))
}

async function refusal(token: string, rules: SecretRules = {}): Promise<string> {
  try {
    await verifier(rules)(token)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    expect([error.code, error.status, error.headers]).toEqual([
      'UNAUTHORIZED',
      401,
      { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    ])
    expect(error.message).not.toContain(SECRET)
    return error.message.replace('the token was refused: ', '')
  }
  return 'accepted'
}

describe('claims', () => {
  test('every claim is read', async () => {
    const payload =
      '{ "tenant_id": "t1", "user_id": "u1", "role": "editor", "agent_id": "a1", "operator_id": "o1", ' +
      '"exp": 1700000001, "jti": "j1", "iat": 1700000000.5 }'
    expect(await identityOf(payload)).toEqual({
      source: 'jwt',
      tenantId: 't1',
      userId: 'u1',
      agentId: 'a1',
      role: 'editor',
      scopes: [],
      claims:
        '{"tenant_id":"t1","user_id":"u1","role":"editor","agent_id":"a1","operator_id":"o1","exp":1700000001,' +
        '"jti":"j1","iat":1700000000.5}',
      expiresAt: 1_700_000_001,
      token: { jti: 'j1', sub: 'u1', iat: 1_700_000_000.5 },
    })
  })

  test('missing claims are empty', async () => {
    expect(await identityOf('{}')).toMatchObject({
      tenantId: '',
      userId: '',
      agentId: '',
      role: '',
      scopes: [],
      claims: '{}',
      expiresAt: null,
    })
  })

  test('operator_id is not used as the tenant', async () => {
    expect((await identityOf('{"operator_id":"o1"}')).tenantId).toBe('')
  })

  test('the user is user_id, or else sub', async () => {
    expect((await identityOf('{"sub":"s"}')).userId).toBe('s')
    expect((await identityOf('{"sub":"s","user_id":"u"}')).userId).toBe('u')
    expect((await identityOf('{"sub":"s","user_id":""}')).userId).toBe('')
  })

  test('numbers keep their digits', async () => {
    const identity = await identityOf('{"tenant_id":12345678901234567890,"user_id":-7,"role":1.50,"agent_id":1e3}')
    expect([identity.tenantId, identity.userId, identity.role, identity.agentId]).toEqual([
      '12345678901234567890',
      '-7',
      '1.50',
      '1e3',
    ])
    expect(identity.claims).toBe('{"tenant_id":12345678901234567890,"user_id":-7,"role":1.50,"agent_id":1e3}')
  })

  test('texts in any language, quotes and control characters are unchanged', async () => {
    const tenant = `'; drop table x; -- "\\ \u0001 تست 😀`
    expect((await identityOf(JSON.stringify({ tenant_id: tenant }))).tenantId).toBe(tenant)
  })

  test.each(['true', 'null', '[]', '["t"]', '{}'])('a tenant_id of %s is rejected', async value => {
    expect(await refusal(sign(`{"tenant_id":${value}}`))).toBe('its claim tenant_id is neither a string nor a number')
  })

  test.each(['user_id', 'role', 'agent_id', 'sub'])('a %s of another type is rejected', async name => {
    expect(await refusal(sign(`{"${name}":false}`))).toBe(`its claim ${name} is neither a string nor a number`)
  })

  test('other claims can have any value', async () => {
    expect((await identityOf('{"realm_access":{"roles":["x",null]}}')).claims).toBe(
      '{"realm_access":{"roles":["x",null]}}',
    )
  })
})

describe('scopes', () => {
  test.each([
    ['{"scope":"a:read b:write"}', ['a:read', 'b:write']],
    ['{"scope":"  a   b "}', ['a', 'b']],
    ['{"scope":""}', []],
    ['{"scopes":["a","b"]}', ['a', 'b']],
    ['{"scope":"a b","scopes":["b","c"]}', ['a', 'b', 'c']],
  ])('scopes are read from the claims %s', async (payload, scopes) => {
    expect((await identityOf(payload)).scopes).toEqual(scopes)
  })

  test.each([
    '{"scope":["a"]}',
    '{"scope":1}',
    '{"scopes":"a"}',
    '{"scopes":[1]}',
    '{"scopes":["a b"]}',
    '{"scopes":[""]}',
    '{"scopes":null}',
  ])('%s is rejected', async payload => {
    expect(await refusal(sign(payload))).toMatch(/^its claim scopes? is not /)
  })
})

describe('times, with 30 seconds of leeway', () => {
  test.each([
    [NOW + 1, 'accepted'],
    [NOW - 29, 'accepted'],
    [NOW - 30, 'it has expired (exp)'],
    [0, 'it has expired (exp)'],
    [-1e300, 'it has expired (exp)'],
    [`${NOW - 29.5}`, 'accepted'],
    ['"1800000000"', 'its claim exp is not a number of seconds'],
    ['null', 'its claim exp is not a number of seconds'],
    ['1e400', 'its claim exp is not a number of seconds'],
  ])('exp %s', async (exp, result) => {
    expect(await refusal(sign(`{"exp":${exp}}`))).toBe(result)
  })

  test.each([
    [NOW + 30, 'accepted'],
    [NOW + 31, 'it is not valid yet (nbf)'],
    ['"0"', 'its claim nbf is not a number of seconds'],
  ])('nbf %s', async (nbf, result) => {
    expect(await refusal(sign(`{"nbf":${nbf}}`))).toBe(result)
  })

  test('require_exp rejects tokens without exp', async () => {
    expect(await refusal(sign('{}'), { requireExp: true })).toBe('it has no expiry (exp), and one is required')
    expect(await refusal(sign(`{"exp":${NOW + 1}}`), { requireExp: true })).toBe('accepted')
  })
})

describe('issuer and audience', () => {
  const rules = { jwtIssuer: 'https://id.example', jwtAudience: 'svc' }

  test.each([
    ['{"iss":"https://id.example","aud":"svc"}', 'accepted'],
    ['{"iss":"https://id.example","aud":["x","svc"]}', 'accepted'],
    ['{"aud":"svc"}', 'its issuer (iss) is missing or not the one this gateway accepts'],
    ['{"iss":"https://id.example/","aud":"svc"}', 'its issuer (iss) is missing or not the one this gateway accepts'],
    ['{"iss":["https://id.example"],"aud":"svc"}', 'its issuer (iss) is missing or not the one this gateway accepts'],
    ['{"iss":"https://id.example"}', 'its audience (aud) is missing or does not name this gateway'],
    ['{"iss":"https://id.example","aud":"svc2"}', 'its audience (aud) is missing or does not name this gateway'],
    ['{"iss":"https://id.example","aud":["x"]}', 'its audience (aud) is missing or does not name this gateway'],
    ['{"iss":"https://id.example","aud":{"svc":1}}', 'its audience (aud) is missing or does not name this gateway'],
  ])('%s', async (payload, result) => {
    expect(await refusal(sign(payload), rules)).toBe(result)
  })

  test('are ignored unless configured', async () => {
    expect(await refusal(sign('{"iss":1,"aud":{}}'))).toBe('accepted')
  })
})

describe('signature and algorithm', () => {
  test('a signature by another secret is rejected', async () => {
    expect(await refusal(sign('{}', undefined, 'another secret of 32 bytes or so'))).toBe(
      'its signature does not match',
    )
  })

  test('a change of any character is rejected', async () => {
    const token = sign('{"tenant_id":"t1"}')
    for (let at = 0; at < token.length; at += 1) {
      // The last character of the signature has unused bits; the character before it has none.
      if (token[at] === '.' || at === token.length - 1) continue
      const altered = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`
      expect([at, await refusal(altered)]).not.toEqual([at, 'accepted'])
    }
  })

  test.each([
    '{"alg":"none"}',
    '{"alg":"NONE"}',
    '{"alg":"hs256"}',
    '{"alg":"HS384"}',
    '{"alg":"HS512"}',
    '{"alg":"RS256"}',
    '{"alg":"ES256"}',
    '{"alg":""}',
  ])('header %s is rejected although the HMAC-SHA-256 signature is valid', async header => {
    expect(await refusal(sign('{}', header))).toMatch(/^its algorithm is not HS256$|^it is malformed$/)
  })

  test('an unsigned token is rejected', async () => {
    expect(await refusal(`${base64url('{"alg":"none"}')}.${base64url('{}')}.`)).toBe(
      'it does not consist of three base64url parts separated by dots',
    )
    expect(await refusal(`${base64url('{"alg":"none"}')}.${base64url('{}')}`)).toBe(
      'it does not consist of three base64url parts separated by dots',
    )
  })

  test('a valid HS512 signature is rejected', async () => {
    const input = `${base64url('{"alg":"HS512"}')}.${base64url('{}')}`
    expect(await refusal(`${input}.${createHmac('sha512', SECRET).update(input).digest('base64url')}`)).toBe(
      'its algorithm is not HS256',
    )
  })

  test('critical extensions are rejected, including that of an unencoded payload', async () => {
    expect(await refusal(sign('{}', '{"alg":"HS256","crit":["b64"],"b64":true}'))).toBe(
      'its header has critical extensions (crit)',
    )
    expect(await refusal(sign('{}', '{"alg":"HS256","crit":["b64"],"b64":false}'))).not.toBe('accepted')
    expect(await refusal(sign('{}', '{"alg":"HS256","crit":["x"],"x":1}'))).toBe(
      'its header has critical extensions (crit)',
    )
    expect(await refusal(sign('{}', '{"alg":"HS256","crit":[]}'))).not.toBe('accepted')
  })

  const headers = ['[]', 'null', '"HS256"', '{', '{"alg":["HS256"]}', '{"alg":null}', '{}']
  test.each(headers)('header %s is rejected', async header => {
    expect(await refusal(sign('{}', header))).not.toBe('accepted')
  })

  test('a secret of any length and alphabet works', async () => {
    for (const secret of ['x', 'é'.repeat(16), 'x'.repeat(1_000)]) {
      expect(await secretIdentities(secret, {}, Date.now)(sign('{"role":"r"}', undefined, secret))).toMatchObject({
        role: 'r',
      })
    }
  })
})

describe('payloads', () => {
  test.each([
    ['[]', 'its payload is not a JSON object'],
    ['null', 'its payload is not a JSON object'],
    ['"x"', 'its payload is not a JSON object'],
    ['1', 'its payload is not a JSON object'],
    ['{', 'its payload is not valid JSON'],
    ['\uFEFF{}', 'its payload is not valid JSON'],
    ['{"tenant_id":"a","tenant_id":"b"}', 'its payload repeats a key'],
    ['{"tenant_id":"a\\u0000"}', 'its payload contains the character NUL, which PostgreSQL cannot hold'],
    ['{"x":["a\\u0000"]}', 'its payload contains the character NUL, which PostgreSQL cannot hold'],
    ['{"tenant_id":"\\ud800"}', 'its payload contains half a surrogate pair, which is not a character'],
    [`{"x":${'['.repeat(40)}${']'.repeat(40)}}`, 'its payload nests deeper than 32'],
  ])('a payload is rejected: %s', async (payload, result) => {
    expect(await refusal(sign(payload))).toBe(result)
  })

  test('bytes that are not UTF-8 are rejected', async () => {
    expect(await refusal(sign(Buffer.from([0x7b, 0xff, 0x7d])))).toBe('its payload is not UTF-8')
  })
})

test('a token above the length limit is rejected before it is parsed', async () => {
  expect(await refusal(sign(JSON.stringify({ x: 'y'.repeat(8_000) })))).toBe('it is longer than 8192 characters')
  expect(await refusal('a.'.repeat(4_097))).toBe('it is longer than 8192 characters')
})

test.each([
  '',
  '.',
  '..',
  'a',
  'a.b',
  'a.b.c.d',
  'a.b.c.d.e',
  'a b.c.d',
  'ä.b.c',
  'a+.b/.c=',
  '\n.\n.\n',
  '....',
  'a.b.c',
])('%j is not a token', async token => {
  expect(await refusal(token)).not.toBe('accepted')
})

describe('verified tokens are cached', () => {
  test('the second verification is synchronous and returns the same object', async () => {
    const verify = verifier()
    const first = await verify(sign('{"tenant_id":"t1"}'))
    expect(verify(sign('{"tenant_id":"t1"}'))).toBe(first)
    expect(await verify(sign('{"tenant_id":"t2"}'))).toMatchObject({ tenantId: 't2' })
  })

  test('a cached token expires', async () => {
    let now = NOW * 1000
    const verify = secretIdentities(SECRET, {}, () => now)
    const token = sign(`{"exp":${NOW + 10}}`)
    await verify(token)
    now = (NOW + 39) * 1000
    expect(verify(token)).toMatchObject({ expiresAt: NOW + 10 })
    now = (NOW + 40) * 1000
    expect(() => verify(token)).toThrow('it has expired (exp)')
    await expect(async () => verify(token)).rejects.toThrow('it has expired (exp)')
  })

  test('a rejected token is not cached and does not affect others', async () => {
    const verify = verifier()
    const [header, payload] = sign('{"tenant_id":"t1"}').split('.')
    await verify(sign('{"tenant_id":"t1"}'))
    const forged = `${header}.${payload}.${'A'.repeat(43)}`
    await expect(async () => verify(forged)).rejects.toThrow('its signature does not match')
    await expect(async () => verify(forged)).rejects.toThrow('its signature does not match')
  })

  test('the cache is bounded and drops the least recently used token', async () => {
    const verify = verifier()
    const padding = 'x'.repeat(5_500)
    const token = (tenant: number) => sign(`{"tenant_id":${tenant},"x":"${padding}"}`)
    const first = await verify(token(0))
    // 16 Mi characters hold about 1 400 of these tokens.
    for (let tenant = 1; tenant <= 1_600; tenant += 1) await verify(token(tenant))
    expect(verify(token(1_600))).not.toBeInstanceOf(Promise)
    const again = verify(token(0))
    expect(again).toBeInstanceOf(Promise)
    expect(await again).toEqual(first)
  })
})

describe('fuzz', () => {
  test('no arbitrary text is accepted, and every rejection is a 401', async () => {
    const part = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.base64String(),
      fc.json().map(base64url),
      fc.constantFrom('', 'eyJhbGciOiJIUzI1NiJ9', 'e30'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 5 }), async parts => {
        expect(await refusal(parts.join('.'))).not.toBe('accepted')
      }),
      { numRuns: 200 },
    )
  })

  test('any payload with a valid signature gives either an identity with all claims or a 401', async () => {
    const claim = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.integer(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.string()),
    )
    const payload = fc.dictionary(
      fc.constantFrom('tenant_id', 'user_id', 'sub', 'role', 'scope', 'scopes', 'exp', 'nbf', '__proto__'),
      claim,
    )
    await fc.assert(
      fc.asyncProperty(payload, async claims => {
        const token = sign(JSON.stringify(claims))
        if ((await refusal(token)) !== 'accepted') return
        const identity = await verifier()(token)
        const tenant = Object.hasOwn(claims, 'tenant_id') ? claims.tenant_id : ''
        expect(identity.tenantId).toBe(typeof tenant === 'number' ? JSON.stringify(tenant) : tenant)
        expect(identity.claims).toBe(JSON.stringify(claims))
      }),
      { numRuns: 200 },
    )
  })

  test('random bytes as a payload are rejected', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array(), async bytes => {
        expect(await refusal(sign(Buffer.from(bytes)))).not.toBe('accepted')
      }),
    )
  })
})
