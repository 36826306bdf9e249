/**
 * Lints of tables and views (docs/reference/checks.md#tables-and-views): whether row-level security binds
 * every caller.
 */
import type { Lint } from './lint.ts'

/** For small numbers of tables, because each scans all granted privileges. */
const GRANTEES = `select string_agg(distinct g.role_name, ', ') from granted g where g.relation = p.oid`

/** Limit on the length of a chain of foreign keys to the table with the tenant column. */
const OWNER_DISTANCE_MAX = 8

/** The short words at the end of a camel-case name such as `userToken`. */
const SECRET_WORD = '[a-z0-9](Token|Pwd|Otp|Salt|Cvv|Cvc|Ssn)(Hash|Digest|Encrypted)?$'

/** Words that indicate a secret anywhere in a name, and short ones at its end. */
const SECRET_NAME =
  'password|passwd|passphrase|secret|api_?key|private_?key|credential|(access|refresh|auth|session|reset)_?' +
  'token|(^|_)(token|pwd|otp|salt|cvv|cvc|ssn)(_?(hash|digest|encrypted))?$'

export const TABLE_LINTS: readonly Lint[] = [
  {
    name: 'tenant-table-unprotected',
    level: 'error',
    boot: true,
    what: tenant => `Tables with the column ${tenant} but without forced row-level security`,
    why: "Every caller can see every tenant's rows in them. Enabling alone does not apply to the owner; forcing does.",
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
    what: () => 'Exposed views that are not security_invoker and belong to another role',
    why: 'They show every caller what their owner can see.',
    remedy:
      "Set security_invoker (PostgreSQL 15 or later) or make the gateway's role " +
      'their owner, or take them out of exposed_views.',
    rows: `
      select v.object, array[
        case when version.number >= 150000 then format('alter view %s set (security_invoker = true);', v.name)
          else format('alter view %s owner to %s;', v.name, me.name) end
      ] as sql
      from version, me, (${exposed('v')}) v
      -- With the rights of the gateway's role, row-level security binds it as it binds a query of the tables.
      where v.owner <> me.oid and not exists (
        select from pg_options_to_table(v.options) o where o.option_name = 'security_invoker'
          and o.option_value::boolean
      )`,
  },
  {
    name: 'materialized-view-exposed',
    level: 'error',
    boot: true,
    what: () => 'Exposed materialized views',
    why: 'Row-level security does not apply to their contents.',
    remedy:
      'Take them out of exposed_views, and publish a view over them that filters by tenant and belongs to a ' +
      'separate role.',
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
    why: 'Policies do not apply to the owner of a table, or to a role that inherits from it, so they have no effect.',
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
    why: 'Without it policies have no effect: every role with the privilege sees every row.',
    remedy: 'Enable and force row-level security, or drop the policies.',
    rows: `
      select p.object, array[
        format('alter table %s enable row level security, force row level security;', p.name)
      ] as sql
      from published p
      where p.tenant is null and not p.enabled and exists (select from pg_catalog.pg_policy q
        where q.polrelid = p.oid)`,
  },
  {
    name: 'tenant-child-unprotected',
    level: 'error',
    boot: false,
    what: tenant =>
      `Tables without the column ${tenant} and without row-level security whose ` +
      'foreign keys lead to tables that have the column',
    why: "Their rows belong to tenants, and every caller can see every tenant's.",
    remedy:
      'Enable and force row-level security with a policy that checks the row it belongs to, or add the ' +
      'tenant column. Accept the finding if all tenants share the table.',
    // A parent has a smaller distance, so that policies cannot refer to each other in a circle. A partition's
    // key counts for its table.
    rows: `
      with recursive belongs(oid, distance) as (
        select a.attrelid, 0
        from pg_catalog.pg_attribute a
        join pg_catalog.pg_class c on c.oid = a.attrelid
        where a.attname = (select tenant_column from target) and a.attnum > 0 and not a.attisdropped
          and c.relkind in ('r', 'p')
        union
        select coalesce(pg_partition_root(c.conrelid), c.conrelid), b.distance + 1
        from belongs b
        join pg_catalog.pg_constraint c on c.contype = 'f' and c.confrelid = b.oid
        where b.distance < ${OWNER_DISTANCE_MAX}
      ),
      nearest as materialized (
        select b.oid, min(b.distance) as distance from belongs b group by b.oid
      )
      select p.object, array[
        format('alter table %s enable row level security, force row level security;', p.name),
        format(
          'create policy tenant on %s using (exists (select from %I.%I parent where %s));', p.name, n.nspname,
            t.relname,
          (
            select string_agg(format('parent.%I = %I.%I', theirs.attname, p.plain, mine.attname), ' and '
              order by k.place)
            from unnest(parent.conkey, parent.confkey) with ordinality as k(mine, theirs, place)
            join pg_catalog.pg_attribute mine on mine.attrelid = parent.conrelid and mine.attnum = k.mine
            join pg_catalog.pg_attribute theirs on theirs.attrelid = parent.confrelid and theirs.attnum = k.theirs
          )
        )
      ] as sql
      from published p
      join nearest own on own.oid = p.oid
      cross join lateral (
        select c.conrelid, c.conkey, c.confkey, c.confrelid
        from pg_catalog.pg_constraint c
        join nearest its on its.oid = c.confrelid
        where (c.conrelid = p.oid or c.conrelid in (select relid from pg_partition_tree(p.oid)))
          and c.contype = 'f' and its.distance < own.distance
        order by its.distance, c.conname limit 1
      ) parent
      join pg_catalog.pg_class t on t.oid = parent.confrelid
      join pg_catalog.pg_namespace n on n.oid = t.relnamespace
      where p.tenant is null and p.usable and p.kind in ('r', 'p') and not p.enabled`,
  },
  {
    name: 'secret-column-readable',
    level: 'note',
    boot: false,
    what: () => 'Columns named like secrets that callers can read',
    why: 'Every caller who can read the table receives their values.',
    remedy:
      'Hide them with an access policy (read_columns = { except = [...] }), or move them to a table that is not ' +
      'published.',
    rows: `
      select p.object || '.' || a.attname as object, array[]::text[] as sql
      from published p
      join pg_catalog.pg_attribute a on a.attrelid = p.oid and a.attnum > 0 and not a.attisdropped
      where (a.attname ~* '${SECRET_NAME}' or a.attname ~ '${SECRET_WORD}')
        and has_column_privilege(p.oid, a.attnum, 'select')`,
  },
  {
    name: 'view-unpublished',
    level: 'note',
    boot: false,
    what: () =>
      'Views that are not published, because they are not security_invoker and exposed_views does not list them',
    why: 'Requests for them are answered with 404.',
    remedy:
      'Set security_invoker (PostgreSQL 15 or later). To publish a view with the rights of its ' +
      'owner, or a materialized view, list it in exposed_views.',
    rows: `
      select v.object, array[
        case when v.kind = 'v' and version.number >= 150000 then
          format('alter view %s set (security_invoker = true);', v.name)
        end
      ] as sql
      from version, target, (
        select c.oid, c.relkind as kind, c.reloptions as options, format('%I.%I', s.name, c.relname) as name,
          case s.position when 1 then c.relname::text else s.name || '.' || c.relname end as object,
          s.name || '.' || c.relname as qualified
        from pg_catalog.pg_class c
        join schema s on s.oid = c.relnamespace
        where c.relkind in ('v', 'm') and has_any_column_privilege(c.oid, 'select')
          and not exists (
            select from pg_catalog.pg_depend d
            where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
          )
      ) v
      where v.object not in (select json_array_elements_text(target.exposed))
        and v.qualified not in (select json_array_elements_text(target.exposed))
        and not exists (
          select from pg_options_to_table(v.options) o where o.option_name = 'security_invoker'
            and o.option_value::boolean
        )`,
  },
  {
    name: 'policy-on-system-table',
    level: 'warning',
    boot: false,
    what: () => 'Policies on tables of PostgreSQL itself',
    why: 'Their numbers (OIDs) are below 16384, which pg_dump leaves out: after a restore the policies are gone.',
    remedy: 'Remove the schema from schemas, and revoke the rights; publish another table or view instead.',
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
