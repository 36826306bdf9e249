/**
 * docs/guides/authentication.md#revoke-tokens and docs/guides/authentication.md#check-a-token: tokens revoked
 * while sockets are open, and the output of `svc token verify` and `svc check` about tokens and providers.
 */
import { EventEmitter } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { run } from '../../src/cli/program.ts'
import type { SignalSource } from '../../src/cli/signals.ts'
import { SECRET, type TestGateway, testGateway } from '../support/gateway.ts'
import { signHmac, signToken, type TestProvider, testKey, testProvider } from '../support/issuer.ts'
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'
import { openSocket } from '../support/socket.ts'

const TABLE = 'create table revoked_tokens (jti text, sub text, iat timestamptz); grant select on revoked_tokens to app'
const SETTING = 'jwt_denylist_table = "revoked_tokens"'

let database: TestDatabase
let folder: string
let gateway: TestGateway | null = null
beforeAll(async () => {
  database = await testDatabase()
  await execute(database.adminUrl, 'create table notes (id int primary key); grant select on notes to app')
  folder = await mkdtemp(join(tmpdir(), 'svc-revocation-'))
})
beforeEach(() => execute(database.adminUrl, `drop table if exists revoked_tokens; ${TABLE}`))
afterEach(async () => {
  await gateway?.close()
  gateway = null
})
afterAll(async () => {
  await database.drop()
  await rm(folder, { recursive: true })
})

interface Said {
  readonly code: number
  readonly out: string
  readonly error: string
}

/** Runs a command with these lines below `[gateway]`. */
async function svc(argv: readonly string[], toml: string, environment: Record<string, string> = {}): Promise<Said> {
  const file = join(folder, 'svc.toml')
  await writeFile(file, `[gateway]\n${toml}\n`)
  const out: string[] = []
  const error: string[] = []
  const code = await run([...argv, '--config', file], {
    environment: { DATABASE_URL: database.url, JWT_SECRET: SECRET, ...environment },
    workingDirectory: folder,
    input: async () => Buffer.alloc(0),
    stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
    out: line => out.push(line),
    error: line => error.push(line),
    ...{ hasColors: false, terminal: null },
    signals: new EventEmitter() as unknown as SignalSource,
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

const revoke = (...argv: readonly string[]): Promise<Said> =>
  svc(['token', 'revoke', ...argv], SETTING, { SVC_ADMIN_DATABASE_URL: database.adminUrl })

const now = () => Math.floor(Date.now() / 1_000)
const status = async (token: string): Promise<number> =>
  (await gateway?.get('/api/notes', { as: null, headers: { Authorization: `Bearer ${token}` } }))?.status ?? 0

describe('a revoked token', () => {
  test('closes its sockets and is rejected, and other tokens are still accepted', async () => {
    gateway = await testGateway(database.url, { toml: SETTING })
    const token = (jti: string, sub: string, iat: number) =>
      signHmac(SECRET, { claims: { tenant_id: 't1', jti, sub, iat, exp: now() + 600 } })
    const [first, second, later] = [
      token('j1', 'ann', now() - 60),
      token('j2', 'bob', now() - 60),
      token('j3', 'bob', now() + 3),
    ]
    const sockets = [
      await openSocket(gateway.url, { token: first }),
      await openSocket(gateway.url, { token: second }),
      await openSocket(gateway.url, { token: later }),
    ]
    expect(await Promise.all([first, second, later].map(status))).toEqual([200, 200, 200])
    expect(await revoke('--jti', 'j1')).toEqual({
      code: 0,
      out: 'revoked the token "j1", within 10 seconds at every gateway',
      error: '',
    })
    expect(await sockets[0]?.closed).toEqual([4401, 'the token has been revoked'])
    expect(await Promise.all([first, second, later].map(status))).toEqual([401, 200, 200])
    expect((await revoke('--sub', 'bob', '--before', new Date(now() * 1_000).toISOString())).code).toBe(0)
    expect(await sockets[1]?.closed).toEqual([4401, 'the token has been revoked'])
    expect(await Promise.all([first, second, later].map(status))).toEqual([401, 401, 200])
    const reply = await gateway.get('/api/notes', { as: null, headers: { Authorization: `Bearer ${first}` } })
    expect(reply.json.error).toMatchObject({
      code: 'UNAUTHORIZED',
      message: 'the token was refused: it has been revoked',
    })
    await sockets[2]?.close()
  })

  test('is rejected by a gateway that starts later', async () => {
    await revoke('--sub', "o'brien")
    gateway = await testGateway(database.url, { toml: SETTING })
    expect(await status(signHmac(SECRET, { claims: { sub: "o'brien", iat: now() - 60 } }))).toBe(401)
    expect(await status(signHmac(SECRET, { claims: { user_id: "o'brien", iat: now() - 60 } }))).toBe(401)
    expect(await status(signHmac(SECRET, { claims: { sub: 'obrien', iat: now() - 60 } }))).toBe(200)
  })
})

describe('the table of revoked tokens', () => {
  test.each(['revoked_tokens', 'public.revoked_tokens'])('%s is not a resource', async name => {
    gateway = await testGateway(database.url, { toml: `jwt_denylist_table = "${name}"` })
    expect((await gateway.get('/api/revoked_tokens')).status).toBe(404)
    expect((await gateway.get('/api/notes')).status).toBe(200)
    expect(Object.keys((await gateway.get('/api/_schema')).json.tables)).not.toContain('revoked_tokens')
    const query = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"query": "get revoked_tokens"}',
    }
    expect((await gateway.get('/api/_query', query)).status).toBe(404)
  })

  test.each([
    ['drop table revoked_tokens', 'there is no such table'],
    ['revoke select on revoked_tokens from app', 'permission denied'],
    ['alter table revoked_tokens drop column jti', 'jti'],
    ['alter table revoked_tokens enable row level security', 'row-level security hides rows'],
  ])('prevents the start after: %s', async (sql, reason) => {
    await execute(database.adminUrl, sql)
    await expect(testGateway(database.url, { toml: SETTING })).rejects.toThrow(reason)
  })
})

describe('svc token revoke', () => {
  test.each([
    [[], 'give --jti ID, or --sub SUBJECT'],
    [['--jti', 'a', '--sub', 'b'], 'give --jti ID, or --sub SUBJECT'],
    [['--jti', 'a', '--before', '2026-01-31T12:00:00Z'], '--before can only be used with --sub'],
    [['--sub', 'a', '--before', 'yesterday'], 'Expected a time with its zone'],
    [['--sub', 'a', '--before', '2026-01-31'], 'Expected a time with its zone'],
  ])('rejects the arguments %j', async (argv, reason) => {
    const said = await revoke(...argv)
    expect([said.code, said.error]).toEqual([2, expect.stringContaining(reason)])
  })

  test('needs jwt_denylist_table', async () => {
    const said = await svc(['token', 'revoke', '--jti', 'a'], '')
    expect([said.code, said.error]).toEqual([2, expect.stringContaining('jwt_denylist_table is not set')])
  })
})

describe('svc token verify and svc check', () => {
  const key = testKey('ES256', 'k')
  let provider: TestProvider
  beforeEach(async () => {
    provider = await testProvider([key])
  })
  afterEach(() => provider.close())
  const toml = () =>
    [
      '[[gateway.issuers]]',
      `issuer = "${provider.url}"`,
      'discovery = true',
      'audience = "svc"',
      'role_map = { staff = "clerk" }',
    ].join('\n')
  const token = (more: object = {}) =>
    signToken(key, {
      claims: { iss: provider.url, aud: 'svc', exp: now() + 60, tenant_id: 't1', role: 'staff', ...more },
    })

  test('an accepted token: each check, and the session settings', async () => {
    const { code, out } = await svc(['token', 'verify', token()], toml())
    expect(code).toBe(0)
    expect(out.split('\n')).toEqual([
      `ok       form: three parts; alg ES256, kid k, iss ${provider.url}`,
      `ok       issuer: [[gateway.issuers]] "${provider.url}"`,
      'ok       alg: ES256 is accepted',
      'ok       key: one matches its kid and algorithm',
      'ok       signature: it matches',
      'ok       exp and nbf: within 30 s of leeway',
      'ok       aud: names this gateway',
      'accepted, with the session settings',
      '  app.current_tenant_id = "t1"',
      '  app.current_user_id = ""',
      '  app.current_agent_id = ""',
      '  app.is_super_admin = "false"',
      '  app.current_role = "clerk"',
      '  app.current_scopes = ""',
      expect.stringMatching(/^ {2}request\.jwt\.claims = "/),
    ])
  })

  test('jwt_denylist_table is read, and without a database the output says that it was not', async () => {
    const mine = (jti: string) => signHmac(SECRET, { claims: { jti, iat: now() - 60 } })
    await revoke('--jti', 'revoked')
    const good = await svc(['token', 'verify', mine('good')], SETTING)
    expect([good.code, good.out]).toEqual([
      0,
      expect.stringContaining('ok       revocation: jwt_denylist_table does not list it\naccepted,'),
    ])
    expect(await svc(['token', 'verify', mine('revoked')], SETTING)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/refused {2}the token was refused: it has been revoked$/),
    })
    const unread = (reason: string) => ({
      code: 0,
      out: expect.stringContaining(`note     jwt_denylist_table was not checked: ${reason}`),
    })
    expect(await svc(['token', 'verify', mine('good')], SETTING, { DATABASE_URL: '' })).toMatchObject(
      unread('no database is configured\naccepted,'),
    )
    const nowhere = { DATABASE_URL: 'postgres://app@127.0.0.1:1/nowhere' }
    expect(await svc(['token', 'verify', mine('good')], SETTING, nowhere)).toMatchObject(unread(''))
    expect(await svc(['token', 'verify', mine('good')], 'jwt_denylist_table = "other"')).toMatchObject(
      unread('jwt_denylist_table "other" cannot be read: there is no such table.'),
    )
  })

  test('claims reach the terminal without control characters', async () => {
    const claims = { tenant_id: '\u009b31m\u001b[2J', user_id: '\u202euser', role: 'r' }
    const { out } = await svc(['token', 'verify', signHmac(SECRET, { claims, header: { kid: '\u009b1m' } })], '')
    expect(out).toContain('kid \\u009b1m')
    expect(out).toContain('app.current_tenant_id = "\\u009b31m\\u001b[2J"')
    expect(out).toContain('app.current_user_id = "\\u202euser"')
    expect(out).not.toMatch(/[\u0080-\u009f\u001b\u202e]/)
  })

  test('a rejected token: the checks before, and the reason', async () => {
    const { code, out } = await svc(['token', 'verify', token({ aud: 'other' })], toml())
    expect(code).toBe(1)
    expect(out).toMatch(
      /ok {7}signature: it matches\n.*\nrefused {2}.*its audience \(aud\) is missing or does not name/,
    )
    expect((await svc(['token', 'verify', 'nonsense'], toml())).code).toBe(1)
    expect((await svc(['token', 'verify', signHmac(SECRET, { claims: {} })], toml())).code).toBe(0)
  })

  test('an unreachable provider is exit code 2, and a warning of svc check', async () => {
    provider.answer(response => response.writeHead(500).end())
    const said = await svc(['token', 'verify', token()], toml())
    expect([said.code, said.error]).toEqual([2, expect.stringContaining('the response has status 500; expected 200')])
    const { code, out } = await svc(['check'], toml())
    expect(out).toMatch(/warning: the keys of issuer .* cannot be fetched: .*the response has status 500/)
    provider.publish([key])
    const after = await svc(['check'], toml())
    expect([after.out.includes('cannot be fetched'), after.code]).toEqual([false, code])
  })

  test('svc check reports a provider without keys, and a file without a key', async () => {
    provider.publish([])
    expect((await svc(['check'], toml())).out).toMatch(/warning: issuer .* publishes no key that can be used/)
    await writeFile(join(folder, 'keys.pem'), 'nothing')
    const said = await svc(['check'], '[[gateway.issuers]]\nissuer = "me"\npublic_key_path = "keys.pem"')
    expect([said.code, said.out]).toEqual([1, expect.stringContaining('error: issuer "me":')])
  })
})
