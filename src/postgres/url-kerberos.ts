/**
 * Parameters of a connection URL for GSSAPI, SSPI and Kerberos
 * (docs/guides/database-connections.md#parameters).
 */
import type { GssMethod } from './auth/gss.ts'
import { GSS_PROVIDERS, type GssSettings } from './auth/gss-attempts.ts'
import type { AuthPolicy } from './auth/policy.ts'
import { type NumberBounds, oneOf, readBoolean, readInteger, type UrlParameters } from './url-values.ts'

/** Parameters that allow one authentication request of the server each. */
export const GSS_TOGGLES: Readonly<Record<string, GssMethod>> = {
  auth_gssapi: 'gss',
  auth_sspi: 'sspi',
  auth_kerberos: 'kerberos',
}

/** Upper limit on durations: an hour. */
const HOUR_MS = 3_600_000

const NUMBERS = {
  gss_connect_retries: { min: 0, max: 20, default: 2, unit: 'retries' },
  gss_retry_base_ms: { min: 1, max: 60_000, default: 150, unit: 'milliseconds' },
  // Failures are stored, so their number is limited.
  gss_circuit_threshold: { min: 1, max: 1_000, default: 8, unit: 'failures' },
  gss_circuit_window_ms: { min: 1, max: HOUR_MS, default: 30_000, unit: 'milliseconds' },
  gss_circuit_cooldown_ms: { min: 1, max: HOUR_MS, default: 15_000, unit: 'milliseconds' },
} as const satisfies Record<string, NumberBounds>

/** Without effect unless one of the toggles, or a preset, is on. */
export const GSS_PARAMETERS: readonly string[] = ['gss_provider', 'gss_service', 'gss_target', ...Object.keys(NUMBERS)]

/** PostgreSQL's default service name (`krb_srvname` of libpq). */
const SERVICE_DEFAULT = 'postgres'

export interface GssParameters extends Omit<GssSettings, 'target'> {
  readonly service: string
  /** Null: the service at the host of the URL. */
  readonly target: string | null
}

export function readGssMethods(
  given: UrlParameters,
  preset: readonly GssMethod[],
  problems: string[],
): readonly GssMethod[] {
  return Object.entries(GSS_TOGGLES).flatMap(([name, method]) =>
    (readBoolean(name, given, problems) ?? preset.includes(method)) ? [method] : [],
  )
}

/**
 * Reads the Kerberos settings. Null if the policy does not allow Kerberos, with a warning for each parameter
 * that then has no effect. Invalid values are problems in any case.
 */
export function readGss(
  given: UrlParameters,
  { gss: methods }: AuthPolicy,
  problems: string[],
  warnings: string[],
): GssParameters | null {
  const parameters = readParameters(given, methods, problems)
  if (methods.length > 0) return parameters
  for (const name of GSS_PARAMETERS) {
    if (given.has(name)) warnings.push(`${name} has no effect because Kerberos is not enabled`)
  }
  return null
}

function readParameters(given: UrlParameters, methods: readonly GssMethod[], problems: string[]): GssParameters {
  const provider = oneOf('gss_provider', given.get('gss_provider'), GSS_PROVIDERS, problems) ?? 'linux_krb5'
  if (provider === 'linux_krb5' && methods.includes('kerberos')) {
    problems.push(
      'auth_kerberos=true selects a protocol that PostgreSQL removed in 9.3 and that ' +
        'gss_provider=linux_krb5 does not support; use auth_gssapi=true',
    )
  }
  return {
    provider,
    service: readService(given.get('gss_service'), problems),
    target: readTarget(given.get('gss_target'), problems),
    retries: readInteger('gss_connect_retries', given, NUMBERS.gss_connect_retries, problems),
    retryBaseMs: readInteger('gss_retry_base_ms', given, NUMBERS.gss_retry_base_ms, problems),
    circuit: {
      threshold: readInteger('gss_circuit_threshold', given, NUMBERS.gss_circuit_threshold, problems),
      windowMs: readInteger('gss_circuit_window_ms', given, NUMBERS.gss_circuit_window_ms, problems),
      cooldownMs: readInteger('gss_circuit_cooldown_ms', given, NUMBERS.gss_circuit_cooldown_ms, problems),
    },
  }
}

function readService(value: string | undefined, problems: string[]): string {
  if (value === undefined) return SERVICE_DEFAULT
  if (!/^[^\s@/]{1,256}$/.test(value)) {
    problems.push(
      `gss_service must be the name of a service, such as ${SERVICE_DEFAULT}; for ` +
        'a complete target use gss_target=service@host',
    )
  }
  return value
}

function readTarget(value: string | undefined, problems: string[]): string | null {
  if (value === undefined) return null
  if (!/^[^\s@/]{1,256}@[^\s@/]{1,256}$/.test(value)) {
    problems.push(`gss_target must be service@host, such as ${SERVICE_DEFAULT}@db.example.com`)
  }
  return value
}
