/**
 * docs/reference/rest-api.md#authentication: who calls, which session settings the database receives, and the
 * response to an invalid token.
 */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, SECRET, type TestGateway, testGateway } from '../support/gateway.ts'

const database = databaseFixture(`
  create view settings with (security_invoker = true) as select name, current_setting(name, true) as value
    from unnest(array[
    'app.current_tenant_id', 'app.current_user_id', 'app.current_agent_id', 'app.is_super_admin', 'app.current_role',
    'app.current_scopes', 'request.jwt.claims', 'transaction_read_only', 'statement_timeout']) as name;
  grant select on settings to app
`)

async function told(
  gateway: TestGateway,
  claims: object | null,
  headers: Record<string, string> = {},
): Promise<Record<string, string>> {
  const reply = await bearer(gateway, claims === null ? null : sign(claims), headers)
  expect(reply.status, reply.text).toBe(200)
  return Object.fromEntries(reply.json.data.map(({ name, value }: { name: string; value: string }) => [name, value]))
}

function bearer(gateway: TestGateway, token: string | null, headers: Record<string, string> = {}): Promise<Reply> {
  return gateway.get('/api/settings', {
    as: null,
    headers: token === null ? headers : { ...headers, Authorization: `Bearer ${token}` },
  })
}

function sign(
  payload: object | string,
  { alg = 'HS256', secret = SECRET }: { alg?: string; secret?: string } = {},
): string {
  const encode = (text: string) => Buffer.from(text).toString('base64url')
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const input = `${encode(JSON.stringify({ alg, typ: 'JWT' }))}.${encode(text)}`
  const hash = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' }[alg]
  return `${input}.${hash === undefined ? '' : createHmac(hash, secret).update(input).digest('base64url')}`
}

const now = () => Math.floor(Date.now() / 1000)

describe('a valid token', () => {
  // Without estimates, which take their time from the timeout.
  const gateway = gatewayFixture(database, {
    toml: 'statement_timeout_ms = 1234\nexplain_max_cost = 0\nexplain_max_rows = 0',
  })

  test('becomes session settings in a read-only transaction with a timeout', async () => {
    const claims = {
      tenant_id: 't1',
      user_id: 'u1',
      role: 'clerk',
      agent_id: 'a1',
      scope: 'orders:read orders:write',
      scopes: ['x:y'],
    }
    const settings = await told(gateway, claims)
    expect(settings).toEqual({
      'app.current_tenant_id': 't1',
      'app.current_user_id': 'u1',
      'app.current_agent_id': 'a1',
      'app.is_super_admin': 'false',
      'app.current_role': 'clerk',
      'app.current_scopes': 'orders:read orders:write x:y',
      'request.jwt.claims': expect.any(String),
      transaction_read_only: 'on',
      // A part of the 1,234 ms has already passed.
      statement_timeout: expect.stringMatching(/^1[12]\d\dms$/),
    })
    expect(JSON.parse(settings['request.jwt.claims'] ?? '')).toEqual(claims)
  })
  test('has sub as the default for user_id, and operator_id never becomes a tenant', async () => {
    expect(await told(gateway, { sub: 's1', agent_id: 'a1', operator_id: 'o1' })).toMatchObject({
      'app.current_tenant_id': '',
      'app.current_user_id': 's1',
      'app.current_agent_id': '',
      'app.current_role': '',
    })
  })
  test('with numbers keeps their digits, and its is_super_admin claim is ignored', async () => {
    const token = '{"tenant_id": 12345678901234567890, "is_super_admin": true, "app.is_super_admin": "true"}'
    const reply = await bearer(gateway, sign(token))
    expect(reply.text).toContain('{"name":"app.current_tenant_id","value":"12345678901234567890"}')
    expect(reply.text).toContain('{"name":"app.is_super_admin","value":"false"}')
  })
  test('with SQL in a claim passes it as a value', async () => {
    const tenant = `t1', false), set_config('app.is_super_admin', 'true`
    expect(await told(gateway, { tenant_id: tenant })).toMatchObject({
      'app.current_tenant_id': tenant,
      'app.is_super_admin': 'false',
    })
  })
  test.each<[string, () => string]>([
    ['signed by another secret', () => sign({ tenant_id: 't1' }, { secret: 'x'.repeat(40) })],
    ['alg none', () => sign({ tenant_id: 't1' }, { alg: 'none' })],
    ['alg HS512', () => sign({ tenant_id: 't1' }, { alg: 'HS512' })],
    ['expired', () => sign({ tenant_id: 't1', exp: now() - 31 })],
    ['not yet valid', () => sign({ tenant_id: 't1', nbf: now() + 60 })],
    ['a claim that is an object', () => sign({ tenant_id: { a: 1 } })],
    ['a claim that is a boolean', () => sign({ role: true })],
    ['a payload that is not an object', () => sign('[1]')],
    ['repeated keys', () => sign('{"tenant_id": "t1", "tenant_id": "t2"}')],
    ['NUL', () => sign('{"tenant_id": "a\\u0000b"}')],
    ['no token', () => 'x'],
    ['two dots', () => '..'],
    ['cut', () => sign({ tenant_id: 't1' }).slice(0, -1)],
    ['giant', () => sign({ tenant_id: 'x'.repeat(9000) })],
  ])('with a defect is 401, never anonymous: %s', async (_, make) => {
    const reply = await bearer(gateway, make())
    expect(reply.status).toBe(401)
    expect(reply.json.error.code).toBe('UNAUTHORIZED')
    expect(reply.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
    expect(reply.text).not.toContain(SECRET)
  })
  test('that expired less than 30 s ago is accepted', async () => {
    await told(gateway, { tenant_id: 't1', exp: now() - 20, nbf: now() + 20 })
  })
  test.each([{}, { Authorization: 'Basic dTpw' }, { 'x-tenant-id': 't1' }])(
    'none, or another scheme → 401: %j',
    async headers => {
      const reply = await bearer(gateway, null, headers as Record<string, string>)
      expect(reply.status).toBe(401)
      expect(reply.headers.get('www-authenticate')).toContain('Bearer')
    },
  )
  test('leaves nothing for the next caller on the same connection', async () => {
    await told(gateway, { tenant_id: 't1', user_id: 'u1', role: 'clerk', agent_id: 'a1', scope: 'x:y' })
    expect(await told(gateway, {})).toMatchObject({
      'app.current_tenant_id': '',
      'app.current_user_id': '',
      'app.current_agent_id': '',
      'app.current_role': '',
      'app.current_scopes': '',
      'request.jwt.claims': '{}',
    })
  })
})

describe('require_auth = false', () => {
  const gateway = gatewayFixture(database, { toml: 'require_auth = false' })

  test('a request without a token is anonymous', async () => {
    expect(await told(gateway, null)).toMatchObject({
      'app.current_role': 'anonymous',
      'app.current_tenant_id': '',
      'app.is_super_admin': 'false',
    })
  })
  test('an invalid token is still rejected', async () => {
    expect((await bearer(gateway, sign({}, { secret: 'y'.repeat(40) }))).status).toBe(401)
  })
  test('development headers are ignored outside development mode', async () => {
    expect(await told(gateway, null, { 'x-tenant-id': 't1', 'x-user-role': 'admin' })).toMatchObject({
      'app.current_tenant_id': '',
      'app.current_role': 'anonymous',
    })
  })
})

describe('development mode', () => {
  const gateway = gatewayFixture(database, { environment: { SVC_DEV_MODE: 'true' } })

  test('headers replace a token', async () => {
    expect(await told(gateway, null, { 'x-tenant-id': 't1', 'x-user-id': 'u1', 'x-user-role': 'clerk' })).toMatchObject(
      {
        'app.current_tenant_id': 't1',
        'app.current_user_id': 'u1',
        'app.current_role': 'clerk',
      },
    )
  })
  test('a token takes precedence, and an invalid token is not replaced by the headers', async () => {
    expect(await told(gateway, { tenant_id: 't2' }, { 'x-tenant-id': 't1' })).toMatchObject({
      'app.current_tenant_id': 't2',
    })
    expect((await bearer(gateway, 'x.y.z', { 'x-tenant-id': 't1' })).status).toBe(401)
  })
  test.each(['0.0.0.0:0', '[::]:0', '192.0.2.1:0', 'example.com:0'])('does not start on %s', async bind => {
    await expect(testGateway(database.url, { environment: { SVC_DEV_MODE: '1', SVC_BIND: bind } })).rejects.toThrow(
      /loopback|127\.0\.0\.1/,
    )
  })
  test('does not start without a secret', async () => {
    await expect(testGateway(database.url, { environment: { SVC_DEV_MODE: '1', JWT_SECRET: '' } })).rejects.toThrow(
      /JWT_SECRET/,
    )
  })
})
