/**
 * docs/guides/hardening.md: the names on the page exist, its files are valid, and a gateway with these files
 * answers according to its last table.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { SAMPLE_TENANTS } from '../../src/demo/sample.ts'
import { STATUS_OF } from '../../src/errors.ts'
import { startGateway } from '../../src/gateway/gateway.ts'
import { LINTS } from '../../src/lint/lints.ts'
import { METRICS } from '../../src/ops/metric-table.ts'
import { openSession } from '../support/catalog.ts'
import { databaseFixture, fixture, folderFixture } from '../support/fixtures.ts'
import { SECRET, testGateway } from '../support/gateway.ts'
import { blocksOf, fileNamed } from '../support/page.ts'
import { rowsBelow } from '../support/page-tables.ts'
import { sampleDatabase } from '../support/sample.ts'
import { uniqueName } from '../support/server.ts'
import { openSocket } from '../support/socket.ts'
import { read } from '../tidy/tree.ts'

const PAGE = read('docs/guides/hardening.md')
const SECTIONS = ['## The database', '## Authentication', '## Access', '## Limits', '## Network and process']
const ADMIN = 'of the operator'

describe('names on the page', () => {
  const rows = SECTIONS.flatMap(section => rowsBelow(PAGE, section))
  const wordsIn = (text: string): readonly string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)

  test('each line states three things', () => {
    expect(rows.length).toBeGreaterThan(30)
    expect(rows.filter(cells => cells.length !== 3 || cells.includes(''))).toEqual([])
  })

  test('checks exist, and every error that svc check reports is in the list', () => {
    const shown = rows.flatMap(([, , seen = '']) =>
      wordsIn(seen).filter(word => /^[a-z]+(-[a-z]+)+$/.test(word) && word !== 'systemd-analyze'),
    )
    const known = LINTS.map(({ name }) => name)
    expect(shown.filter(name => !known.includes(name))).toEqual([])
    const dangers = LINTS.filter(({ name, level }) => level === 'error' && name !== 'search-language')
    expect(dangers.filter(({ name }) => !shown.includes(name)).map(({ name }) => name)).toEqual([])
  })

  test('settings, variables, metrics and codes exist', () => {
    const words = [...new Set(rows.flatMap(cells => cells.flatMap(wordsIn)))]
    const keys = SETTINGS.flatMap(({ key, environment }) => [key?.split('.').at(-1), environment])
    const others = [
      'security_invoker',
      'channel_binding',
      'default_decision',
      'read_columns',
      'write_columns',
      'search_path',
    ]
    const settings = words
      .flatMap(word => /^([a-z]+(?:_[a-z]+)+|[A-Z]+_[A-Z_]+)(?:\b|$)/.exec(word)?.[1] ?? [])
      .filter(word => !word.startsWith('svc_'))
    expect(settings.length).toBeGreaterThan(20)
    expect(settings.filter(name => !keys.includes(name) && !others.includes(name))).toEqual([])
    const metrics = [...PAGE.matchAll(/`(svc_[a-z_]+)`/g)].map(([, name]) => name)
    expect(metrics.filter(name => !Object.values(METRICS).some(metric => metric.name === name))).toEqual([])
    const codes = [...PAGE.matchAll(/code="([A-Z_]+)"/g)].map(([, code = '']) => code)
    expect(codes.length).toBeGreaterThan(5)
    expect(codes.filter(code => !(code in STATUS_OF))).toEqual([])
  })
})

const database = databaseFixture(sampleDatabase)

describe('a gateway with these files', () => {
  const folder = folderFixture()
  const gateway = fixture(async () => {
    for (const name of ['svc.toml', 'access.toml', 'allow.txt', 'functions.txt'])
      await writeFile(join(folder, name), fileNamed(PAGE, name))
    const { config } = loadConfig({
      file: join(folder, 'svc.toml'),
      environment: { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_ADMIN_TOKEN: ADMIN, SVC_BIND: '127.0.0.1:0' },
      workingDirectory: folder,
    })
    return startGateway(config, { emit() {} })
  })

  const GOOD = {
    tenant_id: SAMPLE_TENANTS[0]?.id,
    role: 'clerk',
    iss: 'https://login.example.com',
    aud: 'shop',
    exp: Math.floor(Date.now() / 1000) + 600,
  }
  const { exp: _, ...ENDLESS } = GOOD
  const CLAIMS: Readonly<Record<string, Record<string, unknown>>> = {
    'a good token': GOOD,
    'a token that never expires': ENDLESS,
    'a token of another issuer': { ...GOOD, iss: 'https://login.example.org' },
    'a token for another audience': { ...GOOD, aud: 'warehouse' },
  }

  async function bearer(who: string): Promise<Record<string, string>> {
    if (who === 'no token') return {}
    if (who === 'the admin token') return { Authorization: `Bearer ${ADMIN}` }
    const claims = CLAIMS[who]
    if (claims === undefined) throw new Error(`who is ${who}?`)
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET))
    return { Authorization: `Bearer ${token}` }
  }

  const rows = rowsBelow(PAGE, '## Complete configuration')
  test('has a table of expected responses', () => expect(rows.length).toBeGreaterThan(15))

  test.each(rows)('%s with %s: %s', async (request = '', who = '', status = '') => {
    const [, method = '', path = '', body] = /^`(\w+) (\S+)(?: (\{.*\}))?`$/.exec(request) ?? []
    const headers = { ...(await bearer(who)), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) }
    const response = await fetch(gateway.url + path, { method, headers, ...(body === undefined ? {} : { body }) })
    expect([response.status, await response.text()]).toEqual([Number(status), expect.anything()])
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('x-frame-options')).toBe('DENY')
  })

  test('rejects pages of other origins', async () => {
    const ask = async (origin: string) =>
      (await fetch(`${gateway.url}/health`, { headers: { Origin: origin } })).headers.get('access-control-allow-origin')
    expect(await ask('https://app.example.com')).toBe('https://app.example.com')
    expect(await ask('https://app.example.org')).toBeNull()
    const authorization = await bearer('a good token')
    await expect(
      openSocket(gateway.url, { headers: { ...authorization, Origin: 'https://app.example.org' } }),
    ).rejects.toThrow('403')
    const socket = await openSocket(gateway.url, { headers: { ...authorization, Origin: 'https://app.example.com' } })
    await socket.close()
  })

  test('has limits and warnings as on the page, and hides an unlisted function from the contracts', async () => {
    const headers = await bearer('the admin token')
    const internal = (await (await fetch(`${gateway.url}/health/internal`, { headers })).json()) as Record<
      string,
      unknown
    >
    expect(internal).toMatchObject({
      limits: { rate_limit_rate: 50, max_result_rows: 1_000, explain_max_cost: 500_000 },
      warnings: expect.any(Array),
    })
    const contracts = await fetch(`${gateway.url}/api/_rpc/contracts`, { headers: await bearer('a good token') })
    expect(((await contracts.json()) as { functions: { name: string }[] }).functions.map(({ name }) => name)).toEqual([
      'order_summary',
    ])
  })
})

test('limits what the statements limit', async () => {
  const [block] = blocksOf(PAGE).filter(({ language }) => language === 'sql')
  const [role, owner] = [uniqueName('hardened'), uniqueName('owner')]
  const admin = await openSession(database.adminUrl)
  try {
    await admin.run(
      `create role ${role} login; create role ${owner}; grant create, usage on schema public to ${owner};
        grant truncate on tags to ${role}`,
    )
    await admin.run((block?.text ?? '').replaceAll('gateway', role).replaceAll('shop_owner', owner))
    await admin.run(`set role ${owner}; create function later() returns int language sql stable return 1; reset role`)
    const [answer] = await admin.query(
      `select rolconnlimit, has_table_privilege(oid, 'tags', 'truncate'), has_function_privilege(oid, 'later()',
        'execute'), has_schema_privilege(oid, 'public', 'create')
       from pg_roles where rolname = $1`,
      [role],
    )
    expect(answer).toEqual(['60', 'f', 'f', 'f'])
    const plain = await testGateway(database.url)
    expect((await plain.get('/api/rpc/later')).status).toBe(403)
    expect((await plain.get('/api/rpc/slugify?value=x')).status).toBe(200)
    await plain.close()
  } finally {
    await admin.run(`reset role; drop owned by ${role}, ${owner} cascade; drop role ${role}, ${owner}`)
    await admin.close()
  }
})
