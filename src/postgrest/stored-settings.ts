/** Settings that the database stores for roles and functions, and that hold for transactions of requests. */
import type { DatabaseFunction } from '../catalog/model.ts'
import type { RequestSession } from '../identity/identity.ts'
import type { StoredSettings } from './session.ts'

/** Settings that decide how the gateway's statements are read, or that a transaction can no longer change. */
export const KEPT_OUT: readonly string[] = [
  ...['role', 'search_path', 'session_authorization'],
  ...['backslash_quote', 'client_encoding', 'standard_conforming_strings'],
  ...['default_transaction_deferrable', 'default_transaction_isolation', 'default_transaction_read_only'],
  ...['transaction_deferrable', 'transaction_isolation', 'transaction_read_only'],
]

/** The settings of a role or function in the form of a session. */
export function storedSettings(stored: ReadonlyMap<string, string>): StoredSettings {
  const { statement_timeout: timeout, ...others } = Object.fromEntries(stored)
  return { settings: Object.entries(others), timeoutMs: timeout === undefined ? null : millisecondsIn(timeout) }
}

const UNITS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration as PostgreSQL stores it (PostgreSQL manual, 20.1.1). Null for 0, which means no limit. */
function millisecondsIn(text: string): number | null {
  const [, amount = '', unit = ''] = /^\s*([0-9.]+)\s*([a-z]*)\s*$/.exec(text) ?? []
  const ms = Math.round(Number(amount) * (UNITS[unit || 'ms'] ?? Number.NaN))
  return ms > 0 ? ms : null
}

const NAME = /^[\w.]+$/

/** Applies the settings of a function that hold for the whole transaction of its call. */
export class HoistedSettings {
  readonly #names: readonly string[]
  /** Sessions with the same settings share the array of all. */
  readonly #known = new WeakMap<RequestSession['settings'], WeakMap<DatabaseFunction, StoredSettings>>()

  constructor(names: readonly string[]) {
    this.#names = names.map(name => name.toLowerCase()).filter(name => NAME.test(name) && !KEPT_OUT.includes(name))
  }

  /**
   * They replace those of the role. Without any, the result is the same session. `preferredMs`: the timeout
   * that the request prefers, which the function cannot extend; null for none.
   */
  add(session: RequestSession, of: DatabaseFunction, preferredMs: number | null): RequestSession {
    if (of.settings === undefined) return session
    const own = [...of.settings].filter(([name]) => this.#names.includes(name.toLowerCase()))
    if (own.length === 0) return session
    const byFunction = this.#known.get(session.settings) ?? new WeakMap<DatabaseFunction, StoredSettings>()
    this.#known.set(session.settings, byFunction)
    const found = byFunction.get(of)
    if (found !== undefined) return { ...session, ...found }
    const { settings, timeoutMs } = storedSettings(new Map(own))
    const ownMs = timeoutMs === null ? preferredMs : Math.min(timeoutMs, preferredMs ?? timeoutMs)
    const names = new Set(settings.map(([name]) => name))
    const made = {
      settings: [...session.settings.filter(([name]) => !names.has(name)), ...settings],
      timeoutMs: own.some(([name]) => name === 'statement_timeout') ? ownMs : session.timeoutMs,
    }
    byFunction.set(of, made)
    return { ...session, ...made }
  }
}
