/**
 * Identity providers for tests: keys, tokens signed by hand (not with the library that verifies them), and a
 * server that publishes the keys.
 */
import { createHmac, generateKeyPairSync, type KeyObject, sign as signBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { IssuerConfig, JwtAlgorithm } from '../../src/config/config.ts'
import { type Receiver, receiver } from './receiver.ts'

export function issuerConfig(given: Partial<IssuerConfig> & Pick<IssuerConfig, 'issuer'>): IssuerConfig {
  return {
    ...{ jwksUrl: null, discovery: false, publicKeyPath: null, secretEnv: null, secret: null },
    ...{ audience: null, algorithms: null, leewaySeconds: 30, requiredClaims: new Map() },
    ...{ tenant: null, user: null, role: null, scopes: null, agent: null, roleMap: null },
    ...given,
  }
}

export type PublicAlgorithm = Exclude<JwtAlgorithm, 'HS256' | 'HS384' | 'HS512'>

export interface TestKey {
  readonly kid: string
  readonly alg: PublicAlgorithm
  readonly privateKey: KeyObject
  /** The public key in its published form. */
  readonly jwk: Readonly<Record<string, unknown>>
  readonly pem: string
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

export function testKey(alg: PublicAlgorithm, kid: string, { bits = 2_048 }: { readonly bits?: number } = {}): TestKey {
  const { privateKey, publicKey } = pair(alg, bits)
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg }
  return { kid, alg, privateKey, jwk, pem: publicKey.export({ type: 'spki', format: 'pem' }).toString() }
}

function pair(alg: PublicAlgorithm, bits: number): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  const namedCurve = CURVES[alg]
  if (namedCurve !== undefined) return generateKeyPairSync('ec', { namedCurve })
  return generateKeyPairSync('rsa', { modulusLength: bits })
}

export interface TokenParts {
  /** Strings are used unchanged. */
  readonly claims: object | string
  /** Header members in addition to `alg` and `kid`, or replacing them. A string replaces the whole header. */
  readonly header?: Readonly<Record<string, unknown>> | string
}

export function signToken(key: TestKey, { claims, header = {} }: TokenParts): string {
  const input = inputOf({ claims, header: typeof header === 'string' ? header : { ...headOf(key), ...header } })
  return `${input}.${signatureOf(key, Buffer.from(input)).toString('base64url')}`
}

export function signHmac(
  secret: string | KeyObject,
  { claims, header = {} }: TokenParts,
  alg: 'HS256' | 'HS384' | 'HS512' = 'HS256',
): string {
  const input = inputOf({ claims, header: typeof header === 'string' ? header : { alg, typ: 'JWT', ...header } })
  return `${input}.${createHmac(`sha${alg.slice(2)}`, secret)
    .update(input)
    .digest('base64url')}`
}

const headOf = ({ alg, kid }: TestKey): object => ({ alg, typ: 'JWT', kid })

function inputOf({ claims, header }: TokenParts): string {
  const encode = (part: unknown) =>
    Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
  return `${encode(header)}.${encode(claims)}`
}

/** Signature algorithms: RFC 7518, 3.3 to 3.5; RFC 8037, 3.1. */
function signatureOf({ alg, privateKey }: TestKey, input: Buffer): Buffer {
  if (alg === 'EdDSA') return signBytes(null, input, privateKey)
  const hash = `sha${alg.slice(2)}`
  if (alg.startsWith('RS')) return signBytes(hash, input, privateKey)
  if (alg.startsWith('ES')) return signBytes(hash, input, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  // RSA_PKCS1_PSS_PADDING and RSA_PSS_SALTLEN_DIGEST.
  return signBytes(hash, input, { key: privateKey, padding: 6, saltLength: -1 })
}

/**
 * A provider that publishes its keys at `/jwks` and announces that address at
 * `/.well-known/openid-configuration`.
 */
export interface TestProvider {
  readonly url: string
  readonly jwksUrl: string
  readonly server: Receiver
  /** How many times the keys were fetched. */
  fetches(): number
  /** Publishes these keys from now on. */
  publish(keys: readonly TestKey[], headers?: Readonly<Record<string, string>>): void
  /** Sends this response instead of the keys. */
  answer(how: (response: ServerResponse) => void): void
  close(): Promise<void>
}

export async function testProvider(keys: readonly TestKey[]): Promise<TestProvider> {
  const server = await receiver()
  const url = new URL(server.url).origin
  let answer: (response: ServerResponse) => void = () => {}
  server.respond((response, { path }) => {
    if (path === '/jwks') return answer(response)
    if (path !== '/.well-known/openid-configuration') return response.writeHead(404).end()
    return response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/jwks` }))
  })
  const provider: TestProvider = {
    ...{ url, jwksUrl: `${url}/jwks`, server },
    fetches: () => server.received.filter(({ path }) => path === '/jwks').length,
    publish(published, headers = {}) {
      const body = JSON.stringify({ keys: published.map(({ jwk }) => jwk) })
      answer = response => response.writeHead(200, headers).end(body)
    },
    answer(how) {
      answer = how
    },
    close: () => server.close(),
  }
  provider.publish(keys)
  return provider
}
