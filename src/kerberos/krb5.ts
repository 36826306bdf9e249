/**
 * `gss_provider=linux_krb5`: tokens from the system's Kerberos library, through the optional package
 * `kerberos` (decision record 17). The package is loaded only if a connection URL requires it.
 */
import type { KerberosClient } from 'kerberos'
import { type GssConversation, GssError, type GssProvider, type GssStep } from '../postgres/auth/gss.ts'
import { KerberosSetupError } from './setup-error.ts'

/**
 * Each step can wait for a KDC on a thread of Node's pool, which has four threads and also serves name
 * look-ups, file access and password hashing.
 */
const STEPS_AT_ONCE_MAX = 2

/**
 * Messages of the library for failures that may be temporary. MIT Kerberos reports no codes through GSSAPI.
 */
const TRANSIENT = new RegExp(
  [
    'cannot contact any KDC',
    'cannot resolve (network address|servers)',
    'timed? ?out',
    'connection (refused|reset)',
    'temporarily unavailable',
    'service is not available',
  ].join('|'),
  'i',
)

/** Advice for the library's messages, which describe the failure but not the fix. */
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

/** Loads the package. Rejects with `KerberosSetupError`. */
export async function openKrb5(
  platform: string = process.platform,
  load: () => Promise<KerberosPackage> = () => import('kerberos'),
): Promise<GssProvider> {
  if (platform !== 'linux') {
    throw new KerberosSetupError(
      `gss_provider=linux_krb5 works on Linux only, and this is ${platform}.`,
      'Use gss_provider=callback and a gss_module that makes the tokens.',
    )
  }
  const library = await load().catch((error: Error) => {
    throw missing(error)
  })
  return createKrb5(library)
}

/** A provider of tokens from the Kerberos library. */
export function createKrb5(library: KerberosPackage): GssProvider {
  let underWay = 0

  async function step(client: Promise<KerberosClient>, token: Buffer | null): Promise<GssStep> {
    if (underWay >= STEPS_AT_ONCE_MAX) {
      throw new GssError(`too many concurrent requests for tickets: at most ${STEPS_AT_ONCE_MAX}`, true)
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
      // Mutual authentication: the server proves that it is the target, as in SCRAM.
      const options = { gssFlag: library.GSS_C_MUTUAL_FLAG, mechOID: library.GSS_MECH_OID_KRB5 }
      const client = library.initializeClient(target, options)
      // It can fail before the first step awaits it.
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
    'Add it with: npm install kerberos@7 (in the folder of svc-gateway; without a prebuilt binary it needs a ' +
      "compiler and the system's libkrb5-dev). Or use gss_provider=callback and a gss_module.",
    error,
  )
}
