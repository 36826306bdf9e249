/** The session settings that identify the caller (docs/guides/your-own-database.md#2-row-level-security). */
import type { Identity } from './identity.ts'

/** The name and value of one session setting. */
export type SessionSetting = readonly [name: string, value: string]

/**
 * The session settings of one transaction. All names are always set, absent values as empty strings, so
 * that no value of an earlier transaction can be read. Scopes are separated by spaces.
 */
export function settingsOf(identity: Identity): readonly SessionSetting[] {
  return [
    ['app.current_tenant_id', identity.tenantId],
    ['app.current_user_id', identity.userId],
    // An agent is a scope within a tenant; without a tenant it has no effect.
    ['app.current_agent_id', identity.tenantId === '' ? '' : identity.agentId],
    ['app.is_super_admin', 'false'],
    ['app.current_role', identity.role],
    ['app.current_scopes', identity.scopes.join(' ')],
    ['request.jwt.claims', identity.claims],
  ]
}
