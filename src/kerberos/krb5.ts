/**
 * `gss_provider=linux_krb5`: tokens by the system's Kerberos library, through the optional package `kerberos`
 * (decision record 17). It is loaded when a connection URL asks for it and not before.
 */
import type { KerberosClient } from 'kerberos'
import { type GssConversation, GssError, type GssProvider, type GssStep } from '../postgres/auth/gss.ts'
import { KerberosSetupError } from './setup-error.ts'

/**
 * Each step may wait for a KDC on a thread of Node's pool, of which there are four, and on which names, files
 * and passwords wait too.
 */
const STEPS_AT_ONCE_MAX = 2

/**
 * What the library says when somebody did not answer, and may yet. MIT Kerberos names no codes through
 * GSSAPI.
 */
const TRANSIENT =
  /cannot contact any KDC|cannot resolve (network address|servers)|timed? ?out|connection (refused|reset)|temporarily unavailable|service is not available/i

/** The library says what it met, and not what to do about it. */
const ADVICE: readonly (readonly [met: RegExp, advice: string])[] = [
  [/ticket expired|credentials? (have |has )?expired/i, 'renew the ticket, or have k5start or sssd keep it fresh'],
  [
    /no (kerberos )?credentials/i,
    'fill the cache that KRB5CCNAME names (kinit), or set KRB5_CLIENT_KTNAME to a keytab',
  ],
  [/not found in kerberos database/i, 'the realm has no such service: see gss_service and gss_target'],
  [/clock skew/i, 'set the clocks of gateway, KDC and database by the same source'],
  [/cannot find kdc/i, 'name the KDCs of the realm in [realms] of the file that KRB5_CONFIG names'],
]

type KerberosPackage = Pick<typeof import('kerberos'), 'initializeClient' | 'GSS_C_MUTUAL_FLAG' | 'GSS_MECH_OID_KRB5'>

/** Rejects with `KerberosSetupError`. */
export async function openKrb5(
  platform: string = process.platform,
  load: () => Promise<KerberosPackage> = () => import('kerberos'),
): Promise<GssProvider> {
  if (platform !== 'linux') {
    throw new KerberosSetupError(
      `gss_provider=linux_krb5 works on Linux alone, and this is ${platform}.`,
      'Use gss_provider=callback and a gss_module that makes the tokens.',
    )
  }
  const library = await load().catch((error: Error) => {
    throw missing(error)
  })
  return createKrb5(library)
}

export function createKrb5(library: KerberosPackage): GssProvider {
  let underWay = 0

  async function step(client: Promise<KerberosClient>, token: Buffer | null): Promise<GssStep> {
    if (underWay >= STEPS_AT_ONCE_MAX) {
      throw new GssError(`too many tickets are being waited for: ${STEPS_AT_ONCE_MAX} at a time`, true)
    }
    underWay++
    try {
      const { contextComplete, answer } = await client.then(async ready => {
        const text = await ready.step(token?.toString('base64') ?? '')
        return { contextComplete: ready.contextComplete, answer: text }
      })
      return { token: answer ? Buffer.from(answer, 'base64') : null, done: contextComplete }
    } catch (error) {
      const { message } = error as Error
      const advice = ADVICE.find(([met]) => met.test(message))?.[1]
      throw new GssError(advice === undefined ? message : `${message}; ${advice}`, TRANSIENT.test(message), error)
    } finally {
      underWay--
    }
  }

  return {
    start({ target }): GssConversation {
      // Mutual: the server proves that it is the target, as it does in SCRAM.
      const options = { gssFlag: library.GSS_C_MUTUAL_FLAG, mechOID: library.GSS_MECH_OID_KRB5 }
      const client = library.initializeClient(target, options)
      // It may fail before anybody takes a step.
      client.catch(() => {})
      return token => step(client, token)
    },
  }
}

function missing(error: Error): KerberosSetupError {
  const isAbsent = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
  return new KerberosSetupError(
    isAbsent
      ? 'gss_provider=linux_krb5 needs the feature enterprise-gssapi, which is not installed.'
      : `gss_provider=linux_krb5 needs the feature enterprise-gssapi, which cannot be loaded: ${error.message}`,
    'Add it with: npm install kerberos@7 (beside svc-gateway; where there is no prebuilt binary it needs a ' +
      "compiler and the system's libkrb5-dev). Or use gss_provider=callback and a gss_module.",
    error,
  )
}
