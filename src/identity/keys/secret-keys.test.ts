import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { keysOfSecret } from './secret-keys.ts'

test('a text is a secret for HS256', () => {
  expect(keysOfSecret('a secret of at least 32 bytes, as text').map(({ algorithms }) => algorithms)).toEqual([
    ['HS256'],
  ])
})

test('a JWK Set has the keys of its members, and its text is never a secret', () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const rsa = { ...publicKey.export({ format: 'jwk' }), alg: 'RS256', kid: 'r' }
  const oct = { kty: 'oct', k: Buffer.from('a secret').toString('base64url'), alg: 'HS256' }
  const keys = keysOfSecret(JSON.stringify({ keys: [rsa, oct] }))
  expect(keys.map(({ kid, algorithms }) => [kid, algorithms])).toEqual([
    ['r', ['RS256']],
    [null, ['HS256']],
  ])
  expect(keysOfSecret(JSON.stringify(rsa))).toHaveLength(1)
})

test('a JWK that cannot be used is refused', () => {
  expect(() => keysOfSecret('{"kty":"oct"}')).toThrow('its k is missing')
})
