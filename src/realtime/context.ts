/** Who is alike: callers that no policy of a table can tell apart share what is read for them. */
import type { Identity } from '../identity/identity.ts'
import { settingsOf } from '../identity/settings.ts'

/** Equal texts for callers who have the settings in common; null: all of them. */
export function contextOf(identity: Identity, settings: readonly string[] | null): string {
  const all = settingsOf(identity)
  const values = settings === null ? all : all.filter(([name]) => settings.includes(name.toLowerCase()))
  return JSON.stringify(values.map(([, value]) => value))
}
