/**
 * The accepted authentication methods (docs/guides/database-connections.md#parameters), and the choice
 * of one for the server's request.
 */
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import {
  bindChannel,
  bindingRequired,
  type ChannelBindingMode,
  SCRAM_SHA_256,
  SCRAM_SHA_256_PLUS,
} from './channel-binding.ts'
import { createCleartext } from './cleartext.ts'
import { GSS_METHODS, type GssMethod } from './gss.ts'
import { createMd5 } from './md5.ts'
import type { Mechanism } from './mechanism.ts'
import { createScram } from './scram.ts'

export interface AuthPolicy {
  readonly scram: boolean
  readonly md5: boolean
  /** `tls-only` is set by a preset; `always` requires an explicit `auth_cleartext=true`. */
  readonly cleartext: 'never' | 'tls-only' | 'always'
  readonly channelBinding: ChannelBindingMode
  /**
   * Requests of the server that are answered with tokens: AuthenticationGSS, AuthenticationSSPI,
   * AuthenticationKerberosV5.
   */
  readonly gss: readonly GssMethod[]
}

/** Values of `auth_mode`. */
export const AUTH_MODES: Readonly<Record<'scram_only' | 'gssapi_only' | 'compat', AuthPolicy>> = {
  scram_only: { scram: true, md5: false, cleartext: 'never', channelBinding: 'prefer', gss: [] },
  gssapi_only: { scram: false, md5: false, cleartext: 'never', channelBinding: 'prefer', gss: ['gss', 'sspi'] },
  compat: { scram: true, md5: true, cleartext: 'tls-only', channelBinding: 'prefer', gss: [] },
}

export interface Credentials {
  readonly user: string
  readonly password: string | null
}

export interface AuthContext {
  /** The server's certificate in DER; null on a connection without TLS. */
  readonly certificate: Buffer | null
  readonly random: (bytes: number) => Buffer
  /** Null if no provider of tokens is configured. */
  readonly gss: ((method: GssMethod) => Mechanism) | null
}

/** RFC 5802 requires an unguessable nonce; libpq uses as many bytes. */
const NONCE_BYTES = 18

/**
 * Chooses a mechanism. Nothing that depends on the password has been sent by then.
 * @throws ConnectError naming what the server offered and what the policy allows, if they have no method in
 * common
 */
export function chooseMechanism(
  offer: Authentication,
  policy: AuthPolicy,
  credentials: Credentials,
  circumstances: AuthContext,
): Mechanism {
  if (offer.method === 'sasl' && policy.scram && offersScram(offer.mechanisms)) {
    const binding = bindChannel(policy.channelBinding, offer.mechanisms, circumstances.certificate)
    const nonce = circumstances.random(NONCE_BYTES).toString('base64')
    return createScram(passwordFor(credentials, binding.mechanism), nonce, binding)
  }
  if (policy.channelBinding === 'require') throw bindingRequired(`the server offers ${describeOffer(offer)}`)
  if (isGssMethod(offer.method) && policy.gss.includes(offer.method) && circumstances.gss !== null) {
    return circumstances.gss(offer.method)
  }
  if (offer.method === 'md5' && policy.md5) {
    return createMd5(credentials.user, passwordFor(credentials, 'md5'))
  }
  if (offer.method === 'cleartext') {
    if (policy.cleartext === 'always' || (policy.cleartext === 'tls-only' && circumstances.certificate !== null)) {
      return createCleartext(passwordFor(credentials, 'password'))
    }
    if (policy.cleartext === 'tls-only') {
      throw new ConnectError(
        'the server requests the cleartext password over a connection without TLS; use ' +
          'sslmode=require, or set auth_cleartext=true to send it anyway',
        true,
      )
    }
  }
  throw new ConnectError(
    `the server offers ${describeOffer(offer)}; the policy allows ${describePolicy(policy)}. ${remedy(offer, policy)}`,
    true,
  )
}

/** True if Kerberos is the only allowed method, so that every failure counts for it. */
export function allowsGssAlone({ scram, md5, cleartext, gss }: AuthPolicy): boolean {
  return gss.length > 0 && !scram && !md5 && cleartext === 'never'
}

function isGssMethod(method: string): method is GssMethod {
  return Object.hasOwn(GSS_METHODS, method)
}

function offersScram(mechanisms: readonly string[]): boolean {
  return mechanisms.includes(SCRAM_SHA_256) || mechanisms.includes(SCRAM_SHA_256_PLUS)
}

/** Checks, after AuthenticationOk, whether the authentication was sufficient. */
export function checkAuthenticated(mechanism: Mechanism | null, policy: AuthPolicy): void {
  if (mechanism !== null && !mechanism.finished) {
    throw new ConnectError(
      `the server accepted the login before completing ${mechanism.name}; it may be an impostor`,
      true,
    )
  }
  if (policy.channelBinding === 'require' && mechanism?.isBound !== true) {
    throw bindingRequired('the server accepted the login without any proof')
  }
}

function passwordFor(credentials: Credentials, mechanism: string): string {
  if (credentials.password !== null) return credentials.password
  throw new ConnectError(`the server requests a password (${mechanism}), but the database URL has none`, true)
}

function describeOffer(offer: Authentication): string {
  switch (offer.method) {
    case 'sasl':
      return offer.mechanisms.length === 0 ? 'no mechanism' : offer.mechanisms.join(', ')
    case 'cleartext':
      return 'the cleartext password (password)'
    default:
      return isGssMethod(offer.method) ? GSS_METHODS[offer.method] : offer.method
  }
}

/** For messages: `SCRAM-SHA-256, md5`. */
export function describePolicy(policy: AuthPolicy): string {
  const allowed = []
  if (policy.scram) allowed.push(SCRAM_SHA_256)
  if (policy.md5) allowed.push('md5')
  if (policy.cleartext !== 'never') allowed.push(policy.cleartext === 'always' ? 'password' : 'password over TLS')
  for (const method of policy.gss) allowed.push(GSS_METHODS[method])
  return allowed.length === 0 ? 'nothing' : allowed.join(', ')
}

function remedy(offer: Authentication, policy: AuthPolicy): string {
  switch (offer.method) {
    case 'gss':
      return 'Allow it with auth_gssapi=true or auth_mode=gssapi_only, or change the method in pg_hba.conf'
    case 'sspi':
      return 'Allow it with auth_sspi=true or auth_mode=gssapi_only, or change the method in pg_hba.conf'
    case 'kerberos':
      return (
        'PostgreSQL servers since 9.3 do not request it; upgrade, or allow it with ' +
        'auth_kerberos=true and a gss_module that supports it'
      )
    case 'md5':
      return (
        'Store the password as SCRAM (set password_encryption = scram-sha-256, then set the ' +
        'password again), or allow MD5 with auth_mode=compat'
      )
    case 'cleartext':
      return 'Use scram-sha-256 in pg_hba.conf, or allow it with auth_mode=compat'
    default:
      return policy.scram
        ? 'Change the method in pg_hba.conf to scram-sha-256'
        : 'Change the method in pg_hba.conf to gss, or allow passwords with auth_scram=true'
  }
}
