/**
 * Parses a connection URL (PostgreSQL manual, 34.1.1.2; docs/guides/database-connections.md#parameters).
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
  // An unescaped "/" or "?" in a password ends the authority early. The rest of the password must then not
  // appear in a message as a port or a name.
  if (/^[^@[]*:(?!\d*(?:,[^:,@]*(?::\d*)?)*$)[^@]*$/.test(authority)) throw new UrlError([malformed(text)])
  const { user, password, hosts } = readAuthority(authority, problems)
  const warnings: string[] = []
  const settings = readSettings(readQuery(query, problems), problems, warnings)

  const finalUser = settings.user ?? user
  if (finalUser === null) problems.push('the user is missing; expected postgres://user:password@host:port/database')
  const database = settings.dbname ?? (decode(path, 'database name', problems) || finalUser || '')
  const [address, ...others] = toAddresses(hosts, settings, problems)
  if (settings.gss !== null && others.length > 0) problems.push(SEVERAL_WITH_KERBEROS)
  const target = {
    address,
    others,
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
  const isLocal = [address, ...others].some(({ kind }) => kind === 'unix')
  if (isLocal && isVerifying(target.tls.mode)) {
    problems.push(
      `sslmode=${target.tls.mode} is not possible over a Unix socket, which never uses TLS; remove it or give a host`,
    )
  }
  if (isLocal && target.auth.channelBinding === 'require') {
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
  readonly hosts: readonly Host[]
}

/** A host as given. */
interface Host {
  readonly host: string
  readonly port: string
}

/** Limit on the hosts of a URL. A new connection may have to try each of them. */
const HOSTS_MAX = 16

const SEVERAL_WITH_KERBEROS =
  'several hosts are given with Kerberos, whose tickets are for one host; give one host, or use another ' +
  'authentication method'

/**
 * authority = [ user [ ":" password ] "@" ] place { "," place } ; place = host [ ":" port ] ;
 * host = name | "[" IPv6 "]" | percent-encoded path
 */
function readAuthority(authority: string, problems: string[]): Authority {
  const at = authority.lastIndexOf('@')
  const credentials = at === -1 ? '' : authority.slice(0, at)
  const places = authority.slice(at + 1)
  const colon = credentials.indexOf(':')
  const userText = colon === -1 ? credentials : credentials.slice(0, colon)
  const user = decode(userText, 'user', problems) || null
  const password = colon === -1 ? null : decode(credentials.slice(colon + 1), 'password', problems)

  return { user, password, hosts: places.split(',').map(place => readHost(place, problems)) }
}

function readHost(place: string, problems: string[]): Host {
  const match = /^(?:\[([0-9a-fA-F:.]+(?:%25[^\]]+)?)\]|([^:[\]]*))(?::([^:]*))?$/.exec(place)
  if (match === null) {
    problems.push(`"${shorten(place)}" is not host:port; an IPv6 address must be in brackets: [::1]:5432`)
    return { host: '', port: '' }
  }
  return { host: decode(match[1] ?? match[2] ?? '', 'host', problems), port: match[3] ?? '' }
}

/**
 * The parameters `host` and `port` replace those of the authority. A single port is that of all hosts, as in
 * libpq.
 */
function toAddresses(
  given: readonly Host[],
  { host, port }: { readonly host: string | null; readonly port: string | null },
  problems: string[],
): [Address, ...Address[]] {
  const hosts = host === null ? given.map(one => one.host) : host.split(',')
  const ports = port === null ? given.map(one => one.port) : port.split(',')
  if (hosts.length > HOSTS_MAX) problems.push(`${hosts.length} hosts are given; at most ${HOSTS_MAX} are accepted`)
  if (ports.length !== 1 && ports.length !== hosts.length) {
    problems.push(`${ports.length} ports are given for ${hosts.length} hosts; give one for each, or one for all`)
  }
  const numbers = ports.map(text => readPort(text, problems))
  const addresses = hosts.map((name, at) => {
    const number = ports.length === 1 ? numbers[0] : numbers[at]
    return toAddress(name || 'localhost', number ?? 5432, problems)
  })
  return addresses as [Address, ...Address[]]
}

function toAddress(host: string, port: number, problems: string[]): Address {
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
