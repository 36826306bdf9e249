/** Which ways of authenticating we accept, and the choice of one when the server has asked (specification 5.6, decisions 11). */
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import { createCleartext } from './cleartext.ts'
import { createMd5 } from './md5.ts'
import type { Mechanism } from './mechanism.ts'
import { createScram, SCRAM_SHA_256 } from './scram.ts'

export interface AuthPolicy {
  readonly scram: boolean
  readonly md5: boolean
  /** `tls-only` is what a preset gives; `always` takes an explicit `auth_cleartext=true`. */
  readonly cleartext: 'never' | 'tls-only' | 'always'
}

/** Values of `auth_mode`. */
export const AUTH_MODES: Readonly<Record<'scram_only' | 'compat', AuthPolicy>> = {
  scram_only: { scram: true, md5: false, cleartext: 'never' },
  compat: { scram: true, md5: true, cleartext: 'tls-only' },
}

export interface Credentials {
  readonly user: string
  readonly password: string | null
}

export interface Circumstances {
  readonly encrypted: boolean
  readonly random: (bytes: number) => Buffer
}

/**
 * Throws `ConnectError` naming what the server offered and what the policy allows, when the two do not meet; nothing
 * that depends on the password has been sent by then.
 */
export function chooseMechanism(
  offer: Authentication,
  policy: AuthPolicy,
  credentials: Credentials,
  circumstances: Circumstances,
): Mechanism {
  if (offer.method === 'sasl' && offer.mechanisms.includes(SCRAM_SHA_256) && policy.scram) {
    return createScram(passwordFor(credentials, SCRAM_SHA_256), circumstances.random(18).toString('base64'))
  }
  if (offer.method === 'md5' && policy.md5) {
    return createMd5(credentials.user, passwordFor(credentials, 'md5'))
  }
  if (offer.method === 'cleartext') {
    if (policy.cleartext === 'always' || (policy.cleartext === 'tls-only' && circumstances.encrypted)) {
      return createCleartext(passwordFor(credentials, 'password'))
    }
    if (policy.cleartext === 'tls-only') {
      throw new ConnectError(
        'the server asks for the bare password over a connection without TLS; use sslmode=require, or write auth_cleartext=true to send it anyway',
        true,
      )
    }
  }
  throw new ConnectError(
    `the server offers ${describeOffer(offer)}; the policy allows ${describePolicy(policy)}. ${remedy(offer)}`,
    true,
  )
}

function passwordFor(credentials: Credentials, mechanism: string): string {
  if (credentials.password !== null) return credentials.password
  throw new ConnectError(`the server asks for a password (${mechanism}) and the database URL has none`, true)
}

function describeOffer(offer: Authentication): string {
  switch (offer.method) {
    case 'sasl':
      return offer.mechanisms.length === 0 ? 'no mechanism' : offer.mechanisms.join(', ')
    case 'cleartext':
      return 'the bare password (password)'
    default:
      return offer.method
  }
}

function describePolicy(policy: AuthPolicy): string {
  const allowed = []
  if (policy.scram) allowed.push(SCRAM_SHA_256)
  if (policy.md5) allowed.push('md5')
  if (policy.cleartext !== 'never') allowed.push(policy.cleartext === 'always' ? 'password' : 'password over TLS')
  return allowed.length === 0 ? 'nothing' : allowed.join(', ')
}

function remedy(offer: Authentication): string {
  switch (offer.method) {
    case 'md5':
      return 'Store the password as SCRAM (password_encryption = scram-sha-256, set it again) or allow it with auth_mode=compat'
    case 'cleartext':
      return 'Use scram-sha-256 in pg_hba.conf, or allow it with auth_mode=compat'
    default:
      return 'Change the method in pg_hba.conf to scram-sha-256'
  }
}
