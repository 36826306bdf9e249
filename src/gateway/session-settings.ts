/**
 * Decides which session settings a transaction need not set (decision 0043): those that nothing in the
 * database can read, while the gateway hears of every change of the schema.
 */
import type { Catalog } from '../catalog/model.ts'
import type { CatalogSource } from '../catalog/reload.ts'
import type { Config } from '../config/config.ts'
import type { Finding } from '../finding.ts'
import type { SessionSettingsStatus } from '../ops/internal.ts'

/** Settings that nothing but functions and expressions of the database reads, and that limit no caller. */
const OMITTED: readonly string[] = [
  ...['app.current_user_id', 'app.is_super_admin', 'app.current_role', 'app.current_scopes', 'request.jwt.claims'],
  ...['request.method', 'request.path', 'request.headers', 'request.cookies'],
]

const NONE: ReadonlySet<string> = new Set()

type Source = Pick<CatalogSource, 'current' | 'isCertain'>

/** Follows the schema, and whether its changes are announced. */
export class UnsentSettings {
  readonly #config: Config
  readonly #source: Source
  #hears = false
  #from: Catalog | null = null
  #unsent = NONE

  constructor(config: Config, source: Source) {
    this.#config = config
    this.#source = source
  }

  /** The gateway listens from now on, or no longer. */
  listens(hears: boolean): void {
    this.#hears = hears
  }

  /** The settings that a transaction that starts now does not set. */
  readonly current = (): ReadonlySet<string> => {
    if (!this.#hears || !this.#source.isCertain()) return NONE
    const catalog = this.#source.current()
    if (catalog !== this.#from) {
      this.#from = catalog
      this.#unsent = unsentOf(this.#config, catalog)
    }
    return this.#unsent
  }

  /** For operators. */
  readonly status = (): SessionSettingsStatus => {
    const catalog = this.#source.current()
    const unsent = this.current()
    const reason =
      reasonForAll(this.#config, catalog) ??
      (this.#hears ? (this.#source.isCertain() ? null : 'the schema is being read') : 'the gateway does not listen')
    const names = [...(catalog.settingReaders?.names ?? [])].filter(([name]) => OMITTED.includes(name))
    return { unsent: [...unsent], readers: Object.fromEntries(names), reason }
  }
}

/** The finding about a gateway that sends all settings although it is configured otherwise. */
export function sessionSettingsFindings(config: Config, catalog: Catalog): readonly Finding[] {
  if (config.gateway.sessionSettings === 'all' || catalog.settingReaders === null) return []
  const reason = reasonForAll(config, catalog)
  if (reason === null) return []
  const message = `Every transaction sets all session settings although session_settings = "readable": ${reason}.`
  return [{ level: 'note', message, fix: 'Remove the cause, or set session_settings = "all".' }]
}

function unsentOf(config: Config, catalog: Catalog): ReadonlySet<string> {
  if (reasonForAll(config, catalog) !== null) return NONE
  return new Set(OMITTED.filter(name => catalog.settingReaders?.names.has(name) === false))
}

/** Null if settings need not be sent as long as the gateway hears of changes. */
function reasonForAll({ gateway }: Config, { settingReaders }: Catalog): string | null {
  if (gateway.sessionSettings === 'all' || settingReaders === null) return 'session_settings = "all"'
  // The schema of a replica can be older than that of the primary.
  if (gateway.replicas.length > 0) return 'replicas are configured'
  if (!settingReaders.isAnnounced) return 'the event triggers of svc install are missing or disabled'
  return settingReaders.unclear
}
