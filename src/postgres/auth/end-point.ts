/**
 * `tls-server-end-point` (RFC 5929, 4.1): ties a SCRAM conversation to the certificate of its TLS session. It
 * is the certificate's hash, using the hash function of the certificate's own signature, or SHA-256 in place
 * of the broken MD5 and SHA-1.
 */
import { createHash } from 'node:crypto'

const HASH_OF_SIGNATURE: Readonly<Record<string, string>> = {
  // RSA, PKCS #1 v1.5 (RFC 8017, RFC 4055)
  '1.2.840.113549.1.1.4': 'sha256',
  '1.2.840.113549.1.1.5': 'sha256',
  '1.2.840.113549.1.1.14': 'sha224',
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  // ECDSA (RFC 5758)
  '1.2.840.10045.4.1': 'sha256',
  '1.2.840.10045.4.3.1': 'sha224',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
}

const RSA_PSS = '1.2.840.113549.1.1.10'
const HASH: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha256',
  '2.16.840.1.101.3.4.2.4': 'sha224',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
}

const SEQUENCE = 0x30
const OBJECT_IDENTIFIER = 0x06
/** `[0] EXPLICIT` */
const FIRST_OPTION = 0xa0

/**
 * The end point of a DER certificate. Null where RFC 5929 does not define it: the signature has no separate
 * hash function (Ed25519), or an unknown one.
 */
export function serverEndPoint(certificate: Buffer): Buffer | null {
  const hash = signatureHash(certificate)
  return hash === null ? null : createHash(hash).update(certificate).digest()
}

/**
 * Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm AlgorithmIdentifier, signatureValue } (RFC
 * 5280, 4.1)
 */
function signatureHash(certificate: Buffer): string | null {
  const parts = children(certificate, 0)
  const algorithm = parts[1] === undefined ? [] : children(certificate, parts[1].at)
  const [identifier, parameters] = algorithm
  if (identifier === undefined || identifier.tag !== OBJECT_IDENTIFIER) return null
  const name = objectIdentifier(certificate, identifier)
  if (name !== RSA_PSS) return HASH_OF_SIGNATURE[name] ?? null
  return parameters === undefined ? null : pssHash(certificate, parameters)
}

/**
 * RSASSA-PSS-params ::= SEQUENCE { hashAlgorithm [0] AlgorithmIdentifier DEFAULT sha1, … } (RFC 4055, 3.1)
 */
function pssHash(bytes: Buffer, parameters: Element): string | null {
  const option = children(bytes, parameters.at).find(({ tag }) => tag === FIRST_OPTION)
  if (option === undefined) return 'sha256'
  const algorithm = children(bytes, option.at)[0]
  const identifier = algorithm === undefined ? undefined : children(bytes, algorithm.at)[0]
  return identifier === undefined ? null : (HASH[objectIdentifier(bytes, identifier)] ?? null)
}

/** One DER element: its position and the position of its content. */
interface Element {
  readonly tag: number
  readonly at: number
  readonly start: number
  readonly end: number
}

/**
 * The elements within a constructed one. OpenSSL has parsed the certificate before; anything malformed is
 * skipped.
 */
function children(bytes: Buffer, at: number): readonly Element[] {
  const parent = elementAt(bytes, at, bytes.length)
  const found: Element[] = []
  if (parent === null || (parent.tag !== SEQUENCE && parent.tag !== FIRST_OPTION)) return found
  for (let next = parent.start; next < parent.end; ) {
    const element = elementAt(bytes, next, parent.end)
    if (element === null) break
    found.push(element)
    next = element.end
  }
  return found
}

function elementAt(bytes: Buffer, at: number, end: number): Element | null {
  const tag = bytes[at]
  const first = bytes[at + 1]
  if (tag === undefined || first === undefined) return null
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + lengthBytes
  if (lengthBytes > 4 || start > end) return null
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes)
  return start + length > end ? null : { tag, at, start, end: start + length }
}

/** Dotted notation: base 128, with the first two numbers combined (X.690 8.19). */
function objectIdentifier(bytes: Buffer, { start, end }: Element): string {
  const numbers: number[] = []
  let number = 0
  for (const byte of bytes.subarray(start, end)) {
    number = number * 128 + (byte & 0x7f)
    if (byte >= 0x80) continue
    numbers.push(number)
    number = 0
  }
  const [both = 0, ...rest] = numbers
  const root = Math.min(2, Math.floor(both / 40))
  return [root, both - root * 40, ...rest].join('.')
}
