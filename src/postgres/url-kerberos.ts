/** The parameters of a connection URL for GSSAPI, SSPI and Kerberos (docs/guides/database-connections.md#every-parameter). */
import type { GssMethod } from './auth/gss.ts'
import { GSS_PROVIDERS, type GssSettings } from './auth/gss-attempts.ts'
import type { AuthPolicy } from './auth/policy.ts'
import { type Bounds, type Given, oneOf, readBoolean, readInteger } from './url-values.ts'

/** Each switches one question of the server on or off. */
export const GSS_TOGGLES: Readonly<Record<string, GssMethod>> = {
  auth_gssapi: 'gss',
  auth_sspi: 'sspi',
  auth_kerberos: 'kerberos',
}

/** Milliseconds of an hour: whoever waits longer has given up. */
const HOUR_MS = 3_600_000

const NUMBERS = {
  gss_connect_retries: { min: 0, max: 20, default: 2, unit: 'retries' },
  gss_retry_base_ms: { min: 1, max: 60_000, default: 150, unit: 'milliseconds' },
  // The failures are remembered, so their number is bounded.
  gss_circuit_threshold: { min: 1, max: 1_000, default: 8, unit: 'failures' },
  gss_circuit_window_ms: { min: 1, max: HOUR_MS, default: 30_000, unit: 'milliseconds' },
  gss_circuit_cooldown_ms: { min: 1, max: HOUR_MS, default: 15_000, unit: 'milliseconds' },
} as const satisfies Record<string, Bounds>

/** Without meaning unless one of the toggles, or a preset, is on. */
export const GSS_PARAMETERS: readonly string[] = ['gss_provider', 'gss_service', 'gss_target', ...Object.keys(NUMBERS)]

/** PostgreSQL's own name for itself (`krb_srvname` of libpq). */
const SERVICE_DEFAULT = 'postgres'

export interface GssParameters extends Omit<GssSettings, 'target'> {
  readonly service: string
  /** Null: the service at the host of the URL. */
  readonly target: string | null
}

export function readGssMethods(given: Given, preset: readonly GssMethod[], problems: string[]): readonly GssMethod[] {
  return Object.entries(GSS_TOGGLES).flatMap(([name, method]) =>
    (readBoolean(name, given, problems) ?? preset.includes(method)) ? [method] : [],
  )
}

/** Null where the policy allows no Kerberos, and a warning for each parameter that then has no effect. Invalid values are problems either way. */
export function readGss(
  given: Given,
  { gss: methods }: AuthPolicy,
  problems: string[],
  warnings: string[],
): GssParameters | null {
  const parameters = readParameters(given, methods, problems)
  if (methods.length > 0) return parameters
  for (const name of GSS_PARAMETERS) {
    if (given.has(name)) warnings.push(`${name} has no effect because Kerberos is switched off`)
  }
  return null
}

function readParameters(given: Given, methods: readonly GssMethod[], problems: string[]): GssParameters {
  const provider = oneOf('gss_provider', given.get('gss_provider'), GSS_PROVIDERS, problems) ?? 'linux_krb5'
  if (provider === 'linux_krb5' && methods.includes('kerberos')) {
    problems.push(
      'auth_kerberos=true is the exchange that PostgreSQL dropped with 9.3, and gss_provider=linux_krb5 does not speak it; write auth_gssapi=true',
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
      `gss_service is the name of a service, such as ${SERVICE_DEFAULT}; a whole target is gss_target=service@host`,
    )
  }
  return value
}

function readTarget(value: string | undefined, problems: string[]): string | null {
  if (value === undefined) return null
  if (!/^[^\s@/]{1,256}@[^\s@/]{1,256}$/.test(value)) {
    problems.push(`gss_target is service@host, such as ${SERVICE_DEFAULT}@db.example.com`)
  }
  return value
}
