/**
 * The kinds of values that settings have. Each kind describes what it expects and converts the written
 * value to the form that the gateway uses. Kinds are pure: `load.ts` checks whether files exist.
 */
import { isAbsolute, resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { parseClaimPath } from './claim-path.ts'
import {
  type Bind,
  type ClaimSource,
  HMAC_ALGORITHMS,
  type JwtAlgorithm,
  PUBLIC_KEY_ALGORITHMS,
  type RequiredClaim,
} from './config.ts'
import { isTable } from './toml-file.ts'

/** One kind of value. */
export interface Kind<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** Parses a value as TOML returns it; throws `Refusal`. Relative paths are relative to `folder`. */
  parse(value: unknown, folder: string): T
  /** Converts a text from the environment to a value; kinds without it use the text itself. */
  fromText?(text: string): unknown
  /** True if the value names a file that must be readable at startup. */
  readonly namesFile?: true
}

/**
 * The value is not of this kind; `element` is the index of the invalid array element, null for the whole
 * value.
 */
export class Refusal extends Error {
  readonly expected: string
  readonly element: number | null

  constructor(expected: string, element: number | null = null) {
    super(`expected ${expected}`)
    this.name = 'Refusal'
    this.expected = expected
    this.element = element
  }
}

/** An integer within bounds. */
export function integerKind(min: number, max: number): Kind<number> {
  const expected = `an integer from ${min} to ${max}`
  return {
    expected,
    parse: value => {
      if (!Number.isInteger(value)) throw new Refusal(expected)
      return inBounds(value as number, min, max, expected)
    },
    fromText: text => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
  }
}

/** An integer within bounds, or `auto`. */
export function integerOrAuto(min: number, max: number): Kind<number | 'auto'> {
  const expected = `an integer from ${min} to ${max}, or "auto"`
  const number = integerKind(min, max)
  return {
    expected,
    parse: (value, folder) => {
      if (value === 'auto') return value
      if (!Number.isInteger(value)) throw new Refusal(expected)
      return number.parse(value, folder)
    },
    fromText: text => number.fromText?.(text) ?? text,
  }
}

/** A number within bounds. */
export function decimal(min: number, max: number): Kind<number> {
  const expected = `a number from ${min} to ${max}`
  return {
    expected,
    parse: value => {
      if (typeof value !== 'number') throw new Refusal(expected)
      return inBounds(value, min, max, expected)
    },
    fromText: text => (/^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text),
  }
}

// Written so that NaN, which TOML allows, is out of bounds.
function inBounds(value: number, min: number, max: number, expected: string): number {
  if (!(value >= min && value <= max)) throw new Refusal(expected)
  return value
}

/** A flag. */
export const flag: Kind<boolean> = {
  expected: 'true or false',
  parse: value => {
    if (typeof value !== 'boolean') throw new Refusal(flag.expected)
    return value
  },
  fromText: text => (text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text),
}

/** A text that is not empty. */
export const textKind: Kind<string> = {
  expected: 'a non-empty string',
  parse: value => {
    if (typeof value !== 'string' || value === '' || value.includes('\0')) throw new Refusal(textKind.expected)
    return value
  },
}

/** A text as it is, possibly empty: `identity/boot` rejects an empty secret with a better message. */
export const secretText: Kind<string> = {
  expected: 'a string',
  parse: value => {
    if (typeof value !== 'string') throw new Refusal(secretText.expected)
    return value
  },
}

/** One of a fixed set of texts. */
export function choice<const T extends string>(...choices: readonly T[]): Kind<T> {
  const expected = `one of ${choices.map(name => `"${name}"`).join(', ')}`
  return {
    expected,
    parse: value => {
      const found = choices.find(name => name === value)
      if (found === undefined) throw new Refusal(expected)
      return found
    },
  }
}

/** A path, resolved against the folder of the file that contains it. */
export const path: Kind<string> = {
  expected: 'the path of a file',
  parse: (value, folder) => {
    if (typeof value !== 'string' || value === '' || value.includes('\0')) throw new Refusal(path.expected)
    return resolve(folder, value)
  },
  namesFile: true,
}

/** The path of a route. It cannot be below `/api/`, whose names are those of tables. */
export const routePath: Kind<string> = {
  expected: 'a path such as "/v1/shape", not below /api/',
  parse: value => {
    const isPath = typeof value === 'string' && /^(\/[\w.~-]+)+$/.test(value) && value.length <= 200
    if (!isPath || value.startsWith('/api/') || TAKEN_PATHS.has(value)) throw new Refusal(routePath.expected)
    return value
  },
}

/** Paths of other routes. */
const TAKEN_PATHS: ReadonlySet<string> = new Set(['/api', '/ws', '/health', '/health/internal', '/metrics', '/docs'])

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i

/** A host and a port to listen on. */
export const bind: Kind<Bind> = {
  expected: '"HOST:PORT", for example "127.0.0.1:8080" or "[::1]:8080"',
  parse: value => {
    const parts = typeof value === 'string' ? /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value) : null
    const port = Number(parts?.[3])
    const [bracketed, plain] = [parts?.[1], parts?.[2]]
    const isHost =
      bracketed === undefined ? plain !== undefined && HOST_NAME.test(plain) : ipaddr.IPv6.isValid(bracketed)
    if (!isHost || port > 65_535) throw new Refusal(bind.expected)
    return { host: bracketed ?? plain ?? '', port }
  },
}

/** Only the scheme is checked here; `postgres/url` parses the rest and knows every parameter. */
export const databaseUrl: Kind<string> = {
  expected: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
  parse: (value, folder) => {
    if (typeof value !== 'string' || !/^postgres(ql)?:\/\/./.test(value)) throw new Refusal(databaseUrl.expected)
    return resolvePathParameters(value, folder)
  },
}

const PATH_PARAMETERS = new Set(['sslrootcert', 'sslcert', 'sslkey'])

function resolvePathParameters(url: string, folder: string): string {
  const start = url.indexOf('?')
  if (start === -1) return url
  const parameters = url.slice(start + 1).split('&')
  return `${url.slice(0, start)}?${parameters.map(parameter => resolvePathParameter(parameter, folder)).join('&')}`
}

function resolvePathParameter(parameter: string, folder: string): string {
  const [name = '', value = ''] = parameter.split('=', 2)
  // libpq gives `sslrootcert=system` a special meaning (PostgreSQL manual, 34.1.2).
  if (!PATH_PARAMETERS.has(name) || value === '' || value === 'system' || /%(?![0-9a-f]{2})/i.test(value))
    return parameter
  const written = decodeURIComponent(value)
  return isAbsolute(written) ? parameter : `${name}=${encodeURIComponent(resolve(folder, written))}`
}

/** An array whose elements are each checked by `check` and differ from each other. */
function list(expected: string, check: (element: string) => string | null, least: number): Kind<readonly string[]> {
  return {
    expected,
    parse: value => {
      if (!Array.isArray(value) || value.length < least) throw new Refusal(expected)
      const elements: string[] = []
      for (const [index, element] of value.entries()) {
        const checked = typeof element === 'string' ? check(element) : null
        if (checked === null || elements.includes(checked)) throw new Refusal(expected, index)
        elements.push(checked)
      }
      return Object.freeze(elements)
    },
  }
}

const isName = (element: string): string | null => (element === '' || element.includes('\0') ? null : element)

/** The list can be empty. */
export const names: Kind<readonly string[]> = list('an array of distinct names', isName, 0)

/** `svc` is the gateway's own schema; its change log has rows of every tenant. */
const SYSTEM_SCHEMAS = new Set(['pg_catalog', 'information_schema', 'pg_toast', 'svc'])

/** Names of schemas to publish. */
export const schemaNames: Kind<readonly string[]> = list(
  'an array of one or more distinct schema names, without PostgreSQL’s own schemas and svc',
  element => (SYSTEM_SCHEMAS.has(element) ? null : isName(element)),
  1,
)

/** Addresses and CIDR ranges. */
export const networks: Kind<readonly string[]> = list(
  'an array of distinct addresses or CIDR ranges, for example ["10.0.0.0/8", "::1"]',
  element => (ipaddr.isValidCIDR(element) || isAddress(element) ? element : null),
  0,
)

// `ipaddr.isValid` accepts "1" and "127.1" as addresses, as inet_aton does; they are rejected here.
function isAddress(element: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(element) || ipaddr.IPv6.isValid(element)
}

/**
 * Origins in lower case, as browsers send them. A wildcard within an origin would match nothing, so it is
 * rejected.
 */
export const origins: Kind<readonly string[]> = list(
  'an array of distinct origins such as "https://app.example.com" (no path, no trailing slash), or ["*"] for any',
  element => (element === '*' || /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#*]+$/i.test(element) ? element.toLowerCase() : null),
  0,
)

/** Host names in lower case, since case does not matter in them. */
export const hostNames: Kind<readonly string[]> = list(
  'an array of distinct host names such as "tools.example.com" (no scheme, no port)',
  element => (/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(element) ? element.toLowerCase() : null),
  0,
)

/** One text, or several. */
export const texts: Kind<readonly string[]> = {
  expected: 'a non-empty string, or an array of distinct ones',
  parse: (value, folder) => {
    return list(texts.expected, isName, 1).parse(typeof value === 'string' ? [value] : value, folder)
  },
}

const JWT_ALGORITHMS: readonly string[] = [...PUBLIC_KEY_ALGORITHMS, ...HMAC_ALGORITHMS]

/** Signature algorithms. */
export const algorithms: Kind<readonly JwtAlgorithm[]> = list(
  `an array of distinct algorithms from ${JWT_ALGORITHMS.join(', ')}`,
  element => (JWT_ALGORITHMS.includes(element) ? element : null),
  1,
) as Kind<readonly JwtAlgorithm[]>

/** Keys must not be read or changed in transit, so https is required except on the machine itself. */
export const providerUrl: Kind<string> = {
  expected: 'an https:// URL without user, password and fragment; http:// only on 127.0.0.1, ::1 and localhost',
  parse: value => {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
    if (url === null || !isProviderUrl(url)) throw new Refusal(providerUrl.expected)
    return value as string
  },
}

/** True if keys can be fetched from the URL. */
export function isProviderUrl(url: URL): boolean {
  if (url.username !== '' || url.password !== '' || url.hash !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))
}

function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** The public URL of the gateway. */
export const publicUrl: Kind<string> = {
  expected: 'an http:// or https:// URL without user, query and fragment, and no trailing slash',
  parse: value => {
    const isUrl =
      typeof value === 'string' && /^https?:\/\/[^\s?#@"\\]+[^\s?#@"\\/]$/.test(value) && URL.canParse(value)
    if (!isUrl) throw new Refusal(publicUrl.expected)
    return value
  },
}

/** The URL of a service that the operator names. */
export const httpUrl: Kind<string> = {
  expected: 'an http:// or https:// URL without user, password and fragment',
  parse: value => {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
    const isHttp = url !== null && /^https?:$/.test(url.protocol) && url.username + url.password + url.hash === ''
    if (!isHttp) throw new Refusal(httpUrl.expected)
    return value as string
  },
}

/** The URL of a Valkey or Redis server. */
export const redisUrl: Kind<string> = {
  expected: 'a redis:// or rediss:// URL with a host',
  parse: value => {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
    if (url === null || !/^rediss?:$/.test(url.protocol) || url.hostname === '') throw new Refusal(redisUrl.expected)
    return value as string
  },
}

/** The prefix of keys in a store that several programs share. */
export const keyPrefix: Kind<string> = {
  expected: '1 to 64 letters, digits and the characters . _ : -',
  parse: value => {
    if (typeof value !== 'string' || !/^[A-Za-z0-9._:-]{1,64}$/.test(value)) throw new Refusal(keyPrefix.expected)
    return value
  },
}

/** The name of an HTTP header (RFC 9110, 5.1). */
export const headerName: Kind<string> = {
  expected: 'the name of a header, such as "X-Trace-Id"',
  parse: value => {
    if (typeof value !== 'string' || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value))
      throw new Refusal(headerName.expected)
    return value
  },
}

/** The name of an environment variable. */
export const variableName: Kind<string> = {
  expected: 'the name of an environment variable',
  parse: value => {
    if (typeof value !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(value)) throw new Refusal(variableName.expected)
    return value
  },
}

/** The source of one session setting: a claim, a path or a constant. */
export const claimSource: Kind<ClaimSource> = {
  expected:
    'the name of a claim, a path such as "app_metadata.tenant_id" or "roles[0]", or a constant: { value = "…" }',
  parse: value => {
    const constant = isTable(value) && Object.keys(value).length === 1 ? value.value : undefined
    if (typeof constant === 'string' && !constant.includes('\0')) {
      return Object.freeze({ kind: 'constant', value: constant })
    }
    const claim = typeof value === 'string' ? parseClaimPath(value) : null
    if (claim === null) throw new Refusal(claimSource.expected)
    return Object.freeze({ kind: 'claim', claim })
  },
}

/** A path of URLs without a slash at its end. */
export const urlPrefix: Kind<string> = {
  expected: 'a path such as "/rest/v1", without a slash at its end, and not "/api", "/ws" or "/health"',
  parse: value => {
    const isPrefix = typeof value === 'string' && /^(\/[A-Za-z0-9_.~-]+)+$/.test(value)
    if (!isPrefix || OWN_PATHS.has(value.split('/')[1] ?? '')) throw new Refusal(urlPrefix.expected)
    return value
  },
}

const OWN_PATHS: ReadonlySet<string> = new Set(['api', 'ws', 'health', 'metrics', 'docs', '.', '..', '.well-known'])

/** Session settings with a prefix, such as `app.settings.secret`. */
const SETTING_NAME = /^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)+$/

/** A table whose values are each checked by `check`, which returns null for an invalid one. */
function tableOf<T>(expected: string, check: (value: unknown, key: string) => T | null): Kind<ReadonlyMap<string, T>> {
  return {
    expected,
    parse: value => {
      if (!isTable(value)) throw new Refusal(expected)
      const entries = Object.entries(value).map(([key, written]) => {
        const checked = check(written, key)
        if (checked === null || key === '') throw new Refusal(expected)
        return [key, checked] as const
      })
      if (entries.length > TABLE_ENTRIES_MAX) throw new Refusal(`at most ${TABLE_ENTRIES_MAX} entries`)
      return new Map(entries)
    },
  }
}

const TABLE_ENTRIES_MAX = 1_000

const isText = (value: unknown): string | null => (typeof value === 'string' && !value.includes('\0') ? value : null)

/** A table of texts. */
export const textTable: Kind<ReadonlyMap<string, string>> = tableOf('a table of strings: { from = "to" }', isText)

/** A table of secrets. Its keys are not secret. */
export const secretTable: Kind<ReadonlyMap<string, string>> = tableOf(
  'a table of non-empty strings: { name = "…" }',
  value => isText(value) || null,
)

/** A table of PostgreSQL's custom settings. */
export const settingTable: Kind<ReadonlyMap<string, string>> = tableOf(
  'a table of strings by the name of a session setting with a prefix: { "app.settings.host" = "…" }',
  (value, key) => (SETTING_NAME.test(key) ? isText(value) : null),
)

/** Claims that a token must have. */
export const requiredClaims: Kind<ReadonlyMap<string, RequiredClaim>> = tableOf(
  'a table of claims and their exact values, each a string, a number or a boolean; true means that the claim is ' +
    'present and not false',
  (value, key) => {
    const claim = parseClaimPath(key)
    const isExact = typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)
    return claim === null || !isExact ? null : Object.freeze({ claim, value: value as RequiredClaim['value'] })
  },
)
