/** Calls the function of `postgrest.pre_config`, and takes over the settings of PostgREST that it makes. */
import type { Query } from '../catalog/introspect.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/problem.ts'
import { STORED_SETTING_NAMES, withStoredSettings } from '../config/stored-settings.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { configuredFunction } from '../postgrest/session.ts'

/**
 * The configuration with the settings of the database; the same one without `postgrest.pre_config`.
 * @throws {ConfigError} as a rejection, if the function fails or a setting is invalid.
 */
export async function withPreConfig(config: Config, ask: Query): Promise<Config> {
  const { enabled, preConfig } = config.postgrest
  if (!enabled || preConfig === null) return config
  // The settings last as long as the transaction, so one statement calls the function and reads them.
  const text = `
    with called as materialized (select ${configuredFunction(preConfig)}())
    select s.name, pg_catalog.current_setting(s.name, true)
    from called, pg_catalog.unnest($1::text[]) s(name)`
  const rows = await ask(text, [`{${STORED_SETTING_NAMES.join(',')}}`]).catch(error => {
    if (!(error instanceof DatabaseError)) throw error
    const message = `calling ${preConfig}() failed: ${error.message}`
    throw new ConfigError([{ source: 'database', line: null, key: 'postgrest.pre_config', message, nearest: null }])
  })
  const stored = new Map<string, string>()
  for (const [name, value] of rows) if (name != null && value != null && value !== '') stored.set(name, value)
  return withStoredSettings(config, stored)
}
