/**
 * What the process was told, checked and frozen: the form every other folder reads.
 * `load.ts` makes it from `svc.toml` and the environment; nothing else reads either.
 * Names are the keys of the file in camel case and units are those of the key; what is absent is null.
 */

export interface Config {
  readonly gateway: GatewayConfig
  readonly access: AccessConfig
  readonly mcp: McpConfig
  /** `JWT_SECRET` as it was given: null when unset, and possibly empty, which boot refuses. */
  readonly jwtSecret: string | null
  /** `SVC_DEV_MODE`: headers can stand for a token (docs/reference/limits.md#development-mode). */
  readonly devMode: boolean
  readonly logLevel: LogLevel
  /** Bearer token of `/metrics` and `/health/internal`; null leaves them open (docs/guides/monitoring.md#the-admin-token). */
  readonly adminToken: string | null
  /** `SVC_ADMIN_DATABASE_URL`: for what the gateway's own role may not do, which is `svc install`. */
  readonly adminDatabaseUrl: string | null
  /** `KRB5_CONFIG`, `KRB5CCNAME` and `KRB5_CLIENT_KTNAME`, which the Kerberos library reads by itself. */
  readonly krb5Config: string | null
  readonly krb5CredentialCache: string | null
  readonly krb5ClientKeytab: string | null
  /** Absolute path of the file that was read, or null when there was none. */
  readonly file: string | null
}

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

/**
 * A rate, concurrency, cost or row limit of 0 means that it is off; limits of shape and time are never
 * off.
 */
export interface GatewayConfig {
  readonly bind: Bind
  /** Null when neither `DATABASE_URL` nor the file names one; `svc serve` refuses to start then. */
  readonly databaseUrl: string | null
  readonly realtimeDatabaseUrl: string | null
  /** Null: as the gateway connects, with the name of the feed role. */
  readonly feedUrl: string | null
  readonly feedMaxConnections: number
  /** At least one, without repetition; tables of the first are addressed by their bare name. */
  readonly schemas: readonly string[]
  readonly exposedViews: readonly string[]
  readonly tenantColumn: string
  readonly schemaPollSecs: number
  readonly strict: boolean
  /** As written: `check`, or `check: object`; the lints know what they mean. */
  readonly acceptedFindings: readonly string[]

  readonly requireAuth: boolean
  /** Already `true` under `strict` unless the file says otherwise. */
  readonly requireExp: boolean
  readonly jwtIssuer: string | null
  readonly jwtAudience: string | null
  readonly wsQueryToken: boolean

  readonly corsAllowedOrigins: readonly string[]
  /** Names without port, in lower case; asked in development mode. */
  readonly allowedHosts: readonly string[]
  /** 0: nothing is compressed. */
  readonly compressMinBytes: number
  /** Addresses and CIDR ranges, checked. */
  readonly trustedProxies: readonly string[]

  readonly defaultLimit: number
  readonly maxBatchRows: number
  readonly maxBatchKeySets: number
  readonly maxExpandDepth: number
  readonly maxFilters: number
  readonly maxInValues: number
  readonly maxJoins: number
  readonly maxRelations: number
  readonly maxBuiltValueBytes: number
  readonly maxSeriesRows: number
  readonly maxPatternBytes: number
  readonly maxNumericProducts: number
  readonly maxRepeatedCharacters: number
  readonly maxResultRows: number
  readonly searchLanguage: string
  readonly explainEndpoint: 'on' | 'admin' | 'off'

  readonly rateLimitRate: number
  readonly rateLimitBurst: number
  readonly tenantMaxConcurrent: number
  readonly tenantMaxStreams: number
  readonly streamMinBytesPerSec: number
  readonly streamMinRateWindowSecs: number
  readonly maxClientConnections: number
  readonly addressMaxClientConnections: number
  readonly addressMaxSockets: number
  readonly tenantMaxSockets: number
  readonly tenantMaxSubscriptions: number
  readonly tenantMaxSubscriptionGroups: number
  readonly tenantMaxLiveQueries: number
  readonly maxLiveQueries: number
  readonly maxSockets: number
  readonly socketMaxSubscriptions: number
  readonly socketMaxLiveQueries: number
  readonly tenantMaxUnroutedQueriesPerSec: number
  readonly unroutedResyncIntervalMs: number
  readonly maxInflightBodyBytes: number
  readonly addressMaxInflightBodyBytes: number
  readonly maxUnsentBytes: number
  readonly tenantMaxUnsentBytes: number
  readonly connectionMaxUnsentBytes: number
  readonly connectionMaxConcurrent: number
  readonly connectionMaxPipelined: number
  readonly largeBodyBytes: number
  /** Null: half of `maxConnections`; see `share.ts`. */
  readonly tenantMaxConnections: number | null
  readonly explainMaxCost: number
  readonly explainMaxRows: number
  readonly roleOverrides: ReadonlyMap<string, RoleOverride>
  readonly cache: CacheConfig

  readonly maxConnections: number
  readonly acquireTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly drainTimeoutMs: number
  readonly preparedStatements: boolean
  /** Absolute path of the ES module of `gss_provider=callback` or `custom`. */
  readonly gssModule: string | null

  readonly policyPath: string | null
  readonly allowListPath: string | null
  readonly rpcRequireSchemaQualified: boolean
  readonly rpcAllowlistPath: string | null
  readonly rpcSignatureCheck: boolean
  readonly eventsPath: string | null
  /** Addresses and CIDR ranges that webhooks may reach although they are private. */
  readonly webhookAllow: readonly string[]
}

export interface Bind {
  /** As written, an IPv6 address without its brackets. */
  readonly host: string
  /** 0 asks the system for a free one. */
  readonly port: number
}

/** Null: the role has the general limit. */
export interface RoleOverride {
  readonly explainMaxCost: number | null
  readonly explainMaxRows: number | null
}

export interface CacheConfig {
  readonly enabled: boolean
  readonly maxEntries: number
  readonly ttlSecs: number
  readonly maxStalenessMs: number
}

export interface AccessConfig {
  readonly enabled: boolean
  /** Absolute path of the native policy file; never null when `enabled`. */
  readonly path: string | null
}

export interface McpConfig {
  readonly bind: Bind
  /** Names without port, in lower case. */
  readonly allowedHosts: readonly string[]
}
