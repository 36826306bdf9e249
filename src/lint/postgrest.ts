/**
 * Lints of `svc check --postgrest`: grants, views, functions and settings of a database of PostgREST,
 * compared with what the gateway serves of it.
 */
import type { Query } from '../catalog/introspect.ts'
import type { Finding } from '../finding.ts'
import { readAcceptance } from './accept.ts'
import { findingAbout } from './finding-about.ts'
import type { FoundObject, Lint } from './lint.ts'
import { printableName } from './printable-names.ts'

/** The part of the configuration that these lints use. */
export interface PostgrestLintTarget {
  readonly schemas: readonly string[]
  readonly anonRole: string | null
  readonly preConfig: string | null
  readonly preRequest: string | null
  readonly rootSpec: string | null
  /** The captured tables, `schema.name`; null if realtime is disabled. */
  readonly captured: readonly string[] | null
  /** Accepted findings: `check`, or `check: object`. */
  readonly acceptedFindings: readonly string[]
}

/** The schemas, and the roles that a token can name. Parameters as in `parametersOf`. */
const SHARED = `
  me as (
    select r.oid, r.rolname as name, r.rolsuper as super from pg_catalog.pg_roles r where r.rolname = current_user
  ),
  schema as (
    select n.oid, n.nspname as name from pg_catalog.pg_namespace n
    where n.nspname in (select s.name from jsonb_array_elements_text($1::jsonb) s(name))
  ),
  taken(oid) as (
    select m.roleid from pg_catalog.pg_auth_members m join me on me.oid = m.member
    union
    select m.roleid from taken t join pg_catalog.pg_auth_members m on m.member = t.oid
  ),
  served as (
    select r.oid, r.rolname as name, r.rolsuper or r.rolbypassrls as bypasses
    from taken t join pg_catalog.pg_roles r on r.oid = t.oid
    where r.rolname !~ '^pg_'
  ),
  relation as (
    select c.oid, s.name as schema, c.relname as name, c.relkind as kind, c.relrowsecurity as secured,
      c.reloptions as options, s.name || '.' || c.relname as object, format('%I.%I', s.name, c.relname) as quoted
    from pg_catalog.pg_class c join schema s on s.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'f', 'v', 'm') and not c.relispartition
  )`

const RIGHTS = 'SELECT, INSERT, UPDATE, DELETE'

/** In the order in which they are reported. */
export const POSTGREST_LINTS: readonly Lint[] = [
  {
    name: 'postgrest-anon-role',
    level: 'error',
    boot: false,
    what: () => "An anon_role that does not exist, or that the gateway's role cannot take",
    why: 'Requests without a token are answered with 401.',
    remedy: "Create the role, and grant it to the gateway's role.",
    rows: `
      select $2::text as object,
        array[case when r.oid is not null then format('grant %I to %I;', r.rolname, me.name) end] as sql
      from me left join pg_catalog.pg_roles r on r.rolname = $2::text
      where $2::text <> '' and (
        r.oid is null or not me.super and r.oid <> me.oid and r.oid not in (select oid from taken)
      )`,
  },
  {
    name: 'postgrest-hook-missing',
    level: 'error',
    boot: false,
    what: () => 'Functions of pre_request and root_spec that do not exist, or that no role can execute',
    why: 'The requests that call them fail.',
    remedy: 'Create the function, or correct its name.',
    rows: `
      select w.setting || ' ' || w.value as object, array[case when p.oid is not null then
        (select string_agg(format('grant execute on function %s to %I;', p.oid::regprocedure, s.name), ' ')
          from served s)
      end] as sql
      from (values ('pre_request', $3::text), ('root_spec', $4::text)) w(setting, value)
      left join lateral (
        select p.oid from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
        where case when strpos(w.value, '.') > 0
          then n.nspname = split_part(w.value, '.', 1) and p.proname = substr(w.value, strpos(w.value, '.') + 1)
          else n.oid in (select oid from schema) and p.proname = w.value end
        limit 1
      ) p on true
      where w.value <> '' and (
        p.oid is null
        or exists (select from served)
          and not exists (select from served s where has_function_privilege(s.oid, p.oid, 'EXECUTE'))
      )`,
  },
  {
    name: 'postgrest-schema-usage',
    level: 'warning',
    boot: false,
    what: () => 'Roles of callers without USAGE on a schema that is served',
    why: 'All their requests for the schema are answered with 401 or 403.',
    remedy: 'Grant USAGE on the schema to the role.',
    rows: `
      select s.name || ' (' || r.name || ')' as object,
        array[format('grant usage on schema %I to %I;', s.name, r.name)] as sql
      from schema s cross join served r
      where not r.bypasses and not has_schema_privilege(r.oid, s.oid, 'USAGE') and (
        r.name = $2::text
        or exists (select from relation t where t.schema = s.name and has_table_privilege(r.oid, t.oid, '${RIGHTS}'))
      )`,
  },
  {
    name: 'postgrest-role-bypasses-rls',
    level: 'warning',
    boot: false,
    what: () => 'Roles that a token can name and to which row-level security does not apply',
    why: 'A token with such a role sees and changes the rows of every tenant.',
    remedy: "Revoke the role from the gateway's role, unless trusted programs use it.",
    rows: `
      select r.name as object, array[format('revoke %I from %I;', r.name, me.name)] as sql
      from served r cross join me where r.bypasses`,
  },
  {
    name: 'postgrest-unprotected-table',
    level: 'warning',
    boot: false,
    what: () => 'Tables without row-level security that requests without a token can change',
    why: 'Everyone who reaches the gateway can change all rows.',
    remedy: 'Enable row-level security with a policy, or revoke the privileges.',
    rows: `
      select t.object || ' (' || string_agg(lower(w."right"), ', ' order by w."right") || ')' as object, array[
        format('revoke %s on %s from %I;', string_agg(lower(w."right"), ', ' order by w."right"), t.quoted, $2::text)
      ] as sql
      from relation t cross join (values ('INSERT'), ('UPDATE'), ('DELETE')) w("right")
      join pg_catalog.pg_roles r on r.rolname = $2::text
      where t.kind in ('r', 'p') and not t.secured and has_table_privilege(r.oid, t.oid, w."right")
      group by t.object, t.quoted`,
  },
  {
    name: 'postgrest-view-of-owner',
    level: 'warning',
    boot: false,
    what: () => 'Views over tables with row-level security that are read with the rights of their owner',
    why: 'Policies for the role of the caller do not apply to them.',
    remedy: 'Set security_invoker (PostgreSQL 15 or later), unless the view itself filters by caller.',
    rows: `
      select v.object, array[
        case when v.kind = 'v' and current_setting('server_version_num')::int >= 150000
          then format('alter view %s set (security_invoker = true);', v.quoted) end
      ] as sql
      from relation v
      where v.kind in ('v', 'm')
        and not exists (
          select from pg_options_to_table(v.options) o
          where o.option_name = 'security_invoker' and o.option_value::boolean
        )
        and exists (select from served r where not r.bypasses and has_table_privilege(r.oid, v.oid, 'SELECT'))
        and exists (
          select from pg_catalog.pg_rewrite w
          join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
          join pg_catalog.pg_class t on d.refclassid = 'pg_catalog.pg_class'::regclass and t.oid = d.refobjid
          where w.ev_class = v.oid and t.relrowsecurity
        )`,
  },
  {
    name: 'postgrest-database-settings',
    level: 'warning',
    boot: false,
    what: () => 'Settings of PostgREST that are stored in the database',
    why: 'The gateway does not read them.',
    remedy:
      'Write them to [postgrest] in svc.toml, without pgrst. and the prefixes db_ and server_, or set pre_config.',
    rows: `
      select c.setting || coalesce(' (role ' || r.rolname || ')', '') as object, array[]::text[] as sql
      from pg_catalog.pg_db_role_setting s
      cross join lateral unnest(s.setconfig) c(setting)
      left join pg_catalog.pg_roles r on r.oid = s.setrole
      where c.setting like 'pgrst.%' and s.setdatabase in (
        0, (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
      )`,
  },
  {
    name: 'postgrest-not-captured',
    level: 'note',
    boot: false,
    what: () => 'Tables whose changes are not captured, so that channels cannot subscribe to them',
    why: 'A channel that asks for them is refused.',
    remedy: 'Run svc install for these tables, if clients subscribe to them.',
    rows: `
      select t.object, array[]::text[] as sql
      from relation t
      where $5::jsonb is not null and t.kind in ('r', 'p')
        and exists (select from served r where not r.bypasses and has_table_privilege(r.oid, t.oid, 'SELECT'))
        and t.object not in (select c.name from jsonb_array_elements_text($5::jsonb) c(name))`,
  },
  {
    name: 'postgrest-not-granted',
    level: 'note',
    boot: false,
    what: () => 'Tables and views that no role of a caller has a privilege on',
    why: 'Requests for them are answered with 401 or 403.',
    remedy: 'Grant the privileges that clients need to the roles of their tokens.',
    rows: `
      select t.object, array[]::text[] as sql
      from relation t
      where exists (select from served) and not exists (
        select from served r
        where has_table_privilege(r.oid, t.oid, '${RIGHTS}')
          or has_any_column_privilege(r.oid, t.oid, 'SELECT, INSERT, UPDATE')
      )`,
  },
  {
    name: 'postgrest-function-not-served',
    level: 'note',
    boot: false,
    what: () => 'Functions of extensions, procedures, and functions with arguments that no request can have',
    why: 'PostgREST can call some of them; the gateway serves none.',
    remedy: 'Write a function in the schema that calls what clients need.',
    rows: `
      select p.oid::regprocedure::text as object, array[]::text[] as sql
      from pg_catalog.pg_proc p join schema s on s.oid = p.pronamespace
      where p.prokind in ('f', 'p')
        and exists (select from served r where not r.bypasses and has_function_privilege(r.oid, p.oid, 'EXECUTE'))
        and p.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
        and (
          p.prokind = 'p'
          or exists (
            select from pg_catalog.pg_type t
            where t.oid = any (p.proargtypes::oid[] || p.prorettype) and t.typname in ('cstring', 'internal')
          )
          or exists (
            select from pg_catalog.pg_depend d
            where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
          )
        )`,
  },
]

/** Runs these lints in one round trip. */
export async function lintPostgrest(ask: Query, target: PostgrestLintTarget): Promise<readonly Finding[]> {
  const acceptance = readAcceptance(target.acceptedFindings, POSTGREST_LINTS)
  const found = new Map<string, FoundObject[]>()
  for (const [name, row] of await ask(STATEMENT, parametersOf(target))) {
    const { object, sql } = JSON.parse(row ?? 'null') as FoundObject
    const shown = printableName(object)
    if (!acceptance.has(name ?? '', shown))
      found.set(name ?? '', [...(found.get(name ?? '') ?? []), { object: shown, sql }])
  }
  return POSTGREST_LINTS.flatMap(({ name: check, level, what, why, remedy }) => {
    // With this setting, the gateway reads them.
    if (check === 'postgrest-database-settings' && target.preConfig !== null) return []
    const objects = (found.get(check) ?? []).sort((a, b) => (a.object < b.object ? -1 : 1))
    return objects.length === 0 ? [] : [findingAbout({ level, check, what: what(''), why, remedy }, objects)]
  })
}

function parametersOf({ schemas, anonRole, preRequest, rootSpec, captured }: PostgrestLintTarget) {
  return [
    JSON.stringify(schemas),
    anonRole ?? '',
    preRequest ?? '',
    rootSpec ?? '',
    captured === null ? null : JSON.stringify(captured),
  ]
}

const SELECTS = POSTGREST_LINTS.map(({ name, rows }) => `  select '${name}', row_to_json(x)::text from (${rows}) x`)

const STATEMENT = `with recursive${SHARED}
${SELECTS.join('\n  union all\n')}`
