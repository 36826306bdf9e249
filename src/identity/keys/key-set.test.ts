/** The keys that are accepted from published sets (RFC 7517, RFC 7518) and from files. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createSelfSigned } from '../../../test/support/certificates.ts'
import { testKey } from '../../../test/support/issuer.ts'
import { parseJwkSet, parseKeyFile } from './key-set.ts'

const rsa = testKey('RS256', 'k')
const { alg: _, ...plain } = rsa.jwk

const read = (...keys: readonly unknown[]) => parseJwkSet(JSON.stringify({ keys }))

test.each([
  [{ ...rsa.jwk }, ['RS256']],
  [{ ...plain }, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
  [{ ...plain, alg: 'PS512' }, ['PS512']],
  [{ ...plain, use: undefined, key_ops: ['verify'] }, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
  [testKey('ES256', 'k').jwk, ['ES256']],
  [testKey('ES384', 'k').jwk, ['ES384']],
  [testKey('ES512', 'k').jwk, ['ES512']],
  [testKey('EdDSA', 'k').jwk, ['EdDSA']],
])('a key is bound to the algorithms of its type: %j', (jwk, algorithms) => {
  expect(read(jwk).keys.map(key => key.algorithms)).toEqual([algorithms])
})

const weakCurve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' })
const short = generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey.export({ format: 'jwk' })
const oneBits = { ...plain, e: 'AQ' }
const offCurve = { ...testKey('ES256', 'k').jwk, x: Buffer.alloc(32, 1).toString('base64url') }

test.each<[string, unknown, RegExp]>([
  ['a secret', { kty: 'oct', k: 'c2VjcmV0' }, /kty/],
  ['another type', { kty: 'constructor' }, /kty/],
  ['for encryption', { ...plain, use: 'enc' }, /use/],
  ['for signing alone', { ...plain, key_ops: ['sign'] }, /key_ops/],
  ['of another algorithm', { ...plain, alg: 'ES256' }, /alg/],
  ['of HMAC', { ...plain, alg: 'HS256' }, /alg/],
  ['of RSA-OAEP', { ...plain, alg: 'RSA-OAEP' }, /alg/],
  ['a kid that is not a text', { ...plain, kid: 1 }, /kid/],
  ['RSA of 1 024 bits', short, /1024 bits/],
  ['an exponent of 1', oneBits, /exponent|read/],
  ['a weak curve', weakCurve, /secp256k1/],
  ['a point that is not on the curve', offCurve, /read/],
  ['no members', { kty: 'RSA' }, /read/],
])('%s is skipped with the reason', (_, jwk, reason) => {
  const { keys, unusable } = read(jwk, rsa.jwk)
  expect(keys).toHaveLength(1)
  expect(unusable).toEqual([expect.stringMatching(reason)])
})

test('of a private key only the public part is read', () => {
  const jwk = { ...rsa.privateKey.export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'RS256' }
  const [mine, published] = [read(jwk).keys[0], read(rsa.jwk).keys[0]]
  expect(mine?.id).toBe(published?.id)
  expect(mine?.material('RS256')).toMatchObject({ type: 'public' })
})

test.each(['', '[]', 'null', '{}', '{"keys":{}}', '{"keys":[1]}', '{"keys":[[]]}', '<html>'])(
  '%j is not a JWK Set',
  text => {
    expect(() => parseJwkSet(text)).toThrow(/^it is not a JWK Set/)
  },
)

test('at most 100 keys are read', () => {
  expect(read(...Array(100).fill({ kty: 'oct' })).unusable).toHaveLength(100)
  expect(() => read(...Array(101).fill({ kty: 'oct' }))).toThrow('it has 101 keys; at most 100 are read')
  expect(() => parseKeyFile(rsa.pem.repeat(101))).toThrow('it has 101 keys; at most 100 are read')
})

test('a file has PEM blocks, certificates or a JWK Set', () => {
  const { certificate } = createSelfSigned('id', ['id.example'])
  expect(parseKeyFile(`# ours\n${rsa.pem}\n${certificate}`).map(({ kid }) => kid)).toEqual([null, null])
  expect(parseKeyFile(JSON.stringify({ keys: [rsa.jwk] })).map(({ kid }) => kid)).toEqual(['k'])
})

test.each<[string, string]>([
  ['', 'it is not a JWK Set, because it is not valid JSON'],
  ['{"keys":[]}', 'it has no key'],
  [
    '-----BEGIN PUBLIC KEY-----\n',
    'block 1 is cut off: expected a line "-----END PUBLIC KEY-----" before the next block',
  ],
  [`${rsa.pem}${rsa.pem.slice(0, 200)}`, 'block 2 is cut off: expected a line "-----END PUBLIC KEY-----"'],
  [`${rsa.pem.slice(0, 200)}\n${rsa.pem}`, 'block 1 is cut off: expected a line "-----END PUBLIC KEY-----"'],
  [`${rsa.pem}${rsa.pem.slice(40)}`, 'block 2 does not begin with a line "-----BEGIN PUBLIC KEY-----"'],
  [`${rsa.pem}-----BEGIN PUBL`, 'block 2 does not begin with a line "-----BEGIN PUBLIC KEY-----"'],
  [rsa.pem.replace('END PUBLIC KEY', 'END CERTIFICATE'), 'block 1 is cut off'],
  [`${rsa.pem}${rsa.pem.replace(/\n\S{20}/, '\n')}`, 'block 2: it cannot be read'],
  [
    createPrivateKey(rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }))
      .export({ type: 'pkcs8', format: 'pem' })
      .toString(),
    'block 1 is a PRIVATE KEY; expected PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE',
  ],
  ['{"keys":[{"kty":"oct"}]}', 'key 1: its kty is not RSA, EC or OKP'],
])('a file without a key, or with an unusable one, is rejected: %.30s', (text, reason) => {
  expect(() => parseKeyFile(text)).toThrow(reason)
})
