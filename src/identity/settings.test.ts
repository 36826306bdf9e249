import { expect, test } from 'vitest'
import { ANONYMOUS } from './authenticate.ts'
import type { Identity } from './identity.ts'
import { settingsOf } from './settings.ts'

const IDENTITY: Identity = {
  source: 'jwt',
  tenantId: 't1',
  userId: 'u1',
  agentId: 'a1',
  role: 'editor',
  scopes: ['orders:read', 'orders:write'],
  claims: '{"tenant_id":"t1"}',
  expiresAt: null,
}

test('a caller becomes the settings of docs/guides/your-own-database.md#2-row-level-security', () => {
  expect(settingsOf(IDENTITY)).toEqual([
    ['app.current_tenant_id', 't1'],
    ['app.current_user_id', 'u1'],
    ['app.current_agent_id', 'a1'],
    ['app.is_super_admin', 'false'],
    ['app.current_role', 'editor'],
    ['app.current_scopes', 'orders:read orders:write'],
    ['request.jwt.claims', '{"tenant_id":"t1"}'],
  ])
})

test('an agent without a tenant has no effect', () => {
  expect(Object.fromEntries(settingsOf({ ...IDENTITY, tenantId: '' }))['app.current_agent_id']).toBe('')
})

test('every caller sets the same names', () => {
  const names = settingsOf(IDENTITY).map(([name]) => name)
  expect(settingsOf(ANONYMOUS).map(([name]) => name)).toEqual(names)
  expect(settingsOf(ANONYMOUS).map(([, value]) => value)).toEqual(['', '', '', 'false', 'anonymous', '', '{}'])
})
