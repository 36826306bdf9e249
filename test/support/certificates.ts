/**
 * Certificates for tests: an authority and the certificates it signs. Written as DER by hand (RFC 5280), so
 * that no program has to be installed.
 */
import { constants, generateKeyPairSync, type KeyObject, type KeyPairKeyObjectResult, sign } from 'node:crypto'
import { isIP } from 'node:net'

export interface Certificate {
  readonly name: string
  readonly certificate: string
  readonly key: string
  readonly keyObject: KeyObject
  /** The algorithm of the signing key. */
  readonly signature: Signature
}

const OID = {
  commonName: '550403',
  basicConstraints: '551d13',
  subjectAlternativeName: '551d11',
} as const

const NULL = Buffer.from([0x05, 0x00])

/** How an authority signs: its key, the AlgorithmIdentifier of its signatures, and the signing function. */
const SIGNATURES: Readonly<Record<Signature, SignatureKind>> = {
  'ecdsa-sha256': { keys: 'elliptic', algorithm: der(0x30, oid('2a8648ce3d040302')), hash: 'sha256' },
  'ecdsa-sha384': { keys: 'elliptic', algorithm: der(0x30, oid('2a8648ce3d040303')), hash: 'sha384' },
  'rsa-sha1': { keys: 'rsa', algorithm: der(0x30, oid('2a864886f70d010105'), NULL), hash: 'sha1' },
  'rsa-sha256': { keys: 'rsa', algorithm: der(0x30, oid('2a864886f70d01010b'), NULL), hash: 'sha256' },
  'rsa-sha512': { keys: 'rsa', algorithm: der(0x30, oid('2a864886f70d01010d'), NULL), hash: 'sha512' },
  'rsa-pss-sha384': { keys: 'rsa', algorithm: pss('608648016503040202', 48), hash: 'sha384' },
  ed25519: { keys: 'ed25519', algorithm: der(0x30, oid('2b6570')), hash: null },
}

interface SignatureKind {
  readonly keys: 'elliptic' | 'rsa' | 'ed25519'
  readonly algorithm: Buffer
  readonly hash: string | null
}

export type Signature =
  | 'ecdsa-sha256'
  | 'ecdsa-sha384'
  | 'rsa-sha1'
  | 'rsa-sha256'
  | 'rsa-sha512'
  | 'rsa-pss-sha384'
  | 'ed25519'

export interface CertificateOptions {
  /** A time as ASN.1 UTCTime. */
  readonly validUntil?: string
}

export function createAuthority(name: string, signature: Signature = 'ecdsa-sha256'): Certificate {
  const isAuthority = der(0x30, der(0x01, Buffer.from([0xff])))
  return issue(name, null, [extension(OID.basicConstraints, isAuthority)], signature)
}

/** A certificate for a server with these host names and addresses, or for a client whose role is `name`. */
export function createCertificate(
  authority: Certificate,
  name: string,
  hosts: readonly string[] = [],
  options: CertificateOptions = {},
): Certificate {
  return issue(name, authority, alternativeNames(hosts), 'ecdsa-sha256', options)
}

/** A self-signed certificate. */
export function createSelfSigned(name: string, hosts: readonly string[]): Certificate {
  return issue(name, null, alternativeNames(hosts), 'ecdsa-sha256')
}

function alternativeNames(hosts: readonly string[]): readonly Buffer[] {
  const names = hosts.map(host =>
    isIP(host) === 4 ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host)),
  )
  return hosts.length === 0 ? [] : [extension(OID.subjectAlternativeName, der(0x30, ...names))]
}

function issue(
  name: string,
  issuer: Certificate | null,
  extensions: readonly Buffer[],
  own: Signature,
  { validUntil = '491231235959Z' }: CertificateOptions = {},
): Certificate {
  const { privateKey, publicKey } = generateKeys(SIGNATURES[own].keys)
  const signature = issuer?.signature ?? own
  const { algorithm } = SIGNATURES[signature]
  const serial = der(0x02, Buffer.from([++serials]))
  const toBeSigned = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    serial,
    algorithm,
    distinguishedName(issuer?.name ?? name),
    der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from(validUntil))),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    ...(extensions.length === 0 ? [] : [der(0xa3, der(0x30, ...extensions))]),
  )
  const signed = signWith(signature, toBeSigned, issuer?.keyObject ?? privateKey)
  const whole = der(0x30, toBeSigned, algorithm, der(0x03, Buffer.from([0]), signed))
  const lines = whole.toString('base64').replace(/.{64}/g, '$&\n').trim()
  return {
    ...{ name, signature: own },
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    keyObject: privateKey,
  }
}

function generateKeys(keys: SignatureKind['keys']): KeyPairKeyObjectResult {
  if (keys === 'rsa') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  return keys === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

function signWith(signature: Signature, bytes: Buffer, key: KeyObject): Buffer {
  const { hash } = SIGNATURES[signature]
  if (!signature.startsWith('rsa-pss')) return sign(hash, bytes, key)
  return sign(hash, bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 })
}

/** RFC 4055, 3.1: the hash, the mask generation function with the same hash, and the salt length. */
function pss(hash: string, saltLength: number): Buffer {
  const identifier = der(0x30, oid(hash), NULL)
  const mask = der(0x30, oid('2a864886f70d010108'), identifier)
  const salt = der(0x02, Buffer.from([saltLength]))
  return der(0x30, oid('2a864886f70d01010a'), der(0x30, der(0xa0, identifier), der(0xa1, mask), der(0xa2, salt)))
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
