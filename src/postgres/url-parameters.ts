/** The parameters of a connection URL: their names, their values, and what each becomes. */
import { shorten } from '../text/shorten.ts'
import { CHANNEL_BINDINGS } from './auth/channel-binding.ts'
import { AUTH_MODES, type AuthPolicy } from './auth/policy.ts'
import { type ConnectionTarget, SESSION_ATTRIBUTES, SSL_MODES, type SslMode } from './target.ts'
import { GSS_PARAMETERS, GSS_TOGGLES, type GssParameters, readGss, readGssMethods } from './url-kerberos.ts'
import { type Bounds, oneOf, readBoolean, readInteger } from './url-values.ts'

/** As libpq counts it. A wait without end is not offered. */
const CONNECT_TIMEOUT: Bounds = { min: 1, max: 600, default: 10, unit: 'seconds' }

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
  'channel_binding',
  'auth_mode',
  'auth_scram',
  'auth_md5',
  'auth_cleartext',
  ...Object.keys(GSS_TOGGLES),
  ...GSS_PARAMETERS,
])

/** What other clients call the same thing, or what they have and this one has not, by name: what to write instead. */
export const FOREIGN: ReadonlyMap<string, string> = new Map([
  ['ssl', 'write sslmode=require, verify-ca or verify-full'],
  ['sslnegotiation', 'leave it out: TLS is asked for before it begins'],
  ['sslcompression', 'leave it out: TLS is never compressed'],
  ['ssl_min_protocol_version', 'leave it out: TLS 1.2 is the oldest that is spoken'],
  ['sslcrl', 'leave it out: revocation lists are not read'],
  ['gssencmode', 'leave it out: encryption is by TLS, and GSSAPI authenticates only'],
  ['krbsrvname', 'write gss_service'],
  ['gsslib', 'write gss_provider'],
  ['require_auth', 'write auth_mode, auth_scram, auth_md5 …'],
  ['hostaddr', 'write the address as host'],
  ['passfile', 'write the password into the URL, or let svc.toml take it from the environment'],
  ['service', 'write the parameters themselves'],
  ['client_encoding', 'leave it out: sessions speak UTF8'],
  ['pgbouncer', 'set prepared_statements = false under [gateway]'],
  ['connection_limit', 'set max_connections under [gateway]'],
  ['pool_timeout', 'set acquire_timeout_ms under [gateway]'],
  ['schema', 'set schemas under [gateway]'],
  ['search_path', 'write options=-c%20search_path%3D…'],
  ['statement_timeout', 'set statement_timeout_ms under [gateway]'],
])

/** What the parameters say; those of the place and the user may override the URL's own. */
export interface Settings {
  readonly host: string | null
  readonly port: number | null
  readonly user: string | null
  readonly password: string | null
  readonly dbname: string | null
  readonly target: Pick<
    ConnectionTarget,
    'tls' | 'auth' | 'applicationName' | 'connectTimeoutMs' | 'options' | 'sessionAttributes'
  >
  /** All but the host in it. */
  readonly gss: GssParameters | null
}

export function readSettings(given: ReadonlyMap<string, string>, problems: string[], warnings: string[]): Settings {
  const port = given.get('port')
  const tls = readTls(given, problems)
  const auth = readAuth(given, problems)
  return {
    host: given.get('host') || null,
    port: port === undefined ? null : readPort(port, problems),
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
      `${certPath === null ? 'sslkey' : 'sslcert'} is given without ${certPath === null ? 'sslcert' : 'sslkey'}; both or neither`,
    )
  }
  if (mode === 'verify-ca' && (rootCertificates === null || rootCertificates === 'system')) {
    problems.push(
      'sslmode=verify-ca needs sslrootcert=<file>: any certificate of a public authority would pass; or use sslmode=verify-full',
    )
  }
  if (rootCertificates === 'system' && mode !== 'verify-full' && mode !== 'verify-ca') {
    problems.push(
      `sslrootcert=system needs sslmode=verify-full, not ${mode}: any certificate of a public authority would pass`,
    )
  }
  if (mode === 'disable' && (rootCertificates !== null || certPath !== null)) {
    problems.push('sslmode=disable together with certificates; leave out one or the other')
  }
  const password = given.get('sslpassword') ?? null
  if (password !== null && keyPath === null) {
    problems.push('sslpassword is given without sslkey, the encrypted key that it opens')
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
    problems.push('every way of authenticating is switched off; leave auth_scram=false out, or allow another')
  }
  if (policy.channelBinding === 'require' && !policy.scram) {
    problems.push('channel_binding=require is of SCRAM alone, and auth_scram is false; leave out one or the other')
  }
  if (policy.channelBinding === 'require' && given.get('sslmode') === 'disable') {
    problems.push('channel_binding=require binds to TLS, and sslmode=disable has none; use sslmode=require')
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
