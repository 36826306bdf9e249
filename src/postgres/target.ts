/** Where a database is, who we are there, and under which conditions we talk to it: what a connection URL says, in types. */
import type { GssSettings } from './auth/gss-attempts.ts'
import type { AuthPolicy } from './auth/policy.ts'

/** Everything needed to reach one database as one user. */
export interface ConnectionTarget {
  readonly address: Address
  readonly user: string
  readonly password: string | null
  readonly database: string
  readonly tls: TlsSettings
  readonly auth: AuthPolicy
  /** Null unless the policy allows GSSAPI, SSPI or Kerberos. */
  readonly gss: GssSettings | null
  readonly applicationName: string | null
  /** For TCP, TLS and authentication together. */
  readonly connectTimeoutMs: number
  /** Command-line options for the backend, e.g. `-c search_path=x`. */
  readonly options: string | null
  readonly sessionAttributes: SessionAttributes
  /** Parameters that are valid and have no effect, as sentences. */
  readonly warnings: readonly string[]
}

export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  /** `path` is the socket file; TLS is never spoken there, as in libpq. */
  | { readonly kind: 'unix'; readonly path: string }

export interface TlsSettings {
  readonly mode: SslMode
  /** Path of a PEM file, or `system` for the authorities that the runtime trusts. */
  readonly rootCertificates: string | null
  readonly certificate: ClientCertificate | null
}

export interface ClientCertificate {
  readonly certPath: string
  readonly keyPath: string
  /** Of an encrypted key. */
  readonly password: string | null
}

export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof SSL_MODES)[number]

export const SESSION_ATTRIBUTES = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type SessionAttributes = (typeof SESSION_ATTRIBUTES)[number]

/** For logs and messages: everything but the secrets. */
export function describeTarget(target: ConnectionTarget): string {
  const { address } = target
  const where =
    address.kind === 'unix'
      ? address.path
      : `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
  return `${target.user}@${where}/${target.database}`
}

export function isVerifying(mode: SslMode): boolean {
  return mode === 'verify-ca' || mode === 'verify-full'
}

/** An authority that somebody named is asked, whatever the mode. */
export function verifiesChain({ mode, rootCertificates }: TlsSettings): boolean {
  return isVerifying(mode) || rootCertificates !== null
}
