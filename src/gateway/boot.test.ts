/** All problems of a configuration are reported together. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../config/load.ts'
import { configFindings } from './boot.ts'

async function found(environment: Record<string, string>): Promise<readonly string[]> {
  const { config } = loadConfig({ environment, workingDirectory: tmpdir() })
  return (await configFindings(config)).map(({ level, message }) => `${level}: ${message}`)
}

const SECRET = 'a secret of 32 bytes, or of more'

test('problems of authentication, addresses and database URLs are reported together', async () => {
  expect(
    await found({
      SVC_DEV_MODE: 'true',
      SVC_BIND: '0.0.0.0:8080',
      DATABASE_URL: 'postgres://app@db/shop?sslmod=require&auth_mode=none',
    }),
  ).toEqual([
    expect.stringMatching(/^error: SVC_DEV_MODE is on and the bind address is 0\.0\.0\.0/),
    expect.stringMatching(/^error: SVC_DEV_MODE is on but JWT_SECRET is not set/),
    expect.stringMatching(/^error: .*unknown parameter "sslmod"; did you mean sslmode\?.*auth_mode=none is not one of/),
  ])
})

test('a configuration without authentication and database is rejected', async () => {
  expect(await found({})).toEqual([
    expect.stringMatching(/^error: JWT_SECRET is not set/),
    'error: no database is configured',
  ])
})

test('a correct configuration has no findings', async () => {
  expect(await found({ JWT_SECRET: SECRET, DATABASE_URL: 'postgres://app@db/shop' })).toEqual([])
})

test('a policy file that is configured but disabled is reported', async () => {
  const environment = { JWT_SECRET: SECRET, DATABASE_URL: 'postgres://app@db/shop' }
  const { config } = loadConfig({ environment, workingDirectory: tmpdir() })
  const of = async (enabled: boolean) => configFindings({ ...config, access: { enabled, path: 'policy.toml' } })
  expect(await of(false)).toMatchObject([
    { level: 'warning', message: 'the access policy policy.toml is not enforced: access.enabled is false.' },
  ])
  expect(await of(true)).toEqual([])
})

test.each([
  [
    'a pool of one connection',
    'max_connections = 1',
    ['warning: the pool has a single connection (max_connections = 1)'],
  ],
  ['a share of the whole pool', 'tenant_max_connections = 10', ['warning: one tenant can use the whole pool']],
  ['no share at all', 'tenant_max_connections = 0', ['warning: one tenant can use the whole pool']],
  ['a pool of two', 'max_connections = 2', ['warning: one tenant can open every stream', 'note: streams of a tenant']],
  ['a share of one', 'tenant_max_connections = 1', ['note: streams of a tenant can hold every connection']],
  [
    'no limit on streams beside a share of nearly all',
    'tenant_max_connections = 9\ntenant_max_streams = 0',
    ['warning: one tenant can open every stream', 'note: streams of a tenant'],
  ],
  ['a pool of three', 'max_connections = 3', []],
])('pool settings that tenants cannot share fairly are reported: %s', async (_, lines, begins) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-boot-'))
  try {
    await writeFile(join(folder, 'svc.toml'), `[gateway]\n${lines}`)
    const environment = { JWT_SECRET: SECRET, DATABASE_URL: 'postgres://app@db/shop' }
    const { config } = loadConfig({ environment, workingDirectory: folder })
    const findings = await configFindings(config)
    expect(findings.map(({ level, message }) => `${level}: ${message}`)).toEqual(
      begins.map(begin => expect.stringContaining(begin)),
    )
    for (const { fix } of findings) expect(fix).toMatch(/^Set (max|tenant_max)_(connections|streams) to /)
  } finally {
    await rm(folder, { recursive: true })
  }
})
