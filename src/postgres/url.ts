/**
 * Parses a connection URL (PostgreSQL manual, 34.1.1.2; docs/guides/database-connections.md#every-parameter).
 * All problems are reported together. A parameter is honored, or refused by name; a Kerberos parameter
 * without Kerberos is a warning.
 */
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import type { GssSettings } from './auth/gss-attempts.ts'
import { UrlError } from './errors.ts'
import { type Address, type ConnectionTarget, isVerifying } from './target.ts'
import type { GssParameters } from './url-kerberos.ts'
import { PARAMETERS, readPort, readSettings, UNSUPPORTED_PARAMETERS } from './url-parameters.ts'

/**
 * Parses the URL.
 * @throws UrlError with all problems
 */
export function parseUrl(text: string): ConnectionTarget {
  const problems: string[] = []
  const match = /^(?:postgres|postgresql):\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(text)
  if (match === null) throw new UrlError([malformed(text)])
  const [, authority = '', path = '', query = ''] = match
  // An unescaped "/" or "?" in a password ends the authority early: then no part of it may be quoted as port
  // or name.
  if (/^[^@[]*:(?!\d*$)[^@]*$/.test(authority)) throw new UrlError([malformed(text)])
  const { user, password, host, port } = readAuthority(authority, problems)
  const warnings: string[] = []
  const settings = readSettings(readQuery(query, problems), problems, warnings)

  const finalUser = settings.user ?? user
  if (finalUser === null) problems.push('the user is missing; expected postgres://user:password@host:port/database')
  const database = settings.dbname ?? (decode(path, 'database name', problems) || finalUser || '')
  const address = toAddress(settings.host ?? host, settings.port ?? port, problems)
  const target = {
    address,
    gss: settings.gss === null ? null : toGss(settings.gss, address, problems),
    user: finalUser ?? '',
    password: settings.password ?? password,
    database,
    ...settings.target,
    warnings,
  }
  for (const [name, value] of [
    ['user', target.user],
    ['database name', database],
    ['password', target.password ?? ''],
  ] as const) {
    if (value.includes('\0')) problems.push(`the ${name} contains a zero byte (%00), which PostgreSQL cannot store`)
  }
  if (target.address.kind === 'unix' && isVerifying(target.tls.mode)) {
    problems.push(
      `sslmode=${target.tls.mode} is not possible over a Unix socket, which never uses TLS; remove it or give a host`,
    )
  }
  if (target.address.kind === 'unix' && target.auth.channelBinding === 'require') {
    problems.push('channel_binding=require requires TLS, which a Unix socket never uses; remove it or give a host')
  }
  if (problems.length > 0) throw new UrlError(problems)
  return target
}

function malformed(text: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]
  if (scheme !== undefined && scheme !== 'postgres' && scheme !== 'postgresql') {
    return `its scheme is "${scheme}"; expected postgres://user:password@host:port/database`
  }
  return (
    'expected postgres://user:password@host:port/database?parameters; a "/", "?", "#" or "@" in ' +
    'the user or password must be encoded as %2F, %3F, %23, %40'
  )
}

interface Authority {
  readonly user: string | null
  readonly password: string | null
  readonly host: string
  readonly port: number
}

const SEVERAL_HOSTS = 'several hosts are given, but one is supported; use one DNS name for all, or a proxy'

/**
 * authority = [ user [ ":" password ] "@" ] host [ ":" port ] ; host = name | "[" IPv6 "]" | percent-encoded
 * path
 */
function readAuthority(authority: string, problems: string[]): Authority {
  const at = authority.lastIndexOf('@')
  const credentials = at === -1 ? '' : authority.slice(0, at)
  const place = authority.slice(at + 1)
  const colon = credentials.indexOf(':')
  const userText = colon === -1 ? credentials : credentials.slice(0, colon)
  const user = decode(userText, 'user', problems) || null
  const password = colon === -1 ? null : decode(credentials.slice(colon + 1), 'password', problems)

  if (place.includes(',')) {
    problems.push(SEVERAL_HOSTS)
    return { user, password, host: 'localhost', port: 5432 }
  }
  const match = /^(?:\[([0-9a-fA-F:.]+(?:%25[^\]]+)?)\]|([^:[\]]*))(?::([^:]*))?$/.exec(place)
  if (match === null) {
    problems.push(`"${shorten(place)}" is not host:port; an IPv6 address must be in brackets: [::1]:5432`)
    return { user, password, host: 'localhost', port: 5432 }
  }
  const host = decode(match[1] ?? match[2] ?? '', 'host', problems) || 'localhost'
  return { user, password, host, port: readPort(match[3] ?? '', problems) }
}

function toAddress(host: string, port: number, problems: string[]): Address {
  if (host.includes(',')) problems.push(SEVERAL_HOSTS)
  if (host.includes('\0')) problems.push('the host contains a zero byte (%00)')
  if (host.startsWith('/')) return { kind: 'unix', path: `${host.replace(/\/+$/, '')}/.s.PGSQL.${port}` }
  return { kind: 'tcp', host, port }
}

/** The Kerberos ticket is for the host as written in the URL. */
function toGss({ service, target, ...rest }: GssParameters, address: Address, problems: string[]): GssSettings {
  if (address.kind === 'unix') {
    problems.push(
      'PostgreSQL does not support Kerberos over a Unix socket; give a host, or use another authentication method',
    )
    return { ...rest, target: service }
  }
  return { ...rest, target: target ?? `${service}@${address.host}` }
}

function readQuery(query: string, problems: string[]): Map<string, string> {
  const given = new Map<string, string>()
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    if (equals === -1) {
      problems.push(
        PARAMETERS.has(part)
          ? `parameter "${part}" has no value; expected ${part}=…`
          : // It may be part of a password.
            'a parameter has no "=" and an unknown name; an "&" in a value must be encoded as %26',
      )
      continue
    }
    const name = decode(part.slice(0, equals), 'parameter name', problems)
    const value = decode(part.slice(equals + 1), name, problems)
    if (!PARAMETERS.has(name)) problems.push(unknownParameter(name))
    else if (given.has(name)) problems.push(`${name} is given twice`)
    else if (value.includes('\0')) problems.push(`${name} contains a zero byte (%00)`)
    else given.set(name, value)
  }
  return given
}

function unknownParameter(name: string): string {
  const instead = UNSUPPORTED_PARAMETERS.get(name)
  if (instead !== undefined) return `parameter "${name}" is not supported; ${instead}`
  if (!/^[\w.-]*$/.test(name))
    return 'a parameter has an unknown name; an "&" or "=" in a value must be encoded as %26 or %3D'
  const near = nearest(name, PARAMETERS)
  return `unknown parameter "${shorten(name)}"${near === null ? '' : `; did you mean ${near}?`}`
}

function decode(text: string, what: string, problems: string[]): string {
  try {
    return decodeURIComponent(text)
  } catch {
    problems.push(`the ${what} is not valid percent-encoding; a literal % must be encoded as %25`)
    return ''
  }
}
