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
  /** `JWT_SECRET_PREVIOUS`: accepted after `jwtSecret` while the secret is being rotated. */
  readonly jwtSecretPrevious: string | null
  /** `SVC_DEV_MODE`: headers can stand for a token (docs/reference/limits.md#development-mode). */
  readonly devMode: boolean
  readonly logLevel: LogLevel
  /**
   * Bearer token of `/metrics` and `/health/internal`; null leaves them open
   * (docs/guides/monitoring.md#the-admin-token).
   */
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
  /** By the `kid` of the tokens that they verify; none of them empty. */
  readonly jwtSecrets: ReadonlyMap<string, string>
  /** Identity providers, each with an `issuer` of its own. */
  readonly issuers: readonly IssuerConfig[]
  /** `schema.name`, or the name of a table of the first schema. */
  readonly jwtDenylistTable: string | null
  readonly wsQueryToken: boolean
  /** Where clients reach the gateway; null: where it listens. */
  readonly publicUrl: string | null

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

/**
 * An identity provider: where its keys come from, which of its tokens are accepted, and what their claims
 * mean. Exactly one of `jwksUrl`, `discovery`, `publicKeyPath` and `secretEnv` is given.
 */
export interface IssuerConfig {
  /** The `iss` of its tokens, compared as it is written. */
  readonly issuer: string
  readonly jwksUrl: string | null
  readonly discovery: boolean
  /** Absolute path of a PEM file or a JWK Set. */
  readonly publicKeyPath: string | null
  readonly secretEnv: string | null
  /** What the variable `secretEnv` holds; never empty. */
  readonly secret: string | null
  /** Null: `aud` is not looked at. */
  readonly audience: readonly string[] | null
  /** Null: every algorithm of the kind of key. */
  readonly algorithms: readonly JwtAlgorithm[] | null
  readonly leewaySeconds: number
  /** By the claim; `true` means that it is present and not false. */
  readonly requiredClaims: ReadonlyMap<string, RequiredClaim>
  /** Null: the same claims as of a token that `JWT_SECRET` signed. */
  readonly tenant: ClaimSource | null
  readonly user: ClaimSource | null
  readonly role: ClaimSource | null
  readonly scopes: ClaimSource | null
  readonly agent: ClaimSource | null
  /** Null: roles stay as they are. */
  readonly roleMap: ReadonlyMap<string, string> | null
}

export type JwtAlgorithm = (typeof HMAC_ALGORITHMS)[number] | (typeof PUBLIC_KEY_ALGORITHMS)[number]

export const HMAC_ALGORITHMS = ['HS256', 'HS384', 'HS512'] as const

// biome-ignore format: by the kind of key
export const PUBLIC_KEY_ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA',
] as const

/** Where the value of a setting comes from. */
export type ClaimSource =
  | { readonly kind: 'constant'; readonly value: string }
  | { readonly kind: 'claim'; readonly claim: ClaimPath }

export interface ClaimPath {
  /** As written. */
  readonly text: string
  /**
   * Names and indexes from the root of the claims, for when no claim is called exactly `text`; null: nothing
   * else is looked for.
   */
  readonly steps: readonly (string | number)[] | null
}

export interface RequiredClaim {
  readonly claim: ClaimPath
  readonly value: string | number | boolean
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
