/** Authentication without a server: the published test vectors, and misbehaving servers. */
import { expect, test } from 'vitest'
import type { Authentication } from '../protocol/backend.ts'
import { Writer } from '../protocol/writer.ts'
import { UNBOUND } from './channel-binding.ts'
import { md5Response } from './md5.ts'
import { AUTH_MODES, type AuthPolicy, chooseMechanism } from './policy.ts'
import { saslprep } from './saslprep.ts'
import { createScram, scramProofs } from './scram.ts'

const SASL: Authentication = { method: 'sasl', mechanisms: ['SCRAM-SHA-256'] }

function challenge(text: string): Authentication {
  return { method: 'saslContinue', data: Buffer.from(text) }
}

/** The body of the response that was written, without type and length. */
function body(writer: Writer): string {
  const bytes = writer.take()
  const text = bytes.toString('utf8', 5)
  writer.recycle()
  return text
}

test('the example of RFC 7677, 3', async () => {
  const authMessage = [
    'n=user,r=rOprNGfwEbeRWgbNEkqO',
    'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
    'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0',
  ].join(',')
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
  const { clientProof, serverSignature } = await scramProofs('pencil', salt, 4096, authMessage)
  expect(clientProof.toString('base64')).toBe('dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=')
  expect(serverSignature.toString('base64')).toBe('6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=')
})

test('in a SCRAM conversation AuthenticationOk is accepted only at the end', async () => {
  const scram = createScram('pencil', 'abc', UNBOUND)
  const writer = new Writer()
  scram.respond(SASL, writer)
  expect(body(writer)).toBe('SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc')
  const serverFirst = 'r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096'
  await scram.respond(challenge(serverFirst), writer)
  expect(body(writer)).toMatch(/^c=biws,r=abcdef,p=[A-Za-z0-9+/]{43}=$/)
  expect(scram.finished).toBe(false)
  const authMessage = `n=,r=abc,${serverFirst},c=biws,r=abcdef`
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
  const { serverSignature } = await scramProofs('pencil', salt, 4096, authMessage)
  const proof = Buffer.from(`v=${serverSignature.toString('base64')}`)
  scram.respond({ method: 'saslFinal', data: proof }, writer)
  expect(scram.finished).toBe(true)
})

test.each([
  ['a nonce that is not ours', 'r=xyzdef,s=W22Z,i=4096', 'did not extend the nonce'],
  ['our nonce and nothing more', 'r=abc,s=W22Z,i=4096', 'did not extend the nonce'],
  ['too few iterations', 'r=abcdef,s=W22Z,i=4095', '4095 iterations; accepted are 4096 to 1000000'],
  ['too many iterations', 'r=abcdef,s=W22Z,i=1000001', '1000001 iterations; accepted are 4096 to 1000000'],
  ['an extension that must be understood', 'm=x,r=abcdef,s=W22Z,i=4096', 'its first message is malformed'],
  ['no salt', 'r=abcdef,s=,i=4096', 'its first message is malformed'],
])('SCRAM rejects %s', async (_what, text, message) => {
  const scram = createScram('pencil', 'abc', UNBOUND)
  const writer = new Writer()
  scram.respond(SASL, writer)
  await expect(scram.respond(challenge(text), writer)).rejects.toThrow(message)
})

test.each(['v=AAAA', 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=', 'e=<script>', ''])(
  'a server that cannot prove itself with "%s" is refused',
  async text => {
    const scram = createScram('pencil', 'abc', UNBOUND)
    const writer = new Writer()
    scram.respond(SASL, writer)
    await scram.respond(challenge('r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096'), writer)
    expect(() => scram.respond({ method: 'saslFinal', data: Buffer.from(text) }, writer)).toThrow(
      'may not be the intended server',
    )
    expect(scram.finished).toBe(false)
  },
)

test('the server’s reason for a rejection is reported', async () => {
  const scram = createScram('pencil', 'abc', UNBOUND)
  const writer = new Writer()
  scram.respond(SASL, writer)
  await scram.respond(challenge('r=abcdef,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096'), writer)
  const final: Authentication = { method: 'saslFinal', data: Buffer.from('e=channel-bindings-dont-match') }
  expect(() => scram.respond(final, writer)).toThrow('it refused the login: channel-bindings-dont-match')
})

test.each<[Authentication, Authentication]>([
  [{ method: 'md5', salt: Buffer.alloc(4) }, { method: 'cleartext' }],
  [
    { method: 'md5', salt: Buffer.alloc(4) },
    { method: 'md5', salt: Buffer.alloc(4) },
  ],
  [{ method: 'cleartext' }, { method: 'cleartext' }],
  [SASL, SASL],
  [SASL, { method: 'cleartext' }],
  [SASL, { method: 'saslFinal', data: Buffer.from('v=AAAA') }],
])('after %o, %o is rejected as out of turn', (first, second) => {
  const policy: AuthPolicy = { ...AUTH_MODES.compat, cleartext: 'always' }
  const mechanism = chooseMechanism(first, policy, credentials, plain)
  const writer = new Writer()
  mechanism.respond(first, writer)
  expect(() => mechanism.respond(second, writer)).toThrow('out of turn')
})

test('md5 gives the same response as psql', () => {
  // md5(md5('secret' || 'app') || '\x01020304')
  expect(md5Response('app', 'secret', Buffer.from([1, 2, 3, 4]))).toBe('md5911f527656472583a006e7727877b33e')
})

test.each([
  ['ASCII stays', 'pa ss', 'pa ss'],
  ['a no-break space becomes a space', 'pa\u00a0ss', 'pa ss'],
  ['a soft hyphen vanishes', 'I\u00adX', 'IX'],
  ['compatibility forms are normalised', '\u2168', 'IX'],
  ['the feminine ordinal too', '\u00aa', 'a'],
  ['what is forbidden stays as it is', 'a\u0007\u2168', 'a\u0007\u2168'],
  ['mixed directions stay as they are', '\u0627\u2168', '\u0627\u2168'],
  ['what Unicode 3.2 did not know stays as it is', '\u{1f600}\u2168', '\u{1f600}\u2168'],
])('a password is prepared by SASLprep: %s', (_what, given, expected) => {
  expect(saslprep(given)).toBe(expected)
})

const credentials = { user: 'app', password: 'secret' }
const plain = { certificate: null, random: (count: number) => Buffer.alloc(count), gss: null }
const encrypted = { ...plain, certificate: Buffer.from('an invalid certificate') }

test('the default accepts SCRAM and rejects other methods, naming the requested and the allowed ones', () => {
  const policy = AUTH_MODES.scram_only
  expect(chooseMechanism(SASL, policy, credentials, plain).name).toBe('SCRAM-SHA-256')
  expect(() => chooseMechanism({ method: 'md5', salt: Buffer.alloc(4) }, policy, credentials, encrypted)).toThrow(
    'the server offers md5; the policy allows SCRAM-SHA-256.',
  )
  expect(() => chooseMechanism({ method: 'cleartext' }, policy, credentials, encrypted)).toThrow(
    'the server offers the cleartext password (password); the policy allows SCRAM-SHA-256.',
  )
  expect(() => chooseMechanism({ method: 'gss' }, policy, credentials, encrypted)).toThrow('the server offers GSSAPI;')
  expect(() => chooseMechanism({ method: 'sasl', mechanisms: ['OAUTHBEARER'] }, policy, credentials, plain)).toThrow(
    'the server offers OAUTHBEARER; the policy allows SCRAM-SHA-256.',
  )
})

test('compat adds md5, and the cleartext password over TLS', () => {
  const policy = AUTH_MODES.compat
  expect(chooseMechanism({ method: 'md5', salt: Buffer.alloc(4) }, policy, credentials, plain).name).toBe('md5')
  expect(chooseMechanism({ method: 'cleartext' }, policy, credentials, encrypted).name).toBe('password')
  expect(() => chooseMechanism({ method: 'cleartext' }, policy, credentials, plain)).toThrow('without TLS')
  expect(chooseMechanism({ method: 'cleartext' }, { ...policy, cleartext: 'always' }, credentials, plain).name).toBe(
    'password',
  )
})

test('a requested password that is not configured is reported', () => {
  expect(() => chooseMechanism(SASL, AUTH_MODES.scram_only, { user: 'app', password: null }, plain)).toThrow(
    'requests a password (SCRAM-SHA-256), but the database URL has none',
  )
})
