import { expect, test } from 'vitest'
import {
  ACCESS,
  CACHE,
  CONSOLE,
  FEATURES,
  GATEWAY,
  ISSUER,
  MCP,
  OPENAPI,
  POSTGREST,
  PROCESS,
  REPLICA,
  ROLE_OVERRIDE,
  SETTINGS,
  type Setting,
  SHARED,
  TABLE,
  TRACING,
} from './settings.ts'

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

test.each([
  ['gateway.', PROCESS],
  ['gateway.', GATEWAY],
  ['gateway.replicas.<n>.', REPLICA],
  ['gateway.issuers.<n>.', ISSUER],
  ['gateway.console.', CONSOLE],
  ['gateway.tracing.', TRACING],
  ['gateway.shared.', SHARED],
  ['gateway.openapi.', OPENAPI],
  ['gateway.cache.', CACHE],
  ['gateway.role_overrides.<role>.', ROLE_OVERRIDE],
  ['gateway.tables.<name>.', TABLE],
  ['access.', ACCESS],
  ['postgrest.', POSTGREST],
  ['mcp.', MCP],
])('a key under %s is the name of its field in snake case', (prefix, table) => {
  for (const [field, setting] of Object.entries(table) as [string, Setting<unknown>][]) {
    if (setting.key !== null) expect(setting.key).toBe(`${prefix}${snakeCase(field)}`)
  }
})

test('the table has exactly these keys', () => {
  const gateway = `
    accepted_findings acquire_timeout_ms admin_token allow_list_path bind cors_allowed_origins database_url
    default_limit drain_timeout_ms events_path explain_endpoint explain_max_cost explain_max_rows exposed_views
    feed_max_connections feed_url gss_module jwt_audience jwt_denylist_table jwt_issuer jwt_secrets log_level
    idempotency_max_response_bytes idempotency_ttl_secs tenant_max_idempotency_keys
    max_batch_rows max_batch_key_sets max_batch_operations max_batch_references max_inspect_steps
    max_import_bytes max_imports tenant_max_imports import_timeout_ms max_built_value_bytes
    max_collected_bytes max_copied_values max_connections
    max_expand_depth max_filters
    max_in_values max_joins max_numeric_products max_contained_elements
    max_expressions max_parameters max_pattern_bytes max_relations max_result_bytes
    max_result_rows max_series_rows max_repeated_characters max_repetitions
    max_query_parameters max_text_form_bytes policy_path prepared_statements public_url session_settings
    rate_limit_burst rate_limit_rate realtime_database_url replica_max_lag_ms
    require_auth require_exp rpc_allowlist_path
    rpc_require_schema_qualified rpc_signature_check schema_poll_secs schemas search_language
    statement_timeout_ms strict tenant_column tenant_max_concurrent tenant_max_connections tenant_max_streams
    stream_min_bytes_per_sec stream_min_rate_window_secs trusted_proxies wal_keep_mb
    webhook_allow workers ws_query_token
    max_client_connections address_max_client_connections max_inflight_body_bytes
    address_max_inflight_body_bytes allowed_hosts compress_min_bytes address_max_sockets tenant_max_sockets
    tenant_max_subscriptions tenant_max_subscription_groups tenant_max_waiting_shapes tenant_max_live_queries
    max_live_queries max_sockets
    socket_max_subscriptions socket_max_live_queries tenant_max_unrouted_queries_per_sec
    unrouted_resync_interval_ms connection_max_concurrent connection_max_pipelined large_body_bytes
    connection_max_unsent_bytes tenant_max_unsent_bytes max_unsent_bytes
  `
  const keys = SETTINGS.flatMap(({ key }) => key ?? [])
  expect(keys.filter(key => /^gateway\.[^.]+$/.test(key)).toSorted()).toEqual(
    gateway
      .trim()
      .split(/\s+/)
      .map(name => `gateway.${name}`)
      .toSorted(),
  )
  expect(keys.filter(key => !/^gateway\.[^.]+$/.test(key))).toEqual([
    'gateway.replicas.<n>.url',
    'gateway.replicas.<n>.max_connections',
    'gateway.issuers.<n>.issuer',
    'gateway.issuers.<n>.jwks_url',
    'gateway.issuers.<n>.discovery',
    'gateway.issuers.<n>.public_key_path',
    'gateway.issuers.<n>.secret_env',
    'gateway.issuers.<n>.audience',
    'gateway.issuers.<n>.algorithms',
    'gateway.issuers.<n>.leeway_seconds',
    'gateway.issuers.<n>.required_claims',
    'gateway.issuers.<n>.tenant',
    'gateway.issuers.<n>.user',
    'gateway.issuers.<n>.role',
    'gateway.issuers.<n>.scopes',
    'gateway.issuers.<n>.agent',
    'gateway.issuers.<n>.role_map',
    'gateway.console.enabled',
    'gateway.console.oidc_client_id',
    'gateway.console.oidc_issuer',
    'gateway.console.oidc_scopes',
    'gateway.console.oidc_parameters',
    'gateway.tracing.enabled',
    'gateway.tracing.otlp_endpoint',
    'gateway.tracing.otlp_headers',
    'gateway.tracing.service_name',
    'gateway.tracing.sample_ratio',
    'gateway.shared.url',
    'gateway.shared.prefix',
    'gateway.shared.timeout_ms',
    'gateway.openapi.title',
    'gateway.openapi.description',
    'gateway.cache.enabled',
    'gateway.cache.max_entries',
    'gateway.cache.ttl_secs',
    'gateway.cache.max_staleness_ms',
    'gateway.role_overrides.<role>.explain_max_cost',
    'gateway.role_overrides.<role>.explain_max_rows',
    'gateway.tables.<name>.version_column',
    'gateway.tables.<name>.require_if_match',
    'gateway.tables.<name>.soft_delete',
    'gateway.tables.<name>.updated_at',
    'gateway.tables.<name>.created_by',
    'access.enabled',
    'access.path',
    'postgrest.enabled',
    'postgrest.prefix',
    'postgrest.schemas',
    'postgrest.extra_search_path',
    'postgrest.anon_role',
    'postgrest.jwt_role_claim',
    'postgrest.jwt_audience',
    'postgrest.jwt_secret_is_base64',
    'postgrest.pre_request',
    'postgrest.pre_config',
    'postgrest.max_rows',
    'postgrest.aggregates_enabled',
    'postgrest.plan_enabled',
    'postgrest.tx_end',
    'postgrest.hoisted_tx_settings',
    'postgrest.app_settings',
    'postgrest.error_verbosity',
    'postgrest.safe_updates',
    'postgrest.legacy_target_names',
    'postgrest.server_timing',
    'postgrest.trace_header',
    'postgrest.root_spec',
    'postgrest.openapi_mode',
    'postgrest.openapi_security_active',
    'postgrest.openapi_server_proxy_uri',
    'postgrest.realtime',
    'postgrest.realtime_broadcasts_per_sec',
    'shapes.enabled',
    'shapes.path',
    'shapes.long_poll_ms',
    'shapes.allow_deletion',
    'mcp.bind',
    'mcp.allowed_hosts',
  ])
})

test('keys and environment variables are each used once', () => {
  const names = SETTINGS.flatMap(({ key, alias, environment }) => [key, alias, environment]).filter(
    name => typeof name === 'string',
  )
  expect(new Set(names).size).toBe(names.length)
})

test('defaults are valid values of their kind', () => {
  for (const setting of SETTINGS) {
    const { kind, default: value, key } = setting
    if (value === null || value instanceof Map || setting === ISSUER.issuer) continue
    const written = typeof value === 'object' && 'host' in value ? '127.0.0.1:1' : value
    expect([key, () => kind.parse(written, '/')]).toEqual([
      key,
      expect.toSatisfy((parse: () => unknown) => parse() !== undefined),
    ])
  }
})

test('every feature has a setting', () => {
  const used = new Set(SETTINGS.map(({ feature }) => feature))
  expect([...used].toSorted()).toEqual(Object.keys(FEATURES).toSorted())
})

test('defaults allow 300 sockets and 5 000 connections per address, and fewer than 8 000 connections', () => {
  expect(GATEWAY.addressMaxSockets.default).toBeGreaterThanOrEqual(300)
  expect(GATEWAY.addressMaxClientConnections.default).toBeGreaterThanOrEqual(5_000)
  expect(GATEWAY.maxClientConnections.default).toBeLessThan(8_000)
  expect(GATEWAY.maxClientConnections.default).toBeGreaterThan(GATEWAY.addressMaxClientConnections.default)
  expect(GATEWAY.maxSockets.default).toBeLessThan(GATEWAY.maxClientConnections.default)
})
