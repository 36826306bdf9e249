/**
 * What a setting's value may be: one kind per form, each of which says what it expects and turns what was written into
 * what the gateway uses. Pure: whether a named file exists is asked by `load.ts`.
 */
import { isAbsolute, resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import type { Bind } from './config.ts'

export interface Kind<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** Takes the value as TOML gave it; throws `Refusal`. `folder` is where relative paths begin. */
  parse(value: unknown, folder: string): T
  /** The value that a text from the environment stands for; kinds without it take the text itself. */
  fromText?(text: string): unknown
  /** The value names a file that has to be readable at start-up. */
  readonly namesFile?: true
}

/** The value is not of the kind; `element` is the index of the offending element of an array. */
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

export function integer(min: number, max: number): Kind<number> {
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

// Written so that NaN, which TOML can say, is out of bounds.
function inBounds(value: number, min: number, max: number, expected: string): number {
  if (!(value >= min && value <= max)) throw new Refusal(expected)
  return value
}

export const flag: Kind<boolean> = {
  expected: 'true or false',
  parse: value => {
    if (typeof value !== 'boolean') throw new Refusal(flag.expected)
    return value
  },
  fromText: text => (text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text),
}

export const text: Kind<string> = {
  expected: 'a string that is not empty',
  parse: value => {
    if (typeof value !== 'string' || value === '' || value.includes('\0')) throw new Refusal(text.expected)
    return value
  },
}

/** Taken as it is, empty too: `identity/boot` refuses an empty secret with a better sentence. */
export const secretText: Kind<string> = {
  expected: 'a string',
  parse: value => {
    if (typeof value !== 'string') throw new Refusal(secretText.expected)
    return value
  },
}

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

/** Resolved against the folder of the file that has it. */
export const path: Kind<string> = {
  expected: 'the path of a file',
  parse: (value, folder) => {
    if (typeof value !== 'string' || value === '' || value.includes('\0')) throw new Refusal(path.expected)
    return resolve(folder, value)
  },
  namesFile: true,
}

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i

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

/** Only the scheme is looked at here; `postgres/url` reads the rest and knows every parameter. */
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
  // libpq gives `sslrootcert=system` a meaning of its own (PostgreSQL manual, 34.1.2).
  if (!PATH_PARAMETERS.has(name) || value === '' || value === 'system' || /%(?![0-9a-f]{2})/i.test(value))
    return parameter
  const written = decodeURIComponent(value)
  return isAbsolute(written) ? parameter : `${name}=${encodeURIComponent(resolve(folder, written))}`
}

/** An array whose elements are each checked by `check`, and of which none may appear twice. */
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

/** None needed. */
export const names: Kind<readonly string[]> = list('an array of different names', isName, 0)

/** `svc` is the gateway's own schema, with rows of every tenant in its log. */
const SYSTEM_SCHEMAS = new Set(['pg_catalog', 'information_schema', 'pg_toast', 'svc'])

export const schemaNames: Kind<readonly string[]> = list(
  'an array of at least one schema name, each different, none of them a schema of the system or svc',
  element => (SYSTEM_SCHEMAS.has(element) ? null : isName(element)),
  1,
)

export const networks: Kind<readonly string[]> = list(
  'an array of different addresses or CIDR ranges, for example ["10.0.0.0/8", "::1"]',
  element => (ipaddr.isValidCIDR(element) || isAddress(element) ? element : null),
  0,
)

// `ipaddr.isValid` takes "1" and "127.1" for addresses, as inet_aton does; nobody means those.
function isAddress(element: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(element) || ipaddr.IPv6.isValid(element)
}

/** In lower case, as browsers send them. A star inside would never match anything, so it is refused. */
export const origins: Kind<readonly string[]> = list(
  'an array of different origins such as "https://app.example.com" (no path, no trailing slash), or ["*"] for any',
  element => (element === '*' || /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#*]+$/i.test(element) ? element.toLowerCase() : null),
  0,
)

/** In lower case, as names of hosts mean the same in any. */
export const hostNames: Kind<readonly string[]> = list(
  'an array of different host names such as "tools.example.com" (no scheme, no port)',
  element => (/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(element) ? element.toLowerCase() : null),
  0,
)
