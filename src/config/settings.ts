/**
 * The table of settings. It drives the loader, `docs/reference/configuration.md`, the printed configuration and `svc
 * check`: a key exists when it has a row here, and the compiler sees to it that every field of `Config` has exactly
 * one.
 */

import { STATEMENT_LIMITS } from '../statement-limits.ts'
import type {
  AccessConfig,
  CacheConfig,
  ClaimSource,
  Config,
  GatewayConfig,
  IssuerConfig,
  McpConfig,
  RoleOverride,
} from './config.ts'
import {
  algorithms,
  bind,
  choice,
  claimSource,
  databaseUrl,
  decimal,
  flag,
  hostNames,
  integer,
  type Kind,
  names,
  networks,
  origins,
  path,
  providerUrl,
  publicUrl,
  requiredClaims,
  schemaNames,
  secretTable,
  secretText,
  text,
  texts,
  textTable,
  variableName,
} from './kinds.ts'

export interface Setting<T> {
  /**
   * As in the file, dotted; null for what only the environment says. `<role>` stands for any name, `<n>` for the index
   * in an array of tables.
   */
  readonly key: string | null
  /** Another key for the same thing. */
  readonly alias?: string
  /** Beats the file. */
  readonly environment?: string
  readonly kind: Kind<NonNullable<T>>
  readonly default: T
  readonly unit?: string
  /** Never printed. */
  readonly secret?: true
  /** An empty variable counts as given: a secret that should have been there must not be missing silently. */
  readonly emptyCounts?: true
  readonly feature: Feature
  /** For the reference; Markdown, one paragraph. */
  readonly description: string
}

export type Table<T> = { readonly [K in keyof T]: Setting<T[K]> }

/** What the settings are for, as the reference calls it. */
export const FEATURES = {
  process: 'Process',
  database: 'Database connection',
  schema: 'What is published',
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
  webhooks: 'Webhooks',
  kerberos: 'Kerberos',
  internal: 'Internal endpoints',
  tools: 'Tool server',
} as const

export type Feature = keyof typeof FEATURES

/** The longest wait Node's timers and PostgreSQL's `statement_timeout` can both express. */
const MS_MAX = 2_147_483_647
const COUNT_MAX = 2_147_483_647

export const PROCESS: Table<Omit<Config, 'gateway' | 'access' | 'mcp' | 'file'>> = {
  jwtSecret: {
    key: null,
    environment: 'JWT_SECRET',
    kind: secretText,
    default: null,
    secret: true,
    emptyCounts: true,
    feature: 'identity',
    description:
      'The HS256 secret that tokens are verified with. At least 32 bytes: shorter is a warning, empty is refused. It is never read from the file.',
  },
  jwtSecretPrevious: {
    key: null,
    environment: 'JWT_SECRET_PREVIOUS',
    kind: secretText,
    default: null,
    secret: true,
    feature: 'identity',
    description:
      'The secret before `JWT_SECRET`, while it is [being rotated](../guides/authentication.md#rotate-a-secret): tokens that `JWT_SECRET` did not sign are verified with it.',
  },
  devMode: {
    key: null,
    environment: 'SVC_DEV_MODE',
    kind: flag,
    default: false,
    feature: 'identity',
    description:
      'Development mode: `x-user-id`, `x-user-role` and `x-tenant-id` are believed when there is no token. Starts only on a loopback address and with `JWT_SECRET` set. It is never read from the file.',
  },
  logLevel: {
    key: 'gateway.log_level',
    environment: 'SVC_LOG_LEVEL',
    kind: choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    feature: 'process',
    description: 'The least severe log line that is written.',
  },
  adminToken: {
    key: 'gateway.admin_token',
    environment: 'SVC_ADMIN_TOKEN',
    kind: text,
    default: null,
    secret: true,
    emptyCounts: true,
    feature: 'internal',
    description:
      'The operator’s token, sent as `Authorization: Bearer`. When it is set, `/metrics` and `/health/internal` need it; while it is not, they are open to whoever reaches the gateway. Where `explain_endpoint` is `"admin"`, `_explain` answers whoever sends it, and nobody while it is not set; so does what `svc webhooks` asks.',
  },
  adminDatabaseUrl: {
    key: null,
    environment: 'SVC_ADMIN_DATABASE_URL',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      'For [`svc install`](../guides/installation.md) and `svc uninstall` alone: the database as a role that may create schemas and triggers. A gateway that serves has no use for it and should not have it.',
  },
  krb5Config: {
    key: null,
    environment: 'KRB5_CONFIG',
    kind: text,
    default: null,
    feature: 'kerberos',
    description:
      'Files of the Kerberos library’s configuration, `:` between them; `/etc/krb5.conf` when it is not set. With `gss_provider=linux_krb5` start-up fails when there is none that can be read.',
  },
  krb5CredentialCache: {
    key: null,
    environment: 'KRB5CCNAME',
    kind: text,
    default: null,
    feature: 'kerberos',
    description:
      'The credential cache that somebody fills for the gateway, such as `FILE:/run/svc/krb5cc`; `/tmp/krb5cc_UID` when neither it nor the configuration says otherwise. Start-up fails when it is missing, cannot be read or is none.',
  },
  krb5ClientKeytab: {
    key: null,
    environment: 'KRB5_CLIENT_KTNAME',
    kind: text,
    default: null,
    feature: 'kerberos',
    description: 'A keytab from which the Kerberos library gets tickets by itself, in place of a filled cache.',
  },
}

export const GATEWAY: Table<Omit<GatewayConfig, 'cache' | 'roleOverrides' | 'issuers'>> = {
  bind: {
    key: 'gateway.bind',
    environment: 'SVC_BIND',
    kind: bind,
    default: { host: '127.0.0.1', port: 8080 },
    feature: 'process',
    description: 'Where the gateway listens. An IPv6 address stands in brackets; port 0 takes a free one.',
  },
  drainTimeoutMs: {
    key: 'gateway.drain_timeout_ms',
    kind: integer(0, MS_MAX),
    default: 10_000,
    unit: 'ms',
    feature: 'process',
    description: 'How long requests in flight may take to finish after SIGTERM or SIGINT; then they are cut off.',
  },
  strict: {
    key: 'gateway.strict',
    kind: flag,
    default: false,
    feature: 'process',
    description:
      'Refuse to start on anything that `svc check` finds, warnings as well, where boot would only warn and only of [what is looked for at every boot](checks.md). Also turns on `require_exp`.',
  },
  acceptedFindings: {
    key: 'gateway.accepted_findings',
    kind: names,
    default: [],
    feature: 'process',
    description:
      'Findings of `svc check` that are right as they are: the name of a [check](checks.md), or `check: object` as it is printed. They neither fail `svc check` nor stop a start under `strict`. What is looked for at every boot cannot be accepted.',
  },

  databaseUrl: {
    key: 'gateway.database_url',
    environment: 'DATABASE_URL',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      '`postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS`. Relative paths in `sslrootcert`, `sslcert` and `sslkey` are relative to the file that says them. [Database connections](../guides/database-connections.md) has every parameter.',
  },
  realtimeDatabaseUrl: {
    key: 'gateway.realtime_database_url',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      'A direct connection for `LISTEN` when `database_url` goes through a transaction pooler: changes of rows and of the schema are heard through it. Without it nobody can subscribe there, and polling alone finds changes of the schema (`schema_poll_secs`).',
  },
  feedUrl: {
    key: 'gateway.feed_url',
    kind: databaseUrl,
    default: null,
    secret: true,
    feature: 'database',
    description:
      'The connection of the feed role, which reads the change log and delivers webhooks ([`svc install`](../guides/installation.md)). Without it the gateway connects like `realtime_database_url`, else `database_url`, with the name of the feed role and the same password.',
  },
  feedMaxConnections: {
    key: 'gateway.feed_max_connections',
    kind: integer(1, 100),
    default: 2,
    feature: 'database',
    description: 'Connections of the feed role, opened where `svc install` was run and not part of `max_connections`.',
  },
  maxConnections: {
    key: 'gateway.max_connections',
    kind: integer(1, 1_000),
    default: 10,
    feature: 'database',
    description: 'Connections in the pool.',
  },
  acquireTimeoutMs: {
    key: 'gateway.acquire_timeout_ms',
    kind: integer(1, MS_MAX),
    default: 5_000,
    unit: 'ms',
    feature: 'database',
    description: 'How long a request waits for a connection; then 503 `UNAVAILABLE`.',
  },
  statementTimeoutMs: {
    key: 'gateway.statement_timeout_ms',
    kind: integer(1, MS_MAX),
    default: 30_000,
    unit: 'ms',
    feature: 'database',
    description:
      'How long the database may work for a request, all of its statements together; then they are cancelled and the answer is 408 `TIMEOUT`. It cannot be switched off.',
  },
  preparedStatements: {
    key: 'gateway.prepared_statements',
    kind: flag,
    default: true,
    feature: 'database',
    description:
      'Keep statements prepared on each connection, and send several units behind each other. `false` behind a transaction pooler, such as PgBouncer: nothing is kept in a session, and a connection carries one unit at a time.',
  },
  gssModule: {
    key: 'gateway.gss_module',
    kind: path,
    default: null,
    feature: 'kerberos',
    description:
      'ES module that exports `step`, for `gss_provider=callback` and `custom`, which mean the same. [Database connections](../guides/database-connections.md) says what it is called with and answers.',
  },

  schemas: {
    key: 'gateway.schemas',
    kind: schemaNames,
    default: ['public'],
    feature: 'schema',
    description:
      'Schemas whose tables are published. Tables of the first have their bare name, those of the others `schema.table`.',
  },
  exposedViews: {
    key: 'gateway.exposed_views',
    kind: names,
    default: [],
    feature: 'schema',
    description:
      'Views and materialised views to publish although they are not `security_invoker`, named like resources. They show every row their owner may see.',
  },
  tenantColumn: {
    key: 'gateway.tenant_column',
    kind: text,
    default: 'tenant_id',
    feature: 'schema',
    description:
      'The column that makes a table a tenant table; those must have forced row-level security. Webhooks that wait in the database take turns by it.',
  },
  schemaPollSecs: {
    key: 'gateway.schema_poll_secs',
    kind: integer(1, 86_400),
    default: 60,
    unit: 's',
    feature: 'schema',
    description: 'How often the catalogue is looked at for changes that no `NOTIFY svc_schema` announced.',
  },

  requireAuth: {
    key: 'gateway.require_auth',
    kind: flag,
    default: true,
    feature: 'identity',
    description:
      'A request without a token is refused with 401. With `false` it is `anonymous` and has empty settings.',
  },
  requireExp: {
    key: 'gateway.require_exp',
    kind: flag,
    default: false,
    feature: 'identity',
    description: 'Refuse tokens that never expire. `true` under `strict` unless said otherwise.',
  },
  jwtIssuer: {
    key: 'gateway.jwt_issuer',
    kind: text,
    default: null,
    feature: 'identity',
    description:
      'The issuer that the `iss` of a token verified with `JWT_SECRET` must name. Tokens of `[[gateway.issuers]]` have their own.',
  },
  jwtAudience: {
    key: 'gateway.jwt_audience',
    kind: text,
    default: null,
    feature: 'identity',
    description: 'The audience that the `aud` of a token verified with `JWT_SECRET` must name or contain.',
  },
  jwtSecrets: {
    key: 'gateway.jwt_secrets',
    kind: secretTable,
    default: new Map(),
    secret: true,
    feature: 'identity',
    description: `More HS256 secrets, each by the \`kid\` of the tokens that it verifies: \`{ k1 = "\${NAME}" }\`. Tokens with another \`kid\`, or none, are verified with \`JWT_SECRET\`, then \`JWT_SECRET_PREVIOUS\`.`,
  },

  publicUrl: {
    key: 'gateway.public_url',
    kind: publicUrl,
    default: null,
    feature: 'http',
    description:
      'Where clients reach the gateway, behind a proxy for example: `https://api.example.com`. The [metadata for OAuth clients](../guides/authentication.md#metadata-for-clients) names it. Without it they name the bind address.',
  },
  corsAllowedOrigins: {
    key: 'gateway.cors_allowed_origins',
    kind: origins,
    default: [],
    feature: 'http',
    description: 'Origins whose pages may call the API from a browser; `["*"]` for any, empty for none.',
  },
  compressMinBytes: {
    key: 'gateway.compress_min_bytes',
    kind: integer(0, COUNT_MAX),
    default: 1_024,
    unit: 'bytes',
    feature: 'http',
    description:
      'Answers from this size on, and streams, are compressed for clients that accept `br` or `gzip`, unless the request or the answer says `Cache-Control: no-transform`. `0` switches compression off.',
  },
  allowedHosts: {
    key: 'gateway.allowed_hosts',
    kind: hostNames,
    default: [],
    feature: 'http',
    description:
      'Names under which a gateway in development mode is reached, besides `localhost` and loopback addresses. A request whose `Host` names another is refused with 403. Outside of development mode any name is accepted.',
  },
  trustedProxies: {
    key: 'gateway.trusted_proxies',
    kind: networks,
    default: [],
    feature: 'limits',
    description:
      'Addresses and CIDR ranges of proxies in front; `X-Forwarded-For` is believed, right to left, through these alone.',
  },

  defaultLimit: {
    key: 'gateway.default_limit',
    kind: integer(1, 1_000_000),
    default: 50,
    unit: 'rows',
    feature: 'reads',
    description: 'Page size of a list that names none.',
  },
  maxResultRows: {
    key: 'gateway.max_result_rows',
    kind: integer(0, COUNT_MAX),
    default: 10_000,
    unit: 'rows',
    feature: 'reads',
    description: 'Most rows one query answers; a larger `limit` is lowered to it. `0` switches it off.',
  },
  maxExpandDepth: {
    key: 'gateway.max_expand_depth',
    kind: integer(1, 16),
    default: 4,
    feature: 'reads',
    description: 'How deep `expand` may nest.',
  },
  maxFilters: {
    key: 'gateway.max_filters',
    kind: integer(1, 10_000),
    default: 64,
    feature: 'reads',
    description: 'Conditions in one request.',
  },
  maxInValues: {
    key: 'gateway.max_in_values',
    kind: integer(1, 1_000_000),
    default: 1_000,
    feature: 'reads',
    description: 'Elements of one `in` list.',
  },
  maxJoins: {
    key: 'gateway.max_joins',
    kind: integer(0, 1_000),
    default: STATEMENT_LIMITS.maxJoins,
    feature: 'reads',
    description:
      'Joins of one level of a query; a subquery has a level of its own. More is 400 `PARSE_ERROR`. `0` switches it off.',
  },
  maxRelations: {
    key: 'gateway.max_relations',
    kind: integer(0, 10_000),
    default: STATEMENT_LIMITS.maxRelations,
    feature: 'reads',
    description:
      'Relations that one statement reads from or writes to: tables, views, functions, common tables, subqueries, expansions, and the tables behind views and row-level security policies. More is 400 `PARSE_ERROR`. `0` switches it off.',
  },
  maxBuiltValueBytes: {
    key: 'gateway.max_built_value_bytes',
    kind: integer(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxBuiltValueBytes,
    unit: 'bytes',
    feature: 'reads',
    description:
      'Size of a value that a function of the query language builds from a number: `repeat`, `lpad`, `rpad`, `format`, `array_fill`, and casts that pad. All expressions of a query together may build 64 times as much for one row. More is 400 `PARSE_ERROR`. `0` switches it off.',
  },
  maxSeriesRows: {
    key: 'gateway.max_series_rows',
    kind: integer(0, COUNT_MAX),
    default: STATEMENT_LIMITS.maxSeriesRows,
    unit: 'rows',
    feature: 'reads',
    description: 'Rows of one `generate_series` in a query. More is 400 `PARSE_ERROR`. `0` switches it off.',
  },
  maxPatternBytes: {
    key: 'gateway.max_pattern_bytes',
    kind: integer(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxPatternBytes,
    unit: 'bytes',
    feature: 'reads',
    description:
      'Patterns of `like` and `ilike` in one statement, all together, each from its first wildcard `%` on. More is 400 `PARSE_ERROR`. `0` switches it off.',
  },
  maxNumericProducts: {
    key: 'gateway.max_numeric_products',
    kind: integer(0, COUNT_MAX),
    default: STATEMENT_LIMITS.maxNumericProducts,
    feature: 'reads',
    description:
      'Multiplications and divisions in one query text whose operands can both have any number of digits. More is 400 `PARSE_ERROR`. `0` switches it off.',
  },
  maxRepeatedCharacters: {
    key: 'gateway.max_repeated_characters',
    kind: integer(0, 1_073_741_823),
    default: STATEMENT_LIMITS.maxRepeatedCharacters,
    unit: 'characters',
    feature: 'reads',
    description:
      'Characters of a query text that its SQL may repeat, because an alias in `having` stands for its expression and aggregates are grouped by the other fields. More is 400 `PARSE_ERROR`. `0` switches it off; an expression is then still repeated 64 times at most.',
  },
  searchLanguage: {
    key: 'gateway.search_language',
    kind: text,
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
      '`/api/{table}/_explain` for everybody who may read the table, only with the admin token, or not at all.',
  },

  maxBatchRows: {
    key: 'gateway.max_batch_rows',
    kind: integer(0, COUNT_MAX),
    default: 10_000,
    unit: 'rows',
    feature: 'writes',
    description: 'Rows in one batch create; more is 413. `0` switches it off.',
  },

  maxBatchKeySets: {
    key: 'gateway.max_batch_key_sets',
    kind: integer(0, COUNT_MAX),
    default: 1_000,
    unit: 'key sets',
    feature: 'writes',
    description:
      'Different sets of columns among the rows of one batch create, each of which is a statement; more is 413. `0` switches it off.',
  },

  rateLimitRate: {
    key: 'gateway.rate_limit_rate',
    kind: decimal(0, 1_000_000),
    default: 500,
    unit: 'requests/s',
    feature: 'limits',
    description:
      'Tokens refilled per second and client address; IPv6 addresses count by /64. A request that finds none is answered 429 `RATE_LIMITED`. `0` switches the rate limit off.',
  },
  rateLimitBurst: {
    key: 'gateway.rate_limit_burst',
    kind: integer(0, 10_000_000),
    default: 1_000,
    unit: 'requests',
    feature: 'limits',
    description: 'Most tokens one client address can have. `0` switches the rate limit off.',
  },
  tenantMaxConcurrent: {
    key: 'gateway.tenant_max_concurrent',
    kind: integer(0, 100_000),
    default: 32,
    unit: 'requests',
    feature: 'limits',
    description:
      'Requests of one tenant that may be at the database at a time, or of one user who has no tenant; one more is answered 429 `CONCURRENCY_LIMIT`. `0` switches the gate off.',
  },
  tenantMaxStreams: {
    key: 'gateway.tenant_max_streams',
    kind: integer(0, 1_000),
    default: 4,
    unit: 'streams',
    feature: 'limits',
    description:
      'Streams (`stream=true`) that one tenant can have open, or one user without a tenant, and always fewer than its share of the connections if that is two or more. One more waits up to `acquire_timeout_ms`. `0` switches the limit off; the share remains.',
  },
  streamMinBytesPerSec: {
    key: 'gateway.stream_min_bytes_per_sec',
    kind: integer(0, COUNT_MAX),
    default: 2_048,
    unit: 'bytes/s',
    feature: 'limits',
    description:
      'Slowest average at which a client may read a stream. Below it, the stream ends with an error line. `0` switches it off.',
  },
  streamMinRateWindowSecs: {
    key: 'gateway.stream_min_rate_window_secs',
    kind: integer(1, 86_400),
    default: 60,
    unit: 's',
    feature: 'limits',
    description:
      'Time over which `stream_min_bytes_per_sec` is averaged. Only time in which the client keeps the gateway waiting counts.',
  },
  maxClientConnections: {
    key: 'gateway.max_client_connections',
    kind: integer(0, COUNT_MAX),
    default: 7_500,
    unit: 'connections',
    feature: 'limits',
    description:
      'Connections of clients to the gateway, WebSockets and idle ones included; one more is answered 503 `UNAVAILABLE` and closed. `0` switches it off.',
  },
  addressMaxClientConnections: {
    key: 'gateway.address_max_client_connections',
    kind: integer(0, COUNT_MAX),
    default: 6_000,
    unit: 'connections',
    feature: 'limits',
    description:
      'Connections from one address; IPv6 addresses count by /64. Addresses in `trusted_proxies` are exempt. One more is answered 503 `UNAVAILABLE` and closed. `0` switches it off.',
  },
  addressMaxSockets: {
    key: 'gateway.address_max_sockets',
    kind: integer(0, COUNT_MAX),
    default: 500,
    unit: 'sockets',
    feature: 'limits',
    description:
      'WebSockets (`/ws`) of one client address; IPv6 addresses count by /64. Behind `trusted_proxies` the address is that of `X-Forwarded-For`. One more is answered 429 `CONCURRENCY_LIMIT`. `0` switches it off.',
  },
  tenantMaxSockets: {
    key: 'gateway.tenant_max_sockets',
    kind: integer(0, COUNT_MAX),
    default: 2_000,
    unit: 'sockets',
    feature: 'limits',
    description:
      'WebSockets of one tenant, or of one user who has no tenant. One more is answered 429 `CONCURRENCY_LIMIT`, or closed with 4429 where the first message says who calls. `0` switches it off.',
  },
  tenantMaxSubscriptions: {
    key: 'gateway.tenant_max_subscriptions',
    kind: integer(0, COUNT_MAX),
    default: 20_000,
    unit: 'subscriptions',
    feature: 'limits',
    description:
      'Subscriptions and live queries of one tenant, or of one user who has no tenant. One more is answered by an `error` message with code `CONCURRENCY_LIMIT`. `0` switches it off.',
  },
  tenantMaxSubscriptionGroups: {
    key: 'gateway.tenant_max_subscription_groups',
    kind: integer(0, COUNT_MAX),
    default: 2_000,
    unit: 'groups',
    feature: 'limits',
    description:
      'Different subscriptions and live queries of one tenant, or of one user who has no tenant: those that differ in table, filter, columns or in the rows that the caller may see. Each of them has a part in the cost of a change. One more is answered by an `error` message with code `CONCURRENCY_LIMIT`. `0` switches it off.',
  },
  tenantMaxLiveQueries: {
    key: 'gateway.tenant_max_live_queries',
    kind: integer(0, COUNT_MAX),
    default: 1_000,
    unit: 'live queries',
    feature: 'limits',
    description:
      'Different live queries of one tenant, or of one user who has no tenant; those that are alike share one run. One more is answered by an `error` message with code `CONCURRENCY_LIMIT`. `0` switches it off.',
  },
  maxLiveQueries: {
    key: 'gateway.max_live_queries',
    kind: integer(0, COUNT_MAX),
    default: 2_000,
    unit: 'live queries',
    feature: 'limits',
    description:
      'Different live queries of the process. One more is answered by an `error` message with code `UNAVAILABLE`. `0` switches it off.',
  },
  maxSockets: {
    key: 'gateway.max_sockets',
    kind: integer(0, COUNT_MAX),
    default: 7_000,
    unit: 'sockets',
    feature: 'limits',
    description:
      'WebSockets (`/ws`) of the process. One more is answered 503 `UNAVAILABLE`, before the upgrade. `0` switches it off.',
  },
  socketMaxSubscriptions: {
    key: 'gateway.socket_max_subscriptions',
    kind: integer(0, COUNT_MAX),
    default: 100,
    unit: 'subscriptions',
    feature: 'limits',
    description:
      'Subscriptions of one WebSocket. One more is answered by an `error` message with code `FORBIDDEN`. `0` switches it off.',
  },
  socketMaxLiveQueries: {
    key: 'gateway.socket_max_live_queries',
    kind: integer(0, COUNT_MAX),
    default: 50,
    unit: 'live queries',
    feature: 'limits',
    description:
      'Live queries of one WebSocket. One more is answered by an `error` message with code `FORBIDDEN`. `0` switches it off.',
  },
  tenantMaxUnroutedQueriesPerSec: {
    key: 'gateway.tenant_max_unrouted_queries_per_sec',
    kind: integer(0, COUNT_MAX),
    default: 200,
    unit: 'queries',
    feature: 'limits',
    description:
      'Visibility queries that changes cause for the subscriptions of one tenant in a second where nobody knows whom the changes concern, so that any tenant may have written them. Beyond it, changes are collected and checked later, together. `0` switches it off.',
  },
  unroutedResyncIntervalMs: {
    key: 'gateway.unrouted_resync_interval_ms',
    kind: integer(0, COUNT_MAX),
    default: 1_000,
    unit: 'ms',
    feature: 'limits',
    description:
      'Time between two `resync` messages with reason `bulk` or `dependency` to all subscribers of a table, whatever the number of writes. The first is sent at once. `0` switches it off.',
  },
  maxInflightBodyBytes: {
    key: 'gateway.max_inflight_body_bytes',
    kind: integer(0, Number.MAX_SAFE_INTEGER),
    default: 268_435_456,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Bytes of request bodies that are being received or worked on, in the whole process. Beyond it, a request that sends more is answered 503 `UNAVAILABLE`. `0` switches it off.',
  },
  addressMaxInflightBodyBytes: {
    key: 'gateway.address_max_inflight_body_bytes',
    kind: integer(0, Number.MAX_SAFE_INTEGER),
    default: 67_108_864,
    unit: 'bytes',
    feature: 'limits',
    description:
      'The same for one client address. Behind `trusted_proxies` it is that of `X-Forwarded-For`. `0` switches it off.',
  },
  maxUnsentBytes: {
    key: 'gateway.max_unsent_bytes',
    kind: integer(0, Number.MAX_SAFE_INTEGER),
    default: 268_435_456,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Bytes of answers that clients have not read yet, and of results that are being read from PostgreSQL, in the whole process. Beyond it, changes and large answers are refused with 503 `UNAVAILABLE`. `0` switches it off.',
  },
  tenantMaxUnsentBytes: {
    key: 'gateway.tenant_max_unsent_bytes',
    kind: integer(0, Number.MAX_SAFE_INTEGER),
    default: 134_217_728,
    unit: 'bytes',
    feature: 'limits',
    description:
      'The same for one tenant, or one user without a tenant. Beyond it, its requests are refused with 503 `UNAVAILABLE`. `0` switches it off.',
  },
  connectionMaxUnsentBytes: {
    key: 'gateway.connection_max_unsent_bytes',
    kind: integer(0, Number.MAX_SAFE_INTEGER),
    default: 1_048_576,
    unit: 'bytes',
    feature: 'limits',
    description:
      'Bytes of answers that one connection has not read yet. Beyond it, the next of its pipelined requests waits. `0` switches it off.',
  },
  connectionMaxConcurrent: {
    key: 'gateway.connection_max_concurrent',
    kind: integer(0, 1_000_000),
    default: 4,
    unit: 'requests',
    feature: 'limits',
    description:
      'Pipelined requests of one connection that run at once, if all of them read. The next one waits. `0` switches it off.',
  },
  connectionMaxPipelined: {
    key: 'gateway.connection_max_pipelined',
    kind: integer(0, 1_000_000),
    default: 64,
    unit: 'requests',
    feature: 'limits',
    description:
      'Pipelined requests of one connection without a complete answer. Beyond it, nothing more is read from the connection until half of them are answered. `0` switches it off.',
  },
  largeBodyBytes: {
    key: 'gateway.large_body_bytes',
    kind: integer(0, COUNT_MAX),
    default: 262_144,
    unit: 'bytes',
    feature: 'limits',
    description:
      'A body above this size is read in one turn of the event loop and used in the next, so that other requests are answered in between. `0` switches it off.',
  },
  tenantMaxConnections: {
    key: 'gateway.tenant_max_connections',
    kind: integer(0, 1_000),
    default: null,
    unit: 'connections',
    feature: 'limits',
    description:
      'Database connections that one tenant can use while no other tenant uses any, or one user without a tenant. With more tenants each gets [less](limits.md#shares-of-the-connection-pool). Default: half of `max_connections`, rounded up. `0` switches the limit off.',
  },

  explainMaxCost: {
    key: 'gateway.explain_max_cost',
    kind: decimal(0, 1e15),
    default: 1_000_000,
    feature: 'cost',
    description: "Highest cost that PostgreSQL's planner may estimate for a read. `0` switches it off.",
  },
  explainMaxRows: {
    key: 'gateway.explain_max_rows',
    kind: integer(0, Number.MAX_SAFE_INTEGER),
    default: 1_000_000,
    unit: 'rows',
    feature: 'cost',
    description:
      'Highest number of rows that the planner may estimate for any node below the limit. `0` switches it off.',
  },

  policyPath: {
    key: 'gateway.policy_path',
    alias: 'gateway.policy',
    kind: path,
    default: null,
    feature: 'policies',
    description: 'The legacy route policy, YAML.',
  },
  allowListPath: {
    key: 'gateway.allow_list_path',
    kind: path,
    default: null,
    feature: 'approval',
    description:
      'The [query allow-list](../guides/allow-list.md): one shape a line; a query that has none of them is refused with 403.',
  },

  rpcRequireSchemaQualified: {
    key: 'gateway.rpc_require_schema_qualified',
    kind: flag,
    default: false,
    feature: 'functions',
    description: 'Functions are called as `schema.function` only.',
  },
  rpcAllowlistPath: {
    key: 'gateway.rpc_allowlist_path',
    kind: path,
    default: null,
    feature: 'functions',
    description: 'One function a line, `#` comments; others are refused with 403.',
  },
  rpcSignatureCheck: {
    key: 'gateway.rpc_signature_check',
    kind: flag,
    default: true,
    feature: 'functions',
    description:
      'Named arguments must be those of a signature, and PostgreSQL is asked to parse the call before it runs.',
  },

  wsQueryToken: {
    key: 'gateway.ws_query_token',
    kind: flag,
    default: false,
    feature: 'realtime',
    description: '`/ws` also takes the token as `?access_token=`. It ends up in logs of proxies.',
  },

  eventsPath: {
    key: 'gateway.events_path',
    kind: path,
    default: null,
    feature: 'webhooks',
    description:
      'Event triggers, YAML: which changes are told to which URL ([fields](../guides/webhooks.md#define-a-trigger)). Read again on SIGHUP. After `svc install` all gateways of a database share one such file.',
  },
  webhookAllow: {
    key: 'gateway.webhook_allow',
    kind: networks,
    default: [],
    feature: 'webhooks',
    description:
      'Addresses and CIDR ranges that webhooks may reach although they are private, loopback or otherwise not of the Internet.',
  },
}

/** A mapping of one of the five things that a token says of its caller. */
function mapping(key: string, what: string): Setting<ClaimSource | null> {
  return {
    key: `gateway.issuers.<n>.${key}`,
    kind: claimSource,
    default: null,
    feature: 'issuers',
    description: `${what} Not given: as of a token that \`JWT_SECRET\` signed. A claim that is named but absent leaves it empty.`,
  }
}

export const ISSUER: Table<Omit<IssuerConfig, 'secret'>> = {
  issuer: {
    key: 'gateway.issuers.<n>.issuer',
    kind: text,
    default: '',
    feature: 'issuers',
    description:
      'Required: the `iss` of the provider’s tokens, exactly as it stands in them. Each can be configured once.',
  },
  jwksUrl: {
    key: 'gateway.issuers.<n>.jwks_url',
    kind: providerUrl,
    default: null,
    feature: 'issuers',
    description:
      'Where the provider publishes its keys (a JWK Set). Exactly one of `jwks_url`, `discovery`, `public_key_path` and `secret_env` is given.',
  },
  discovery: {
    key: 'gateway.issuers.<n>.discovery',
    kind: flag,
    default: false,
    feature: 'issuers',
    description:
      'Take the address of the keys from `ISSUER/.well-known/openid-configuration`. `issuer` must be a URL then.',
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
      'Whom tokens must be for: `aud` must name or contain one of these. Without it, tokens that the provider issued for other applications are accepted as well.',
  },
  algorithms: {
    key: 'gateway.issuers.<n>.algorithms',
    kind: algorithms,
    default: null,
    feature: 'issuers',
    description:
      'The algorithms that are accepted. Default: those of the kind of key – RS256, RS384, RS512, PS256, PS384 and PS512 for RSA, ES256, ES384 or ES512 by the curve, EdDSA for Ed25519, HS256, HS384 and HS512 for a secret.',
  },
  leewaySeconds: {
    key: 'gateway.issuers.<n>.leeway_seconds',
    kind: integer(0, 300),
    default: 30,
    unit: 's',
    feature: 'issuers',
    description: 'How far the clocks of provider and gateway may differ when `exp` and `nbf` are compared.',
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
  scopes: mapping('scopes', 'The scopes: a text with spaces between, or an array.'),
  agent: mapping('agent', 'The agent.'),
  roleMap: {
    key: 'gateway.issuers.<n>.role_map',
    kind: textTable,
    default: null,
    feature: 'issuers',
    description:
      'The provider’s roles as roles of yours: `{ authenticated = "member" }`. One that is not in it is none.',
  },
}

export const CACHE: Table<CacheConfig> = {
  enabled: {
    key: 'gateway.cache.enabled',
    kind: flag,
    default: false,
    feature: 'cache',
    description:
      'Keep answers of reads until something they were read from is changed, or they are too old. [Caching](../guides/caching.md) says what is kept, and what is not seen.',
  },
  maxEntries: {
    key: 'gateway.cache.max_entries',
    kind: integer(1, 10_000_000),
    default: 1_000,
    feature: 'cache',
    description:
      'Answers kept; the one unused for longest goes first. All together take 128 MiB at most, and one larger than 1 MiB is not kept.',
  },
  ttlSecs: {
    key: 'gateway.cache.ttl_secs',
    kind: integer(1, 86_400),
    default: 60,
    unit: 's',
    feature: 'cache',
    description:
      'How long an answer is kept. Changes that other programs and gateways make to tables that `svc install` does not capture are seen no later.',
  },
  maxStalenessMs: {
    key: 'gateway.cache.max_staleness_ms',
    kind: integer(200, 60_000),
    default: 1_000,
    unit: 'ms',
    feature: 'cache',
    description:
      'Where `svc install` captures tables: how far the gateway may be behind the change log and still serve answers that it keeps. Beyond it, reads are executed until it has caught up.',
  },
}

export const ROLE_OVERRIDE: Table<RoleOverride> = {
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

export const ACCESS: Table<AccessConfig> = {
  enabled: {
    key: 'access.enabled',
    kind: flag,
    default: false,
    feature: 'policies',
    description: 'Check every request against the native access policy.',
  },
  path: {
    key: 'access.path',
    kind: path,
    default: null,
    feature: 'policies',
    description: 'The native access policy, TOML or JSON. Required when `enabled`.',
  },
}

export const MCP: Table<McpConfig> = {
  bind: {
    key: 'mcp.bind',
    environment: 'SVC_MCP_BIND',
    kind: bind,
    default: { host: '127.0.0.1', port: 8090 },
    feature: 'tools',
    description: 'Where `svc mcp` listens; `--bind` beats it.',
  },
  allowedHosts: {
    key: 'mcp.allowed_hosts',
    kind: hostNames,
    default: [],
    feature: 'tools',
    description:
      'Names under which the tool server is reached besides `localhost` and its address, as behind a proxy. A request whose `Host` or `Origin` names another is refused with 403.',
  },
}

/** Every row, in the order of the reference. */
export const SETTINGS: readonly Setting<unknown>[] = [
  ...[PROCESS, GATEWAY, ISSUER, CACHE, ROLE_OVERRIDE, ACCESS, MCP],
].flatMap(table => Object.values(table) as Setting<unknown>[])
