import { expect, test } from 'vitest'
import { createAdminCheck } from './admin.ts'

test('only the exact token as a bearer token is accepted', () => {
  const isAdmin = createAdminCheck('s3cret')
  for (const authorization of ['Bearer s3cret', 'bearer s3cret', 'BEARER  s3cret']) {
    expect(isAdmin({ authorization }), authorization).toBe(true)
  }
  for (const authorization of [
    'Bearer s3cre',
    'Bearer S3cret',
    'Bearer s3cret ',
    'Bearers3cret',
    's3cret',
    'Basic s3cret',
    '',
  ]) {
    expect(isAdmin({ authorization }), authorization).toBe(false)
  }
  expect(isAdmin({})).toBe(false)
})

test.each([null, ''])('no request passes if no admin token is configured: %j', adminToken => {
  const isAdmin = createAdminCheck(adminToken)
  for (const authorization of ['Bearer ', 'Bearer null', 'Bearer', '']) {
    expect(isAdmin({ authorization }), authorization).toBe(false)
  }
})
