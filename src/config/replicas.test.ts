/** `[[gateway.replicas]]` (docs/operations/replicas.md#add-a-replica). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { connectionFindings } from '../ops/connections.ts'
import { loadConfig } from './load.ts'
import { printConfig } from './print.ts'
import { ConfigError } from './problem.ts'
import { REPLICAS_MAX } from './replica-problems.ts'
import { shareOf } from './worker-share.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

function load(toml: string) {
  const file = join(folder, 'svc.toml')
  writeFileSync(file, `[gateway]\n${toml}`)
  return loadConfig({ file, environment: { PW: 'geheim' }, workingDirectory: folder }).config
}

function problemsOf(toml: string): readonly string[] {
  try {
    load(toml)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ line, key, message }) => `${line}: ${key}: ${message}`)
  }
}

const table = (host: string) => `[[gateway.replicas]]\nurl = "postgres://app:\${PW}@${host}/shop"\n`

test('replicas have a URL and a limit on connections', () => {
  const { gateway } = load(`replica_max_lag_ms = 250\n${table('one')}max_connections = 4\n${table('two')}`)
  expect(gateway.replicaMaxLagMs).toBe(250)
  expect(gateway.replicas).toEqual([
    { url: 'postgres://app:geheim@one/shop', maxConnections: 4 },
    { url: 'postgres://app:geheim@two/shop', maxConnections: null },
  ])
})

test('workers share the connections to a replica', () => {
  const config = load(`max_connections = 10\n${table('one')}max_connections = 5\n${table('two')}`)
  const shares = [1, 2].map(number => shareOf(config, { number, count: 2 }).gateway.replicas)
  expect(shares.map(replicas => replicas.map(({ maxConnections }) => maxConnections))).toEqual([
    [3, 5],
    [2, 5],
  ])
})

test('the printed configuration does not contain the password', () => {
  const printed = printConfig(load(table('one')))
  expect(printed).toContain('[[gateway.replicas]]\nurl = "postgres://app:***@one/shop"')
})

test.each([
  [
    '[[gateway.replicas]]\nmax_connections = 1',
    ['2: gateway.replicas.0.url: is required: the connection URL of a standby'],
  ],
  [table('one') + table('one'), ['5: gateway.replicas.1.url: is configured twice; remove one']],
  [
    Array.from({ length: REPLICAS_MAX + 1 }, (_, index) => table(`host${index}`)).join(''),
    [`35: gateway.replicas.16.url: expected at most ${REPLICAS_MAX} replicas`],
  ],
  [
    '[gateway.replicas]\nurl = "postgres://h/d"',
    ['2: gateway.replicas: expected an array of tables: [[gateway.replicas]]'],
  ],
])('a wrong table is a problem: %s', (toml, problems) => {
  expect(problemsOf(toml)).toEqual(problems)
})

test.each([
  ['one,two', 'replicas.0.url names several hosts'],
  ['one:5432/shop?target_session_attrs=primary&application_name=x#', 'The replica cannot be reached'],
])('a URL that cannot be that of a replica is found: %s', async (host, message) => {
  const found = await connectionFindings(load(table(host)))
  expect(found.map(finding => [finding.level, finding.message])).toEqual([['error', expect.stringContaining(message)]])
})

test('a URL that requires a primary is found', async () => {
  const url = 'postgres://app@one/shop?target_session_attrs=read-write'
  const found = await connectionFindings(load(`[[gateway.replicas]]\nurl = "${url}"`))
  expect(found.map(({ message }) => message)).toEqual([
    expect.stringContaining('requires a primary (target_session_attrs=read-write)'),
  ])
})
