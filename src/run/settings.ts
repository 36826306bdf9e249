/**
 * The first statement of every transaction: who is asking (specification 2.3, decisions 6), and how long and how far a statement may go.
 *
 * It rides in the same packet as the query it protects. What stands before a Sync is one transaction, so the settings end with it, and if one
 * cannot be set PostgreSQL skips to the Sync and the query cannot run (manual, 54.2.3): fail-closed by protocol, not by care.
 */
import type { Identity } from '../identity/identity.ts'
import { settingsOf } from '../identity/settings.ts'
import { encodeParameters } from '../postgres/parameters.ts'
import type { Command, EncodedParameters } from '../postgres/types.ts'

export interface SettingsSource {
  /** The command that begins a transaction for `identity` that can only read. */
  forReading(identity: Identity): Command
}

export function createSettings(options: { readonly statementTimeoutMs: number }): SettingsSource {
  // An identity comes from the cache of verified tokens and is the same object for every request of a token.
  const reading = new WeakMap<Identity, EncodedParameters>()
  let text = ''
  const encode = (identity: Identity): EncodedParameters => {
    const settings = [
      ...settingsOf(identity),
      ['transaction_read_only', 'on'] as const,
      ['statement_timeout', String(options.statementTimeoutMs)] as const,
    ]
    text = settingsText(settings.map(([name]) => name))
    const encoded = encodeParameters(settings.map(([, value]) => value))
    reading.set(identity, encoded)
    return encoded
  }
  return {
    forReading(identity) {
      const parameters = reading.get(identity) ?? encode(identity)
      return { text, parameters }
    },
  }
}

/**
 * `set_config` returns the value that it set, and nobody needs it back: as conditions, all must be evaluated for the one row without columns to
 * appear, and nothing is sent.
 */
function settingsText(names: readonly string[]): string {
  const conditions = names.map((name, index) => `set_config('${name}', $${index + 1}, true) IS NOT NULL`)
  return `SELECT WHERE ${conditions.join(' AND ')}`
}
