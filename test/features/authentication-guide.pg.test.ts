/**
 * docs/guides/authentication.md: each provider's configuration accepts tokens of the form that the provider
 * issues, its policy returns the rows that the page states, and other tokens are rejected. The keys come from
 * a file, because the page's hosts belong to the providers.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply, TestGateway } from '../support/gateway.ts'
import { type PublicAlgorithm, signHmac, signToken, testKey } from '../support/issuer.ts'
import { blocksOf } from '../support/page.ts'
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/authentication.md')

/** The code blocks of a section, by its heading. */
function section(heading: string): { readonly toml: readonly string[]; readonly sql: readonly string[] } {
  const start = PAGE.indexOf(`\n## ${heading}\n`)
  expect(start, heading).toBeGreaterThan(0)
  const end = PAGE.indexOf('\n## ', start + 1)
  const blocks = blocksOf(PAGE.slice(start, end < 0 ? PAGE.length : end))
  const of = (language: string) => blocks.filter(block => block.language === language).map(({ text }) => text)
  return { toml: of('toml'), sql: of('sql') }
}

interface Shape {
  /** The signing algorithm of the provider. */
  readonly alg: PublicAlgorithm
  readonly header?: object
  /** Claims of ann, who can see `sees` of tenant A. */
  readonly claims: object
  readonly tenant: string
  readonly user: string
  /** The totals of the rows visible to ann: 1 (her own), 2 (of her tenant), 4 (of another tenant). */
  readonly sees: readonly number[]
  /** Claims that must be rejected: for another API, or without the required right. */
  readonly refused: readonly object[]
  /** Claims that are accepted and see no rows. */
  readonly blind: readonly object[]
}

const ENTRA_TENANT = '6f0c1e2d-7d33-4a7e-9d0b-1f2a3b4c5d6e'

const SHAPES: Readonly<Record<string, Shape>> = {
  Auth0: {
    alg: 'RS256',
    header: { typ: 'at+jwt' },
    claims: {
      'https://shop.example/tenant_id': 'tenant-a',
      'https://shop.example/role': 'clerk',
      iss: 'https://shop.eu.auth0.com/',
      sub: 'auth0|5f7c8ec7c33c6c004bbafe82',
      aud: ['https://api.shop.example', 'https://shop.eu.auth0.com/userinfo'],
      azp: 'my_client_id',
      scope: 'openid profile email',
      permissions: ['read:invoices'],
    },
    ...{ tenant: 'tenant-a', user: 'auth0|5f7c8ec7c33c6c004bbafe82', sees: [1, 2] },
    refused: [{ aud: 'https://api.other.example' }, { iss: 'https://shop.eu.auth0.com' }],
    blind: [{ 'https://shop.example/tenant_id': undefined }],
  },
  Keycloak: {
    alg: 'RS256',
    claims: {
      iss: 'https://keycloak.shop.example/realms/shop',
      aud: ['shop-api', 'account'],
      ...{ sub: 'f1c3b5a0-0000-4000-8000-000000000001', typ: 'Bearer', azp: 'shop-web', sid: 'x', acr: '1' },
      realm_access: { roles: ['offline_access', 'default-roles-shop'] },
      resource_access: { 'shop-api': { roles: ['invoices:read'] }, account: { roles: ['view-profile'] } },
      ...{ scope: 'openid profile', preferred_username: 'ann', tenant_id: 'tenant-a' },
    },
    ...{ tenant: 'tenant-a', user: 'f1c3b5a0-0000-4000-8000-000000000001', sees: [1, 2] },
    refused: [{ typ: 'ID' }, { aud: 'account' }, { tenant_id: ['tenant-a'] }],
    blind: [{ resource_access: {} }, { tenant_id: undefined }],
  },
  Supabase: {
    alg: 'ES256',
    claims: {
      iss: 'https://abcdefghijkl.supabase.co/auth/v1',
      ...{ sub: '0b8d8f0e-1111-4111-8111-111111111111', aud: 'authenticated', role: 'authenticated', aal: 'aal1' },
      ...{ email: 'ann@shop.example', phone: '', session_id: 's', is_anonymous: false },
      app_metadata: { provider: 'email', providers: ['email'], tenant_id: 'tenant-a' },
      user_metadata: { tenant_id: 'tenant-b' },
      amr: [{ method: 'password', timestamp: 1_700_000_000 }],
    },
    ...{ tenant: 'tenant-a', user: '0b8d8f0e-1111-4111-8111-111111111111', sees: [1, 2] },
    refused: [{ aud: 'anon' }],
    blind: [{ role: 'service_role' }, { app_metadata: {} }],
  },
  Clerk: {
    alg: 'RS256',
    claims: {
      ...{ iss: 'https://clerk.shop.example', azp: 'https://app.shop.example', sub: 'user_2abc', sid: 'sess_1' },
      ...{ v: 2, sts: 'active', pla: 'u:free', fea: 'o:invoices', jti: 'a1b2' },
      o: { id: 'org_a', slg: 'shop', rol: 'member', per: 'read', fpm: '1' },
    },
    ...{ tenant: 'org_a', user: 'user_2abc', sees: [1] },
    refused: [{ azp: 'https://evil.example' }, { azp: undefined }],
    blind: [{ o: undefined }, { o: { id: 'org_a', rol: 'stranger' }, sub: 'user_other' }],
  },
  'Microsoft Entra ID': {
    alg: 'RS256',
    claims: {
      iss: `https://login.microsoftonline.com/${ENTRA_TENANT}/v2.0`,
      ...{ aud: '0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d', ver: '2.0', tid: ENTRA_TENANT, azpacr: '1', aio: 'x', rh: 'y' },
      ...{ oid: 'aaaaaaaa-0000-4000-8000-000000000001', sub: 'pairwise', uti: 'z', scp: 'Invoices.Read Orders.Read' },
      ...{ roles: ['Clerk'], name: 'Ann', preferred_username: 'ann@shop.example' },
    },
    ...{ tenant: ENTRA_TENANT, user: 'aaaaaaaa-0000-4000-8000-000000000001', sees: [1, 2] },
    refused: [
      { aud: '00000003-0000-0000-c000-000000000000' },
      { ver: '1.0' },
      { iss: 'https://login.microsoftonline.com/common/v2.0' },
    ],
    blind: [{ scp: 'Orders.Read' }, { tid: undefined }],
  },
  'Amazon Cognito': {
    alg: 'RS256',
    header: { typ: undefined },
    claims: {
      iss: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI',
      ...{ sub: 'bbbbbbbb-0000-4000-8000-000000000001', client_id: '1h57kf5cpq17m0eml12EXAMPLE', token_use: 'access' },
      ...{ 'cognito:groups': ['accounting', 'staff'], scope: 'aws.cognito.signin.user.admin shop/read' },
      ...{ username: 'ann', tenant_id: 'tenant-a', version: 2, auth_time: 1_700_000_000, origin_jti: 'o', jti: 'j' },
    },
    ...{ tenant: 'tenant-a', user: 'bbbbbbbb-0000-4000-8000-000000000001', sees: [1, 2] },
    refused: [{ token_use: 'id' }, { client_id: 'another' }],
    blind: [{ 'cognito:groups': ['staff'] }, { 'cognito:groups': undefined }],
  },
  Firebase: {
    alg: 'RS256',
    claims: {
      ...{ iss: 'https://securetoken.google.com/shop-12345', aud: 'shop-12345', auth_time: 1_700_000_000 },
      ...{ user_id: 'uid1', sub: 'uid1', email: 'ann@shop.example', email_verified: true },
      firebase: { identities: { email: ['ann@shop.example'] }, sign_in_provider: 'password' },
      ...{ tenant_id: 'tenant-a', role: 'clerk' },
    },
    ...{ tenant: 'tenant-a', user: 'uid1', sees: [1] },
    refused: [{ aud: 'shop-99999' }, { email_verified: undefined }, { email_verified: false }],
    blind: [{ tenant_id: undefined }, { sub: 'uid2' }],
  },
  'Your own keys': {
    alg: 'EdDSA',
    claims: { iss: 'shop-backend', aud: 'shop-api', tenant_id: 'tenant-a', user_id: 'ann' },
    ...{ tenant: 'tenant-a', user: 'ann', sees: [1, 2] },
    refused: [{ aud: 'other' }, { iss: 'shop-frontend' }],
    blind: [{ tenant_id: undefined }],
  },
}

const SUPABASE_SECRET = 'the legacy secret of a project, of 32 bytes'

const folder = folderFixture()

/** The page's table and one policy, with rows of ann, of her tenant, and of another tenant. */
async function databaseOf({ sql }: ReturnType<typeof section>, { tenant, user }: Shape): Promise<TestDatabase> {
  const database = await testDatabase()
  for (const text of [...section('The example').sql, ...sql]) await execute(database.adminUrl, text)
  await execute(
    database.adminUrl,
    `insert into invoices (tenant_id, owner_id, total) values
       ('${tenant}', '${user}', 1), ('${tenant}', 'someone else', 2), ('tenant-x', '${user}', 4)`,
  )
  return database
}

/** The lines below `[gateway]`. Keys are read from a file instead of the provider's host. */
function here(toml: string, file: string): string {
  return toml
    .replace('[gateway]\n', '')
    .replace(/^database_url = .*\n/m, '')
    .replace(/^(discovery = true|jwks_url = .*|public_key_path = .*)$/m, `public_key_path = "${file}"`)
}

async function totals(gateway: TestGateway, token: string): Promise<Reply> {
  return gateway.get('/api/invoices?select=total&sort=total', {
    as: null,
    headers: { Authorization: `Bearer ${token}` },
  })
}

const now = () => Math.floor(Date.now() / 1_000)
const withTimes = (claims: object, more: object = {}): object => ({ iat: now(), exp: now() + 600, ...claims, ...more })

describe.each(Object.entries(SHAPES))('%s', (name, shape) => {
  const provider = section(name)
  const key = testKey(shape.alg, `${name} key`)
  const database = databaseFixture(() => databaseOf(provider, shape))
  const gateway = gatewayFixture(database, async () => {
    const file = join(folder, `${name}.json`)
    await writeFile(file, JSON.stringify({ keys: [key.jwk] }))
    return { toml: here(provider.toml[0] ?? '', file) }
  })
  const tokenOf = (more: object = {}): string =>
    signToken(key, { claims: withTimes(shape.claims, more), header: { ...shape.header } })

  test('a token of the provider’s form returns the rows that the policy allows', async () => {
    const reply = await totals(gateway, tokenOf())
    expect([reply.status, reply.text]).toEqual([200, expect.any(String)])
    expect(reply.json.data.map(({ total }: { total: number }) => Number(total))).toEqual(shape.sees)
  })

  test.each(shape.refused.map(more => [JSON.stringify(more), more]))('is rejected with %s', async (_, more) => {
    expect((await totals(gateway, tokenOf(more as object))).status).toBe(401)
  })

  test.each(shape.blind.map(more => [JSON.stringify(more), more]))(
    'without the claim or right the result is empty: %s',
    async (_, more) => {
      const reply = await totals(gateway, tokenOf(more as object))
      expect([reply.status, reply.json.data]).toEqual([200, []])
    },
  )
})

describe('Supabase with the legacy secret', () => {
  const shape = SHAPES.Supabase as Shape
  const database = databaseFixture(() => databaseOf(section('Supabase'), shape))
  const gateway = gatewayFixture(database, {
    toml: section('Supabase').toml[1] ?? '',
    environment: { SUPABASE_JWT_SECRET: SUPABASE_SECRET },
  })

  test('a token signed with it returns the rows, and a token signed with another secret is rejected', async () => {
    const reply = await totals(gateway, signHmac(SUPABASE_SECRET, { claims: withTimes(shape.claims) }))
    expect(reply.json.data.map(({ total }: { total: number }) => Number(total))).toEqual(shape.sees)
    const forged = signHmac('another secret of 32 bytes, or of more', { claims: withTimes(shape.claims) })
    expect((await totals(gateway, forged)).status).toBe(401)
  })
})

test('every configuration on the page is valid', async () => {
  const blocks = blocksOf(PAGE).filter(({ language }) => language === 'toml')
  expect(blocks.length).toBeGreaterThan(10)
  const environment = {
    ...{ DATABASE_URL: 'postgres://app@localhost/shop', SUPABASE_JWT_SECRET: SUPABASE_SECRET },
    ...{ JWT_SECRET_2026_01: 'a'.repeat(32), JWT_SECRET_2026_02: 'b'.repeat(32) },
  }
  await writeFile(join(folder, 'token-keys.pem'), testKey('EdDSA', 'k').pem)
  for (const { text } of blocks) {
    const file = join(folder, 'svc.toml')
    await writeFile(file, text)
    expect(() => loadConfig({ file, environment, workingDirectory: folder }), text).not.toThrow()
  }
})
