/**
 * The session of a request: its database role and the settings that policies, views and functions read, in
 * the packet of the statement.
 */
import type { ClaimSource, PostgrestConfig } from '../config/config.ts'
import { claimAt } from '../identity/claims.ts'
import type { Identity, RequestSession } from '../identity/identity.ts'
import { isObject, type Json, parseJson, printJson } from '../json/text/values.ts'
import { inDoubleQuotes, quoteIdentifier } from '../language/sql/quote.ts'
import { timeoutTooLong, tokenRequired } from './errors.ts'
import type { Head } from './heads.ts'
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

/**
 * The caller with the database role. Requests with one token share the object, and settings that describe no
 * request.
 */
export interface DatabaseCaller extends SettingsSlot {
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
    const caller = { identity: { ...identity, role, claims: printJson(all) }, role, settings: null }
    known.set(identity, caller)
    return caller
  }
}

function roleOf(claims: ReadonlyMap<string, Json>, source: ClaimSource | null): string | null {
  const value =
    source === null ? claims.get('role') : source.kind === 'constant' ? source.value : claimAt(claims, source.claim)
  return typeof value === 'string' && value !== '' ? value : null
}

type Settings = RequestSession['settings']

/** Settings that the database stores for a role. */
export type StoredSettings = Pick<RequestSession, 'settings' | 'timeoutMs'>

/** Returns the settings that no transaction sets, the same object until they change. */
export type UnsentSettings = () => ReadonlySet<string>

/** Finds the settings of a role. */
export type SettingsOfRole = (role: string) => StoredSettings

/** Settings, and what they were made for in addition to the head of the request. */
interface KeptSettings {
  readonly settings: Settings
  readonly caller: DatabaseCaller
  readonly stored: StoredSettings
  /** The settings that are left out. */
  readonly without: ReadonlySet<string>
  readonly schema: string
  readonly timezone: string | null
  readonly timeoutMs: number | null
}

/** The last settings for a head, or for a caller. */
export interface SettingsSlot {
  settings: KeptSettings | null
}

/** Makes the sessions of requests. Requests that differ only in their query and body share the settings. */
export class Sessions {
  readonly #config: SessionConfig
  readonly #settingsOf: SettingsOfRole
  readonly #unsent: UnsentSettings
  readonly #statementTimeoutMs: number
  readonly #before: string | null
  readonly #rollsBack: boolean

  /**
   * `settingsOf`: the settings that the database stores for a role, the same object until they change.
   * `statementTimeoutMs`: the limit of the gateway.
   */
  constructor(config: SessionConfig, settingsOf: SettingsOfRole, unsent: UnsentSettings, statementTimeoutMs: number) {
    this.#config = config
    this.#settingsOf = settingsOf
    this.#unsent = unsent
    this.#statementTimeoutMs = statementTimeoutMs
    const { preRequest, txEnd } = config
    this.#rollsBack = txEnd.startsWith('rollback')
    this.#before = preRequest === null ? null : `SELECT ${configuredFunction(preRequest)}()`
  }

  /**
   * The caller of one request with its session. `slot` is the same for requests with the same head. `reply`
   * receives what the statements set.
   * @throws {PostgrestError} for a preferred timeout above the maximum.
   */
  of(
    caller: DatabaseCaller,
    head: Head,
    slot: SettingsSlot,
    schema: string,
    preferences: PostgrestPreferences,
    reply: SessionReply,
  ): Identity {
    const { timezone, tx } = preferences
    const stored = this.#settingsOf(caller.role)
    const timeoutMs = this.#timeoutMs(preferences, stored)
    const session: RequestSession = {
      settings: this.#settings(caller, head, slot, schema, timezone, timeoutMs, stored),
      timeoutMs,
      before: this.#before,
      rollsBack: tx === null ? this.#rollsBack : tx === 'rollback',
      replied(headers, status) {
        reply.headers = headers
        reply.status = status
      },
    }
    return withSession(caller.identity, session)
  }

  #timeoutMs({ timeoutMs }: PostgrestPreferences, stored: StoredSettings): number | null {
    if (timeoutMs === null) return stored.timeoutMs
    const maxMs = Math.min(this.#statementTimeoutMs, stored.timeoutMs ?? Number.POSITIVE_INFINITY)
    if (timeoutMs > maxMs) throw timeoutTooLong(maxMs)
    return timeoutMs
  }

  #settings(
    caller: DatabaseCaller,
    head: Head,
    ofHead: SettingsSlot,
    schema: string,
    timezone: string | null,
    timeoutMs: number | null,
    stored: StoredSettings,
  ): Settings {
    const without = this.#unsent()
    const slot = OF_REQUEST.every(name => without.has(name)) ? caller : ofHead
    const last = slot.settings
    if (last?.caller === caller && last.stored === stored && last.without === without) {
      if (last.schema === schema && last.timezone === timezone && last.timeoutMs === timeoutMs) return last.settings
    }
    const settings = this.#made(caller, describing(head, this.#config, without), schema, timezone, stored)
    slot.settings = { settings, caller, stored, without, schema, timezone, timeoutMs }
    return settings
  }

  #made(
    caller: DatabaseCaller,
    ofRequest: Settings,
    schema: string,
    timezone: string | null,
    stored: StoredSettings,
  ): Settings {
    const { extraSearchPath, appSettings } = this.#config
    return [
      // Quoted, because a schema can have the name of a keyword or `$user`.
      ['search_path', [schema, ...extraSearchPath].map(inDoubleQuotes).join(', ')],
      ['role', caller.role],
      ...stored.settings,
      ...ofRequest,
      ...appSettings,
      ...(timezone === null ? [] : [['timezone', timezone] as const]),
    ]
  }
}

/** The settings that describe the request. */
const OF_REQUEST = ['request.method', 'request.path', 'request.headers', 'request.cookies'] as const

function describing(head: Head, { prefix }: SessionConfig, without: ReadonlySet<string>): Settings {
  const { method, path, headers } = head
  const values = [
    method,
    path.slice(prefix.length),
    JSON.stringify(headersOf(head)),
    JSON.stringify(cookiesOf(headers.cookie ?? '')),
  ]
  return OF_REQUEST.map((name, index) => [name, values[index] ?? ''] as const).filter(([name]) => !without.has(name))
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
