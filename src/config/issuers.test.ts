/** `[[gateway.issuers]]` and the additional secrets: parsing, rejection and printing. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { issuerConfig } from '../../test/support/issuer.ts'
import type { Config } from './config.ts'
import type { Environment } from './expand.ts'
import { loadConfig } from './load.ts'
import { printConfig } from './print.ts'
import { ConfigError } from './problem.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-issuers-'))
  writeFileSync(join(folder, 'keys.pem'), '')
})
afterEach(() => rmSync(folder, { recursive: true }))

function load(toml: string, environment: Environment = {}): Config {
  writeFileSync(join(folder, 'svc.toml'), toml)
  return loadConfig({ environment, workingDirectory: folder }).config
}

function problems(toml: string, environment: Environment = {}): readonly string[] {
  try {
    load(toml, environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

const EVERYTHING = `[gateway]
jwt_secrets = { k1 = "\${K1}", k2 = "plain" }

[[gateway.issuers]]
issuer = "https://id.example/"
jwks_url = "https://id.example/keys"
audience = "svc"
algorithms = ["RS256", "ES256"]
leeway_seconds = 5
tenant = "https://id.example/tenant.id"
user = "sub"
role = "realm_access.roles[0]"
scopes = "$.scp"
agent = { value = "\${AGENT}" }
required_claims = { email_verified = true, token_use = "access", level = 2 }

[gateway.issuers.role_map]
authenticated = "member"

[[gateway.issuers]]
issuer = "http://localhost:9000"
discovery = true
audience = ["a", "b"]

[[gateway.issuers]]
issuer = "own"
public_key_path = "keys.pem"

[[gateway.issuers]]
issuer = "https://project.supabase.co/auth/v1"
secret_env = "SUPABASE_SECRET"
`
const ENVIRONMENT = {
  K1: 'hunter2-one',
  AGENT: 'robot',
  SUPABASE_SECRET: 'hunter2-two',
  JWT_SECRET_PREVIOUS: 'hunter2-old',
}

test('every key of an issuer is read', () => {
  const config = load(EVERYTHING, ENVIRONMENT)
  expect(config.jwtSecretPrevious).toBe('hunter2-old')
  expect(config.gateway.jwtSecrets).toEqual(
    new Map([
      ['k1', 'hunter2-one'],
      ['k2', 'plain'],
    ]),
  )
  expect(config.gateway.issuers).toEqual([
    issuerConfig({
      issuer: 'https://id.example/',
      jwksUrl: 'https://id.example/keys',
      audience: ['svc'],
      algorithms: ['RS256', 'ES256'],
      leewaySeconds: 5,
      tenant: { kind: 'claim', claim: { text: 'https://id.example/tenant.id', steps: null } },
      user: { kind: 'claim', claim: { text: 'sub', steps: ['sub'] } },
      role: { kind: 'claim', claim: { text: 'realm_access.roles[0]', steps: ['realm_access', 'roles', 0] } },
      scopes: { kind: 'claim', claim: { text: '$.scp', steps: ['scp'] } },
      agent: { kind: 'constant', value: 'robot' },
      requiredClaims: new Map<string, { claim: { text: string; steps: string[] }; value: string | number | boolean }>([
        ['email_verified', { claim: { text: 'email_verified', steps: ['email_verified'] }, value: true }],
        ['token_use', { claim: { text: 'token_use', steps: ['token_use'] }, value: 'access' }],
        ['level', { claim: { text: 'level', steps: ['level'] }, value: 2 }],
      ]),
      roleMap: new Map([['authenticated', 'member']]),
    }),
    issuerConfig({ issuer: 'http://localhost:9000', discovery: true, audience: ['a', 'b'] }),
    issuerConfig({ issuer: 'own', publicKeyPath: join(folder, 'keys.pem') }),
    issuerConfig({
      ...{ issuer: 'https://project.supabase.co/auth/v1', secretEnv: 'SUPABASE_SECRET', secret: 'hunter2-two' },
    }),
  ])
})

test('no secret is printed, and the printed text reads back as the same issuers', () => {
  const config = load(EVERYTHING, ENVIRONMENT)
  const printed = printConfig(config)
  expect(printed).not.toContain('hunter2')
  expect(printed).toContain('jwt_secrets = { "k1" = "***", "k2" = "***" }')
  expect(printed).toContain('# JWT_SECRET_PREVIOUS = "***"')
  expect(printed).toContain('required_claims = { "email_verified" = true, "token_use" = "access", "level" = 2 }')
  expect(load(printed, ENVIRONMENT).gateway.issuers).toEqual(config.gateway.issuers)
})

test('an empty JWT_SECRET_PREVIOUS counts as not set, because finished rotations leave one', () => {
  expect(load('', { JWT_SECRET_PREVIOUS: '' }).jwtSecretPrevious).toBeNull()
})

const ISSUER = `[gateway]\n[[gateway.issuers]]\nissuer = "https://id.example"\n`

describe('rejected settings', () => {
  test.each<[string, string]>([
    ['[gateway]\n[[gateway.issuers]]\ndiscovery = true', '2: gateway.issuers.0: needs issuer, the iss of its tokens'],
    [
      ISSUER,
      '2: gateway.issuers.0: needs a source of keys: one of jwks_url, discovery = true, public_key_path or secret_env',
    ],
    [
      `${ISSUER}jwks_url = "https://id.example/keys"\ndiscovery = true`,
      '4: gateway.issuers.0.jwks_url: only one source of keys is possible, and jwks_url and discovery are given',
    ],
    [`${ISSUER}secret_env = "ID"`, '4: gateway.issuers.0.secret_env: the environment variable ID is not set or empty'],
    [
      `${ISSUER}discovery = true\n[[gateway.issuers]]\nissuer = "https://id.example"\ndiscovery = true`,
      '6: gateway.issuers.1.issuer: "https://id.example" is configured twice; remove one',
    ],
    [
      '[gateway]\n[[gateway.issuers]]\nissuer = "me"\ndiscovery = true',
      '4: gateway.issuers.0.discovery: needs an issuer that is an https:// URL, or http:// on a loopback ' +
        'address, not "me"',
    ],
    [
      `${ISSUER}discovery = true\nalgorithms = ["RS256", "HS256"]`,
      '5: gateway.issuers.0.algorithms: HS256 cannot be used with public keys',
    ],
    [
      `${ISSUER}jwks_url = "http://id.example/keys"`,
      '4: gateway.issuers.0.jwks_url: expected an https:// URL without user, password and fragment; http:// only on ' +
        '127.0.0.1, ::1 and localhost, not "http://id.example/keys"',
    ],
    [
      `${ISSUER}discovery = true\nalgorithms = ["none"]`,
      '5: gateway.issuers.0.algorithms: expected an array of distinct algorithms from RS256, RS384, RS512, ' +
        'PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, HS256, HS384, HS512, not "none"',
    ],
    [
      `${ISSUER}discovery = true\ntenant = "a..b"`,
      '5: gateway.issuers.0.tenant: expected the name of a claim, a path such as "app_metadata.tenant_id" or ' +
        '"roles[0]", or a constant: { value = "…" }, not "a..b"',
    ],
    [
      `${ISSUER}discovery = true\nleeway_seconds = 301`,
      '5: gateway.issuers.0.leeway_seconds: expected an integer from 0 to 300, not 301',
    ],
    [
      `${ISSUER}discovery = true\naudiences = "x"`,
      '5: gateway.issuers.0.audiences: unknown key; did you mean gateway.issuers.0.audience?',
    ],
    ['[gateway]\nissuers = 1', '2: gateway.issuers: expected an array of tables: [[gateway.issuers]]'],
    ['[gateway.issuers]\nissuer = "x"', '1: gateway.issuers: expected an array of tables: [[gateway.issuers]]'],
    [
      '[gateway]\njwt_secrets = { k1 = "" }',
      '2: gateway.jwt_secrets: expected a table of non-empty strings: { name = "…" }',
    ],
    [
      '[gateway]\njwt_secrets = { k1 = "$' + '{GONE}" }',
      '2: gateway.jwt_secrets: the environment variable GONE is not set: set it or write $' + '{GONE:-default}',
    ],
  ])('%j', (toml, expected) => {
    expect(problems(toml)).toEqual([`svc.toml:${expected}`])
  })

  test('a secret accepts HMAC algorithms only', () => {
    expect(problems(`${ISSUER}secret_env = "ID"\nalgorithms = ["RS256"]`, { ID: 'x' })).toEqual([
      'svc.toml:5: gateway.issuers.0.algorithms: RS256 cannot be used with a secret (secret_env)',
    ])
  })

  test('more than 32 issuers are rejected', () => {
    const many = Array.from(
      { length: 33 },
      (_, n) => `[[gateway.issuers]]\nissuer = "https://id${n}.example"\ndiscovery = true`,
    )
    expect(problems(many.join('\n'))).toEqual(['svc.toml:97: gateway.issuers.32: expected at most 32 issuers'])
    expect(problems(many.slice(1).join('\n'))).toEqual([])
  })

  test('the message for a URL with a password shows only the text of the file', () => {
    expect(problems(`${ISSUER}jwks_url = "https://user:pw@id.example/keys"`)).toHaveLength(1)
  })
})
