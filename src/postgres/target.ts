/** A connection target: the contents of a connection URL as types. */
import type { GssSettings } from './auth/gss-attempts.ts'
import type { AuthPolicy } from './auth/policy.ts'

/** Everything needed to reach one database as one user. */
export interface ConnectionTarget {
  /** The first host. */
  readonly address: Address
  /** Further hosts of the same database, tried in this order. */
  readonly others: readonly Address[]
  readonly loadBalanceHosts: LoadBalanceHosts
  readonly user: string
  readonly password: string | null
  readonly database: string
  readonly tls: TlsSettings
  readonly auth: AuthPolicy
  /** Null unless the policy allows GSSAPI, SSPI or Kerberos. */
  readonly gss: GssSettings | null
  readonly applicationName: string | null
  /** Time limit on TCP, TLS and authentication together. */
  readonly connectTimeoutMs: number
  /** Command-line options for the backend, such as `-c search_path=x`. */
  readonly options: string | null
  readonly sessionAttributes: SessionAttributes
  /** Warnings about valid parameters that have no effect. */
  readonly warnings: readonly string[]
}

/** A server's address. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  /** `path` is the socket file; TLS is never used there, as in libpq. */
  | { readonly kind: 'unix'; readonly path: string }

/** The settings of `ssl…` parameters. */
export interface TlsSettings {
  readonly mode: SslMode
  /** The path of a PEM file, or `system` for the authorities that the runtime trusts. */
  readonly rootCertificates: string | null
  readonly certificate: ClientCertificate | null
}

/** A client certificate and its key. */
export interface ClientCertificate {
  readonly certPath: string
  readonly keyPath: string
  /** The password of an encrypted key. */
  readonly password: string | null
}

/** Values of `sslmode`. */
export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof SSL_MODES)[number]

/** Values of `target_session_attrs`. */
export const SESSION_ATTRIBUTES = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type SessionAttributes = (typeof SESSION_ATTRIBUTES)[number]

/** Values of `load_balance_hosts`. */
export const LOAD_BALANCE_HOSTS = ['disable', 'random'] as const
export type LoadBalanceHosts = (typeof LOAD_BALANCE_HOSTS)[number]

/** The target without secrets, with all its hosts, for logs and messages. */
export function describeTarget(target: ConnectionTarget): string {
  return `${target.user}@${[target.address, ...target.others].map(describeAddress).join(',')}/${target.database}`
}

/** The address as in a connection URL. */
export function describeAddress(address: Address): string {
  if (address.kind === 'unix') return address.path
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}

/** True if two addresses are the same. */
export function isSameAddress(one: Address, other: Address): boolean {
  return describeAddress(one) === describeAddress(other)
}

/** True if a mode verifies the certificate. */
export function isVerifying(mode: SslMode): boolean {
  return mode === 'verify-ca' || mode === 'verify-full'
}

/** True if the certificate chain is verified; an explicitly named authority is used in any mode. */
export function verifiesChain({ mode, rootCertificates }: TlsSettings): boolean {
  return isVerifying(mode) || rootCertificates !== null
}
