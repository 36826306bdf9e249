/** Certificates for tests: an authority and what it signs, made here so that nothing has to be installed (RFC 5280, DER by hand). */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'

export interface Certificate {
  readonly name: string
  readonly certificate: string
  readonly key: string
  readonly keyObject: KeyObject
}

const OID = {
  commonName: '550403',
  ecdsaWithSha256: '2a8648ce3d040302',
  basicConstraints: '551d13',
  subjectAlternativeName: '551d11',
} as const

export function createAuthority(name: string): Certificate {
  const isAuthority = der(0x30, der(0x01, Buffer.from([0xff])))
  return issue(name, null, [extension(OID.basicConstraints, isAuthority)])
}

/** For a server under these host names and addresses, or for a client whose role is `name`. */
export function createCertificate(authority: Certificate, name: string, hosts: readonly string[] = []): Certificate {
  const names = hosts.map(host =>
    isIP(host) === 4 ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host)),
  )
  return issue(name, authority, hosts.length === 0 ? [] : [extension(OID.subjectAlternativeName, der(0x30, ...names))])
}

function issue(name: string, issuer: Certificate | null, extensions: readonly Buffer[]): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = der(0x30, oid(OID.ecdsaWithSha256))
  const serial = der(0x02, Buffer.from([++serials]))
  const toBeSigned = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    serial,
    algorithm,
    distinguishedName(issuer?.name ?? name),
    der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z'))),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    ...(extensions.length === 0 ? [] : [der(0xa3, der(0x30, ...extensions))]),
  )
  const signature = sign('sha256', toBeSigned, issuer?.keyObject ?? privateKey)
  const whole = der(0x30, toBeSigned, algorithm, der(0x03, Buffer.from([0]), signature))
  return {
    name,
    certificate: `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replace(/.{64}/g, '$&\n').trim()}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    keyObject: privateKey,
  }
}

let serials = 0

function distinguishedName(name: string): Buffer {
  return der(0x30, der(0x31, der(0x30, oid(OID.commonName), der(0x0c, Buffer.from(name)))))
}

function extension(id: string, value: Buffer): Buffer {
  return der(0x30, oid(id), der(0x04, value))
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
