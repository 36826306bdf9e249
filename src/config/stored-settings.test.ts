import { expect, test } from 'vitest'
import { loadConfig } from './load.ts'
import { withStoredSettings } from './stored-settings.ts'

const { config } = loadConfig({ environment: {}, workingDirectory: import.meta.dirname })

function stored(settings: Readonly<Record<string, string>>) {
  return withStoredSettings(config, new Map(Object.entries(settings))).postgrest
}

test.each([
  ['.role', ['role']],
  ['.user.roles[0]', ['user', 'roles', 0]],
  ['."https://shop.example/role"', ['https://shop.example/role']],
  ['."a.b"."c"', ['a.b', 'c']],
  ['$.user.roles[0]', ['user', 'roles', 0]],
  ['$["a.b"]["c"]', ['a.b', 'c']],
  ["$['it\\'s'].role", ["it's", 'role']],
])('pgrst.jwt_role_claim_key = %s', (text, steps) => {
  expect(stored({ 'pgrst.jwt_role_claim_key': text }).jwtRoleClaim).toMatchObject({ kind: 'claim', claim: { steps } })
})

test('settings of other names change nothing, and all problems are reported together', () => {
  expect(stored({ 'pgrst.db_pool': '10' })).toEqual(config.postgrest)
  expect(() => stored({ 'pgrst.db_tx_end': 'later', 'pgrst.db_plan_enabled': 'perhaps' })).toThrow(
    /pgrst.db_tx_end: expected .*\n.*pgrst.db_plan_enabled: expected/,
  )
})
