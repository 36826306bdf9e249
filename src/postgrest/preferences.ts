/** The `Prefer` header (RFC 7240) with the preferences that clients of PostgREST send. */
import { invalidPreferences } from './errors.ts'

/** The accepted values of each preference, in the order in which `Preference-Applied` lists them. */
const VALUES = {
  resolution: ['merge-duplicates', 'ignore-duplicates'],
  missing: ['default', 'null'],
  return: ['representation', 'minimal', 'headers-only'],
  count: ['exact', 'planned', 'estimated'],
  tx: ['commit', 'rollback'],
  handling: ['strict', 'lenient'],
  consistency: ['strong'],
} as const

type Values = typeof VALUES
type Name = keyof Values

/** The preferences of a request; null for those that the request does not contain. */
export type PostgrestPreferences = { readonly [N in Name]: Values[N][number] | null } & {
  readonly timezone: string | null
  readonly maxAffected: number | null
  /** In seconds, at least 1; null without `handling=strict`. */
  readonly timeout: number | null
}

const NAMES = Object.keys(VALUES) as readonly Name[]

const NONE: PostgrestPreferences = {
  ...{ resolution: null, missing: null, return: null, count: null, tx: null, handling: null, consistency: null },
  ...{ timezone: null, maxAffected: null, timeout: null },
}

/** The preferences that the configuration permits. */
export interface PreferenceRules {
  /** True if `tx` has an effect. */
  readonly canOverrideTx: boolean
}

/**
 * Parses the header. Of two values of one preference, the first counts.
 * @throws {PostgrestError} for an unknown preference with `handling=strict`.
 */
export function parsePreferences(header: string, rules: PreferenceRules): PostgrestPreferences {
  if (header === '') return NONE
  const items = header.split(',').map(item => item.trim())
  const found: Record<string, string> = {}
  const unknown: string[] = []
  let timezone: string | null = null
  let maxAffected: number | null = null
  let timeout: number | null = null
  for (const item of items) {
    const equals = item.indexOf('=')
    const [name, value] = equals < 0 ? [item, ''] : [item.slice(0, equals), item.slice(equals + 1)]
    if (isName(name) && (VALUES[name] as readonly string[]).includes(value)) found[name] ??= value
    else if (name === 'timezone') timezone ??= value
    else if (name === 'max-affected') maxAffected ??= /^\d{1,15}$/.test(value) ? Number(value) : null
    else if (name === 'timeout') timeout ??= /^0*[1-9]\d*$/.test(value) ? Number(value) : null
    else unknown.push(item)
  }
  if (found.handling === 'strict' && unknown.length > 0) throw invalidPreferences(unknown)
  if (!rules.canOverrideTx) delete found.tx
  return { ...NONE, ...found, timezone, maxAffected, timeout: found.handling === 'strict' ? timeout : null }
}

function isName(name: string): name is Name {
  return (NAMES as readonly string[]).includes(name)
}

/** The name of a preference that a response can report as applied. */
export type AppliedPreference = Name | 'timezone' | 'max-affected' | 'timeout'

/** The value of `Preference-Applied` (RFC 7240, 3); null if no preference was applied. */
export function printApplied(preferences: PostgrestPreferences, applied: readonly AppliedPreference[]): string | null {
  if (preferences === NONE) return null
  const { timezone, maxAffected, timeout, handling } = preferences
  const items: string[] = []
  for (const name of NAMES) {
    const value = preferences[name]
    if (value !== null && applied.includes(name)) items.push(`${name}=${value}`)
  }
  if (timezone !== null && applied.includes('timezone')) items.push(`timezone=${timezone}`)
  if (maxAffected !== null && handling === 'strict' && applied.includes('max-affected')) {
    items.push(`max-affected=${maxAffected}`)
  }
  if (timeout !== null && applied.includes('timeout')) items.push(`timeout=${timeout}`)
  return items.length === 0 ? null : items.join(', ')
}
