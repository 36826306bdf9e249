/**
 * Determines which subscriptions share a visibility group, and which owner's share of queries the group uses.
 */
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import { settingsKey } from './settings-key.ts'
import type { SubscriptionPlan } from './subscription-plan.ts'
import type { TableRules } from './table-rules.ts'

/**
 * The keys of a subscription: callers who see the same rows whatever their filters, and those who also have
 * the same filter and columns.
 */
export function groupKeysOf(
  watch: SubscriptionPlan,
  rules: TableRules,
  identity: Identity,
): { readonly visibility: string; readonly alone: string } {
  const settings = rules.settings === null ? null : [...rules.settings, ...watch.settings]
  // Filters of different tenants are never evaluated together, so a slow one affects only its own tenant.
  const holder = isShared(watch, rules) ? '' : callerKey(identity)
  const sees = JSON.stringify([watch.rights, settingsKey(identity, settings), holder])
  return { visibility: sees, alone: JSON.stringify([watch.name, sees]) }
}

/**
 * True if rows are the same for every tenant: there is no filter, and no policy reads a setting that
 * identifies the caller.
 */
export function isShared({ hasFilter, settings }: SubscriptionPlan, rules: TableRules): boolean {
  return !hasFilter && rules.settings !== null && [...rules.settings, ...settings].every(name => COMMON.has(name))
}

/** Settings that callers of different tenants can have in common. */
const COMMON: ReadonlySet<string> = new Set(['app.is_super_admin', 'app.current_role', 'app.current_scopes'])

/** The database role that the session of a caller takes; null for the role of the connection. */
export function databaseRoleOf({ session }: Identity): string | null {
  return session?.settings.find(([name]) => name === 'role')?.[1] ?? null
}

/** The owner whose share of queries the group uses; empty if all callers see the same rows. */
export function ownerOf({ hasFilter, settings }: SubscriptionPlan, rules: TableRules, identity: Identity): string {
  const isCommon = rules.settings?.length === 0 && settings.length === 0 && !hasFilter
  return isCommon ? '' : callerKey(identity)
}
