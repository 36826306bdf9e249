/** The settings of requests, which those with the same headers share. */
import { describe, expect, test } from 'vitest'
import type { Incoming } from '../exchange.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { Heads } from './heads.ts'
import { parsePreferences } from './preferences.ts'
import { type DatabaseCaller, type SessionConfig, Sessions, type SettingsSlot, type StoredSettings } from './session.ts'

const CONFIG: SessionConfig = {
  ...{ anonRole: 'anon', jwtRoleClaim: null, extraSearchPath: [], preRequest: null, appSettings: new Map() },
  ...{ txEnd: 'commit', prefix: '/rest/v1' },
}
const PREFERENCES = parsePreferences('', { canOverrideTx: false })
const NEW_YORK = { ...PREFERENCES, timezone: 'America/New_York' }

const caller: DatabaseCaller = { identity: ANONYMOUS, role: 'anon', settings: null }
let stored: StoredSettings = { settings: [], timeoutMs: null }
const ALL: ReadonlySet<string> = new Set()
let unsent = ALL
const sessions = new Sessions(
  CONFIG,
  () => stored,
  () => unsent,
  30_000,
)

interface Request {
  readonly method?: string
  readonly path?: string
  readonly headers?: Incoming['headers']
  readonly schema?: string
  readonly preferences?: typeof PREFERENCES
  readonly by?: DatabaseCaller
}

const REPLY = { headers: null, status: null }
const heads = new Heads<SettingsSlot>(() => ({ settings: null }))
const CONNECTION = {}

function settingsOn(connection: object, request: Request) {
  const { method = 'GET', path = '/rest/v1/orders', headers = { accept: '*/*' }, schema = 'public' } = request
  const { by = caller, preferences = PREFERENCES } = request
  const incoming = { method, path, headers, connection } as Incoming
  const { session } = sessions.of(by, incoming, heads.of(incoming), schema, preferences, REPLY)
  return session?.settings ?? []
}

describe.each<readonly [string, () => object]>([
  ['one connection', () => CONNECTION],
  ['several connections', () => ({})],
])('on %s', (_, connection) => {
  const settingsOf = (request: Request) => settingsOn(connection(), request)

  test('requests of a caller with the same headers share their settings', () => {
    expect(settingsOf({ headers: { a: '1', cookie: 'b=2' } })).toBe(settingsOf({ headers: { a: '1', cookie: 'b=2' } }))
  })

  test('settings of the role that were read again replace the earlier ones', () => {
    const before = settingsOf({})
    stored = { settings: [['lock_timeout', '5s']], timeoutMs: null }
    expect(settingsOf({})).toEqual([...before.slice(0, 2), ...stored.settings, ...before.slice(2)])
    stored = { settings: [], timeoutMs: null }
    expect(settingsOf({})).toEqual(before)
  })

  test.each<readonly [string, Request]>([
    ['method', { method: 'HEAD' }],
    ['path', { path: '/rest/v1/orders2' }],
    ['header', { headers: { accept: 'text/csv' } }],
    ['cookie', { headers: { accept: '*/*', cookie: 'a=1' } }],
    ['schema', { schema: 'other' }],
    ['time zone', { preferences: NEW_YORK }],
    ['caller', { by: { identity: ANONYMOUS, role: 'other', settings: null } }],
    ['list of values', { headers: { accept: '*/*', 'set-cookie': ['a', 'b'] } }],
    ['missing header', { headers: {} }],
    ['further header', { headers: { accept: '*/*', range: '0-9' } }],
  ])('a request with another %s has its own settings', (_, other) => {
    const own = settingsOf({})
    expect(settingsOf(other)).not.toEqual(own)
    expect(settingsOf({})).toEqual(own)
  })

  test('requests with different timeouts share no settings, because commands are kept by them', () => {
    const own = settingsOf({})
    const shorter = settingsOf({ preferences: { ...PREFERENCES, timeoutMs: 5_000 } })
    expect(shorter).toEqual(own)
    expect(shorter).not.toBe(own)
    expect(settingsOf({ preferences: { ...PREFERENCES, timeoutMs: 6_000 } })).not.toBe(shorter)
  })

  test('requests that differ only in what no setting describes share their settings', () => {
    const all = settingsOf({})
    unsent = new Set(['request.method', 'request.path', 'request.headers', 'request.cookies'])
    const without = settingsOf({})
    expect(without).toEqual(all.filter(([name]) => !unsent.has(name)))
    const requests: readonly Request[] = [{ method: 'POST' }, { path: '/rest/v1/a' }, { headers: { a: '1' } }]
    for (const request of requests) expect(settingsOf(request)).toBe(without)
    expect(settingsOf({ schema: 'other' })).not.toEqual(without)
    expect(settingsOf({ by: { identity: ANONYMOUS, role: 'other', settings: null } })).not.toEqual(without)
    unsent = new Set(['request.method', 'request.path', 'request.headers'])
    expect(settingsOf({ headers: { cookie: 'a=1' } })).toContainEqual(['request.cookies', '{"a":"1"}'])
    unsent = ALL
    expect(settingsOf({})).toEqual(all)
  })

  test('callers with the same role and headers, but other claims, have their own settings', () => {
    const other: DatabaseCaller = { identity: { ...ANONYMOUS, claims: '{"sub":"b"}' }, role: 'anon', settings: null }
    expect(settingsOf({ by: other })).not.toBe(settingsOf({}))
  })

  // Each pair has the same characters in the same order.
  test.each<readonly [string, Incoming['headers'], Incoming['headers']]>([
    ['a name and a value', { ab: 'c' }, { a: 'bc' }],
    ['a value and a name', { a: 'b', cd: '' }, { a: 'bc', d: '' }],
    ['two headers and one', { a: '1', b: '2' }, { a: '1b2' }],
    ['a value with lengths', { a: '1', b: '2' }, { a: '11 1 b2' }],
  ])('the border between %s counts', (_, headers, others) => {
    const headersIn = (request: Request) => settingsOf(request).find(([name]) => name === 'request.headers')?.[1]
    expect(headersIn({ headers })).toBe(JSON.stringify(headers))
    expect(headersIn({ headers: others })).toBe(JSON.stringify(others))
  })
})
