import { expect, test } from 'vitest'
import { parseClaimPath } from './claim-path.ts'

test.each([
  ['tenant_id', ['tenant_id']],
  ['app_metadata.tenant_id', ['app_metadata', 'tenant_id']],
  ['realm_access.roles[0]', ['realm_access', 'roles', 0]],
  ['$.resource_access.api.roles', ['resource_access', 'api', 'roles']],
  ['$["my claim"][1].x', ['my claim', 1, 'x']],
  ['resource_access["my.api"].roles', ['resource_access', 'my.api', 'roles']],
  ['cognito:groups[0]', ['cognito:groups', 0]],
  ['custom:tenant', ['custom:tenant']],
  ['a["\\"]"].b', ['a', '"]', 'b']],
  ['$', ['$']],
  ['__proto__.x', ['__proto__', 'x']],
])('%s is parsed into its steps', (text, steps) => {
  expect(parseClaimPath(text)).toEqual({ text, steps })
})

test.each(['https://example.com/tenant.id[0]', 'urn:example:tenant.id', 'HTTP://x/y.z'])(
  '%s is a URI, not a path',
  text => {
    expect(parseClaimPath(text)).toEqual({ text, steps: null })
  },
)

test.each([
  '',
  '.',
  'a.',
  '.a',
  'a..b',
  'a[',
  'a[]',
  'a[-1]',
  'a[x]',
  'a]',
  '[0]',
  '$.',
  'a["x]',
  'a[12345]',
  'a["\\x"]',
  'a\0b',
])('%j is not a claim path', text => {
  expect(parseClaimPath(text)).toBeNull()
})

test('a path has at most 16 steps and 256 characters', () => {
  expect(parseClaimPath(Array(16).fill('a').join('.'))).not.toBeNull()
  expect(parseClaimPath(Array(17).fill('a').join('.'))).toBeNull()
  expect(parseClaimPath('a'.repeat(256))).not.toBeNull()
  expect(parseClaimPath('a'.repeat(257))).toBeNull()
})
