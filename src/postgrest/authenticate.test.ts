/** Callers by PostgREST's rules, with the token of their connection. */
import { expect, test } from 'vitest'
import { secretVerifier } from '../../test/support/verifier.ts'
import { mintToken } from '../identity/mint.ts'
import { createAuthenticate } from './authenticate.ts'

const SECRET = 'a secret of 32 bytes, or of more'

test('a token kept for a connection is compared, and its expiry is checked on each request', async () => {
  let nowMs = Date.now()
  const mint = (tenantId: string, expiresInSeconds: number) =>
    mintToken(SECRET, { tenantId, userId: 'u', expiresInSeconds }, nowMs)
  const [short, long] = [await mint('t1', 60), await mint('t2', 600)]
  const tokens = secretVerifier(SECRET, {}, () => nowMs)
  let verified = 0
  const authenticate = createAuthenticate({
    stands: of => tokens.stands(of),
    verify(token) {
      verified += 1
      return tokens.verify(token)
    },
  })
  const connection = {}
  const ask = (token: string, on: object = connection) => authenticate({ authorization: `Bearer ${token}` }, on)
  for (const token of [short, long]) await ask(token)

  expect(await ask(short)).toMatchObject({ tenantId: 't1' })
  const before = verified
  expect(await ask(short)).toMatchObject({ tenantId: 't1' })
  expect(verified).toBe(before)
  expect(await ask(long)).toMatchObject({ tenantId: 't2' })
  expect(await ask(short, {})).toMatchObject({ tenantId: 't1' })
  expect(authenticate({}, connection)).toMatchObject({ source: 'anonymous' })

  await ask(short)
  nowMs += 120_000
  expect(() => ask(short)).toThrow('JWT expired')
  expect(await ask(long)).toMatchObject({ tenantId: 't2' })
})

test('a gateway without keys accepts anonymous callers only', () => {
  const authenticate = createAuthenticate(null)
  expect(authenticate({})).toMatchObject({ source: 'anonymous' })
  expect(authenticate({ authorization: 'Basic YTpi' })).toMatchObject({ source: 'anonymous' })
  expect(() => authenticate({ authorization: 'Bearer a.b.c' })).toThrow('Server lacks JWT secret')
})
