/** Settings of `[postgrest]` that the database stores under the names of PostgREST. */
import type { Config, PostgrestConfig } from './config.ts'
import { ConfigError, type Problem } from './problem.ts'
import { POSTGREST, type Setting } from './settings.ts'
import { parseWritten, problemOfWritten, type WrittenValue } from './written.ts'

/** A setting of PostgREST, and how its text becomes a value of the field. */
interface StoredSetting {
  readonly field: keyof PostgrestConfig
  readonly read?: (text: string) => unknown
}

const STORED: Readonly<Record<string, StoredSetting>> = {
  db_aggregates_enabled: { field: 'aggregatesEnabled' },
  db_anon_role: { field: 'anonRole' },
  db_extra_search_path: { field: 'extraSearchPath', read: namesIn },
  db_hoisted_tx_settings: { field: 'hoistedTxSettings', read: namesIn },
  db_max_rows: { field: 'maxRows' },
  db_plan_enabled: { field: 'planEnabled' },
  db_pre_request: { field: 'preRequest' },
  db_root_spec: { field: 'rootSpec' },
  db_schemas: { field: 'schemas', read: namesIn },
  db_tx_end: { field: 'txEnd' },
  jwt_aud: { field: 'jwtAudience' },
  jwt_role_claim_key: { field: 'jwtRoleClaim', read: claimPathIn },
  jwt_secret_is_base64: { field: 'jwtSecretIsBase64' },
  openapi_mode: { field: 'openapiMode' },
  openapi_security_active: { field: 'openapiSecurityActive' },
  openapi_server_proxy_uri: { field: 'openapiServerProxyUri' },
  server_timing_enabled: { field: 'serverTiming' },
  server_trace_header: { field: 'traceHeader' },
}

/** Settings of PostgREST that the gateway reads from elsewhere, and from where. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  jwt_secret: 'JWT_SECRET',
  log_level: 'SVC_LOG_LEVEL',
  server_cors_allowed_origins: 'cors_allowed_origins under [gateway]',
}

/** The names of all settings to read. */
export const STORED_SETTING_NAMES: readonly string[] = [...Object.keys(STORED), ...Object.keys(ELSEWHERE)].map(
  name => `pgrst.${name}`,
)

/**
 * Replaces settings of `[postgrest]` by those that the database stores, by name.
 * @throws {ConfigError} with all problems.
 */
export function withStoredSettings(config: Config, stored: ReadonlyMap<string, string>): Config {
  const problems: Problem[] = []
  const changed: Partial<Record<keyof PostgrestConfig, unknown>> = {}
  for (const [name, text] of stored) {
    const written: WrittenValue = {
      ...{ source: 'database', key: name, value: text, original: text, folder: '', lineOf: () => null },
    }
    const own = name.replace(/^pgrst\./, '')
    const elsewhere = ELSEWHERE[own]
    if (elsewhere !== undefined) {
      problems.push(problemOfWritten(written, `is not read from the database; set ${elsewhere}`))
      continue
    }
    const found = STORED[own]
    if (found === undefined) continue
    const setting = POSTGREST[found.field] as Setting<unknown>
    const value = found.read?.(text) ?? setting.kind.fromText?.(text) ?? text
    const parsed = parseWritten({ ...written, value }, setting, problem => problems.push(problem))
    if (parsed !== null) changed[found.field] = parsed
  }
  const postgrest: PostgrestConfig = Object.freeze({ ...config.postgrest, ...changed } as PostgrestConfig)
  if (postgrest.realtime && postgrest.preRequest !== null) {
    const message = 'cannot be combined with postgrest.realtime, whose subscriptions do not call it'
    problems.push({ source: 'database', line: null, key: 'pgrst.db_pre_request', message, nearest: null })
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze({ ...config, postgrest })
}

/** Names with commas between them. */
function namesIn(text: string): readonly string[] {
  return text
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
}

/**
 * PostgREST writes a dot before the first name, and quotes names without brackets: `."https://a.b"[0]`. From
 * version 16, the path is a JSON Path (RFC 9535): `$['https://a.b'][0]`.
 */
function claimPathIn(text: string): string {
  return text
    .replace(/\['((?:[^'\\]|\\.)*)'\]/g, (_, name: string) => `[${JSON.stringify(name.replace(/\\(.)/g, '$1'))}]`)
    .replace(/\["(?:[^"\\]|\\.)*"\]|\.?("(?:[^"\\]|\\.)*")/g, (all, bare?: string) =>
      bare === undefined ? all : `[${bare}]`,
    )
    .replace(/^\./, '')
    .replace(/^\[/, '$[')
}
