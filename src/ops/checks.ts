/**
 * Dangers that only the database knows of (decisions 1): boot warns about each, `strict` and `svc check` make errors
 * of them. Each names the SQL that mends it; that SQL is put together by PostgreSQL's own `format`, which quotes the
 * names.
 */
import type { Query } from '../catalog/introspect.ts'
import { nearest } from '../nearest.ts'
import type { Finding } from './finding.ts'

export interface CheckTarget {
  readonly schemas: readonly string[]
  readonly exposedViews: readonly string[]
  readonly tenantColumn: string
  readonly searchLanguage: string
}

export type DatabaseCheck = (ask: Query, target: CheckTarget) => Promise<readonly Finding[]>

/** One after the other: they share a connection. */
export async function databaseFindings(ask: Query, target: CheckTarget): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const check of DATABASE_CHECKS) findings.push(...(await check(ask, target)))
  return findings
}

/** Specification 5.3: such a role sees every tenant's rows, forced row-level security or not. */
const roleCheck: DatabaseCheck = async ask => {
  const [[role = '', isSuperuser = ''] = []] = await ask(
    `select rolname, rolsuper from pg_catalog.pg_roles where rolname = current_user and (rolsuper or rolbypassrls)`,
    [],
  )
  if (role === '') return []
  const attribute = isSuperuser === 't' ? 'is a superuser' : 'has the attribute BYPASSRLS'
  return [
    danger(
      `The database role ${role} ${attribute}: row-level security does not apply to it, so every caller can see every tenant's rows.`,
      [
        'Connect as a role of its own, which owns nothing:',
        "create role gateway login nosuperuser nobypassrls password '…';",
        'grant usage on schema public to gateway;',
        'grant select, insert, update, delete on all tables in schema public to gateway;',
      ].join('\n'),
    ),
  ]
}

/** Tables that the gateway publishes, by the same rule as the catalogue's, and that it may read. */
const UNPROTECTED_TABLES = `
  select
    case when n.nspname = $1::json ->> 0 then c.relname else n.nspname || '.' || c.relname end,
    c.relkind = 'f',
    format('alter table %I.%I enable row level security, force row level security;', n.nspname, c.relname),
    case when not exists (select from pg_catalog.pg_policy p where p.polrelid = c.oid) then
      format('create policy tenant on %I.%I using (%I = nullif(current_setting(''app.current_tenant_id'', true), '''')::%s);',
             n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, null))
    end
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = $2 and a.attnum > 0 and not a.attisdropped
  where n.nspname in (select pg_catalog.json_array_elements_text($1::json))
    and c.relkind in ('r', 'p', 'f') and not c.relispartition
    and not (c.relrowsecurity and c.relforcerowsecurity)
    and pg_catalog.has_any_column_privilege(c.oid, 'select')
  order by n.nspname, c.relname`

/** Specification 5.3: enabled alone does not bind the owner; only forced does. */
const tenantTableCheck: DatabaseCheck = async (ask, { schemas, tenantColumn }) => {
  const rows = await ask(UNPROTECTED_TABLES, [JSON.stringify(schemas), tenantColumn])
  const tables = rows.filter(([, isForeign]) => isForeign === 'f')
  const foreign = rows.filter(([, isForeign]) => isForeign === 't')
  return [
    ...summary(tables, names => ({
      message: `Tables with the column ${tenantColumn} but without forced row-level security: ${names}. Every caller can see every tenant's rows in them.`,
      fix: statements(tables.flatMap(([, , secure, policy]) => [secure, policy])),
    })),
    ...summary(foreign, names => ({
      message: `Foreign tables with the column ${tenantColumn}: ${names}. PostgreSQL has no row-level security for foreign tables: every caller can see every tenant's rows in them.`,
      fix: 'Revoke the right to select from them, and publish a table or a view that filters instead.',
    })),
  ]
}

const EXPOSED_VIEWS = `
  select
    listed.name,
    c.relkind,
    format('alter view %I.%I set (security_invoker = true);', n.nspname, c.relname),
    pg_catalog.current_setting('server_version_num')
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  cross join lateral (
    select case when n.nspname = $1::json ->> 0 then c.relname else n.nspname || '.' || c.relname end as name
  ) listed
  where n.nspname in (select pg_catalog.json_array_elements_text($1::json))
    and c.relkind in ('v', 'm')
    and listed.name in (select pg_catalog.json_array_elements_text($2::json))
    and not exists (
      select from pg_catalog.pg_options_to_table(c.reloptions) o where o.option_name = 'security_invoker' and o.option_value::boolean
    )
  order by listed.name`

/**
 * PostgreSQL manual, CREATE VIEW: without `security_invoker` policies are those of the view's owner, not of who asks.
 */
const viewCheck: DatabaseCheck = async (ask, { schemas, exposedViews }) => {
  if (exposedViews.length === 0) return []
  const rows = await ask(EXPOSED_VIEWS, [JSON.stringify(schemas), JSON.stringify(exposedViews)])
  const views = rows.filter(([, kind]) => kind === 'v')
  const materialized = rows.filter(([, kind]) => kind === 'm')
  const hasInvoker = Number(rows[0]?.[3]) >= 150_000
  return [
    ...summary(views, names => ({
      message: `Exposed views that are not security_invoker: ${names}. They show what their owner may see, whoever asks.`,
      fix: hasInvoker
        ? statements(views.map(([, , alter]) => alter ?? null))
        : 'Take them out of exposed_views: PostgreSQL has security_invoker from version 15 on.',
    })),
    ...summary(materialized, names => ({
      message: `Exposed materialised views: ${names}. Row-level security does not apply to what they hold.`,
      fix: 'Take them out of exposed_views, and publish a view over them that filters by tenant and belongs to a role of its own.',
    })),
  ]
}

/**
 * The first minor release of each major version in which INSERT … ON CONFLICT DO UPDATE respects row-level security.
 */
const SAFE_VERSIONS = [180_007, 170_012, 160_016, 150_020, 140_025]

const versionCheck: DatabaseCheck = async ask => {
  const [[number = ''] = []] = await ask(`select pg_catalog.current_setting('server_version_num')`, [])
  const version = Number(number)
  const major = Math.floor(version / 10_000)
  const safe = SAFE_VERSIONS.find(candidate => Math.floor(candidate / 10_000) === major)
  if (safe !== undefined && version < safe) {
    const message = `PostgreSQL ${printVersion(version)} is older than ${printVersion(safe)}: INSERT … ON CONFLICT DO UPDATE can read past row-level security.`
    return [
      danger(message, `Install the latest minor release of PostgreSQL ${major}; data and dumps stay as they are.`),
    ]
  }
  if (major >= 14) return []
  return [
    danger(
      `PostgreSQL ${printVersion(version)} gets no security fixes any more.`,
      'Upgrade to a version that does; 14 is the oldest that this gateway knows.',
    ),
  ]
}

/** Each configuration bare where the search path leads to it, and with its schema: as it is, and as one writes it. */
const SEARCH_LANGUAGES = `
  select known.name, known.written
  from pg_catalog.pg_ts_config c
  join pg_catalog.pg_namespace n on n.oid = c.cfgnamespace
  cross join lateral (values
    (1, c.cfgname::text, pg_catalog.quote_ident(c.cfgname)),
    (2, n.nspname || '.' || c.cfgname, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.cfgname))
  ) known (form, name, written)
  where known.form = 2 or pg_catalog.pg_ts_config_is_visible(c.oid)
  order by known.form, known.name`

/** Looked up by name: a cast to `regconfig`, which is how searches use it, would raise. */
const searchLanguageCheck: DatabaseCheck = async (ask, { searchLanguage }) => {
  const rows = await ask(SEARCH_LANGUAGES, [])
  if (rows.some(([name]) => name === foldedName(searchLanguage))) return []
  const meant = nearest(
    searchLanguage,
    rows.flatMap(([, written]) => written ?? []),
  )
  return [
    danger(
      `The database has no text search configuration "${searchLanguage}" (search_language): every search is refused.`,
      `Set search_language to ${meant ?? 'simple, or to another that pg_ts_config lists'}.`,
    ),
  ]
}

/** PostgreSQL manual, 4.1.1: letter case counts between double quotes only. */
function foldedName(written: string): string {
  return written.replace(
    /"((?:[^"]|"")*)"|[^"]+/g,
    (part, quoted?: string) => quoted?.replaceAll('""', '"') ?? part.toLowerCase(),
  )
}

export const DATABASE_CHECKS: readonly DatabaseCheck[] = [
  roleCheck,
  tenantTableCheck,
  viewCheck,
  searchLanguageCheck,
  versionCheck,
]

/** `180004` is 18.4 (PostgreSQL manual, 20.15: `server_version_num`). */
function printVersion(version: number): string {
  return `${Math.floor(version / 10_000)}.${version % 10_000}`
}

/** A schema may hold thousands of tables; a message should not. */
const NAMED_MAX = 20
const STATEMENTS_MAX = 200

/** One finding for all of a kind. */
function summary(
  rows: readonly (readonly (string | null)[])[],
  describe: (names: string) => { readonly message: string; readonly fix: string },
): readonly Finding[] {
  if (rows.length === 0) return []
  const names = rows.slice(0, NAMED_MAX).map(([name]) => name)
  const more = rows.length > NAMED_MAX ? ` and ${rows.length - NAMED_MAX} more` : ''
  const { message, fix } = describe(`${names.join(', ')}${more}`)
  return [danger(message, fix)]
}

function statements(lines: readonly (string | null | undefined)[]): string {
  const given = lines.filter(line => typeof line === 'string')
  const more = given.length > STATEMENTS_MAX ? [`-- and ${given.length - STATEMENTS_MAX} more like these`] : []
  return [...given.slice(0, STATEMENTS_MAX), ...more].join('\n')
}

function danger(message: string, fix: string): Finding {
  return { level: 'warning', message, fix }
}
