// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the references to expand
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Config } from './config.ts'
import type { Environment } from './expand.ts'
import { loadConfig } from './load.ts'
import { ConfigError } from './problem.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-config-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string | Buffer): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

function load(environment: Environment = {}, file?: string): Config {
  return loadConfig({ file, environment, workingDirectory: folder }).config
}

function loadText(toml: string, environment: Environment = {}): Config {
  write('svc.toml', toml)
  return load(environment)
}

/** The problems as startup would print them. */
function problemsOf(toml: string, environment: Environment = {}): readonly string[] {
  write('svc.toml', toml)
  return problems(() => load(environment))
}

function problems(start: () => unknown): readonly string[] {
  try {
    start()
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

describe('defaults', () => {
  test('apply without file and environment', () => {
    expect(load()).toEqual({
      gateway: {
        bind: { host: '127.0.0.1', port: 8080 },
        workers: 1,
        databaseUrl: null,
        realtimeDatabaseUrl: null,
        replicas: [],
        replicaMaxLagMs: 5_000,
        feedUrl: null,
        feedMaxConnections: 2,
        walKeepMb: 10_240,
        schemas: ['public'],
        exposedViews: [],
        tenantColumn: 'tenant_id',
        schemaPollSecs: 60,
        sessionSettings: 'all',
        strict: false,
        acceptedFindings: [],
        requireAuth: true,
        requireExp: false,
        jwtIssuer: null,
        jwtAudience: null,
        jwtSecrets: new Map(),
        issuers: [],
        jwtDenylistTable: null,
        wsQueryToken: false,
        publicUrl: null,
        corsAllowedOrigins: [],
        allowedHosts: [],
        compressMinBytes: 1_024,
        trustedProxies: [],
        defaultLimit: 50,
        maxBatchRows: 10_000,
        maxBatchKeySets: 1_000,
        maxBatchOperations: 100,
        maxBatchReferences: 1_000,
        maxInspectSteps: 100,
        maxImportBytes: 1_073_741_824,
        maxImports: 4,
        tenantMaxImports: 2,
        importTimeoutMs: 600_000,
        idempotencyTtlSecs: 86_400,
        idempotencyMaxResponseBytes: 1_048_576,
        tenantMaxIdempotencyKeys: 100_000,
        maxExpandDepth: 4,
        maxFilters: 64,
        maxInValues: 1_000,
        maxJoins: 16,
        maxRelations: 64,
        maxBuiltValueBytes: 1_048_576,
        maxCollectedBytes: 67_108_864,
        maxCopiedValues: 256,
        maxSeriesRows: 1_000_000,
        maxPatternBytes: 2_048,
        maxContainedElements: 1_000,
        maxExpressions: 32_768,
        maxParameters: 1_000,
        maxNumericProducts: 64,
        maxRepeatedCharacters: 65_536,
        maxRepetitions: 64,
        maxQueryParameters: 1_000,
        maxTextFormBytes: 67_108_864,
        maxResultRows: 10_000,
        maxResultBytes: 67_108_864,
        searchLanguage: 'english',
        explainEndpoint: 'on',
        rateLimitRate: 500,
        rateLimitBurst: 1_000,
        tenantMaxConcurrent: 32,
        tenantMaxStreams: 4,
        connectionMaxConcurrent: 4,
        connectionMaxPipelined: 64,
        largeBodyBytes: 262_144,
        streamMinBytesPerSec: 2_048,
        streamMinRateWindowSecs: 60,
        maxClientConnections: 7_500,
        addressMaxClientConnections: 6_000,
        addressMaxSockets: 500,
        tenantMaxSockets: 2_000,
        tenantMaxSubscriptions: 20_000,
        tenantMaxSubscriptionGroups: 2_000,
        tenantMaxWaitingShapes: 2_000,
        tenantMaxLiveQueries: 1_000,
        maxLiveQueries: 2_000,
        maxSockets: 7_000,
        socketMaxSubscriptions: 100,
        socketMaxLiveQueries: 50,
        tenantMaxUnroutedQueriesPerSec: 200,
        unroutedResyncIntervalMs: 1_000,
        maxInflightBodyBytes: 268_435_456,
        addressMaxInflightBodyBytes: 67_108_864,
        maxUnsentBytes: 268_435_456,
        tenantMaxUnsentBytes: 134_217_728,
        connectionMaxUnsentBytes: 1_048_576,
        tenantMaxConnections: null,
        explainMaxCost: 1_000_000,
        explainMaxRows: 1_000_000,
        roleOverrides: new Map(),
        tables: new Map(),
        console: {
          enabled: false,
          oidcClientId: null,
          oidcIssuer: null,
          oidcScopes: ['openid'],
          oidcParameters: new Map(),
        },
        tracing: { enabled: false, otlpEndpoint: null, otlpHeaders: null, serviceName: 'svc', sampleRatio: 1 },
        shared: { url: null, prefix: 'svc', timeoutMs: 100 },
        openapi: { title: 'Data gateway', description: null },
        cache: { enabled: false, maxEntries: 1_000, ttlSecs: 60, maxStalenessMs: 1_000 },
        maxConnections: 10,
        acquireTimeoutMs: 5_000,
        statementTimeoutMs: 30_000,
        drainTimeoutMs: 10_000,
        preparedStatements: true,
        gssModule: null,
        policyPath: null,
        allowListPath: null,
        rpcRequireSchemaQualified: false,
        rpcAllowlistPath: null,
        rpcSignatureCheck: true,
        eventsPath: null,
        webhookAllow: [],
      },
      access: { enabled: false, path: null },
      mcp: { bind: { host: '127.0.0.1', port: 8090 }, allowedHosts: [] },
      postgrest: {
        enabled: false,
        prefix: '/rest/v1',
        schemas: ['public'],
        extraSearchPath: ['public'],
        anonRole: null,
        jwtRoleClaim: null,
        jwtAudience: null,
        jwtSecretIsBase64: false,
        preConfig: null,
        preRequest: null,
        maxRows: 0,
        aggregatesEnabled: false,
        txEnd: 'commit',
        hoistedTxSettings: ['statement_timeout', 'plan_filter.statement_cost_limit'],
        appSettings: new Map(),
        errorVerbosity: 'verbose',
        safeUpdates: false,
        legacyTargetNames: true,
        serverTiming: false,
        traceHeader: null,
        rootSpec: null,
        openapiMode: 'follow-privileges',
        openapiSecurityActive: false,
        openapiServerProxyUri: null,
        realtime: false,
        realtimeBroadcastsPerSec: 100,
        planEnabled: false,
      },
      shapes: { enabled: false, path: '/v1/shape', longPollMs: 20_000, allowDeletion: false },
      jwtSecret: null,
      jwtSecretPrevious: null,
      krb5Config: null,
      krb5CredentialCache: null,
      krb5ClientKeytab: null,
      devMode: false,
      logLevel: 'info',
      adminToken: null,
      adminDatabaseUrl: null,
      file: null,
    })
  })

  test('an empty file has the same configuration except for its name', () => {
    expect(loadText('')).toEqual({ ...load({}, join(folder, 'svc.toml')), file: join(folder, 'svc.toml') })
  })

  test('the configuration is deeply frozen', () => {
    const config = loadText('[gateway.role_overrides.x]\nexplain_max_cost = 1')
    const { gateway } = config
    const parts = [
      config,
      gateway,
      gateway.cache,
      gateway.schemas,
      gateway.exposedViews,
      gateway.acceptedFindings,
      gateway.bind,
      config.access,
      config.mcp,
      config.mcp.bind,
    ]
    expect(parts.map(Object.isFrozen)).toEqual(parts.map(() => true))
    expect(Object.isFrozen(gateway.roleOverrides.get('x'))).toBe(true)
  })

  test('strict requires exp unless the file sets require_exp', () => {
    expect(loadText('[gateway]\nstrict = true').gateway.requireExp).toBe(true)
    expect(loadText('[gateway]\nstrict = true\nrequire_exp = false').gateway.requireExp).toBe(false)
  })
})

describe('the choice of the file', () => {
  test('--config is first, then SVC_CONFIG, then ./svc.toml', () => {
    write('svc.toml', '[gateway]\ndefault_limit = 1')
    write('b.toml', '[gateway]\ndefault_limit = 2')
    write('c.toml', '[gateway]\ndefault_limit = 3')
    expect(load().gateway.defaultLimit).toBe(1)
    expect(load({ SVC_CONFIG: 'b.toml' }).gateway.defaultLimit).toBe(2)
    expect(load({ SVC_CONFIG: 'b.toml' }, 'c.toml').gateway.defaultLimit).toBe(3)
    expect(load({ SVC_CONFIG: '' }).file).toBe(join(folder, 'svc.toml'))
  })

  test('a configured file must exist', () => {
    expect(problems(() => load({}, 'gone.toml'))).toEqual([
      expect.stringMatching(/^gone\.toml: cannot be read: ENOENT/),
    ])
    expect(problems(() => load({ SVC_CONFIG: 'gone.toml' }))).toEqual([
      expect.stringMatching(/^gone\.toml: cannot be read: ENOENT/),
    ])
  })

  test('a folder, invalid UTF-8 and a file that is too large are rejected', () => {
    mkdirSync(join(folder, 'd'))
    write('latin.toml', Buffer.from([0x61, 0xe9]))
    write('large.toml', `# ${'x'.repeat(1_048_576)}`)
    expect(problems(() => load({}, 'd'))).toEqual([expect.stringMatching(/^d: cannot be read: EISDIR/)])
    expect(problems(() => load({}, 'latin.toml'))).toEqual([
      expect.stringMatching(/^latin\.toml: cannot be read: .*not valid.*utf-8/),
    ])
    expect(problems(() => load({}, 'large.toml'))).toEqual([
      'large.toml: cannot be read: it has 1048578 bytes; at most 1048576 are expected',
    ])
  })

  test('a byte order mark is skipped', () => {
    expect(loadText('\uFEFF[gateway]\ndefault_limit = 7').gateway.defaultLimit).toBe(7)
  })
})

describe('environment', () => {
  test('overrides the file', () => {
    write(
      'svc.toml',
      '[gateway]\ndatabase_url = "postgres://file/db"\nbind = "127.0.0.1:1"\nadmin_token = "file"\nlog_level = ' +
        '"warn"\n[mcp]\nbind = "localhost:1"',
    )
    const config = load({
      DATABASE_URL: 'postgresql://env/db',
      JWT_SECRET: 's',
      SVC_DEV_MODE: 'true',
      SVC_BIND: '[::1]:2',
      SVC_ADMIN_TOKEN: 'env',
      SVC_LOG_LEVEL: 'debug',
      SVC_MCP_BIND: 'localhost:3',
    })
    expect(config).toMatchObject({
      gateway: { databaseUrl: 'postgresql://env/db', bind: { host: '::1', port: 2 } },
      mcp: { bind: { host: 'localhost', port: 3 }, allowedHosts: [] },
      jwtSecret: 's',
      devMode: true,
      adminToken: 'env',
      logLevel: 'debug',
    })
  })

  test.each([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
    ['', false],
  ])('development mode is read from SVC_DEV_MODE=%s', (text, expected) => {
    expect(load({ SVC_DEV_MODE: text }).devMode).toBe(expected)
  })

  test('problems of environment variables are reported too, without the value of a secret', () => {
    const said = problems(() =>
      load({
        SVC_DEV_MODE: 'yes',
        SVC_BIND: '8080',
        DATABASE_URL: 'mysql://u:hunter2@h',
        SVC_LOG_LEVEL: 'loud',
        SVC_ADMIN_TOKEN: '',
      }),
    )
    expect(said).toEqual([
      'environment: SVC_DEV_MODE: expected true or false, not "yes"',
      'environment: SVC_LOG_LEVEL: expected one of "fatal", "error", "warn", "info", "debug", "trace", "silent", ' +
        'not "loud"',
      'environment: SVC_ADMIN_TOKEN: expected a non-empty string',
      'environment: SVC_BIND: expected "HOST:PORT", for example "127.0.0.1:8080" or "[::1]:8080", not "8080"',
      'environment: DATABASE_URL: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    ])
  })

  test('an empty secret is kept and rejected at startup; an empty address counts as not set', () => {
    expect(load({ JWT_SECRET: '', DATABASE_URL: '', SVC_BIND: '' })).toMatchObject({
      jwtSecret: '',
      gateway: { databaseUrl: null, bind: { port: 8080 } },
    })
  })
})

describe('expansion', () => {
  test('applies to strings, to arrays, and to settings that are numbers or flags', () => {
    const toml = `[gateway]
      database_url = "postgres://app:\${PW}@\${HOST:-localhost}/shop"
      schemas = ["\${SCHEMA}", "public"]
      max_connections = "\${POOL:-7}"
      rate_limit_rate = "\${RATE:-2.5}"
      strict = "\${STRICT:-true}"`
    expect(loadText(toml, { PW: 'x', SCHEMA: 'sales' }).gateway).toMatchObject({
      databaseUrl: 'postgres://app:x@localhost/shop',
      schemas: ['sales', 'public'],
      maxConnections: 7,
      rateLimitRate: 2.5,
      strict: true,
    })
  })

  test('a number in quotes is still not a number', () => {
    expect(problemsOf('[gateway]\nmax_connections = "7"')).toEqual([
      'svc.toml:2: gateway.max_connections: expected an integer from 1 to 1000, not "7"',
    ])
  })

  test('messages show the written text, not the expanded one', () => {
    expect(problemsOf('[gateway]\nmax_connections = "${PW}"', { PW: 'hunter2' })).toEqual([
      'svc.toml:2: gateway.max_connections: expected an integer from 1 to 1000, not "${PW}"',
    ])
  })

  test('a missing variable is reported on the line of its element', () => {
    expect(problemsOf('[gateway]\nschemas = [\n  "public",\n  "${NOPE}",\n]')).toEqual([
      'svc.toml:4: gateway.schemas: the environment variable NOPE is not set: set it or write ${NOPE:-default}',
    ])
  })
})

test('realtime of the PostgREST dialect cannot be combined with pre_request', () => {
  const text = '[postgrest]\nenabled = true\npre_request = "public.check"\nrealtime = true'
  expect(problemsOf(text)).toEqual([
    'svc.toml:4: postgrest.realtime: cannot be combined with postgrest.pre_request, which subscriptions do not call',
  ])
})

describe('paths', () => {
  test('are relative to the folder of the file', () => {
    mkdirSync(join(folder, 'etc'))
    for (const name of ['access.toml', 'policy.yaml', 'allow.txt', 'rpc.txt', 'events.yaml', 'gss.mjs'])
      write(join('etc', name), '')
    write(
      'etc/gateway.toml',
      `[gateway]
       policy = "policy.yaml"
       allow_list_path = "./allow.txt"
       rpc_allowlist_path = "../etc/rpc.txt"
       events_path = "${join(folder, 'etc', 'events.yaml')}"
       gss_module = "gss.mjs"
       database_url = "postgres://h/d?sslrootcert=ca.pem&application_name=a.b&sslkey=%2Fabs%2Fk.pem"
       realtime_database_url = "postgres://h/d?sslrootcert=system"
       [access]
       enabled = true
       path = "access.toml"`,
    )
    const config = load({}, 'etc/gateway.toml')
    expect(config.access.path).toBe(join(folder, 'etc/access.toml'))
    expect(config.gateway).toMatchObject({
      policyPath: join(folder, 'etc/policy.yaml'),
      allowListPath: join(folder, 'etc/allow.txt'),
      rpcAllowlistPath: join(folder, 'etc/rpc.txt'),
      eventsPath: join(folder, 'etc/events.yaml'),
      gssModule: join(folder, 'etc/gss.mjs'),
      databaseUrl:
        `postgres://h/d?sslrootcert=${encodeURIComponent(join(folder, 'etc/ca.pem'))}` +
        '&application_name=a.b&sslkey=%2Fabs%2Fk.pem',
      realtimeDatabaseUrl: 'postgres://h/d?sslrootcert=system',
    })
  })

  test('configured files must be readable, except a policy that is not enabled', () => {
    mkdirSync(join(folder, 'd'))
    expect(problemsOf('[gateway]\npolicy_path = "gone.yaml"\nevents_path = "d"\n[access]\npath = "gone.toml"')).toEqual(
      [
        expect.stringMatching(/^svc\.toml:2: gateway\.policy_path: expected a file that can be read: ENOENT/),
        `svc.toml:3: gateway.events_path: expected a file that can be read: ${join(folder, 'd')} is not a file`,
      ],
    )
    expect(problemsOf('[access]\nenabled = true\npath = "gone.toml"')).toEqual([
      expect.stringMatching(/^svc\.toml:3: access\.path: expected a file that can be read: ENOENT/),
    ])
  })

  test('an enabled policy needs its file, and one policy has one name', () => {
    expect(problemsOf('[access]\nenabled = true')).toEqual([
      'svc.toml:2: access.enabled: needs access.path, the file with the policy',
    ])
    write('p', '')
    expect(problemsOf('[gateway]\npolicy = "p"\npolicy_path = "p"')).toEqual([
      'svc.toml:2: gateway.policy: means the same as gateway.policy_path, which is also set: remove one',
    ])
  })
})

describe('problems', () => {
  test('are reported together, in order, each with line, key, expected value and nearest key', () => {
    const toml = `max_filters = 3
[gateway]
bind = "0.0.0.0"
max_fliters = 3
schemas = [
  "public",
  "public",
]
default_limit = 0
rate_limit_rate = "fast"
statement_timeout_ms = 1.5
explain_endpoint = "maybe"
strict = "yes"
trusted_proxies = ["10.0.0.0/8", "10.0.0.0/33"]
cors_allowed_origins = [ "https://a.example", "https://b.example/" ]
cache = 5
tenant_column = ""

[gateway.role_overrides."data team"]
explain_max_cots = 1
explain_max_rows = -1
[gatewya]
x = 1
[acess]
[cache]
enabled = true
[mcp]
bind = "localhost:65536"
`
    expect(problemsOf(toml, { SVC_LOG_LEVEL: 'x' })).toEqual([
      'svc.toml:1: max_filters: unknown key; did you mean gateway.max_filters?',
      'svc.toml:3: gateway.bind: expected "HOST:PORT", for example "127.0.0.1:8080" or "[::1]:8080", not "0.0.0.0"',
      'svc.toml:4: gateway.max_fliters: unknown key; did you mean gateway.max_filters?',
      'svc.toml:7: gateway.schemas: expected an array of one or more distinct schema names, without ' +
        'PostgreSQL’s own schemas and svc, not "public"',
      'svc.toml:9: gateway.default_limit: expected an integer from 1 to 1000000, not 0',
      'svc.toml:10: gateway.rate_limit_rate: expected a number from 0 to 1000000, not "fast"',
      'svc.toml:11: gateway.statement_timeout_ms: expected an integer from 1 to 2147483647, not 1.5',
      'svc.toml:12: gateway.explain_endpoint: expected one of "on", "admin", "off", not "maybe"',
      'svc.toml:13: gateway.strict: expected true or false, not "yes"',
      'svc.toml:14: gateway.trusted_proxies: expected an array of distinct addresses or CIDR ranges, for ' +
        'example ["10.0.0.0/8", "::1"], not "10.0.0.0/33"',
      'svc.toml:15: gateway.cors_allowed_origins: expected an array of distinct origins such as ' +
        '"https://app.example.com" (no path, no trailing slash), or ["*"] for any, not "https://b.example/"',
      'svc.toml:16: gateway.cache: expected a table: [gateway.cache]',
      'svc.toml:17: gateway.tenant_column: expected a non-empty string, not ""',
      'svc.toml:20: gateway.role_overrides.data team.explain_max_cots: unknown key; did you mean ' +
        'gateway.role_overrides.data team.explain_max_cost?',
      'svc.toml:21: gateway.role_overrides.data team.explain_max_rows: expected an integer from 0 to ' +
        '9007199254740991, not -1',
      'svc.toml:22: gatewya: unknown key; did you mean gateway?',
      'svc.toml:24: acess: unknown key; did you mean access?',
      'svc.toml:25: cache: unknown key; did you mean gateway.cache?',
      'svc.toml:28: mcp.bind: expected "HOST:PORT", for example "127.0.0.1:8080" or "[::1]:8080", not ' +
        '"localhost:65536"',
      'environment: SVC_LOG_LEVEL: expected one of "fatal", "error", "warn", "info", "debug", "trace", "silent", ' +
        'not "x"',
    ])
  })

  test('a syntax error has its line and does not hide problems of the environment', () => {
    expect(problemsOf('[gateway]\nbind = \n', { SVC_BIND: 'x' })).toEqual([
      expect.stringMatching(/^svc\.toml:2: is not valid TOML: /),
      expect.stringMatching(/^environment: SVC_BIND: /),
    ])
    expect(problemsOf('[gateway]\nbind = "a:1"\nbind = "a:2"\n')).toEqual([
      expect.stringMatching(/^svc\.toml:3: is not valid TOML: /),
    ])
  })

  test('a setting that only the environment can set is reported with its variable', () => {
    expect(problemsOf('[gateway]\njwt_secret = "hunter2"\ndev_mode = true\n')).toEqual([
      'svc.toml:2: gateway.jwt_secret: cannot be set in a file: set the environment variable JWT_SECRET',
      'svc.toml:3: gateway.dev_mode: cannot be set in a file: set the environment variable SVC_DEV_MODE',
    ])
  })

  test('secrets of a wrong type are not shown', () => {
    expect(problemsOf('[gateway]\nadmin_token = 12345\ndatabase_url = "hunter2"')).toEqual([
      'svc.toml:2: gateway.admin_token: expected a non-empty string',
      'svc.toml:3: gateway.database_url: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    ])
  })

  test('nan, infinity, dates and integers that are too large are rejected as numbers', () => {
    expect(problemsOf('[gateway]\nrate_limit_rate = nan\nexplain_max_cost = inf\nmax_filters = 1979-05-27')).toEqual([
      'svc.toml:2: gateway.rate_limit_rate: expected a number from 0 to 1000000, not NaN',
      'svc.toml:3: gateway.explain_max_cost: expected a number from 0 to 1000000000000000, not Infinity',
      expect.stringMatching(/^svc\.toml:4: gateway\.max_filters: expected an integer from 1 to 10000, not /),
    ])
    expect(problemsOf('[gateway]\nmax_filters = 99999999999999999999')).toEqual([
      expect.stringMatching(/^svc\.toml:2: is not valid TOML: /),
    ])
  })

  test('a setting in place of a table and a table in place of a setting are rejected', () => {
    expect(problemsOf('gateway = 1\n[access.path]\nx = 1')).toEqual([
      'svc.toml:1: gateway: expected a table: [gateway]',
      'svc.toml:2: access.path: expected the path of a file, not a table',
    ])
  })

  test('names of Object.prototype members are unknown keys or ordinary roles', () => {
    expect(problemsOf('[gateway]\nconstructor = 1\n[__proto__]\nx = 1')).toEqual([
      'svc.toml:2: gateway.constructor: unknown key',
      'svc.toml:3: __proto__: unknown key',
    ])
    const { roleOverrides } = loadText('[gateway.role_overrides.__proto__]\nexplain_max_cost = 7').gateway
    expect([...roleOverrides]).toEqual([['__proto__', { explainMaxCost: 7, explainMaxRows: null }]])
  })
})

test('a rate, concurrency, cost or row limit of 0 is accepted and turns the limit off', () => {
  const off = [
    'rate_limit_rate',
    'rate_limit_burst',
    'tenant_max_concurrent',
    'tenant_max_connections',
    'tenant_max_streams',
    'stream_min_bytes_per_sec',
    'explain_max_cost',
    'explain_max_rows',
    'max_result_rows',
    'max_batch_rows',
  ]
  expect(problemsOf(`[gateway]\n${off.map(key => `${key} = 0`).join('\n')}`)).toEqual([])
})

test.each([
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['[::]:80', { host: '::', port: 80 }],
  ['gate-way_1.example.com:65535', { host: 'gate-way_1.example.com', port: 65535 }],
])('the setting bind is read as host and port: %s', (text, bind) => {
  expect(load({ SVC_BIND: text }).gateway.bind).toEqual(bind)
})

test.each([
  ':80',
  '::1:80',
  '[::1]',
  '[x]:80',
  'a b:80',
  'a:',
  'a:b',
  'a:-1',
  'a/b:80',
  '-a:80',
  'u@a:80',
  'http://a:80',
])('bind %s is rejected', text => {
  expect(problems(() => load({ SVC_BIND: text }))).toHaveLength(1)
})

test('given lists the settings that were set, with their sources', () => {
  write('svc.toml', '[gateway]\n\ndefault_limit = 1\nbind = "localhost:1"')
  const { given } = loadConfig({ environment: { SVC_BIND: 'localhost:2' }, workingDirectory: folder })
  expect(given.map(({ written }) => [written.source, written.key, written.lineOf(null)])).toEqual([
    ['environment', 'SVC_BIND', null],
    ['svc.toml', 'gateway.default_limit', 3],
  ])
})

test('fuzz: any value for any key is accepted or is a problem with its line', () => {
  const keys = [
    'bind',
    'schemas',
    'max_filters',
    'rate_limit_rate',
    'strict',
    'cors_allowed_origins',
    'trusted_proxies',
    'explain_endpoint',
    'cache',
    'database_url',
  ]
  const value = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }).map(text => JSON.stringify(text).replaceAll('\u007f', '\\u007f')),
    fc.integer().map(String),
    fc.constantFrom('true', 'nan', '[]', '["a"]', '[1]', '{}', '{ enabled = 1 }', '12:30:00', '""', '[["a"]]', '"${A"'),
  )
  fc.assert(
    fc.property(fc.constantFrom(...keys), value, (key, text) => {
      const said = problemsOf(`[gateway]\n\n${key} = ${text}\n`)
      for (const line of said) expect(line).toMatch(/^svc\.toml:3: gateway\./)
    }),
    { numRuns: 300 },
  )
})
