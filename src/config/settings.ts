/**
 * The table of settings. It drives the loader, `docs/reference/configuration.md`, the printed configuration
 * and `svc check`. A key exists if it has a row here, and the compiler checks that every field of `Config`
 * has exactly one row.
 */

import { STATEMENT_LIMITS } from '../statement-limits.ts'
import type {
  AccessConfig,
  CacheConfig,
  ClaimSource,
  Config,
  ConsoleConfig,
  GatewayConfig,
  IssuerConfig,
  McpConfig,
  OpenApiConfig,
  PostgrestConfig,
  ReplicaConfig,
  RoleOverride,
  ShapesConfig,
  SharedConfig,
  TableConfig,
  TracingConfig,
} from './config.ts'
import {
  algorithms,
  bind,
  choice,
  claimSource,
  databaseUrl,
  decimal,
  flag,
  headerName,
  hostNames,
  httpUrl,
  integerKind,
  integerOrAuto,
  type Kind,
  keyPrefix,
  names,
  networks,
  origins,
  path,
  providerUrl,
  publicUrl,
  redisUrl,
  requiredClaims,
  routePath,
  schemaNames,
  secretTable,
  secretText,
  settingTable,
  textKind,
  texts,
  textTable,
  urlPrefix,
  variableName,
} from './kinds.ts'
import { WORKERS_MAX } from './worker-share.ts'

/** One row of the table. */
export interface Setting<T> {
  /**
   * The dotted key in the file; null for a setting that only the environment can set. `<role>` and `<name>`
   * are placeholders for any name, `<n>` for the index in an array of tables.
   */
  readonly key: string | null
  /** Another key for the same setting. */
  readonly alias?: string
  /** The environment variable that overrides the file. */
  readonly environment?: string
  readonly kind: Kind<NonNullable<T>>
  readonly default: T
  readonly unit?: string
  /** True if the value is a secret, which is never printed. */
  readonly secret?: true
  /** True if an empty variable counts as set, so that a missing secret is reported instead of ignored. */
  readonly emptyCounts?: true
  readonly feature: Feature
  /** The description in the reference: Markdown, one paragraph. */
  readonly description: string
}

/** A row for each field of a type. */
export type SettingsOf<T> = { readonly [K in keyof T]: Setting<T[K]> }

/** The features that settings belong to, with their headings in the reference. */
export const FEATURES = {
  process: 'Process',
  database: 'Database connection',
  replicas: 'Read replicas',
  schema: 'Published schema',
  identity: 'Identity',
  issuers: 'Identity providers',
  http: 'HTTP',
  reads: 'Reads',
  writes: 'Writes',
  explain: 'Explain endpoint',
  functions: 'Stored functions',
  limits: 'Limits',
  cost: 'Cost guard',
  cache: 'Result cache',
  policies: 'Access policies',
  approval: 'Query allow-list',
  realtime: 'Realtime',
  shapes: 'Shapes',
  webhooks: 'Webhooks',
  kerberos: 'Kerberos',
  internal: 'Internal endpoints',
  tracing: 'Tracing',
  shared: 'Shared state',
  postgrest: 'PostgREST',
  tools: 'Tool server',
} as const

/** The feature that a setting belongs to. */
export type Feature = keyof typeof FEATURES

/** The longest wait that both Node's timers and PostgreSQL's `statement_timeout` support. */
const MS_MAX = 2_147_483_647
const COUNT_MAX = 2_147_483_647

/** Settings outside of `[gateway]`, mostly from the environment. */
export const PROCESS: SettingsOf<Omit<Config, 'gateway' | 'access' | 'mcp' | 'postgrest' | 'shapes' | 'file'>> = {
  jwtSecret: {
    key: null,
    environment: 'JWT_SECRET',
    kind: secretText,
    default: null,
    secret: true,
    emptyCounts: true,
    feature: 'identity',
    description:
      'The HS256 secret that tokens are verified with, or a JWK or JWK Set with their keys. At least 32 bytes: ' +
      'shorter is a warning, empty is refused. It is never read from the file.',
  },
  jwtSecretPrevious: {
    key: null,
    environment: 'JWT_SECRET_PREVIOUS',
    kind: secretText,
    default: null,
    secret: true,
    feature: 'identity',
    description:
      'The secret before `JWT_SECRET`, while it is [being ' +
      'rotated](../guides/authentication.md#rotate-a-secret): tokens that `JWT_SECRET` did not sign are verified ' +
      'with it.',
  },
  devMode: {
    key: null,
    environment: 'SVC_DEV_MODE',
    kind: flag,
    default: false,
    feature: 'identity',
    description:
      'Development mode: requests without a token can identify the caller with the headers `x-user-id`, ' +
      '`x-user-role` and `x-tenant-id`. Requires a loopback address and `JWT_SECRET`. Cannot be set in the file.',
  },
  logLevel: {
    key: 'gateway.log_level',
    environment: 'SVC_LOG_LEVEL',
    kind: choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    feature: 'process',
    description: 'Minimum severity of log lines.',
  },
  adminToken: {
    key: 'gateway.admin_token',
    environment: 'SVC_ADMIN_TOKEN',
    kind: textKind,
    default: null,
    secret: true,
    emptyCounts: true,
    feature: 'internal',
    description:
      'The operator’s token, sent as `Authorization: Bearer`. If it is set, `/metrics` and `/health/internal` ' +
      'require it; otherwise they are open to every client. `_explain` with `explain_endpoint = "admin"`, and ' +
      'the endpoints of `svc webhooks`, always require it, and reject every request if it is not set.',
  },
  adminDatabaseUrl: {
    key: null,
    environment: 'SVC_ADMIN_DATABASE_URL',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      'Only for [`svc install`](../guides/installation.md) and `svc uninstall`: connection URL of a role that ' +
      'can create schemas and triggers. Do not give it to a gateway that serves requests.',
  },
  krb5Config: {
    key: null,
    environment: 'KRB5_CONFIG',
    kind: textKind,
    default: null,
    feature: 'kerberos',
    description:
      'Configuration files of the Kerberos library, separated by `:`; `/etc/krb5.conf` if not set. With ' +
      '`gss_provider=linux_krb5`, startup fails if none can be read.',
  },
  krb5CredentialCache: {
    key: null,
    environment: 'KRB5CCNAME',
    kind: textKind,
    default: null,
    feature: 'kerberos',
    description:
      'Credential cache that another program fills, such as `FILE:/run/svc/krb5cc`; `/tmp/krb5cc_UID` if neither ' +
      'it nor the Kerberos configuration sets another. Startup fails if it is missing, unreadable or not a ' +
      'credential cache.',
  },
  krb5ClientKeytab: {
    key: null,
    environment: 'KRB5_CLIENT_KTNAME',
    kind: textKind,
    default: null,
    feature: 'kerberos',
    description: 'Keytab with which the Kerberos library obtains tickets itself, instead of a filled cache.',
  },
}

/** The settings under `[gateway]`. */
export const GATEWAY: SettingsOf<
  Omit<
    GatewayConfig,
    'cache' | 'console' | 'tracing' | 'shared' | 'openapi' | 'roleOverrides' | 'tables' | 'issuers' | 'replicas'
  >
> = {
  bind: {
    key: 'gateway.bind',
    environment: 'SVC_BIND',
    kind: bind,
    default: { host: '127.0.0.1', port: 8080 },
    feature: 'process',
    description:
      'Address and port on which the gateway listens. Write an IPv6 address in brackets. Port 0 selects a free port.',
  },
  workers: {
    key: 'gateway.workers',
    environment: 'SVC_WORKERS',
    kind: integerOrAuto(1, WORKERS_MAX),
    default: 1,
    feature: 'process',
    description:
      'Processes of `svc serve` that share the address and the limits ([workers](../guides/scaling.md#workers)); ' +
      '`"auto"` starts one for each core, but no more than `max_connections`. `--workers` overrides it.',
  },
  drainTimeoutMs: {
    key: 'gateway.drain_timeout_ms',
    kind: integerKind(0, MS_MAX),
    default: 10_000,
    unit: 'ms',
    feature: 'process',
    description: 'Time for requests in progress to finish after SIGTERM or SIGINT. Then they are aborted.',
  },
  strict: {
    key: 'gateway.strict',
    kind: flag,
    default: false,
    feature: 'process',
    description:
      'Do not start if `svc check` finds an error or a warning. Without it, the gateway only warns, and runs only ' +
      'the [checks of every start](checks.md). Also turns on `require_exp`.',
  },
  acceptedFindings: {
    key: 'gateway.accepted_findings',
    kind: names,
    default: [],
    feature: 'process',
    description:
      'Findings of `svc check` that are intended: the name of a [check](checks.md), or `check: object` as it is ' +
      'printed. They cause no failure of `svc check` and do not prevent a start with `strict`. Checks of every ' +
      'start cannot be accepted.',
  },

  databaseUrl: {
    key: 'gateway.database_url',
    environment: 'DATABASE_URL',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      '`postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS`. Relative paths in `sslrootcert`, `sslcert` and ' +
      '`sslkey` are relative to the file that contains them. [Database ' +
      'connections](../guides/database-connections.md) describes every parameter.',
  },
  realtimeDatabaseUrl: {
    key: 'gateway.realtime_database_url',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      'Direct connection for `LISTEN` if `database_url` uses a transaction pooler: it receives notifications of ' +
      'changed rows and of schema changes. Without it, tables that are not captured cannot be subscribed to ' +
      'behind a pooler, and only polling finds schema changes (`schema_poll_secs`).',
  },
  feedUrl: {
    key: 'gateway.feed_url',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      'Connection of the feed role, which reads the change log and delivers webhooks ([`svc ' +
      'install`](../guides/installation.md)). Default: `realtime_database_url`, otherwise `database_url`, with ' +
      'the name of the feed role and the same password.',
  },
  feedMaxConnections: {
    key: 'gateway.feed_max_connections',
    kind: integerKind(1, 100),
    default: 2,
    feature: 'database',
    description:
      'Maximum connections of the feed role. They are opened if `svc install` has run, in addition to ' +
      '`max_connections`.',
  },
  replicaMaxLagMs: {
    key: 'gateway.replica_max_lag_ms',
    kind: integerKind(0, 3_600_000),
    default: 5_000,
    unit: 'ms',
    feature: 'replicas',
    description:
      'How far a read on a replica can be behind the primary. Reads that no replica can answer within the limit ' +
      'go to the primary. 0: no limit.',
  },
  walKeepMb: {
    key: 'gateway.wal_keep_mb',
    kind: integerKind(64, 10_000_000),
    default: 10_240,
    unit: 'MiB',
    feature: 'database',
    description:
      'With `svc install --capture wal`: limit on the write-ahead log that the replication slot keeps on the ' +
      "database server's disk while no gateway reads it fast enough. Above it, a gateway drops the slot, creates it " +
      'again, and tells every subscriber to read again; webhooks of the changes in between are not sent.',
  },
  maxConnections: {
    key: 'gateway.max_connections',
    kind: integerKind(1, 1_000),
    default: 10,
    feature: 'database',
    description: 'Maximum connections in the pool.',
  },
  acquireTimeoutMs: {
    key: 'gateway.acquire_timeout_ms',
    kind: integerKind(1, MS_MAX),
    default: 5_000,
    unit: 'ms',
    feature: 'database',
    description: 'Time for which a request waits for a connection. Then it is answered with 503 `UNAVAILABLE`.',
  },
  statementTimeoutMs: {
    key: 'gateway.statement_timeout_ms',
    kind: integerKind(1, MS_MAX),
    default: 30_000,
    unit: 'ms',
    feature: 'database',
    description:
      'Time for which the database can work for one request, all of its statements together. Then they are ' +
      'cancelled, and the response is 408 `TIMEOUT`. It cannot be turned off.',
  },
  preparedStatements: {
    key: 'gateway.prepared_statements',
    kind: flag,
    default: true,
    feature: 'database',
    description:
      'Keep prepared statements on each connection, and pipeline transactions. Set `false` behind a transaction ' +
      'pooler such as PgBouncer: the gateway then keeps nothing in a session, and a connection carries one ' +
      'transaction at a time.',
  },
  gssModule: {
    key: 'gateway.gss_module',
    kind: path,
    default: null,
    feature: 'kerberos',
    description:
      'ES module that exports `step`, for `gss_provider=callback` and its synonym `custom`. [Database ' +
      'connections](../guides/database-connections.md#tokens-from-your-own-code) describes its arguments and ' +
      'result.',
  },

  schemas: {
    key: 'gateway.schemas',
    kind: schemaNames,
    default: ['public'],
    feature: 'schema',
    description:
      'Schemas whose tables are published. Tables of the first schema have unqualified names, tables of the ' +
      'others are `schema.table`.',
  },
  exposedViews: {
    key: 'gateway.exposed_views',
    kind: names,
    default: [],
    feature: 'schema',
    description:
      'Views without `security_invoker` and materialized views to publish, with their resource names. They show ' +
      'every row that their owner can see.',
  },
  tenantColumn: {
    key: 'gateway.tenant_column',
    kind: textKind,
    default: 'tenant_id',
    feature: 'schema',
    description:
      'Column that identifies tables with tenants’ rows, which must have forced row-level security. Deliveries ' +
      'in the outbox take turns by its values.',
  },
  sessionSettings: {
    key: 'gateway.session_settings',
    environment: 'SVC_SESSION_SETTINGS',
    kind: choice('all', 'readable'),
    default: 'all',
    feature: 'database',
    description:
      'Which [session settings](../guides/row-level-security.md#fewer-settings) a transaction sets: all, or only ' +
      'those that something in the database can read. `"readable"` needs the event triggers of `svc install`.',
  },
  schemaPollSecs: {
    key: 'gateway.schema_poll_secs',
    kind: integerKind(1, 86_400),
    default: 60,
    unit: 's',
    feature: 'schema',
    description: 'Interval for finding schema changes that were not announced by `NOTIFY svc_schema`.',
  },

  requireAuth: {
    key: 'gateway.require_auth',
    kind: flag,
    default: true,
    feature: 'identity',
    description:
      'Reject requests without a token with 401. With `false`, their role is `anonymous`, and their settings are ' +
      'empty.',
  },
  requireExp: {
    key: 'gateway.require_exp',
    kind: flag,
    default: false,
    feature: 'identity',
    description: 'Reject tokens without an expiration. Default with `strict`: `true`.',
  },
  jwtIssuer: {
    key: 'gateway.jwt_issuer',
    kind: textKind,
    default: null,
    feature: 'identity',
    description: 'Required `iss` of tokens that are verified with `JWT_SECRET`. `[[gateway.issuers]]` have their own.',
  },
  jwtAudience: {
    key: 'gateway.jwt_audience',
    kind: textKind,
    default: null,
    feature: 'identity',
    description: 'Required `aud` of tokens that are verified with `JWT_SECRET`, or a member of it.',
  },
  jwtSecrets: {
    key: 'gateway.jwt_secrets',
    kind: secretTable,
    default: new Map(),
    secret: true,
    feature: 'identity',
    description:
      `More HS256 secrets, each by the \`kid\` of the tokens that it verifies: \`{ k1 = "\${NAME}" ` +
      `}\`. Tokens with another \`kid\`, or none, are verified with \`JWT_SECRET\`, then \`JWT_SECRET_PREVIOUS\`.`,
  },

  jwtDenylistTable: {
    key: 'gateway.jwt_denylist_table',
    kind: textKind,
    default: null,
    feature: 'identity',
    description:
      'The table of [revoked tokens](../guides/authentication.md#revoke-tokens), `name` in the first schema or ' +
      '`schema.name`, with the columns `jti`, `sub` and `iat timestamptz`. It is read every three seconds and is ' +
      'never published.',
  },
  publicUrl: {
    key: 'gateway.public_url',
    kind: publicUrl,
    default: null,
    feature: 'http',
    description:
      'Where clients reach the gateway, behind a proxy for example: `https://api.example.com`. The [metadata for ' +
      'OAuth clients](../guides/authentication.md#metadata-for-clients) names it. Without it they name the bind ' +
      'address.',
  },
  corsAllowedOrigins: {
    key: 'gateway.cors_allowed_origins',
    kind: origins,
    default: [],
    feature: 'http',
    description: 'Origins of pages that can call the API from a browser; `["*"]` for any, empty for none.',
  },
  compressMinBytes: {
    key: 'gateway.compress_min_bytes',
    kind: integerKind(0, COUNT_MAX),
    default: 1_024,
    unit: 'bytes',
    feature: 'http',
    description:
      'Minimum size of responses to compress for clients that accept `br` or `gzip`. Streams are always ' +
      'compressed. `Cache-Control: no-transform` in the request or the response prevents it. `0` turns ' +
      'compression off.',
  },
  allowedHosts: {
    key: 'gateway.allowed_hosts',
    kind: hostNames,
    default: [],
    feature: 'http',
    description:
      'Host names under which a gateway in development mode accepts requests, in addition to `localhost` and ' +
      'loopback addresses. A request with another `Host` is answered with 403. Without development mode, any name is ' +
      'accepted.',
  },
  trustedProxies: {
    key: 'gateway.trusted_proxies',
    kind: networks,
    default: [],
    feature: 'limits',
    description:
      'Addresses and CIDR ranges of proxies in front. `X-Forwarded-For` is evaluated from right to left, through ' +
      'these addresses only.',
  },

  defaultLimit: {
    key: 'gateway.default_limit',
    kind: integerKind(1, 1_000_000),
    default: 50,
    unit: 'rows',
    feature: 'reads',
    description: 'Page size of a list without `limit`.',
  },
  maxResultRows: {
    key: 'gateway.max_result_rows',
    kind: integerKind(0, COUNT_MAX),
    default: 10_000,
    unit: 'rows',
    feature: 'reads',
    description: 'Maximum rows in one response; a larger `limit` is reduced to it. `0` turns it off.',
  },
  maxResultBytes: {
    key: 'gateway.max_result_bytes',
    kind: integerKind(65_536, 1_073_741_823),
    default: 67_108_864,
    unit: 'bytes',
    feature: 'reads',
    description:
      'Maximum size of one result, which the gateway keeps in memory. Above it, the request is answered with 400 ' +
      '`QUERY_ERROR`; a stream has no such limit.',
  },
  maxExpandDepth: {
    key: 'gateway.max_expand_depth',
    kind: integerKind(1, 16),
    default: 4,
    feature: 'reads',
    description: 'Maximum depth of `expand`.',
  },
  maxFilters: {
    key: 'gateway.max_filters',
    kind: integerKind(1, 10_000),
    default: 64,
    feature: 'reads',
    description: 'Maximum conditions in one request.',
  },
  maxInValues: {
    key: 'gateway.max_in_values',
    kind: integerKind(1, 1_000_000),
    default: 1_000,
    feature: 'reads',
    description: 'Maximum elements of one `in` list.',
  },
  maxJoins: {
    key: 'gateway.max_joins',
    kind: integerKind(0, 1_000),
    default: STATEMENT_LIMITS.maxJoins,
    feature: 'reads',
    description:
      'Maximum joins in one level of a query; each subquery is another level. Above it, the query is answered ' +
      'with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxRelations: {
    key: 'gateway.max_relations',
    kind: integerKind(0, 10_000),
    default: STATEMENT_LIMITS.maxRelations,
    feature: 'reads',
    description:
      'Maximum relations that one statement reads or writes: tables, views, functions, common tables, subqueries, ' +
      'expansions, and the tables behind views and row-level security policies. Above it, the query is answered ' +
      'with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxBuiltValueBytes: {
    key: 'gateway.max_built_value_bytes',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxBuiltValueBytes,
    unit: 'bytes',
    feature: 'reads',
    description:
      'Maximum size of a value that a function of the query language builds from a number: `repeat`, `lpad`, ' +
      '`rpad`, `format`, `array_fill`, and casts that pad. All expressions of a query together can build 64 ' +
      'times as much for one row. Above it, the query is answered with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxCollectedBytes: {
    key: 'gateway.max_collected_bytes',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxCollectedBytes,
    unit: 'bytes',
    feature: 'reads',
    description:
      'Maximum bytes that the aggregates `array_agg`, `string_agg`, `json_agg` and similar ones collect in one ' +
      'transaction, and maximum bytes of the arrays of related rows in one row (`expand`). Above it, the request ' +
      'is answered with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxCopiedValues: {
    key: 'gateway.max_copied_values',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxCopiedValues,
    unit: 'copies',
    feature: 'reads',
    description:
      'Maximum copies of values of unknown size that the functions and operators of a statement make for one row. ' +
      'Above it, the query is answered with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxSeriesRows: {
    key: 'gateway.max_series_rows',
    kind: integerKind(0, COUNT_MAX),
    default: STATEMENT_LIMITS.maxSeriesRows,
    unit: 'rows',
    feature: 'reads',
    description:
      'Maximum rows of one `generate_series` in a query. Above it, the query is answered with 400 `PARSE_ERROR`. ' +
      '`0` turns it off.',
  },
  maxPatternBytes: {
    key: 'gateway.max_pattern_bytes',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxPatternBytes,
    unit: 'bytes',
    feature: 'reads',
    description:
      'Patterns of `like` and `ilike` in one statement, all together, each from its first wildcard ' +
      '`%` on. Above it, the query is answered with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxContainedElements: {
    key: 'gateway.max_contained_elements',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxContainedElements,
    unit: 'elements',
    feature: 'reads',
    description:
      'Maximum elements of an array or JSON document that `contains`, `contained`, `overlaps`, `@>`, `<@`, `&&`, ' +
      '`?|` and `?&` compare, unless it is a column. Above it, the query is answered with 400 `PARSE_ERROR`. `0` ' +
      'turns it off.',
  },
  maxExpressions: {
    key: 'gateway.max_expressions',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxExpressions,
    unit: 'expressions',
    feature: 'reads',
    description:
      'Maximum expressions of one statement. A computed column of a subquery counts as its whole expression ' +
      'wherever it is mentioned, and a call of an SQL function as the body of the function. Above it, the query is ' +
      'answered with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxParameters: {
    key: 'gateway.max_parameters',
    kind: integerKind(1, 65_535),
    default: 1_000,
    unit: 'parameters',
    feature: 'reads',
    description:
      'Maximum parameters of one query text; PostgreSQL takes 65 535. Above it, the query is answered with 400 ' +
      '`PARSE_ERROR`.',
  },
  maxNumericProducts: {
    key: 'gateway.max_numeric_products',
    kind: integerKind(0, COUNT_MAX),
    default: STATEMENT_LIMITS.maxNumericProducts,
    feature: 'reads',
    description:
      'Multiplications and divisions in one query text whose operands can both have any number of ' +
      'digits. Above it, the query is answered with 400 `PARSE_ERROR`. `0` turns it off.',
  },
  maxRepeatedCharacters: {
    key: 'gateway.max_repeated_characters',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxRepeatedCharacters,
    unit: 'characters',
    feature: 'reads',
    description:
      'Maximum characters of a query text that its SQL repeats: an alias in `having` is replaced by its ' +
      'expression, and aggregates are grouped by the other fields. Above it, the query is answered with 400 ' +
      '`PARSE_ERROR`. `0` turns it off; `max_repetitions` still applies.',
  },
  maxRepetitions: {
    key: 'gateway.max_repetitions',
    kind: integerKind(0, COUNT_MAX),
    default: STATEMENT_LIMITS.maxRepetitions,
    feature: 'reads',
    description:
      'How often the SQL of a query text can repeat parts of it. Above it, the query is answered with 400 ' +
      '`PARSE_ERROR`. `0` turns it off; `max_repeated_characters` still applies.',
  },
  maxQueryParameters: {
    key: 'gateway.max_query_parameters',
    kind: integerKind(0, COUNT_MAX),
    default: 1_000,
    unit: 'parameters',
    feature: 'reads',
    description:
      'Maximum parameters of one query string. Above it, the request is answered with 400 `PARSE_ERROR`, before the ' +
      'parameters are decoded. `0` turns it off.',
  },
  maxTextFormBytes: {
    key: 'gateway.max_text_form_bytes',
    kind: integerKind(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxTextFormBytes,
    unit: 'bytes',
    feature: 'writes',
    description:
      'Arrays and composite values of one body, or of one parameter of a query text, in the text form that ' +
      'PostgreSQL reads, in which each level of nesting doubles the escapes. Above it, the request is answered with ' +
      '413 `PAYLOAD_TOO_LARGE`. `0` turns it off.',
  },
  searchLanguage: {
    key: 'gateway.search_language',
    kind: textKind,
    default: 'english',
    feature: 'reads',
    description: "PostgreSQL's text search configuration for `search` and `fts`.",
  },
  explainEndpoint: {
    key: 'gateway.explain_endpoint',
    kind: choice('on', 'admin', 'off'),
    default: 'on',
    feature: 'explain',
    description:
      '`/api/{table}/_explain` for all callers who can read the table, only with the admin token, or not at all.',
  },

  maxBatchRows: {
    key: 'gateway.max_batch_rows',
    kind: integerKind(0, COUNT_MAX),
    default: 10_000,
    unit: 'rows',
    feature: 'writes',
    description: 'Maximum rows of an array in one creation; above it, the response is 413. `0` turns it off.',
  },

  maxBatchKeySets: {
    key: 'gateway.max_batch_key_sets',
    kind: integerKind(0, COUNT_MAX),
    default: 1_000,
    unit: 'key sets',
    feature: 'writes',
    description:
      'Maximum different sets of columns among the rows of an array, each of which is a statement; above it, ' +
      'the response is 413. `0` turns it off.',
  },

  maxBatchOperations: {
    key: 'gateway.max_batch_operations',
    kind: integerKind(0, COUNT_MAX),
    default: 100,
    unit: 'operations',
    feature: 'writes',
    description: 'Maximum operations of one `POST /api/_batch`; more is 413. `0` turns it off.',
  },

  maxBatchReferences: {
    key: 'gateway.max_batch_references',
    kind: integerKind(0, COUNT_MAX),
    default: 1_000,
    unit: 'references',
    feature: 'writes',
    description: 'Maximum references to earlier results in one `POST /api/_batch`; more is 413. `0` turns it off.',
  },

  maxInspectSteps: {
    key: 'gateway.max_inspect_steps',
    kind: integerKind(0, COUNT_MAX),
    default: 100,
    unit: 'steps',
    feature: 'explain',
    description:
      'Maximum steps of a request that an [inspection](inspect.md) executes. A read has at most two; a write of ' +
      'related rows has one for each list of rows with the same columns. Above it, the inspection reports a ' +
      '`PARSE_ERROR`. `0` turns it off.',
  },

  maxImportBytes: {
    key: 'gateway.max_import_bytes',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 1_073_741_824,
    unit: 'bytes',
    feature: 'writes',
    description: 'Maximum bytes of one import of CSV or NDJSON; more is 413. `0` turns it off.',
  },

  maxImports: {
    key: 'gateway.max_imports',
    kind: integerKind(0, COUNT_MAX),
    default: 4,
    unit: 'imports',
    feature: 'writes',
    description:
      'Maximum imports that run at the same time; each holds a connection and a transaction. A further one is ' +
      'answered with 503 `UNAVAILABLE`. The last one is left for a caller that has none. `0` turns it off.',
  },

  tenantMaxImports: {
    key: 'gateway.tenant_max_imports',
    kind: integerKind(0, COUNT_MAX),
    default: 2,
    unit: 'imports',
    feature: 'writes',
    description:
      'The same for one tenant, or one user without a tenant; one more is answered with 429 `CONCURRENCY_LIMIT`. ' +
      '`0` turns it off.',
  },

  importTimeoutMs: {
    key: 'gateway.import_timeout_ms',
    kind: integerKind(1_000, 86_400_000),
    default: 600_000,
    unit: 'ms',
    feature: 'writes',
    description:
      'Maximum duration of one import; then it is rolled back and answered with 408 `TIMEOUT`. Each of its ' +
      'statements has `statement_timeout_ms`.',
  },

  idempotencyTtlSecs: {
    key: 'gateway.idempotency_ttl_secs',
    kind: integerKind(1, 31_536_000),
    default: 86_400,
    unit: 's',
    feature: 'writes',
    description:
      'How long the response to a request with an [`Idempotency-Key`](writing.md#idempotency-keys) is stored and ' +
      'sent again.',
  },

  idempotencyMaxResponseBytes: {
    key: 'gateway.idempotency_max_response_bytes',
    kind: integerKind(1_024, COUNT_MAX),
    default: 1_048_576,
    unit: 'bytes',
    feature: 'writes',
    description:
      'Maximum body of a response to a request with an `Idempotency-Key`; above it, nothing is written and the ' +
      'response is 413.',
  },

  tenantMaxIdempotencyKeys: {
    key: 'gateway.tenant_max_idempotency_keys',
    kind: integerKind(0, COUNT_MAX),
    default: 100_000,
    unit: 'keys',
    feature: 'writes',
    description:
      'Maximum stored responses of one tenant; a further `Idempotency-Key` is answered with 429 `RATE_LIMITED`. ' +
      'Each gateway counts again after every hundredth part of it. `0` turns it off.',
  },

  rateLimitRate: {
    key: 'gateway.rate_limit_rate',
    kind: decimal(0, 1_000_000),
    default: 500,
    unit: 'requests/s',
    feature: 'limits',
    description:
      'Requests per second from one client address: the refill rate of its token bucket. IPv6 addresses count by ' +
      '/64. A request without a token is answered with 429 `RATE_LIMITED`. `0` turns the rate limit off.',
  },
  rateLimitBurst: {
    key: 'gateway.rate_limit_burst',
    kind: integerKind(0, 10_000_000),
    default: 1_000,
    unit: 'requests',
    feature: 'limits',
    description: 'Size of the token bucket of one client address. `0` turns the rate limit off.',
  },
  tenantMaxConcurrent: {
    key: 'gateway.tenant_max_concurrent',
    kind: integerKind(0, 100_000),
    default: 32,
    unit: 'requests',
    feature: 'limits',
    description:
      'Maximum concurrent requests of one tenant at the database, or of one user without a tenant. A further one is ' +
      'answered with 429 `CONCURRENCY_LIMIT`. `0` turns it off.',
  },
  tenantMaxStreams: {
    key: 'gateway.tenant_max_streams',
    kind: integerKind(0, 1_000),
    default: 4,
    unit: 'streams',
    feature: 'limits',
    description:
      'Maximum open streams (`stream=true`) of one tenant, or of one user without a tenant, and always fewer ' +
      'than its share of the connections if that is two or more. A further one waits for up to `acquire_timeout_ms`. ' +
      '`0` turns the limit off; the share remains.',
  },
  streamMinBytesPerSec: {
    key: 'gateway.stream_min_bytes_per_sec',
    kind: integerKind(0, COUNT_MAX),
    default: 2_048,
    unit: 'bytes/s',
    feature: 'limits',
    description:
      'Minimum average rate at which a client must read a stream. Below it, the stream ends with an error line. ' +
      '`0` turns it off.',
  },
  streamMinRateWindowSecs: {
    key: 'gateway.stream_min_rate_window_secs',
    kind: integerKind(1, 86_400),
    default: 60,
    unit: 's',
    feature: 'limits',
    description:
      'Time over which `stream_min_bytes_per_sec` is averaged. Only time in which the gateway waits for the ' +
      'client counts.',
  },
  maxClientConnections: {
    key: 'gateway.max_client_connections',
    kind: integerKind(0, COUNT_MAX),
    default: 7_500,
    unit: 'connections',
    feature: 'limits',
    description:
      'Maximum client connections, including WebSockets and idle ones. A further one is answered with 503 ' +
      '`UNAVAILABLE` and closed. `0` turns it off.',
  },
  addressMaxClientConnections: {
    key: 'gateway.address_max_client_connections',
    kind: integerKind(0, COUNT_MAX),
    default: 6_000,
    unit: 'connections',
    feature: 'limits',
    description:
      'Maximum connections from one address; IPv6 addresses count by /64. Addresses in `trusted_proxies` are ' +
      'exempt. A further one is answered with 503 `UNAVAILABLE` and closed. `0` turns it off.',
  },
  addressMaxSockets: {
    key: 'gateway.address_max_sockets',
    kind: integerKind(0, COUNT_MAX),
    default: 500,
    unit: 'sockets',
    feature: 'limits',
    description:
      'Maximum WebSockets (`/ws`) of one client address; IPv6 addresses count by /64. Behind `trusted_proxies`, ' +
      'the address is from `X-Forwarded-For`. A further one is answered with 429 `CONCURRENCY_LIMIT`. ' +
      '`0` turns it off.',
  },
  tenantMaxSockets: {
    key: 'gateway.tenant_max_sockets',
    kind: integerKind(0, COUNT_MAX),
    default: 2_000,
    unit: 'sockets',
    feature: 'limits',
    description:
      'Maximum WebSockets of one tenant, or of one user without a tenant. A further one is answered with 429 ' +
      '`CONCURRENCY_LIMIT`, or closed with 4429 if its first message identifies the caller. `0` turns it off.',
  },
  tenantMaxSubscriptions: {
    key: 'gateway.tenant_max_subscriptions',
    kind: integerKind(0, COUNT_MAX),
    default: 20_000,
    unit: 'subscriptions',
    feature: 'limits',
    description:
      'Maximum subscriptions and live queries of one tenant, or of one user without a tenant. A further one receives ' +
      'an `error` message with code `CONCURRENCY_LIMIT`. `0` turns it off.',
  },
  tenantMaxSubscriptionGroups: {
    key: 'gateway.tenant_max_subscription_groups',
    kind: integerKind(0, COUNT_MAX),
    default: 2_000,
    unit: 'groups',
    feature: 'limits',
    description:
      'Maximum different subscriptions and live queries of one tenant, or of one user without a tenant. They ' +
      'differ in table, filter, columns, or in the rows that the caller can see. Each adds to the cost of a ' +
      'change. A further one receives an `error` message with code `CONCURRENCY_LIMIT`. `0` turns it off.',
  },
  tenantMaxWaitingShapes: {
    key: 'gateway.tenant_max_waiting_shapes',
    kind: integerKind(0, COUNT_MAX),
    default: 2_000,
    unit: 'requests',
    feature: 'limits',
    description:
      'Maximum requests for shapes with `live=true`, which wait for changes, of one tenant, or of one user without a ' +
      'tenant. Each has a connection. A further one is answered with 429 `CONCURRENCY_LIMIT`. `0` turns it off.',
  },
  tenantMaxLiveQueries: {
    key: 'gateway.tenant_max_live_queries',
    kind: integerKind(0, COUNT_MAX),
    default: 1_000,
    unit: 'live queries',
    feature: 'limits',
    description:
      'Maximum different live queries of one tenant, or of one user without a tenant; identical ones share their ' +
      'executions. A further one receives an `error` message with code `CONCURRENCY_LIMIT`. `0` turns it off.',
  },
  maxLiveQueries: {
    key: 'gateway.max_live_queries',
    kind: integerKind(0, COUNT_MAX),
    default: 2_000,
    unit: 'live queries',
    feature: 'limits',
    description:
      'Maximum different live queries of the process. A further one receives an `error` message with code ' +
      '`UNAVAILABLE`. `0` turns it off.',
  },
  maxSockets: {
    key: 'gateway.max_sockets',
    kind: integerKind(0, COUNT_MAX),
    default: 7_000,
    unit: 'sockets',
    feature: 'limits',
    description:
      'Maximum WebSockets (`/ws`) of the process. A further one is answered with 503 `UNAVAILABLE`, before the ' +
      'upgrade. `0` turns it off.',
  },
  socketMaxSubscriptions: {
    key: 'gateway.socket_max_subscriptions',
    kind: integerKind(0, COUNT_MAX),
    default: 100,
    unit: 'subscriptions',
    feature: 'limits',
    description:
      'Maximum subscriptions of one WebSocket. A further one receives an `error` message with code `FORBIDDEN`. `0` ' +
      'turns it off.',
  },
  socketMaxLiveQueries: {
    key: 'gateway.socket_max_live_queries',
    kind: integerKind(0, COUNT_MAX),
    default: 50,
    unit: 'live queries',
    feature: 'limits',
    description:
      'Maximum live queries of one WebSocket. A further one receives an `error` message with code `FORBIDDEN`. `0` ' +
      'turns it off.',
  },
  tenantMaxUnroutedQueriesPerSec: {
    key: 'gateway.tenant_max_unrouted_queries_per_sec',
    kind: integerKind(0, COUNT_MAX),
    default: 200,
    unit: 'queries',
    feature: 'limits',
    description:
      'Maximum visibility queries per second for the subscriptions of one tenant that are caused by changes of ' +
      'unknown tenants. Above it, changes are collected and checked later, together. `0` turns it off.',
  },
  unroutedResyncIntervalMs: {
    key: 'gateway.unrouted_resync_interval_ms',
    kind: integerKind(0, COUNT_MAX),
    default: 1_000,
    unit: 'ms',
    feature: 'limits',
    description:
      'Minimum time between two `resync` messages with reason `bulk` or `dependency` to all subscribers of a ' +
      'table, whatever the number of writes. The first is sent at once. `0` turns it off.',
  },
  maxInflightBodyBytes: {
    key: 'gateway.max_inflight_body_bytes',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 268_435_456,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Maximum bytes of request bodies that are being received or processed, in the whole process. Above it, a ' +
      'request that sends more is answered with 503 `UNAVAILABLE`. `0` turns it off.',
  },
  addressMaxInflightBodyBytes: {
    key: 'gateway.address_max_inflight_body_bytes',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 67_108_864,
    unit: 'bytes',
    feature: 'limits',
    description:
      'The same for one client address. Behind `trusted_proxies`, the address is from `X-Forwarded-For`. `0` ' +
      'turns it off.',
  },
  maxUnsentBytes: {
    key: 'gateway.max_unsent_bytes',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 268_435_456,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Maximum bytes of responses that clients have not read yet, and of results that are being read from ' +
      'PostgreSQL, in the whole process. Above it, writes and large responses are answered with 503 `UNAVAILABLE`. ' +
      '`0` turns it off.',
  },
  tenantMaxUnsentBytes: {
    key: 'gateway.tenant_max_unsent_bytes',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 134_217_728,
    unit: 'bytes',
    feature: 'limits',
    description:
      'The same for one tenant, or one user without a tenant. Above it, its requests are answered with 503 ' +
      '`UNAVAILABLE`. `0` turns it off.',
  },
  connectionMaxUnsentBytes: {
    key: 'gateway.connection_max_unsent_bytes',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 1_048_576,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Maximum bytes of responses that one connection has not read yet. Above it, its next pipelined request ' +
      'waits. `0` turns it off.',
  },
  connectionMaxConcurrent: {
    key: 'gateway.connection_max_concurrent',
    kind: integerKind(0, 1_000_000),
    default: 4,
    unit: 'requests',
    feature: 'limits',
    description:
      'Maximum pipelined requests of one connection that run at once, if all of them read. The next one waits. ' +
      '`0` turns it off.',
  },
  connectionMaxPipelined: {
    key: 'gateway.connection_max_pipelined',
    kind: integerKind(0, 1_000_000),
    default: 64,
    unit: 'requests',
    feature: 'limits',
    description:
      'Maximum pipelined requests of one connection without a complete response. Above it, the gateway stops ' +
      'reading from the connection until half of them are answered. `0` turns it off.',
  },
  largeBodyBytes: {
    key: 'gateway.large_body_bytes',
    kind: integerKind(0, COUNT_MAX),
    default: 262_144,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Size above which a body is parsed in one turn of the event loop and used in the next, so that other ' +
      'requests are processed in between. `0` turns it off.',
  },
  tenantMaxConnections: {
    key: 'gateway.tenant_max_connections',
    kind: integerKind(0, 1_000),
    default: null,
    unit: 'connections',
    feature: 'limits',
    description:
      'Maximum database connections of one tenant, or of one user without a tenant, while no other tenant uses ' +
      'any. With more tenants, each gets [fewer](limits.md#shares-of-the-connection-pool). Default: half of ' +
      '`max_connections`, rounded up. `0` turns the limit off.',
  },

  explainMaxCost: {
    key: 'gateway.explain_max_cost',
    kind: decimal(0, 1e15),
    default: 1_000_000,
    feature: 'cost',
    description: 'Maximum estimated cost of a read, in units of PostgreSQL’s planner. `0` turns it off.',
  },
  explainMaxRows: {
    key: 'gateway.explain_max_rows',
    kind: integerKind(0, Number.MAX_SAFE_INTEGER),
    default: 1_000_000,
    unit: 'rows',
    feature: 'cost',
    description: 'Maximum estimated rows of any node of a read’s execution plan below its limit. `0` turns it off.',
  },

  policyPath: {
    key: 'gateway.policy_path',
    alias: 'gateway.policy',
    kind: path,
    default: null,
    feature: 'policies',
    description: 'Path of the route policy, YAML (legacy).',
  },
  allowListPath: {
    key: 'gateway.allow_list_path',
    kind: path,
    default: null,
    feature: 'approval',
    description:
      'Path of the [query allow-list](../guides/allow-list.md): one shape per line. A query with another shape ' +
      'is answered with 403.',
  },

  rpcRequireSchemaQualified: {
    key: 'gateway.rpc_require_schema_qualified',
    kind: flag,
    default: false,
    feature: 'functions',
    description: 'Accept function names only as `schema.function`.',
  },
  rpcAllowlistPath: {
    key: 'gateway.rpc_allowlist_path',
    kind: path,
    default: null,
    feature: 'functions',
    description:
      'Path of the list of functions that can be called: one per line, `#` for comments. Others are answered with 403.',
  },
  rpcSignatureCheck: {
    key: 'gateway.rpc_signature_check',
    kind: flag,
    default: true,
    feature: 'functions',
    description: 'Check that named arguments match a signature, and have PostgreSQL parse the call before it runs.',
  },

  wsQueryToken: {
    key: 'gateway.ws_query_token',
    kind: flag,
    default: false,
    feature: 'realtime',
    description: 'Accept the token of `/ws` as `?access_token=` as well. It then appears in the logs of proxies.',
  },

  eventsPath: {
    key: 'gateway.events_path',
    kind: path,
    default: null,
    feature: 'webhooks',
    description:
      'Path of the events file, YAML, with the webhook triggers ' +
      '([fields](../guides/webhooks.md#define-a-trigger)). Read again on SIGHUP. After `svc install`, all ' +
      'gateways on a database share one events file.',
  },
  webhookAllow: {
    key: 'gateway.webhook_allow',
    kind: networks,
    default: [],
    feature: 'webhooks',
    description: 'Private, loopback and other special addresses and CIDR ranges that webhooks can reach.',
  },
}

/** A setting that maps one property of the caller to a claim. */
function mapping(key: string, what: string): Setting<ClaimSource | null> {
  return {
    key: `gateway.issuers.<n>.${key}`,
    kind: claimSource,
    default: null,
    feature: 'issuers',
    description:
      `${what} Default: as in a token that \`JWT_SECRET\` signed. If the claim ` +
      'is configured but absent, the property is empty.',
  }
}

/** The settings of one identity provider. */
export const ISSUER: SettingsOf<Omit<IssuerConfig, 'secret'>> = {
  issuer: {
    key: 'gateway.issuers.<n>.issuer',
    kind: textKind,
    default: '',
    feature: 'issuers',
    description:
      'Required: the `iss` of the provider’s tokens, exactly as they contain it. Each can be configured once.',
  },
  jwksUrl: {
    key: 'gateway.issuers.<n>.jwks_url',
    kind: providerUrl,
    default: null,
    feature: 'issuers',
    description:
      'Where the provider publishes its keys (a JWK Set). Exactly one of `jwks_url`, ' +
      '`discovery`, `public_key_path` and `secret_env` is given.',
  },
  discovery: {
    key: 'gateway.issuers.<n>.discovery',
    kind: flag,
    default: false,
    feature: 'issuers',
    description:
      'Take the address of the keys from `ISSUER/.well-known/openid-configuration`. `issuer` must then be a URL.',
  },
  publicKeyPath: {
    key: 'gateway.issuers.<n>.public_key_path',
    kind: path,
    default: null,
    feature: 'issuers',
    description: 'A file with the public keys, PEM or a JWK Set. Read again on SIGHUP.',
  },
  secretEnv: {
    key: 'gateway.issuers.<n>.secret_env',
    kind: variableName,
    default: null,
    feature: 'issuers',
    description: 'The environment variable that holds the secret of a provider that signs with HMAC.',
  },
  audience: {
    key: 'gateway.issuers.<n>.audience',
    kind: texts,
    default: null,
    feature: 'issuers',
    description:
      'The accepted audiences: `aud` must be or contain one of these. Without it, tokens that the ' +
      'provider issued for other applications are accepted as well.',
  },
  algorithms: {
    key: 'gateway.issuers.<n>.algorithms',
    kind: algorithms,
    default: null,
    feature: 'issuers',
    description:
      'Accepted algorithms. Default: those of the type of key – RS256, RS384, RS512, PS256, PS384 ' +
      'and PS512 for RSA, ES256, ES384 or ES512 depending on the curve, EdDSA for Ed25519, HS256, HS384 and ' +
      'HS512 for a secret.',
  },
  leewaySeconds: {
    key: 'gateway.issuers.<n>.leeway_seconds',
    kind: integerKind(0, 300),
    default: 30,
    unit: 's',
    feature: 'issuers',
    description: 'Maximum difference between the clocks of provider and gateway when `exp` and `nbf` are checked.',
  },
  requiredClaims: {
    key: 'gateway.issuers.<n>.required_claims',
    kind: requiredClaims,
    default: new Map(),
    feature: 'issuers',
    description: 'Claims that a token must have: `{ email_verified = true, token_use = "access" }`.',
  },
  tenant: mapping('tenant', 'The tenant.'),
  user: mapping('user', 'The user.'),
  role: mapping('role', 'The role, before `role_map`.'),
  scopes: mapping('scopes', 'The scopes: a text separated by spaces, or an array.'),
  agent: mapping('agent', 'The agent.'),
  roleMap: {
    key: 'gateway.issuers.<n>.role_map',
    kind: textTable,
    default: null,
    feature: 'issuers',
    description:
      'Maps the provider’s roles to those of the application: `{ authenticated = "member" }`. A role that is not ' +
      'listed is ignored.',
  },
}

/** The settings under `[gateway.console]`. */
export const CONSOLE: SettingsOf<ConsoleConfig> = {
  enabled: {
    key: 'gateway.console.enabled',
    kind: flag,
    default: false,
    feature: 'http',
    description:
      'Serve the [console](../guides/console.md) at `/console`: pages for browsers to explore and edit rows and ' +
      'to write queries. They contain no data, and every request is one of the caller who signs in.',
  },
  oidcClientId: {
    key: 'gateway.console.oidc_client_id',
    kind: textKind,
    default: null,
    feature: 'http',
    description:
      'Offer [sign-in with an identity provider](../guides/console.md#sign-in-with-an-identity-provider): the id ' +
      'under which the console is registered there, as a public client with PKCE. Requires `[[gateway.issuers]]`.',
  },
  oidcIssuer: {
    key: 'gateway.console.oidc_issuer',
    kind: textKind,
    default: null,
    feature: 'http',
    description: 'The `issuer` of `[[gateway.issuers]]` that the console signs in with. Required if there are several.',
  },
  oidcScopes: {
    key: 'gateway.console.oidc_scopes',
    kind: texts,
    default: ['openid'],
    feature: 'http',
    description: 'The scopes that the console requests from the identity provider.',
  },
  oidcParameters: {
    key: 'gateway.console.oidc_parameters',
    kind: textTable,
    default: new Map(),
    feature: 'http',
    description:
      'More parameters of the requests to the identity provider, such as `{ audience = "https://api.example.com" }`.',
  },
}

/** The settings under `[gateway.tracing]`. */
export const TRACING: SettingsOf<TracingConfig> = {
  enabled: {
    key: 'gateway.tracing.enabled',
    kind: flag,
    default: false,
    feature: 'tracing',
    description:
      'Make spans of requests with [OpenTelemetry](../guides/tracing.md), whose packages must be installed. ' +
      'Without it, the context of a request that belongs to a trace is still passed on.',
  },
  otlpEndpoint: {
    key: 'gateway.tracing.otlp_endpoint',
    environment: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    kind: httpUrl,
    default: null,
    feature: 'tracing',
    description:
      'The URL that spans are sent to with OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. Without it, ' +
      'spans go to the tracer provider that the program around the gateway has registered.',
  },
  otlpHeaders: {
    key: 'gateway.tracing.otlp_headers',
    kind: secretTable,
    default: null,
    secret: true,
    feature: 'tracing',
    description: 'Headers for the receiver of spans, with secrets from the environment as `$' + '{NAME}`.',
  },
  serviceName: {
    key: 'gateway.tracing.service_name',
    environment: 'OTEL_SERVICE_NAME',
    kind: textKind,
    default: 'svc',
    feature: 'tracing',
    description: '`service.name` of the spans.',
  },
  sampleRatio: {
    key: 'gateway.tracing.sample_ratio',
    kind: decimal(0, 1),
    default: 1,
    feature: 'tracing',
    description:
      'The part of the traces that begin at the gateway which is recorded, from 0 to 1. A caller decides for its ' +
      'own trace.',
  },
}

/** The settings of a table of `[[gateway.replicas]]`. */
export const REPLICA: SettingsOf<Omit<ReplicaConfig, 'url'> & { readonly url: string | null }> = {
  url: {
    key: 'gateway.replicas.<n>.url',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'replicas',
    description:
      'Required. Connection URL of one streaming standby of the database, for the same role as `database_url`. ' +
      '[Reads](../operations/replicas.md) go to it while it has replayed what they must see.',
  },
  maxConnections: {
    key: 'gateway.replicas.<n>.max_connections',
    kind: integerKind(1, 1_000),
    default: null,
    feature: 'replicas',
    description:
      'Maximum connections for reads, in addition to one for checks. Default: `max_connections` of the gateway.',
  },
}

/** The settings under `[gateway.shared]`. */
export const SHARED: SettingsOf<SharedConfig> = {
  url: {
    key: 'gateway.shared.url',
    environment: 'SVC_SHARED_URL',
    kind: redisUrl,
    default: null,
    secret: true,
    feature: 'shared',
    description:
      'The URL of a Valkey or Redis server, `redis://` or `rediss://`, with user and password if it needs them. ' +
      'Gateways with the same URL and prefix share [limits, invalidations and ' +
      'revocations](../guides/scaling.md#shared-state).',
  },
  prefix: {
    key: 'gateway.shared.prefix',
    kind: keyPrefix,
    default: 'svc',
    feature: 'shared',
    description: 'The first part of all names in the server. Gateways of another database need another one.',
  },
  timeoutMs: {
    key: 'gateway.shared.timeout_ms',
    kind: integerKind(10, 5_000),
    default: 100,
    unit: 'ms',
    feature: 'shared',
    description: 'The longest wait for the server. After a failure the gateway counts alone until it answers again.',
  },
}

/** The settings under `[gateway.openapi]`. */
export const OPENAPI: SettingsOf<OpenApiConfig> = {
  title: {
    key: 'gateway.openapi.title',
    kind: textKind,
    default: 'Data gateway',
    feature: 'http',
    description: 'Title of the [OpenAPI document](../guides/openapi.md) and of the API reference at `/docs`.',
  },
  description: {
    key: 'gateway.openapi.description',
    kind: textKind,
    default: null,
    feature: 'http',
    description: 'Introduction of the document and of `/docs`, as Markdown. The conventions of the API follow it.',
  },
}

/** The settings under `[gateway.cache]`. */
export const CACHE: SettingsOf<CacheConfig> = {
  enabled: {
    key: 'gateway.cache.enabled',
    kind: flag,
    default: false,
    feature: 'cache',
    description:
      'Cache the results of reads until their tables change or they are too old. [Caching](../guides/caching.md) ' +
      'describes what is cached, and which changes are not detected.',
  },
  maxEntries: {
    key: 'gateway.cache.max_entries',
    kind: integerKind(1, 10_000_000),
    default: 1_000,
    feature: 'cache',
    description:
      'Maximum number of results; the least recently used is removed first. Together they use at most 128 MiB, ' +
      'and a result larger than 1 MiB is not cached.',
  },
  ttlSecs: {
    key: 'gateway.cache.ttl_secs',
    kind: integerKind(1, 86_400),
    default: 60,
    unit: 's',
    feature: 'cache',
    description:
      'Maximum age of a result. Changes by other programs and gateways to tables that are not captured are ' +
      'visible after this time at the latest.',
  },
  maxStalenessMs: {
    key: 'gateway.cache.max_staleness_ms',
    kind: integerKind(200, 60_000),
    default: 1_000,
    unit: 'ms',
    feature: 'cache',
    description:
      'For captured tables: maximum time that the gateway can be behind the change log and still use cached ' +
      'results. Above it, reads are executed until it has caught up.',
  },
}

/** The limits of one role. */
export const ROLE_OVERRIDE: SettingsOf<RoleOverride> = {
  explainMaxCost: {
    key: 'gateway.role_overrides.<role>.explain_max_cost',
    kind: GATEWAY.explainMaxCost.kind,
    default: null,
    feature: 'cost',
    description: '`explain_max_cost` for callers of this role.',
  },
  explainMaxRows: {
    key: 'gateway.role_overrides.<role>.explain_max_rows',
    kind: GATEWAY.explainMaxRows.kind,
    default: null,
    unit: 'rows',
    feature: 'cost',
    description: '`explain_max_rows` for callers of this role.',
  },
}

/** The settings under `[gateway.tables]`. */
export const TABLE: SettingsOf<TableConfig> = {
  versionColumn: {
    key: 'gateway.tables.<name>.version_column',
    kind: textKind,
    default: null,
    feature: 'writes',
    description:
      'The column of this table that is the version of a row in [entity tags](rest-api.md#entity-tags), for ' +
      'example `updated_at`. Every write must change it, by a trigger for example. Default: `xmin`.',
  },
  requireIfMatch: {
    key: 'gateway.tables.<name>.require_if_match',
    kind: flag,
    default: false,
    feature: 'writes',
    description:
      'Answer PATCH and DELETE of this table without [`If-Match`](writing.md#preconditions) with 428, and ' +
      'filtered writes and upserts as well.',
  },
  softDelete: {
    key: 'gateway.tables.<name>.soft_delete',
    kind: textKind,
    default: null,
    feature: 'writes',
    description:
      'A nullable `timestamptz` or `timestamp` column. A delete sets it to the current time instead of removing ' +
      'the row, and rows where it is set are hidden ([managed columns](writing.md#managed-columns)).',
  },
  updatedAt: {
    key: 'gateway.tables.<name>.updated_at',
    kind: textKind,
    default: null,
    feature: 'writes',
    description:
      'A `timestamptz` or `timestamp` column that every write sets to the current time. Requests cannot write it.',
  },
  createdBy: {
    key: 'gateway.tables.<name>.created_by',
    kind: textKind,
    default: null,
    feature: 'writes',
    description:
      'A `text`, `varchar`, `uuid`, `integer` or `bigint` column that a creation sets to the caller’s user id. ' +
      'Requests cannot write it.',
  },
}

/** The settings under `[access]`. */
export const ACCESS: SettingsOf<AccessConfig> = {
  enabled: {
    key: 'access.enabled',
    kind: flag,
    default: false,
    feature: 'policies',
    description: 'Enforce the native access policy.',
  },
  path: {
    key: 'access.path',
    kind: path,
    default: null,
    feature: 'policies',
    description: 'Path of the native access policy, TOML or JSON. Required if `enabled`.',
  },
}

/** The settings under `[postgrest]`. */
export const POSTGREST: SettingsOf<PostgrestConfig> = {
  enabled: {
    key: 'postgrest.enabled',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description: 'Serve requests in the dialect of PostgREST ([guide](../guides/coming-from-postgrest.md)).',
  },
  prefix: {
    key: 'postgrest.prefix',
    kind: urlPrefix,
    default: '/rest/v1',
    feature: 'postgrest',
    description: 'The path below which these requests are served.',
  },
  schemas: {
    key: 'postgrest.schemas',
    kind: schemaNames,
    default: ['public'],
    feature: 'postgrest',
    description:
      'The schemas whose tables, views and functions are served. `Accept-Profile` and `Content-Profile` choose ' +
      'one of them; without these headers, the first is used. All views are served, whether or not ' +
      '`exposed_views` lists them.',
  },
  extraSearchPath: {
    key: 'postgrest.extra_search_path',
    kind: names,
    default: ['public'],
    feature: 'postgrest',
    description: 'Schemas that follow the request’s own schema in `search_path`.',
  },
  anonRole: {
    key: 'postgrest.anon_role',
    kind: textKind,
    default: null,
    feature: 'postgrest',
    description:
      'The database role of requests without a token. The role of the connection must be a member of it. Without ' +
      'this setting, requests without a token are answered with 401.',
  },
  jwtRoleClaim: {
    key: 'postgrest.jwt_role_claim',
    kind: claimSource,
    default: null,
    feature: 'postgrest',
    description:
      'The claim with the database role of a token. The role of the connection must be a member of it. A token ' +
      'without this claim is served as `anon_role`. Default: `role`.',
  },
  jwtAudience: {
    key: 'postgrest.jwt_audience',
    kind: textKind,
    default: null,
    feature: 'postgrest',
    description: 'The audience that a token’s `aud` must contain, if the token has one. Default: `aud` is not checked.',
  },
  jwtSecretIsBase64: {
    key: 'postgrest.jwt_secret_is_base64',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description: '`JWT_SECRET` is the Base64 text of the secret. Applies to these requests only.',
  },
  preRequest: {
    key: 'postgrest.pre_request',
    kind: textKind,
    default: null,
    feature: 'postgrest',
    description:
      'A function without arguments, `schema.name`, that every transaction calls after its settings and before its ' +
      'statement. An error that it raises ends the request.',
  },
  preConfig: {
    key: 'postgrest.pre_config',
    kind: textKind,
    default: null,
    feature: 'postgrest',
    description:
      'A function without arguments, `schema.name`, that is called when the gateway starts. Settings such as ' +
      '`pgrst.db_schemas` that it makes with `set_config`, or that are stored for the role of the connection, ' +
      'replace those of this table ([guide](../guides/coming-from-postgrest.md#settings-in-the-database)).',
  },
  maxRows: {
    key: 'postgrest.max_rows',
    kind: integerKind(0, COUNT_MAX),
    default: 0,
    unit: 'rows',
    feature: 'postgrest',
    description: 'Maximum number of rows in a response, whatever `limit` requests. 0: no limit.',
  },
  aggregatesEnabled: {
    key: 'postgrest.aggregates_enabled',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description: 'Accept the aggregate functions `avg`, `count`, `max`, `min` and `sum` in `select`.',
  },
  planEnabled: {
    key: 'postgrest.plan_enabled',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description:
      'Answer requests for `application/vnd.pgrst.plan` with the execution plan. Figures are shown to callers ' +
      'from whom row-level security hides no row of the request, and to callers with the scope `svc:explain`.',
  },
  txEnd: {
    key: 'postgrest.tx_end',
    kind: choice('commit', 'commit-allow-override', 'rollback', 'rollback-allow-override'),
    default: 'commit',
    feature: 'postgrest',
    description:
      'How transactions end. With `-allow-override`, `Prefer: tx=commit` and `Prefer: tx=rollback` choose for one ' +
      'request.',
  },
  hoistedTxSettings: {
    key: 'postgrest.hoisted_tx_settings',
    kind: names,
    default: ['statement_timeout', 'plan_filter.statement_cost_limit'],
    feature: 'postgrest',
    description:
      'Settings of functions (`create function … set …`) that hold for the whole transaction of a call, instead of ' +
      'those of the role. Roles, `search_path` and the isolation level are not among them. ' +
      '`statement_timeout_ms` remains the limit.',
  },
  appSettings: {
    key: 'postgrest.app_settings',
    kind: settingTable,
    default: new Map(),
    feature: 'postgrest',
    description:
      'Session settings of every transaction, for functions to read with `current_setting`: ' +
      '`{ "app.settings.host" = "example.com" }`.',
  },
  errorVerbosity: {
    key: 'postgrest.error_verbosity',
    kind: choice('verbose', 'minimal'),
    default: 'verbose',
    feature: 'postgrest',
    description: '`minimal` leaves `details` and `hint` out of error responses.',
  },
  safeUpdates: {
    key: 'postgrest.safe_updates',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description: 'Answer `PATCH` and `DELETE` without a filter 400, as the extension `safeupdate` does.',
  },
  legacyTargetNames: {
    key: 'postgrest.legacy_target_names',
    kind: flag,
    default: true,
    feature: 'postgrest',
    description:
      'Parameters can name an embedded relation that has an alias by its own name as well, and the response warns ' +
      'of it: `select=a:orders(*)&orders.order=id`.',
  },
  serverTiming: {
    key: 'postgrest.server_timing',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description:
      'Send `Server-Timing` with the milliseconds of `jwt`, `parse`, `plan`, `transaction` and `response`. The ' +
      'times tell a caller what depends on data, so enable it for development.',
  },
  traceHeader: {
    key: 'postgrest.trace_header',
    kind: headerName,
    default: null,
    feature: 'postgrest',
    description: 'A request header that the response repeats, such as `X-Trace-Id`.',
  },
  rootSpec: {
    key: 'postgrest.root_spec',
    kind: textKind,
    default: null,
    feature: 'postgrest',
    description:
      'A function without required arguments, `name` or `schema.name`, that answers requests for the root. ' +
      'Default: the OpenAPI document.',
  },
  openapiMode: {
    key: 'postgrest.openapi_mode',
    kind: choice('follow-privileges', 'ignore-privileges', 'disabled'),
    default: 'follow-privileges',
    feature: 'postgrest',
    description:
      'The OpenAPI document at the root: with the tables and functions that the role of the request has a ' +
      'privilege on, with all of them, or none.',
  },
  openapiSecurityActive: {
    key: 'postgrest.openapi_security_active',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description: 'Include the `Authorization` header in the OpenAPI document, as a security requirement.',
  },
  openapiServerProxyUri: {
    key: 'postgrest.openapi_server_proxy_uri',
    kind: publicUrl,
    default: null,
    feature: 'postgrest',
    description:
      'The URL of the API in the OpenAPI document. Default: `public_url` with `prefix`, or the host that the ' +
      'request was sent to.',
  },
  realtime: {
    key: 'postgrest.realtime',
    kind: flag,
    default: false,
    feature: 'postgrest',
    description:
      'Serve the channels of `@supabase/realtime-js` at `/realtime/v1/websocket`: changes of tables that ' +
      '`svc install` captures, and broadcasts. Cannot be combined with `pre_request`.',
  },
  realtimeBroadcastsPerSec: {
    key: 'postgrest.realtime_broadcasts_per_sec',
    kind: integerKind(0, COUNT_MAX),
    default: 100,
    unit: 'broadcasts',
    feature: 'postgrest',
    description:
      'Maximum number of broadcasts of one tenant, or of one user without a tenant, in a second. 0: no limit.',
  },
}

/** The settings under `[shapes]`. */
export const SHAPES: SettingsOf<ShapesConfig> = {
  enabled: {
    key: 'shapes.enabled',
    kind: flag,
    default: false,
    feature: 'shapes',
    description: 'Serve [shapes](../guides/shapes.md), which clients of Electric replicate. Requires `svc install`.',
  },
  path: {
    key: 'shapes.path',
    kind: routePath,
    default: '/v1/shape',
    feature: 'shapes',
    description: 'The path of the route.',
  },
  longPollMs: {
    key: 'shapes.long_poll_ms',
    kind: integerKind(100, 300_000),
    default: 20_000,
    unit: 'ms',
    feature: 'shapes',
    description: 'How long a request with `live=true` waits for a change before it is answered without one.',
  },
  allowDeletion: {
    key: 'shapes.allow_deletion',
    kind: flag,
    default: false,
    feature: 'shapes',
    description:
      'Let callers end a handle with `DELETE`. All clients with the same handle then read their rows again, so ' +
      'enable it for tests only.',
  },
}

/** The settings under `[mcp]`. */
export const MCP: SettingsOf<McpConfig> = {
  bind: {
    key: 'mcp.bind',
    environment: 'SVC_MCP_BIND',
    kind: bind,
    default: { host: '127.0.0.1', port: 8090 },
    feature: 'tools',
    description: 'Address and port on which `svc mcp` listens; `--bind` overrides it.',
  },
  allowedHosts: {
    key: 'mcp.allowed_hosts',
    kind: hostNames,
    default: [],
    feature: 'tools',
    description:
      'Host names under which the tool server accepts requests, in addition to `localhost` and its address, for ' +
      'example behind a proxy. A request with another `Host` or `Origin` is answered with 403.',
  },
}

/** Every row, in the order of the reference. */
export const SETTINGS: readonly Setting<unknown>[] = [
  ...[
    PROCESS,
    GATEWAY,
    REPLICA,
    ISSUER,
    CONSOLE,
    TRACING,
    SHARED,
    OPENAPI,
    CACHE,
    ROLE_OVERRIDE,
    TABLE,
    ACCESS,
    POSTGREST,
    SHAPES,
    MCP,
  ],
].flatMap(table => Object.values(table) as Setting<unknown>[])
