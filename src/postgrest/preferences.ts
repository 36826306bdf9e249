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
  /** Null without `handling=strict`, like the timeout. */
  readonly maxAffected: number | null
  /** Whole seconds, at least one. */
  readonly timeoutMs: number | null
}

const NAMES = Object.keys(VALUES) as readonly Name[]

const NONE: PostgrestPreferences = {
  ...{ resolution: null, missing: null, return: null, count: null, tx: null, handling: null, consistency: null },
  ...{ timezone: null, maxAffected: null, timeoutMs: null },
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
  let timeoutMs: number | null = null
  for (const item of items) {
    const equals = item.indexOf('=')
    const [name, value] = equals < 0 ? [item, ''] : [item.slice(0, equals), item.slice(equals + 1)]
    if (isName(name) && (VALUES[name] as readonly string[]).includes(value)) found[name] ??= value
    else if (name === 'timezone') timezone ??= value
    else if (name === 'max-affected') maxAffected ??= /^\d{1,15}$/.test(value) ? Number(value) : null
    else if (name === 'timeout') timeoutMs ??= /^0*[1-9]\d*$/.test(value) ? Number(value) * 1000 : null
    else unknown.push(item)
  }
  if (found.handling === 'strict' && unknown.length > 0) throw invalidPreferences(unknown)
  if (!rules.canOverrideTx) delete found.tx
  const limits = found.handling === 'strict' ? { maxAffected, timeoutMs } : {}
  return { ...NONE, ...found, timezone, ...limits }
}

function isName(name: string): name is Name {
  return (NAMES as readonly string[]).includes(name)
}

/** The name of a preference that only some kinds of requests apply. */
export type AppliedPreference = Exclude<Name, 'tx' | 'handling'> | 'max-affected'

/**
 * The value of `Preference-Applied` (RFC 7240, 3); null if no preference was applied. `applied`: those that
 * apply in addition to the end of the transaction, handling, time zone and timeout.
 */
export function printApplied(preferences: PostgrestPreferences, applied: readonly AppliedPreference[]): string | null {
  if (preferences === NONE) return null
  const { timezone, maxAffected, timeoutMs } = preferences
  const items: string[] = []
  for (const name of NAMES) {
    const value = preferences[name]
    const isApplied = name === 'tx' || name === 'handling' || applied.includes(name)
    if (value !== null && isApplied) items.push(`${name}=${value}`)
  }
  if (timezone !== null) items.push(`timezone=${timezone}`)
  if (maxAffected !== null && applied.includes('max-affected')) items.push(`max-affected=${maxAffected}`)
  if (timeoutMs !== null) items.push(`timeout=${timeoutMs / 1000}`)
  return items.length === 0 ? null : items.join(', ')
}
