import { expect, test } from 'vitest'
import { secretIdentities } from '../../test/support/verifier.ts'
import { mintToken } from './mint.ts'

const SECRET = 'a secret of 32 bytes, or of more'
const NOW = 1_700_000_000_500

test('a minted token has the requested claims and is accepted', async () => {
  const request = {
    tenantId: 't',
    userId: 'u',
    role: 'r',
    agentId: 'a',
    scopes: ['x:read', 'y'],
    issuer: 'i',
    audience: 'au',
    expiresInSeconds: 3600,
  }
  const token = await mintToken(SECRET, request, NOW)
  const verify = secretIdentities(SECRET, { requireExp: true, jwtIssuer: 'i', jwtAudience: 'au' }, () => NOW)
  expect((await verify(token)).claims).toBe(
    '{"tenant_id":"t","user_id":"u","agent_id":"a","role":"r","scopes":["x:read","y"],"iss":"i","aud":"au",' +
      '"iat":1700000000,"exp":1700003600}',
  )
})

test('omitted claims are left out', async () => {
  const [, payload = ''] = (await mintToken(SECRET, { expiresInSeconds: 60 }, NOW)).split('.')
  expect(Buffer.from(payload, 'base64url').toString()).toBe('{"iat":1700000000,"exp":1700000060}')
})

test('an id made of digits stays a text', async () => {
  const [, payload = ''] = (await mintToken(SECRET, { tenantId: '007', expiresInSeconds: 60 }, NOW)).split('.')
  expect(Buffer.from(payload, 'base64url').toString()).toContain('"tenant_id":"007"')
})
