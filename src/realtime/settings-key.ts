/**
 * Groups callers that the policies of a table cannot distinguish, so that they share what is read for them.
 */
import type { Identity } from '../identity/identity.ts'
import { settingsOf } from '../identity/settings.ts'

/**
 * A text that is equal for callers whose values of `settings` are equal; null compares all session settings.
 */
export function settingsKey(identity: Identity, settings: readonly string[] | null): string {
  const all = settingsOf(identity)
  const values = settings === null ? all : all.filter(([name]) => settings.includes(name.toLowerCase()))
  return JSON.stringify(values.map(([, value]) => value))
}
