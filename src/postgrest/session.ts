/**
 * The session of a request: its database role and the settings that policies, views and functions read, in
 * the packet of the statement.
 */
import { LRUCache } from 'lru-cache'
import type { ClaimSource, PostgrestConfig } from '../config/config.ts'
import type { Incoming } from '../exchange.ts'
import { claimAt } from '../identity/claims.ts'
import type { Identity, RequestSession } from '../identity/identity.ts'
import { isObject, type Json, parseJson, printJson } from '../json/text/values.ts'
import { inDoubleQuotes, quoteIdentifier } from '../language/sql/quote.ts'
import { tokenRequired } from './errors.ts'
import type { PostgrestPreferences } from './preferences.ts'

/** The configuration of sessions. */
export type SessionConfig = Pick<
  PostgrestConfig,
  'anonRole' | 'jwtRoleClaim' | 'extraSearchPath' | 'preRequest' | 'appSettings' | 'txEnd' | 'prefix'
>

/** The settings that the statements of a request have made for its response. */
export interface SessionReply {
  headers: string | null
  status: string | null
}

/** The caller with the database role. Requests with one token share the object. */
export interface DatabaseCaller {
  readonly identity: Identity
  readonly role: string
}

/** Finds the database role of callers. */
export function createRoles({ anonRole, jwtRoleClaim }: SessionConfig): (identity: Identity) => DatabaseCaller {
  const known = new WeakMap<Identity, DatabaseCaller>()
  return identity => {
    const found = known.get(identity)
    if (found !== undefined) return found
    const claims = parseJson(identity.claims)
    const claimed = isObject(claims) && identity.source === 'jwt' ? roleOf(claims, jwtRoleClaim) : null
    const role = claimed ?? anonRole
    if (role === null) throw tokenRequired()
    const all = isObject(claims) ? new Map<string, Json>(claims) : new Map<string, Json>()
    if (claimed === null) all.set('role', role)
    const caller = { identity: { ...identity, role, claims: printJson(all) }, role }
    known.set(identity, caller)
    return caller
  }
}

function roleOf(claims: ReadonlyMap<string, Json>, source: ClaimSource | null): string | null {
  const value =
    source === null ? claims.get('role') : source.kind === 'constant' ? source.value : claimAt(claims, source.claim)
  return typeof value === 'string' && value !== '' ? value : null
}

/** Limits on the settings that are kept for requests that repeat the headers of earlier ones. */
const KEPT_MAX = 1_000
const KEPT_CHARACTERS_MAX = 4_000

type Settings = RequestSession['settings']

/** Settings that the database stores for a role. */
export type StoredSettings = Pick<RequestSession, 'settings' | 'timeoutMs'>

/** Returns the settings that no transaction sets, the same object until they change. */
export type UnsentSettings = () => ReadonlySet<string>

/** Finds the settings of a role. */
export type SettingsOfRole = (role: string) => StoredSettings

interface KeptSettings {
  readonly caller: DatabaseCaller
  readonly stored: StoredSettings
  readonly settings: Settings
}

/** The parts of a request that its settings describe. */
type Head = Pick<Incoming, 'method' | 'path' | 'headers'>

const NO_HEADERS: Incoming['headers'] = {}

/** The head of the last request of a connection or a caller, with its settings. */
interface LastHead extends KeptSettings, Pick<Head, 'method' | 'path'> {
  readonly schema: string
  readonly timezone: string | null
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** Makes the sessions of requests. Requests that differ only in their query and body share the settings. */
export class Sessions {
  readonly #config: SessionConfig
  readonly #settingsOf: SettingsOfRole
  readonly #unsent: UnsentSettings
  readonly #kept = new LRUCache<string, KeptSettings>({ max: KEPT_MAX })
  /** Mostly the same head is sent again, and comparing it is cheaper than making the key. */
  #lastOn = new WeakMap<object, LastHead>()
  #without: ReadonlySet<string>

  /** `settingsOf`: the settings that the database stores for a role, the same object until they change. */
  constructor(config: SessionConfig, settingsOf: SettingsOfRole, unsent: UnsentSettings) {
    this.#config = config
    this.#settingsOf = settingsOf
    this.#unsent = unsent
    this.#without = unsent()
  }

  /** The caller of one request with its session. `reply` receives what the statements set. */
  of(
    caller: DatabaseCaller,
    incoming: Incoming,
    schema: string,
    preferences: PostgrestPreferences,
    reply: SessionReply,
  ): Identity {
    const { preRequest } = this.#config
    const stored = this.#settingsOf(caller.role)
    const session: RequestSession = {
      settings: this.#settings(caller, incoming, schema, preferences.timezone, stored),
      timeoutMs: stored.timeoutMs,
      before: preRequest === null ? null : `SELECT ${configuredFunction(preRequest)}()`,
      rollsBack: rollsBack(this.#config, preferences),
      replied(headers, status) {
        reply.headers = headers
        reply.status = status
      },
    }
    return withSession(caller.identity, session)
  }

  #settings(
    caller: DatabaseCaller,
    incoming: Incoming,
    schema: string,
    timezone: string | null,
    stored: StoredSettings,
  ): Settings {
    const head = this.#headOf(incoming)
    const holder = head.headers === NO_HEADERS ? caller : incoming.connection
    const last = this.#lastOn.get(holder)
    if (last?.caller === caller && last.stored === stored && isSameHead(last, head, schema, timezone)) {
      return last.settings
    }
    const key = settingsKey(head, schema, timezone)
    const found = this.#kept.get(key)
    // Callers without a token can have the same headers.
    const isFound = found?.caller === caller && found.stored === stored
    const settings = isFound ? found.settings : this.#made(caller, head, schema, timezone, stored)
    if (key.length > KEPT_CHARACTERS_MAX) return settings
    if (!isFound) this.#kept.set(key, { caller, stored, settings })
    const { method, path } = head
    const listed = headerList(head)
    if (listed !== null) {
      this.#lastOn.set(holder, { caller, stored, settings, method, path, schema, timezone, headers: listed })
    }
    return settings
  }

  /** Without what no setting that is sent describes, so that all requests of a caller can share theirs. */
  #headOf(incoming: Incoming): Head {
    const unsent = this.#unsent()
    if (unsent !== this.#without) {
      this.#without = unsent
      this.#kept.clear()
      this.#lastOn = new WeakMap()
    }
    if (unsent.size === 0) return incoming
    const hasHeaders = !unsent.has('request.headers') || !unsent.has('request.cookies')
    return {
      method: unsent.has('request.method') ? '' : incoming.method,
      path: unsent.has('request.path') ? '' : incoming.path,
      headers: hasHeaders ? incoming.headers : NO_HEADERS,
    }
  }

  #made(caller: DatabaseCaller, head: Head, schema: string, timezone: string | null, stored: StoredSettings): Settings {
    const { method, path, headers } = head
    const { extraSearchPath, prefix, appSettings } = this.#config
    const { cookie = '' } = headers
    const ofRequest: Settings = [
      ['request.method', method],
      ['request.path', path.slice(prefix.length)],
      ['request.headers', JSON.stringify(headersOf(head))],
      ['request.cookies', JSON.stringify(cookiesOf(cookie))],
    ]
    return [
      // Quoted, because a schema can have the name of a keyword or `$user`.
      ['search_path', [schema, ...extraSearchPath].map(inDoubleQuotes).join(', ')],
      ['role', caller.role],
      ...stored.settings,
      ...ofRequest.filter(([name]) => !this.#without.has(name)),
      ...appSettings,
      ...(timezone === null ? [] : [['timezone', timezone] as const]),
    ]
  }
}

/** A copy with the session. Spreading the object would take a microsecond. */
function withSession(of: Identity, session: RequestSession): Identity {
  const { source, tenantId, userId, agentId, role, scopes, claims, expiresAt, token } = of
  // A property that is added to the type must be copied as well.
  type Copy = Required<Identity>
  if (token === undefined) {
    return { source, tenantId, userId, agentId, role, scopes, claims, expiresAt, session } satisfies Omit<Copy, 'token'>
  }
  return { source, tenantId, userId, agentId, role, scopes, claims, expiresAt, token, session } satisfies Copy
}

/** The session in which the rows of a schema are read for a subscriber. It is the same for all of a role. */
export function withSubscriberSession(
  { identity, role }: DatabaseCaller,
  schema: string,
  config: SessionConfig,
  settingsOf: SettingsOfRole,
): Identity {
  const stored = settingsOf(role)
  const session: RequestSession = {
    timeoutMs: stored.timeoutMs,
    settings: [
      ['search_path', [schema, ...config.extraSearchPath].map(inDoubleQuotes).join(', ')],
      ['role', role],
      ...stored.settings,
      ['request.method', 'GET'],
      ['request.path', '/'],
      ['request.headers', '{}'],
      ['request.cookies', '{}'],
      ...config.appSettings,
    ],
    ...{ before: null, rollsBack: false, replied() {} },
  }
  return { ...identity, session }
}

/** The quoted name of a function that the configuration names, `schema.name` or `name`. */
export function configuredFunction(text: string): string {
  const dot = text.indexOf('.')
  return dot < 0
    ? quoteIdentifier(text)
    : `${quoteIdentifier(text.slice(0, dot))}.${quoteIdentifier(text.slice(dot + 1))}`
}

function rollsBack({ txEnd }: SessionConfig, { tx }: PostgrestPreferences): boolean {
  return tx === null ? txEnd.startsWith('rollback') : tx === 'rollback'
}

/**
 * Everything that the settings of a caller depend on. Joining is cheaper than printing JSON. Every text
 * follows its length, so different requests have different keys.
 */
function settingsKey({ method, path, headers }: Head, schema: string, timezone: string | null): string {
  let key = withLengths(method, path) + withLengths(schema, timezone ?? '')
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) key += withLengths(name, Array.isArray(value) ? value.join(', ') : value)
  }
  return key
}

function isSameHead(last: LastHead, head: Head, schema: string, timezone: string | null): boolean {
  const { method, path, headers } = head
  if (last.method !== method || last.path !== path || last.schema !== schema || last.timezone !== timezone) return false
  let at = 0
  for (const name in headers) {
    if (last.headers[at] !== name || last.headers[at + 1] !== headers[name]) return false
    at += 2
  }
  return at === last.headers.length
}

/** Names and values in turn; null for headers with a list of values. */
function headerList({ headers }: Head): readonly string[] | null {
  const list: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (typeof value !== 'string') return null
    list.push(name, value)
  }
  return list
}

function withLengths(one: string, other: string): string {
  return `${one.length} ${other.length} ${one}${other}`
}

function headersOf({ headers }: Head): Readonly<Record<string, string>> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || name === 'cookie' ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
  )
  return Object.fromEntries(entries)
}

/** The cookies by name (RFC 6265, 4.2.1). */
function cookiesOf(header: string): Readonly<Record<string, string>> {
  const pairs = header.split(';').flatMap(pair => {
    const equals = pair.indexOf('=')
    return equals < 0 ? [] : [[pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()] as const]
  })
  return Object.fromEntries(pairs)
}
