/**
 * Settings that the database stores for the roles of callers (`alter role … set …`). PostgreSQL applies them
 * at login only, and callers do not log in, so they are set in each transaction.
 */
import type { Query } from '../catalog/introspect.ts'
import type { StoredSettings } from '../postgrest/session.ts'
import { KEPT_OUT, storedSettings } from '../postgrest/stored-settings.ts'

const NONE: StoredSettings = { settings: [], timeoutMs: null }

// A setting of one database counts more than one of all databases. Others need rights that a caller has not.
const TEXT = `
  select r.rolname, c.name, c.value
  from (
    select s.setrole, s.setdatabase,
      pg_catalog.split_part(t.setting, '=', 1) as name,
      pg_catalog.substr(t.setting, pg_catalog.strpos(t.setting, '=') + 1) as value
    from pg_catalog.pg_db_role_setting s
    cross join lateral pg_catalog.unnest(s.setconfig) t(setting)
    where s.setdatabase in (
      0, (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
    )
  ) c
  join pg_catalog.pg_roles r on r.oid = c.setrole
  join pg_catalog.pg_settings p on p.name = c.name
  where r.rolname <> session_user and pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
    and p.context = 'user' and not c.name = any ($1::text[])
  order by r.rolname, c.setdatabase, c.name`

/** The stored settings by role. */
export class RoleSettings {
  #byRole: ReadonlyMap<string, StoredSettings> = new Map()
  #read = '[]'

  /** Reads the settings of all roles that the gateway can switch to. */
  async read(query: Query): Promise<void> {
    const rows = await query(TEXT, [`{${KEPT_OUT.join(',')}}`])
    const read = JSON.stringify(rows)
    if (read === this.#read) return
    this.#read = read
    const found = new Map<string, Map<string, string>>()
    for (const [role, name, value] of rows) {
      if (role == null || name == null || value == null) continue
      const settings = found.get(role) ?? new Map<string, string>()
      found.set(role, settings.set(name, value))
    }
    this.#byRole = new Map([...found].map(([role, settings]) => [role, storedSettings(settings)]))
  }

  /** The settings of a role, in the same object until they change. */
  of(role: string): StoredSettings {
    return this.#byRole.get(role) ?? NONE
  }
}
