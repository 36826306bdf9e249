import { describe, expect, test } from 'vitest'
import { issuerConfig } from '../../test/support/issuer.ts'
import type { IssuerConfig } from '../config/config.ts'
import { type BootConfig, identityFindings, isLoopback } from './boot.ts'

const SECRET = 'a secret of 32 bytes, or of more'

interface Options {
  readonly jwtSecret?: string | null
  readonly devMode?: boolean
  readonly host?: string
  readonly requireAuth?: boolean
  readonly jwtSecretPrevious?: string | null
  readonly jwtIssuer?: string | null
  readonly jwtSecrets?: readonly (readonly [string, string])[]
  readonly issuers?: readonly IssuerConfig[]
}

/** Level and message of each finding. */
function findings({
  jwtSecret = SECRET,
  devMode = false,
  host = '127.0.0.1',
  requireAuth = true,
  jwtSecretPrevious = null,
  jwtIssuer = null,
  jwtSecrets = [],
  issuers = [],
}: Options): readonly string[] {
  const config: BootConfig = {
    ...{ jwtSecret, jwtSecretPrevious, devMode },
    gateway: { bind: { host, port: 1 }, requireAuth, jwtIssuer, jwtSecrets: new Map(jwtSecrets), issuers },
  }
  return identityFindings(config).map(({ level, message }) => `${level}: ${message}`)
}

test('a long secret has no findings', () => {
  expect(findings({})).toEqual([])
  expect(findings({ host: '0.0.0.0' })).toEqual([])
})

describe('secret', () => {
  test('an empty secret is an error, whatever else is set', () => {
    for (const requireAuth of [true, false]) {
      for (const devMode of [true, false]) {
        expect(findings({ jwtSecret: '', requireAuth, devMode })).toEqual([
          'error: JWT_SECRET is empty: anyone could sign a token.',
        ])
      }
    }
  })

  test('31 bytes are a warning and 32 are not; bytes are counted, not characters', () => {
    expect(findings({ jwtSecret: 'x'.repeat(31) })).toEqual([
      'warning: JWT_SECRET has 31 bytes: a secret of fewer than 32 bytes can be guessed by brute force.',
    ])
    expect(findings({ jwtSecret: 'x'.repeat(32) })).toEqual([])
    expect(findings({ jwtSecret: 'é'.repeat(16) })).toEqual([])
  })

  test('a missing secret is an error, because no token could be accepted', () => {
    expect(findings({ jwtSecret: null })).toEqual([
      'error: JWT_SECRET is not set, so no token can be verified, but every request needs one (require_auth = true).',
    ])
    expect(findings({ jwtSecret: null, requireAuth: false })).toEqual([])
  })

  test('the finding contains the fix but not the secret', () => {
    const config: BootConfig = {
      ...{ jwtSecret: 'hunter2', jwtSecretPrevious: null, devMode: false },
      gateway: {
        ...{ bind: { host: 'x', port: 1 }, requireAuth: true },
        ...{ jwtIssuer: null, jwtSecrets: new Map(), issuers: [] },
      },
    }
    const [finding] = identityFindings(config)
    expect(finding?.fix).toContain('openssl rand -hex 32')
    expect(JSON.stringify(finding)).not.toContain('hunter2')
  })
})

describe('development mode requires a loopback address and a secret', () => {
  test.each(['127.0.0.1', '127.255.0.9', '::1', '0:0:0:0:0:0:0:1', 'localhost', 'LOCALHOST'])(
    'it starts on %s',
    host => {
      expect(findings({ devMode: true, host })).toEqual([])
    },
  )

  test.each([
    '0.0.0.0',
    '::',
    '0:0:0:0:0:0:0:0',
    '10.0.0.1',
    '128.0.0.1',
    '126.255.255.255',
    '::2',
    'fe80::1',
    '::1%lo',
    '::ffff:127.0.0.1',
    '127.1',
    '127.0.0.1.example.com',
    'localhost.',
    'localhost.example.com',
    'example.com',
    '0177.0.0.1',
    '2130706433',
    '',
  ])('it does not start on %s', host => {
    expect(isLoopback({ host })).toBe(false)
    expect(findings({ devMode: true, host })).toEqual([
      `error: SVC_DEV_MODE is on and the bind address is ${host}: anyone who can reach it could act as any tenant.`,
    ])
  })

  test('it does not start without a secret', () => {
    expect(findings({ devMode: true, jwtSecret: null })).toEqual([
      'error: SVC_DEV_MODE is on but JWT_SECRET is not set.',
    ])
    expect(findings({ devMode: true, jwtSecret: null, requireAuth: false, host: '::' })).toHaveLength(2)
  })
})

describe('more than one secret, and issuers', () => {
  test('another secret or an issuer replaces JWT_SECRET', () => {
    expect(findings({ jwtSecret: null, jwtSecrets: [['k1', SECRET]] })).toEqual([])
    expect(findings({ jwtSecret: null, issuers: [issuerConfig({ issuer: 'https://id.example' })] })).toEqual([])
  })

  test('each short secret has a finding with its name', () => {
    const issuers = [issuerConfig({ issuer: 'https://id.example', secretEnv: 'ID_SECRET', secret: 'short' })]
    expect(findings({ jwtSecretPrevious: 'old', jwtSecrets: [['k1', 'weak']], issuers })).toEqual([
      'warning: JWT_SECRET_PREVIOUS has 3 bytes: a secret of fewer than 32 bytes can be guessed by brute force.',
      'warning: jwt_secrets.k1 has 4 bytes: a secret of fewer than 32 bytes can be guessed by brute force.',
      'warning: ID_SECRET has 5 bytes: a secret of fewer than 32 bytes can be guessed by brute force.',
    ])
  })

  test('a jwt_issuer that is also an issuer is an error', () => {
    expect(findings({ jwtIssuer: 'me', issuers: [issuerConfig({ issuer: 'me' })] })).toEqual([
      'warning: jwt_issuer is "me", which is also an issuer in [[gateway.issuers]]: JWT_SECRET cannot verify any ' +
        'token.',
    ])
  })
})
