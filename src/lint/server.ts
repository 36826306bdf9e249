/** Lints of the server and the gateway's role. */
import { nearest } from '../text/nearest.ts'
import type { Lint, LintRow } from './lint.ts'

/**
 * The first minor release of each major version in which INSERT … ON CONFLICT DO UPDATE respects row-level
 * security.
 */
const SAFE_VERSIONS = [180_007, 170_012, 160_016, 150_020, 140_025]

/** The oldest major version with security fixes, which is the oldest that the gateway supports. */
const OLDEST_MAJOR = 14

export const SERVER_LINTS: readonly Lint[] = [
  {
    name: 'role-bypasses-rls',
    level: 'error',
    boot: true,
    what: () => "Row-level security does not apply to the gateway's role",
    why: "Every caller can see every tenant's rows, forced row-level security or not.",
    remedy: 'Connect as a separate role that is not a superuser, has no BYPASSRLS and owns nothing.',
    rows: `
      select me.plain || case when me.super then ' is a superuser' else ' has the attribute BYPASSRLS' end as object,
        case when me.super then array[
          'create role gateway login nosuperuser nobypassrls;',
          (select string_agg(format('grant usage on schema %I to gateway;', s.name), ' ' order by s.position)
            from schema s),
          (select string_agg(
            format('grant select, insert, update, delete on all tables in schema %I to gateway;', s.name),
            ' ' order by s.position
          ) from schema s),
          '-- Give it a password (\\password gateway in psql) and connect as it.'
        ] else array[format('alter role %s nobypassrls;', me.name)] end as sql
      from me
      where me.super or me.bypasses`,
  },
  {
    name: 'version-reads-past-rls',
    level: 'error',
    levelInCheck: 'note',
    boot: true,
    what: () => `PostgreSQL older than ${SAFE_VERSIONS.map(printVersion).join(', ')} or what follows`,
    why: 'INSERT … ON CONFLICT DO UPDATE can read past row-level security.',
    remedy: 'Install the latest minor release of the same major version; data and dumps stay as they are.',
    rows: `
      select format('PostgreSQL %s.%s', v.number / 10000, v.number % 10000) as object, array[]::text[] as sql
      from version v
      join unnest('{${SAFE_VERSIONS}}'::int[]) as safe(number)
        on safe.number / 10000 = v.number / 10000 and v.number < safe.number`,
  },
  {
    name: 'version-unsupported',
    level: 'error',
    boot: true,
    what: () => 'A version of PostgreSQL that no longer receives security fixes',
    why: 'Vulnerabilities in it are not fixed.',
    remedy: `Upgrade to a version that does; PostgreSQL ${OLDEST_MAJOR} is the oldest supported version.`,
    rows: `
      select format('PostgreSQL %s.%s', v.number / 10000, v.number % 10000) as object, array[]::text[] as sql
      from version v
      where v.number < ${OLDEST_MAJOR}0000`,
  },
  {
    name: 'search-language',
    level: 'error',
    boot: true,
    what: () => 'The text search configuration in search_language does not exist',
    why: 'Every search is refused.',
    remedy: 'Set search_language to simple, or to another configuration that pg_ts_config lists.',
    // Each configuration without its schema if the search path contains that, and with its schema; as stored,
    // and as written in SQL.
    rows: `
      select known.name as object, known.written, array[]::text[] as sql
      from pg_catalog.pg_ts_config c
      join pg_catalog.pg_namespace n on n.oid = c.cfgnamespace
      cross join lateral (values
        (n.nspname = any ((select searched from path)::name[]), c.cfgname::text, quote_ident(c.cfgname)),
        (true, n.nspname || '.' || c.cfgname, quote_ident(n.nspname) || '.' || quote_ident(c.cfgname))
      ) known (found, name, written)
      where known.found
      order by known.name`,
    judge: (rows, { searchLanguage }) => unknownLanguage(rows, searchLanguage),
  },
]

/** Looked up by name, because a cast to `regconfig`, as searches use it, would raise an error. */
function unknownLanguage(rows: readonly LintRow[], searchLanguage: string) {
  if (rows.some(({ object }) => object === foldedName(searchLanguage))) return []
  const meant = nearest(
    searchLanguage,
    rows.map(({ written }) => String(written)),
  )
  return [{ object: `${searchLanguage}${meant === null ? '' : ` (did you mean ${meant}?)`}`, sql: [] }]
}

/** PostgreSQL manual, 4.1.1: letter case counts between double quotes only. */
function foldedName(written: string): string {
  return written.replace(
    /"((?:[^"]|"")*)"|[^"]+/g,
    (part, quoted?: string) => quoted?.replaceAll('""', '"') ?? part.toLowerCase(),
  )
}

/** `180004` is 18.4 (PostgreSQL manual, 20.15: `server_version_num`). */
function printVersion(version: number): string {
  return `${Math.floor(version / 10_000)}.${version % 10_000}`
}
