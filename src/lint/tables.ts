/** Lints of tables and views: whether row-level security binds whoever asks (specification 5.3). */
import type { Lint } from './lint.ts'

/** For tables of which there are few: each looks through all rights that were granted. */
const GRANTEES = `select string_agg(distinct g.role_name, ', ') from granted g where g.relation = p.oid`

export const TABLE_LINTS: readonly Lint[] = [
  {
    name: 'tenant-table-unprotected',
    level: 'error',
    boot: true,
    what: tenant => `Tables with the column ${tenant} but without forced row-level security`,
    why: "Every caller can see every tenant's rows in them. Enabled alone does not bind the owner; only forced does.",
    remedy: 'Enable and force row-level security, and write a policy that compares the column with the setting.',
    rows: `
      select p.object, array[
        format('alter table %s enable row level security, force row level security;', p.name),
        case when not exists (select from pg_catalog.pg_policy q where q.polrelid = p.oid) then
          format('create policy tenant on %s using (%s);', p.name, p.own_tenant)
        end
      ] as sql
      from published p
      where p.tenant is not null and p.usable and p.kind <> 'f' and not (p.enabled and p.forced)`,
  },
  {
    name: 'tenant-foreign-table',
    level: 'error',
    boot: true,
    what: tenant => `Foreign tables with the column ${tenant}`,
    why: "PostgreSQL has no row-level security for foreign tables: every caller can see every tenant's rows in them.",
    remedy: 'Revoke the rights to them, and publish a table or a view that filters instead.',
    rows: `
      select p.object, array['revoke all on ' || p.name || ' from ' || (${GRANTEES}) || ';'] as sql
      from published p
      where p.tenant is not null and p.usable and p.kind = 'f'`,
  },
  {
    name: 'view-not-invoker',
    level: 'error',
    boot: true,
    what: () => 'Exposed views that are not security_invoker',
    why: 'They show what their owner may see, whoever asks.',
    remedy: 'Set security_invoker (PostgreSQL 15 or later), or take them out of exposed_views.',
    rows: `
      select v.object, array[
        case when version.number >= 150000 then format('alter view %s set (security_invoker = true);', v.name) end
      ] as sql
      from version, (${exposed('v')}) v
      where not exists (
        select from pg_options_to_table(v.options) o where o.option_name = 'security_invoker' and o.option_value::boolean
      )`,
  },
  {
    name: 'materialized-view-exposed',
    level: 'error',
    boot: true,
    what: () => 'Exposed materialised views',
    why: 'Row-level security does not apply to what they hold.',
    remedy:
      'Take them out of exposed_views, and publish a view over them that filters by tenant and belongs to a role of its own.',
    rows: `
      select v.object, array[
        (
          select format('revoke select on %s from %s;', v.name, string_agg(distinct r.name, ', '))
          from aclexplode(v.acl) a join reach r on r.oid = a.grantee
          where a.privilege_type = 'SELECT' and a.grantee <> v.owner having count(*) > 0
        )
      ] as sql
      from (${exposed('m')}) v
      where has_any_column_privilege(v.oid, 'select')`,
  },
  {
    name: 'owner-not-bound',
    level: 'error',
    boot: false,
    what: () => "Tables of the gateway's own role whose row-level security is not forced",
    why: 'Policies do not bind the owner of a table, nor a role that inherits from it: they are written and do nothing.',
    remedy: 'Force row-level security, or let another role own the tables.',
    rows: `
      select p.object, array[format('alter table %s force row level security;', p.name)] as sql
      from published p
      where p.tenant is null and p.owned and p.enabled and not p.forced`,
  },
  {
    name: 'policies-not-enabled',
    level: 'error',
    boot: false,
    what: () => 'Tables that have policies but whose row-level security is not enabled',
    why: 'Without it policies are not looked at: everybody who has the right sees every row.',
    remedy: 'Enable and force row-level security, or drop the policies.',
    rows: `
      select p.object, array[
        format('alter table %s enable row level security, force row level security;', p.name)
      ] as sql
      from published p
      where p.tenant is null and not p.enabled and exists (select from pg_catalog.pg_policy q where q.polrelid = p.oid)`,
  },
  {
    name: 'policy-on-system-table',
    level: 'warning',
    boot: false,
    what: () => 'Policies on tables that PostgreSQL itself has made',
    why: 'Their numbers (OIDs) are below 16384, which pg_dump leaves out: after a restore the policies are gone.',
    remedy: 'Take the schema out of schemas, and the rights away; publish a table or a view of your own instead.',
    rows: `
      select p.object, array['revoke all on ' || p.name || ' from ' || (${GRANTEES}) || ';'] as sql
      from published p
      where p.oid < 16384 and p.usable and exists (select from pg_catalog.pg_policy q where q.polrelid = p.oid)`,
  },
]

/** Those of `exposed_views`, named like resources. */
function exposed(kind: 'v' | 'm'): string {
  return `
        select c.oid, c.relowner as owner, c.relacl as acl, c.reloptions as options,
          listed.object, format('%I.%I', s.name, c.relname) as name
        from pg_catalog.pg_class c
        join schema s on s.oid = c.relnamespace
        cross join lateral (
          select case s.position when 1 then c.relname::text else s.name || '.' || c.relname end as object
        ) listed
        where c.relkind = '${kind}'
          and listed.object in (select json_array_elements_text(target.exposed) from target)`
}
