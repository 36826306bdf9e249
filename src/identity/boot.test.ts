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

/** Level and message, in short. */
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

test('a good secret is all it takes', () => {
  expect(findings({})).toEqual([])
  expect(findings({ host: '0.0.0.0' })).toEqual([])
})

describe('secret', () => {
  test('empty is refused, whatever else is set', () => {
    for (const requireAuth of [true, false]) {
      for (const devMode of [true, false]) {
        expect(findings({ jwtSecret: '', requireAuth, devMode })).toEqual([
          'error: JWT_SECRET is empty: anybody could sign a token.',
        ])
      }
    }
  })

  test('31 bytes are a danger; 32 are enough; bytes are counted, not characters', () => {
    expect(findings({ jwtSecret: 'x'.repeat(31) })).toEqual([
      'warning: JWT_SECRET has 31 bytes; fewer than 32 can be found by trying.',
    ])
    expect(findings({ jwtSecret: 'x'.repeat(32) })).toEqual([])
    expect(findings({ jwtSecret: 'é'.repeat(16) })).toEqual([])
  })

  test('none at all: nobody could ever come in', () => {
    expect(findings({ jwtSecret: null })).toEqual([
      'error: JWT_SECRET is not set, but every request has to show a token (require_auth): none could ever be accepted.',
    ])
    expect(findings({ jwtSecret: null, requireAuth: false })).toEqual([])
  })

  test('the way out is named, the secret is not', () => {
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

describe('development mode starts on loopback and with a secret only', () => {
  test.each(['127.0.0.1', '127.255.0.9', '::1', '0:0:0:0:0:0:0:1', 'localhost', 'LOCALHOST'])('%s', host => {
    expect(findings({ devMode: true, host })).toEqual([])
  })

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
  ])('not on %s', host => {
    expect(isLoopback({ host })).toBe(false)
    expect(findings({ devMode: true, host })).toEqual([
      `error: SVC_DEV_MODE is on and the bind address is ${host}: whoever can reach it could name themselves any tenant.`,
    ])
  })

  test('not without a secret', () => {
    expect(findings({ devMode: true, jwtSecret: null })).toEqual([
      'error: SVC_DEV_MODE is on but JWT_SECRET is not set.',
    ])
    expect(findings({ devMode: true, jwtSecret: null, requireAuth: false, host: '::' })).toHaveLength(2)
  })
})

describe('more than one secret, and issuers', () => {
  test('another secret, or an issuer, verifies tokens where JWT_SECRET is not set', () => {
    expect(findings({ jwtSecret: null, jwtSecrets: [['k1', SECRET]] })).toEqual([])
    expect(findings({ jwtSecret: null, issuers: [issuerConfig({ issuer: 'https://id.example' })] })).toEqual([])
  })

  test('each short secret is a danger, and is named', () => {
    const issuers = [issuerConfig({ issuer: 'https://id.example', secretEnv: 'ID_SECRET', secret: 'short' })]
    expect(findings({ jwtSecretPrevious: 'old', jwtSecrets: [['k1', 'weak']], issuers })).toEqual([
      'warning: JWT_SECRET_PREVIOUS has 3 bytes; fewer than 32 can be found by trying.',
      'warning: jwt_secrets.k1 has 4 bytes; fewer than 32 can be found by trying.',
      'warning: ID_SECRET has 5 bytes; fewer than 32 can be found by trying.',
    ])
  })

  test('jwt_issuer that is an issuer leaves nothing to JWT_SECRET', () => {
    expect(findings({ jwtIssuer: 'me', issuers: [issuerConfig({ issuer: 'me' })] })).toEqual([
      'warning: jwt_issuer is "me", which [[gateway.issuers]] has as well: JWT_SECRET can verify no token.',
    ])
  })
})
