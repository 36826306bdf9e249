/** Channel binding without a server: the choice of the mechanism and the data that it is bound to. */
import { createHash, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { createAuthority, createCertificate, type Signature } from '../../../test/support/certificates.ts'
import { bindChannel, type ChannelBindingMode } from './channel-binding.ts'
import { serverEndPoint } from './end-point.ts'

const BOTH = ['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256']
const PLAIN = ['SCRAM-SHA-256']

function certificateSignedBy(signature: Signature): Buffer {
  return new X509Certificate(createCertificate(createAuthority('authority', signature), 'server').certificate).raw
}

test.each<[Signature, string | null]>([
  ['ecdsa-sha256', 'sha256'],
  ['ecdsa-sha384', 'sha384'],
  ['rsa-sha256', 'sha256'],
  ['rsa-sha512', 'sha512'],
  ['rsa-pss-sha384', 'sha384'],
  // RFC 5929, 4.1: SHA-256 replaces weak hashes.
  ['rsa-sha1', 'sha256'],
  ['ed25519', null],
])('a certificate signed with %s is hashed with %s', (signature, hash) => {
  const certificate = certificateSignedBy(signature)
  const expected = hash === null ? null : createHash(hash).update(certificate).digest()
  expect(serverEndPoint(certificate)).toEqual(expected)
})

test('bytes that are not a certificate have no end point', () => {
  const certificate = certificateSignedBy('rsa-pss-sha384')
  for (let cut = 0; cut < certificate.length; cut++) serverEndPoint(certificate.subarray(0, cut))
  for (let at = 0; at < certificate.length; at++) {
    const changed = Buffer.from(certificate)
    changed[at] = 0xff
    serverEndPoint(changed)
  }
  expect(serverEndPoint(Buffer.alloc(0))).toBe(null)
  expect(serverEndPoint(Buffer.from('30', 'hex'))).toBe(null)
})

const certificate = certificateSignedBy('ecdsa-sha256')
const unbindable = certificateSignedBy('ed25519')

test.each<[ChannelBindingMode, readonly string[], Buffer | null, string, string]>([
  ['prefer', BOTH, certificate, 'SCRAM-SHA-256-PLUS', 'p=tls-server-end-point,,'],
  ['require', BOTH, certificate, 'SCRAM-SHA-256-PLUS', 'p=tls-server-end-point,,'],
  ['prefer', ['SCRAM-SHA-256-PLUS'], certificate, 'SCRAM-SHA-256-PLUS', 'p=tls-server-end-point,,'],
  // The flag by which the server detects that its offer was hidden.
  ['prefer', PLAIN, certificate, 'SCRAM-SHA-256', 'y,,'],
  ['prefer', PLAIN, null, 'SCRAM-SHA-256', 'n,,'],
  ['prefer', BOTH, unbindable, 'SCRAM-SHA-256', 'n,,'],
  ['disable', BOTH, certificate, 'SCRAM-SHA-256', 'n,,'],
  ['disable', PLAIN, certificate, 'SCRAM-SHA-256', 'n,,'],
])('%s, offered %o', (mode, offered, seen, mechanism, header) => {
  expect(bindChannel(mode, offered, seen)).toMatchObject({ mechanism, header })
})

test.each<[ChannelBindingMode, readonly string[], Buffer | null, string]>([
  ['require', PLAIN, certificate, 'the server offers SCRAM-SHA-256 only;'],
  ['require', PLAIN, null, 'this connection has no TLS'],
  ['require', BOTH, unbindable, 'not defined for the signature'],
  ['prefer', BOTH, null, 'although this connection has no TLS'],
  ['disable', BOTH, null, 'although this connection has no TLS'],
  ['disable', ['SCRAM-SHA-256-PLUS'], certificate, 'cannot be bound to its TLS'],
  ['prefer', ['SCRAM-SHA-256-PLUS'], unbindable, 'cannot be bound to its TLS'],
])('%s, offered %o, is rejected', (mode, offered, seen, message) => {
  expect(() => bindChannel(mode, offered, seen)).toThrow(message)
})
