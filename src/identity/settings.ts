/** The session settings that say who the caller is (docs/guides/your-own-database.md#2-row-level-security). */
import type { Identity } from './identity.ts'

export type SessionSetting = readonly [name: string, value: string]

/**
 * The settings of one transaction. Always all of them, empty where there is nothing to say, so that nothing an
 * earlier transaction said can be read. Scopes are told with spaces between.
 */
export function settingsOf(identity: Identity): readonly SessionSetting[] {
  return [
    ['app.current_tenant_id', identity.tenantId],
    ['app.current_user_id', identity.userId],
    // A scope within the tenant: without a tenant it scopes nothing.
    ['app.current_agent_id', identity.tenantId === '' ? '' : identity.agentId],
    ['app.is_super_admin', 'false'],
    ['app.current_role', identity.role],
    ['app.current_scopes', identity.scopes.join(' ')],
    ['request.jwt.claims', identity.claims],
  ]
}
