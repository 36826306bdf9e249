/** Lints of privileges: grants beyond what policies allow, or to more roles than intended. */
import type { Lint } from './lint.ts'

export const GRANT_LINTS: readonly Lint[] = [
  {
    name: 'grant-without-policy',
    level: 'warning',
    boot: false,
    what: () => "Privileges of the gateway's role that no policy lets it use",
    why:
      'Such requests find nothing or are rejected, until a policy that is added for another role or PUBLIC makes ' +
      'them succeed.',
    remedy: 'Revoke the rights that are not needed, or add the missing policy.',
    rows: `
      select g.object || ' (' || string_agg(distinct lower(g."right"), ', ') || ')' as object, array[
        format('revoke %s on %s from %s;', string_agg(distinct lower(g."right"), ', '), g.name,
          string_agg(distinct g.role_name, ', '))
      ] as sql
      from granted g
      join (values ('SELECT', 'r'), ('INSERT', 'a'), ('UPDATE', 'w'), ('DELETE', 'd')) as means("right", command)
        on means."right" = g."right"
      where g.enabled and not g.permitted && array['*', means.command]
      group by g.object, g.name`,
  },
  {
    name: 'truncate-granted',
    level: 'warning',
    boot: false,
    what: () => "Tables with row-level security that the gateway's role can TRUNCATE",
    why: 'Row-level security never applies to TRUNCATE: one function that runs it deletes the rows of every tenant.',
    remedy: 'Revoke TRUNCATE; no request needs it.',
    rows: `
      select g.object, array[
        format('revoke truncate on %s from %s;', g.name, string_agg(distinct g.role_name, ', '))
      ] as sql
      from granted g
      where g."right" = 'TRUNCATE' and (g.enabled or g.tenant is not null)
      group by g.object, g.name`,
  },
  {
    name: 'grant-to-public',
    level: 'warning',
    boot: false,
    what: () => 'Tables that PUBLIC has rights to',
    why:
      'Every role of the server that can connect has them too, including roles that are created later for other ' +
      'purposes.',
    remedy: "Grant to the gateway's role by name instead.",
    rows: `
      select p.object, array[
        case when not p.super then 'grant ' || p.rights || ' on ' || p.name || ' to ' || p.me || ';' end,
        format('revoke all on %s from public;', p.name)
      ] as sql
      from (
        select g.object, g.name, me.super, me.name as me,
          string_agg(lower(g."right") || coalesce(' (' || quote_ident(a.attname) || ')', ''), ', ')
            filter (where g."right" in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')) as rights
        from me, granted g
        left join pg_catalog.pg_attribute a on a.attrelid = g.relation and a.attnum = g."column"
        where g.role = 0
        group by g.object, g.name, me.super, me.name
      ) p`,
  },
  {
    name: 'schema-create-granted',
    level: 'warning',
    boot: false,
    what: () => "Schemas in which the gateway's role may create objects",
    why:
      'A table or function that is created there is published like any other, and can be found before the ' +
      'intended one (CVE-2018-1058).',
    remedy: 'Revoke CREATE from it and from PUBLIC, which has it in schema public up to PostgreSQL 14.',
    rows: `
      select s.name as object, array[
        format('revoke create on schema %I from %s;', s.name, string_agg(distinct r.name, ', '))
      ] as sql
      from schema s
      cross join lateral aclexplode(s.acl) a
      join reach r on r.oid = a.grantee
      where a.privilege_type = 'CREATE' and a.grantee <> s.owner
      group by s.name`,
  },
  {
    name: 'change-log-open',
    level: 'error',
    boot: true,
    what: () => "Parts of schema svc that the gateway's role can read or write",
    why:
      'SQL that a request runs – an injection in a function is enough – reads the rows of ' +
      'every tenant from the change log, or forges webhooks.',
    remedy:
      "Run `svc install` again, as another role than the gateway's. It revokes these rights and grants them to " +
      'the feed role.',
    rows: `
      select 'svc.' || c.relname as object, array_agg(distinct case
          when a.grantee = 0 then format('revoke all on svc.%I from public;', c.relname)
          when a.grantee = me.oid and a.grantee <> c.relowner
            then format('revoke all on svc.%I from %s;', c.relname, me.name)
          when a.grantee <> c.relowner then format('revoke %I from %s;', pg_get_userbyid(a.grantee), me.name)
        end) as sql
      from me
      join pg_catalog.pg_namespace n on n.nspname = 'svc'
      join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p') and not c.relispartition
      cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
      where not me.super
        and c.relname in ('change', 'webhook', 'webhook_dead', 'webhook_attempt', 'webhook_trigger', 'ticket')
        and (a.grantee = 0 or pg_has_role(a.grantee, 'member'))
      group by c.relname
      union all
      select format('%s, as role %s may create roles and join them', 'svc.change', me.name),
        array[format('alter role %s nocreaterole;', me.name)]
      from me join pg_catalog.pg_roles r on r.oid = me.oid
      where not me.super and r.rolcreaterole and to_regclass('svc.change') is not null`,
  },
]
