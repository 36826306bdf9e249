/** Lints of rights: what was granted beyond what policies allow, or to more roles than were meant. */
import type { Lint } from './lint.ts'

export const GRANT_LINTS: readonly Lint[] = [
  {
    name: 'grant-without-policy',
    level: 'warning',
    boot: false,
    what: () => "Rights that the gateway's role has but no policy lets it use",
    why: 'Such requests find nothing or are refused; and a policy that somebody adds for another role, or PUBLIC, opens them.',
    remedy: 'Revoke what is not meant to be used, or write the policy that is missing.',
    rows: `
      select g.object || ' (' || string_agg(distinct lower(g."right"), ', ') || ')' as object, array[
        format('revoke %s on %s from %s;', string_agg(distinct lower(g."right"), ', '), g.name, string_agg(distinct g.role_name, ', '))
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
    what: () => "Tables under row-level security that the gateway's role may TRUNCATE",
    why: 'Row-level security never applies to TRUNCATE: one function that does it empties the table of every tenant.',
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
    why: 'Every role of the server that can connect has them too, those included that are created next year for something else.',
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
    why: 'A table or function made there is published like yours, and may be found before the one that was meant (CVE-2018-1058).',
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
]
