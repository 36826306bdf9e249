/**
 * The configuration of the process, checked and frozen: the form that every other folder reads. `load.ts`
 * makes it from `svc.toml` and the environment; no other code reads either. Names are the keys of the file
 * in camel case, and units are those of the key. An absent value is null.
 */

export interface Config {
  readonly gateway: GatewayConfig
  readonly access: AccessConfig
  readonly mcp: McpConfig
  readonly postgrest: PostgrestConfig
  readonly shapes: ShapesConfig
  /** `JWT_SECRET` as given: null if it is not set; it can be empty, which startup rejects. */
  readonly jwtSecret: string | null
  /** `JWT_SECRET_PREVIOUS`: accepted after `jwtSecret` while the secret is being rotated. */
  readonly jwtSecretPrevious: string | null
  /** `SVC_DEV_MODE`: headers can replace a token (docs/reference/limits.md#development-mode). */
  readonly devMode: boolean
  readonly logLevel: LogLevel
  /**
   * The bearer token of `/metrics` and `/health/internal`; null leaves them open
   * (docs/guides/monitoring.md#the-admin-token).
   */
  readonly adminToken: string | null
  /**
   * `SVC_ADMIN_DATABASE_URL`: a connection with more privileges than the gateway's role, for `svc install`.
   */
  readonly adminDatabaseUrl: string | null
  /** `KRB5_CONFIG`, `KRB5CCNAME` and `KRB5_CLIENT_KTNAME`, which the Kerberos library reads itself. */
  readonly krb5Config: string | null
  readonly krb5CredentialCache: string | null
  readonly krb5ClientKeytab: string | null
  /** Absolute path of the file that was read; null without a file. */
  readonly file: string | null
}

/** The minimum severity of log lines. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

/**
 * The settings under `[gateway]`. 0 turns a limit on rate, concurrency, cost or rows off; limits on shape
 * and time cannot be turned off.
 */
export interface GatewayConfig {
  readonly bind: Bind
  /** Worker processes; `auto`: one for each core. */
  readonly workers: number | 'auto'
  /**
   * The connection URL; null if neither `DATABASE_URL` nor the file sets one, and then `svc serve` does not
   * start.
   */
  readonly databaseUrl: string | null
  readonly realtimeDatabaseUrl: string | null
  /** Standbys of the database that answer reads. */
  readonly replicas: readonly ReplicaConfig[]
  /** Limit on how far a read on a replica is behind the primary; 0 means none. */
  readonly replicaMaxLagMs: number
  /** The connection URL of the feed role; null: the gateway's own URL with the name of the feed role. */
  readonly feedUrl: string | null
  readonly feedMaxConnections: number
  readonly walKeepMb: number
  /** At least one schema, without duplicates; tables of the first have unqualified names. */
  readonly schemas: readonly string[]
  readonly exposedViews: readonly string[]
  readonly tenantColumn: string
  readonly schemaPollSecs: number
  /** Which session settings a transaction sets. */
  readonly sessionSettings: 'all' | 'readable'
  readonly strict: boolean
  /** As written: `check`, or `check: object`; the lints interpret them. */
  readonly acceptedFindings: readonly string[]

  readonly requireAuth: boolean
  /** True under `strict` unless the file sets it. */
  readonly requireExp: boolean
  readonly jwtIssuer: string | null
  readonly jwtAudience: string | null
  /** Secrets by the `kid` of the tokens that they verify; none of them is empty. */
  readonly jwtSecrets: ReadonlyMap<string, string>
  /** Identity providers, each with a different `issuer`. */
  readonly issuers: readonly IssuerConfig[]
  /** `schema.name`, or the name of a table in the first schema; null for none. */
  readonly jwtDenylistTable: string | null
  readonly wsQueryToken: boolean
  /** The URL by which clients reach the gateway; null: the address that it listens on. */
  readonly publicUrl: string | null

  readonly corsAllowedOrigins: readonly string[]
  /** Host names without port, in lower case, checked in development mode. */
  readonly allowedHosts: readonly string[]
  /** The minimum size of a response to compress; 0 turns compression off. */
  readonly compressMinBytes: number
  /** Validated addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[]

  readonly defaultLimit: number
  readonly maxBatchRows: number
  readonly maxBatchKeySets: number
  readonly maxBatchOperations: number
  readonly maxBatchReferences: number
  readonly maxInspectSteps: number
  readonly maxImportBytes: number
  readonly maxImports: number
  readonly tenantMaxImports: number
  readonly importTimeoutMs: number
  readonly idempotencyTtlSecs: number
  readonly idempotencyMaxResponseBytes: number
  readonly tenantMaxIdempotencyKeys: number
  readonly maxExpandDepth: number
  readonly maxFilters: number
  readonly maxInValues: number
  readonly maxJoins: number
  readonly maxRelations: number
  readonly maxBuiltValueBytes: number
  readonly maxCollectedBytes: number
  readonly maxCopiedValues: number
  readonly maxSeriesRows: number
  readonly maxPatternBytes: number
  readonly maxContainedElements: number
  readonly maxExpressions: number
  readonly maxParameters: number
  readonly maxNumericProducts: number
  readonly maxRepeatedCharacters: number
  readonly maxRepetitions: number
  readonly maxQueryParameters: number
  readonly maxTextFormBytes: number
  readonly maxResultRows: number
  readonly maxResultBytes: number
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
  readonly tenantMaxWaitingShapes: number
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
  /** The maximum connections of a tenant; null: half of `maxConnections` (see `share.ts`). */
  readonly tenantMaxConnections: number | null
  readonly explainMaxCost: number
  readonly explainMaxRows: number
  readonly roleOverrides: ReadonlyMap<string, RoleOverride>
  /** By name: `table` of the first schema, or `schema.table`. */
  readonly tables: ReadonlyMap<string, TableConfig>
  readonly cache: CacheConfig
  readonly console: ConsoleConfig
  readonly tracing: TracingConfig
  readonly shared: SharedConfig
  readonly openapi: OpenApiConfig

  readonly maxConnections: number
  readonly acquireTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly drainTimeoutMs: number
  readonly preparedStatements: boolean
  /** Absolute path of the ES module of `gss_provider=callback` or `custom`; null for none. */
  readonly gssModule: string | null

  readonly policyPath: string | null
  readonly allowListPath: string | null
  readonly rpcRequireSchemaQualified: boolean
  readonly rpcAllowlistPath: string | null
  readonly rpcSignatureCheck: boolean
  readonly eventsPath: string | null
  /** Private addresses and CIDR ranges that webhooks can reach. */
  readonly webhookAllow: readonly string[]
}

/** An address and port to listen on. */
export interface Bind {
  /** As written; an IPv6 address without its brackets. */
  readonly host: string
  /** The port; 0 selects a free one. */
  readonly port: number
}

/** Settings of one table. */
export interface TableConfig {
  /** The column that has another value after each write; null: the row's `xmin` is its version. */
  readonly versionColumn: string | null
  readonly requireIfMatch: boolean
  /** The column with the time of deletion: a delete sets it, and no statement sees the row any more. */
  readonly softDelete: string | null
  /** The column with the time of the last write. */
  readonly updatedAt: string | null
  /** The column with the user who created the row. */
  readonly createdBy: string | null
}

/** Limits for one role; null: the general limit applies. */
export interface RoleOverride {
  readonly explainMaxCost: number | null
  readonly explainMaxRows: number | null
}

/**
 * An identity provider: the source of its keys, which of its tokens are accepted, and what their claims
 * mean. Exactly one of `jwksUrl`, `discovery`, `publicKeyPath` and `secretEnv` is set.
 */
export interface IssuerConfig {
  /** The `iss` of its tokens, compared exactly. */
  readonly issuer: string
  readonly jwksUrl: string | null
  readonly discovery: boolean
  /** Absolute path of a PEM file or a JWK Set; null if the keys come from elsewhere. */
  readonly publicKeyPath: string | null
  readonly secretEnv: string | null
  /** The value of the variable `secretEnv`, never empty; null if the keys come from elsewhere. */
  readonly secret: string | null
  /** The accepted audiences; null: `aud` is not checked. */
  readonly audience: readonly string[] | null
  /** The accepted algorithms; null: every algorithm of the key's type. */
  readonly algorithms: readonly JwtAlgorithm[] | null
  readonly leewaySeconds: number
  /** Required values by claim; `true` means that the claim is present and not false. */
  readonly requiredClaims: ReadonlyMap<string, RequiredClaim>
  /** The claim of the tenant; null here and below: the same claim as in a token signed with `JWT_SECRET`. */
  readonly tenant: ClaimSource | null
  readonly user: ClaimSource | null
  readonly role: ClaimSource | null
  readonly scopes: ClaimSource | null
  readonly agent: ClaimSource | null
  /** The provider's roles mapped to those of the application; null: roles are not mapped. */
  readonly roleMap: ReadonlyMap<string, string> | null
}

/** A signature algorithm that tokens can use. */
export type JwtAlgorithm = (typeof HMAC_ALGORITHMS)[number] | (typeof PUBLIC_KEY_ALGORITHMS)[number]

/** Algorithms that sign with a shared secret. */
export const HMAC_ALGORITHMS = ['HS256', 'HS384', 'HS512'] as const

// biome-ignore format: by the kind of key
export const PUBLIC_KEY_ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA',
] as const

/** The source of one session setting. */
export type ClaimSource =
  | { readonly kind: 'constant'; readonly value: string }
  | { readonly kind: 'claim'; readonly claim: ClaimPath }

/** A claim, by its name or by a path. */
export interface ClaimPath {
  /** The text of the path. */
  readonly text: string
  /**
   * Names and indexes from the root of the claims, used if no claim is named exactly `text`; null: only a
   * claim with that name counts.
   */
  readonly steps: readonly (string | number)[] | null
}

/** The required value of a claim. */
export interface RequiredClaim {
  readonly claim: ClaimPath
  readonly value: string | number | boolean
}

/** The settings under `[gateway.cache]`. */
export interface CacheConfig {
  readonly enabled: boolean
  readonly maxEntries: number
  readonly ttlSecs: number
  readonly maxStalenessMs: number
}

/** The settings under `[gateway.openapi]`. */
export interface OpenApiConfig {
  readonly title: string
  /** Markdown; null for the description of the conventions alone. */
  readonly description: string | null
}

/** The settings under `[gateway.console]`. */
export interface ConsoleConfig {
  readonly enabled: boolean
  /** The client that the console is at the identity provider; null: no sign-in with a provider. */
  readonly oidcClientId: string | null
  /** The issuer to sign in with; null: the only one. */
  readonly oidcIssuer: string | null
  readonly oidcScopes: readonly string[]
  /** More parameters of the requests to the provider. */
  readonly oidcParameters: ReadonlyMap<string, string>
}

/** The settings under `[gateway.tracing]`. */
export interface TracingConfig {
  readonly enabled: boolean
  /** The URL that spans are sent to; null uses the tracer provider that the process has registered. */
  readonly otlpEndpoint: string | null
  readonly otlpHeaders: ReadonlyMap<string, string> | null
  readonly serviceName: string
  /** The part of the traces that begin here which is recorded, from 0 to 1. */
  readonly sampleRatio: number
}

/** The settings of a table of `[[gateway.replicas]]`. */
export interface ReplicaConfig {
  /** The connection URL of one host; empty if it is missing, which is reported. */
  readonly url: string
  /** Null: as many as `maxConnections` of the gateway. */
  readonly maxConnections: number | null
}

/** The settings under `[gateway.shared]`. */
export interface SharedConfig {
  /** The store that gateways on several machines share; null for none. */
  readonly url: string | null
  readonly prefix: string
  readonly timeoutMs: number
}

/** The settings under `[access]`. */
export interface AccessConfig {
  readonly enabled: boolean
  /** Absolute path of the access policy file; null only if the policy is not enabled. */
  readonly path: string | null
}

/** The settings under `[postgrest]`. */
export interface PostgrestConfig {
  readonly enabled: boolean
  /** The path below which requests are served; without a slash at its end. */
  readonly prefix: string
  /** At least one schema; requests without a profile header use the first. */
  readonly schemas: readonly string[]
  /** Schemas that follow the request's own in `search_path`. */
  readonly extraSearchPath: readonly string[]
  /** The database role of requests without a token; null: they are refused. */
  readonly anonRole: string | null
  /** The claim with the database role of a token; null: `role`. */
  readonly jwtRoleClaim: ClaimSource | null
  /** The required audience; null: `aud` is not checked. */
  readonly jwtAudience: string | null
  readonly jwtSecretIsBase64: boolean
  /** `schema.function`, called at startup to make settings of this table; null for none. */
  readonly preConfig: string | null
  /** `schema.function`, called in every transaction before the statement; null for none. */
  readonly preRequest: string | null
  /** Limit on the rows of a response; 0 means none. */
  readonly maxRows: number
  /** True if `select` accepts aggregate functions. */
  readonly aggregatesEnabled: boolean
  /** True if clients can ask for execution plans. */
  readonly planEnabled: boolean
  readonly txEnd: TransactionEnd
  /** The settings of a called function that hold for its transaction, by name. */
  readonly hoistedTxSettings: readonly string[]
  /** Settings of every transaction, by name. */
  readonly appSettings: ReadonlyMap<string, string>
  readonly errorVerbosity: 'verbose' | 'minimal'
  /** True if updates and deletions without a filter are refused. */
  readonly safeUpdates: boolean
  /** True if parameters can name an aliased relation by its own name as well. */
  readonly legacyTargetNames: boolean
  /** True if responses have `Server-Timing`. */
  readonly serverTiming: boolean
  /** The name of a request header that responses repeat; null for none. */
  readonly traceHeader: string | null
  /** `schema.function` that answers requests for the root; null: the OpenAPI document. */
  readonly rootSpec: string | null
  /**
   * True if the OpenAPI document contains tables and functions on which the role of a request has no
   * privilege.
   */
  readonly openapiMode: 'follow-privileges' | 'ignore-privileges' | 'disabled'
  readonly openapiSecurityActive: boolean
  /** The address of the API in the OpenAPI document; null: that of the request. */
  readonly openapiServerProxyUri: string | null
  /** Whether clients of realtime-js are served at `/realtime/v1`. */
  readonly realtime: boolean
  /** Broadcasts of one tenant per second; 0 means no limit. */
  readonly realtimeBroadcastsPerSec: number
}

/** How a transaction below `/rest/v1` ends, and whether `Prefer: tx` can override it. */
export type TransactionEnd = 'commit' | 'commit-allow-override' | 'rollback' | 'rollback-allow-override'

/** The settings under `[shapes]`. */
export interface ShapesConfig {
  readonly enabled: boolean
  /** The path of the route. */
  readonly path: string
  readonly longPollMs: number
  readonly allowDeletion: boolean
}

/** The settings under `[mcp]`. */
export interface McpConfig {
  readonly bind: Bind
  /** Host names without port, in lower case. */
  readonly allowedHosts: readonly string[]
}
