/** Which subscriptions see the same, so that one look serves them, and whose turn that look takes. */
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import { contextOf } from './context.ts'
import type { TableRules } from './table-rules.ts'
import type { Watch } from './watch.ts'

/** Who sees the same rows, whatever their filters; and who has the same filter and columns besides. */
export function namesOf(
  watch: Watch,
  rules: TableRules,
  identity: Identity,
): { readonly sees: string; readonly alone: string } {
  const settings = rules.settings === null ? null : [...rules.settings, ...watch.settings]
  // Filters of different tenants are never evaluated together: one that takes long is its own tenant's matter.
  const holder = isShared(watch, rules) ? '' : callerKey(identity)
  const sees = JSON.stringify([watch.rights, contextOf(identity, settings), holder])
  return { sees, alone: JSON.stringify([watch.name, sees]) }
}

/** Without a filter, rows are the same for every tenant where no policy looks at it. */
export function isShared({ hasFilter, settings }: Watch, rules: TableRules): boolean {
  return !hasFilter && rules.settings !== null && [...rules.settings, ...settings].every(name => COMMON.has(name))
}

/** Settings that callers of different tenants can have in common. */
const COMMON: ReadonlySet<string> = new Set(['app.is_super_admin', 'app.current_role', 'app.current_scopes'])

/** Whose turns the looks of a group take; nobody's where everybody sees the same. */
export function ownerOf({ hasFilter, settings }: Watch, rules: TableRules, identity: Identity): string {
  const isEverybodys = rules.settings?.length === 0 && settings.length === 0 && !hasFilter
  return isEverybodys ? '' : callerKey(identity)
}
