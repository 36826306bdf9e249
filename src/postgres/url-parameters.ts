/** The parameters of a connection URL: their names, values and results. */
import { shorten } from '../text/shorten.ts'
import { CHANNEL_BINDINGS } from './auth/channel-binding.ts'
import { AUTH_MODES, type AuthPolicy } from './auth/policy.ts'
import { type ConnectionTarget, LOAD_BALANCE_HOSTS, SESSION_ATTRIBUTES, SSL_MODES, type SslMode } from './target.ts'
import { GSS_PARAMETERS, GSS_TOGGLES, type GssParameters, readGss, readGssMethods } from './url-kerberos.ts'
import { type NumberBounds, oneOf, readBoolean, readInteger } from './url-values.ts'

/** As in libpq, but without an unlimited wait. */
const CONNECT_TIMEOUT: NumberBounds = { min: 1, max: 600, default: 10, unit: 'seconds' }

export const PARAMETERS: ReadonlySet<string> = new Set([
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslpassword',
  'application_name',
  'connect_timeout',
  'options',
  'target_session_attrs',
  'load_balance_hosts',
  'channel_binding',
  'auth_mode',
  'auth_scram',
  'auth_md5',
  'auth_cleartext',
  ...Object.keys(GSS_TOGGLES),
  ...GSS_PARAMETERS,
])

/** Parameters of other clients that are not supported here, by name, with what to use instead. */
export const UNSUPPORTED_PARAMETERS: ReadonlyMap<string, string> = new Map([
  ['ssl', 'use sslmode=require, verify-ca or verify-full'],
  ['sslnegotiation', 'remove it: the gateway always asks PostgreSQL for TLS first (sslnegotiation=postgres)'],
  ['sslcompression', 'remove it: TLS compression is never used'],
  ['ssl_min_protocol_version', 'remove it: TLS 1.2 is the oldest supported version'],
  ['sslcrl', 'remove it: revocation lists are not supported'],
  ['gssencmode', 'remove it: encryption uses TLS, and GSSAPI is for authentication only'],
  ['krbsrvname', 'use gss_service'],
  ['gsslib', 'use gss_provider'],
  ['require_auth', 'use auth_mode, auth_scram, auth_md5 …'],
  ['hostaddr', 'put the address into host'],
  ['passfile', 'put the password into the URL, or reference an environment variable in svc.toml'],
  ['service', 'give the parameters themselves'],
  ['client_encoding', 'remove it: sessions always use UTF8'],
  ['pgbouncer', 'set prepared_statements = false under [gateway]'],
  ['connection_limit', 'set max_connections under [gateway]'],
  ['pool_timeout', 'set acquire_timeout_ms under [gateway]'],
  ['schema', 'set schemas under [gateway]'],
  ['search_path', 'use options=-c%20search_path%3D…'],
  ['statement_timeout', 'set statement_timeout_ms under [gateway]'],
])

/** The values of the parameters; those of address and user may override the URL's own. */
export interface UrlSettings {
  /** The lists as given, separated by commas. */
  readonly host: string | null
  readonly port: string | null
  readonly user: string | null
  readonly password: string | null
  readonly dbname: string | null
  readonly target: Pick<
    ConnectionTarget,
    'tls' | 'auth' | 'applicationName' | 'connectTimeoutMs' | 'options' | 'sessionAttributes' | 'loadBalanceHosts'
  >
  /** Without the host. */
  readonly gss: GssParameters | null
}

export function readSettings(given: ReadonlyMap<string, string>, problems: string[], warnings: string[]): UrlSettings {
  const tls = readTls(given, problems)
  const auth = readAuth(given, problems)
  return {
    host: given.get('host') || null,
    port: given.get('port') ?? null,
    user: given.get('user') || null,
    password: given.get('password') ?? null,
    dbname: given.get('dbname') || null,
    target: {
      tls,
      auth,
      applicationName: given.get('application_name') || null,
      connectTimeoutMs: readInteger('connect_timeout', given, CONNECT_TIMEOUT, problems) * 1000,
      options: given.get('options') || null,
      sessionAttributes:
        oneOf('target_session_attrs', given.get('target_session_attrs'), SESSION_ATTRIBUTES, problems) ?? 'any',
      loadBalanceHosts:
        oneOf('load_balance_hosts', given.get('load_balance_hosts'), LOAD_BALANCE_HOSTS, problems) ?? 'disable',
    },
    gss: readGss(given, auth, problems, warnings),
  }
}

function readTls(given: ReadonlyMap<string, string>, problems: string[]): ConnectionTarget['tls'] {
  const mode: SslMode = oneOf('sslmode', given.get('sslmode'), SSL_MODES, problems) ?? 'prefer'
  const rootCertificates = given.get('sslrootcert') || null
  const certPath = given.get('sslcert') || null
  const keyPath = given.get('sslkey') || null
  if ((certPath === null) !== (keyPath === null)) {
    problems.push(
      `${certPath === null ? 'sslkey' : 'sslcert'} is given without ` +
        `${certPath === null ? 'sslcert' : 'sslkey'}; give both or neither`,
    )
  }
  if (mode === 'verify-ca' && (rootCertificates === null || rootCertificates === 'system')) {
    problems.push(
      'sslmode=verify-ca requires sslrootcert=<file>, because any certificate of a public ' +
        'authority would pass; or use sslmode=verify-full',
    )
  }
  if (rootCertificates === 'system' && mode !== 'verify-full' && mode !== 'verify-ca') {
    problems.push(
      `sslrootcert=system requires sslmode=verify-full, not ${mode}, because any ` +
        'certificate of a public authority would pass',
    )
  }
  if (mode === 'disable' && (rootCertificates !== null || certPath !== null)) {
    problems.push('sslmode=disable is combined with certificates; remove one or the other')
  }
  const password = given.get('sslpassword') ?? null
  if (password !== null && keyPath === null) {
    problems.push('sslpassword is given without sslkey, the encrypted key it belongs to')
  }
  const certificate = certPath !== null && keyPath !== null ? { certPath, keyPath, password } : null
  return { mode, rootCertificates, certificate }
}

function readAuth(given: ReadonlyMap<string, string>, problems: string[]): AuthPolicy {
  const modes = Object.keys(AUTH_MODES) as (keyof typeof AUTH_MODES)[]
  const base: AuthPolicy = AUTH_MODES[oneOf('auth_mode', given.get('auth_mode'), modes, problems) ?? 'scram_only']
  const cleartext = readBoolean('auth_cleartext', given, problems)
  const policy: AuthPolicy = {
    scram: readBoolean('auth_scram', given, problems) ?? base.scram,
    md5: readBoolean('auth_md5', given, problems) ?? base.md5,
    cleartext: cleartext === null ? base.cleartext : cleartext ? 'always' : 'never',
    channelBinding: oneOf('channel_binding', given.get('channel_binding'), CHANNEL_BINDINGS, problems) ?? 'prefer',
    gss: readGssMethods(given, base.gss, problems),
  }
  if (!policy.scram && !policy.md5 && policy.cleartext === 'never' && policy.gss.length === 0) {
    problems.push('every authentication method is disabled; remove auth_scram=false, or allow another method')
  }
  if (policy.channelBinding === 'require' && !policy.scram) {
    problems.push('channel_binding=require works only with SCRAM, but auth_scram is false; remove one or the other')
  }
  if (policy.channelBinding === 'require' && given.get('sslmode') === 'disable') {
    problems.push('channel_binding=require requires TLS, but sslmode=disable turns it off; use sslmode=require')
  }
  return policy
}

export function readPort(text: string, problems: string[]): number {
  if (text === '') return 5432
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0
  if (port >= 1 && port <= 65_535) return port
  problems.push(`port "${shorten(text)}" is not a number from 1 to 65535`)
  return 5432
}
