/**
 * Common table expressions of all lints: the published tables, the policies that apply to the gateway's role,
 * and its effective privileges.
 */

/** A policy `q` is applied to the gateway's role. */
const APPLIES = 'exists (select from unnest(q.polroles) as granted_to(oid) join reach r on r.oid = granted_to.oid)'

/**
 * The lints run as the gateway's own role, because they are about its privileges; `pg_catalog` is readable to
 * every role. Lints use PostgreSQL's own functions (`pg_has_role`, `pg_depend`, parsed defaults) and analyze
 * text only where there is no alternative.
 * - path: once it is evaluated, names are printed with their schemas, so that a statement means the same
 *   wherever it is pasted. `statement.ts` makes every lint wait for it. `searched` is the session's search
 *   path before that.
 * - reach: the roles whose privileges the gateway's role has – itself, those it inherits from, and PUBLIC as
 *   0. For a superuser only itself: it has all privileges, which is a finding already.
 * - published: the tables that are resources, by the same rule as in the catalog. `tenant` is the number of
 *   the tenant column, `own_tenant` the condition that a row belongs to the caller. Compared in the column's
 *   type without its length: a cast to `char(2)` would truncate a longer claim until it matches another
 *   tenant. `usable`: the gateway's role has some privilege on it.
 * - granted: privileges granted on tables or columns, excluding the owner's. `permitted`: the commands that
 *   permissive policies allow.
 * - policy: those that apply to the gateway's role. `restricted`: a restrictive policy on the tenant column
 *   applies in addition, whatever permissive ones allow.
 * No lint may join these with each other: PostgreSQL has neither statistics nor indexes for them, and would
 * take a minute for 5 000 tables instead of a second. So each contains what is needed of the others.
 */
export const COMMON_TABLES: string = `
  target as materialized (
    select $1::json as schemas, $2::text as tenant_column, $3::json as exposed
  ),
  path as materialized (
    select current_schemas(true) as searched, set_config('search_path', 'pg_catalog', true) as value
  ),
  version as materialized (
    select current_setting('server_version_num')::int as number
  ),
  me as materialized (
    select r.oid, quote_ident(r.rolname) as name, r.rolname as plain, r.rolsuper as super, r.rolbypassrls as bypasses
    from pg_catalog.pg_roles r
    where r.rolname = current_user
  ),
  reach(oid, name) as materialized (
    select 0::oid, 'public'
    union all
    select r.oid, quote_ident(r.rolname)
    from pg_catalog.pg_roles r, me
    where r.oid = me.oid or not me.super and pg_has_role(r.oid, 'usage')
  ),
  schema as materialized (
    select n.oid, n.nspname::text as name, n.nspowner as owner, n.nspacl as acl, s.position
    from target, json_array_elements_text(target.schemas) with ordinality as s(name, position)
    join pg_catalog.pg_namespace n on n.nspname = s.name
  ),
  published as materialized (
    select
      c.oid,
      case s.position when 1 then c.relname::text else s.name || '.' || c.relname end as object,
      format('%I.%I', s.name, c.relname) as name,
      s.name as schema,
      c.relname as plain,
      c.relkind as kind,
      c.relowner as owner,
      not me.super and pg_has_role(c.relowner, 'usage') as owned,
      c.relacl as acl,
      c.relrowsecurity as enabled,
      c.relforcerowsecurity as forced,
      a.attnum as tenant,
      quote_ident(a.attname) as tenant_name,
      quote_ident(a.attname) || format(
        ' = (select nullif(current_setting(''app.current_tenant_id'', true), '''')::%s)', format_type(a.atttypid, -1)
      ) as own_tenant,
      has_any_column_privilege(c.oid, 'select, insert, update') or has_table_privilege(c.oid, 'delete') as usable
    from me, target, pg_catalog.pg_class c
    join schema s on s.oid = c.relnamespace
    left join pg_catalog.pg_attribute a
      on a.attrelid = c.oid and a.attname = (select tenant_column from target) and a.attnum > 0 and not a.attisdropped
    where c.relkind in ('r', 'p', 'f') and not c.relispartition
  ),
  granted as materialized (
    select p.oid as relation, p.object, p.name, p.tenant, p.enabled,
      array(
        select q.polcmd::text from pg_catalog.pg_policy q where q.polrelid = p.oid and q.polpermissive and ${APPLIES}
      ) as permitted,
      g.number as "column", g.privilege_type as "right", r.oid as role, r.name as role_name
    from published p
    cross join lateral (
      select null::int2 as number, a.grantee, a.privilege_type from aclexplode(p.acl) a
      union
      select c.attnum, a.grantee, a.privilege_type
      from pg_catalog.pg_attribute c
      cross join lateral aclexplode(c.attacl) a
      where c.attrelid = p.oid and c.attnum > 0 and not c.attisdropped
    ) g
    join reach r on r.oid = g.grantee
    where g.grantee <> p.owner
  ),
  policy as materialized (
    select q.*,
      bool_or(q.narrows) over (partition by q.relation, q.command)
        or bool_or(q.narrows and q.command = '*') over (partition by q.relation) as restricted
    from (
      select
        q.polname || ' on ' || p.object as object,
        q.polrelid as relation,
        q.polcmd as command,
        q.polpermissive as permissive,
        p.tenant, p.tenant_name, p.own_tenant,
        format('alter policy %I on %s', q.polname, p.name) as alter,
        pg_get_expr(q.polqual, q.polrelid) as "using",
        pg_get_expr(q.polwithcheck, q.polrelid) as "check",
        not q.polpermissive and exists (
          select from pg_catalog.pg_depend d
          where d.classid = 'pg_catalog.pg_policy'::regclass and d.objid = q.oid
            and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = p.oid and d.refobjsubid = p.tenant
        ) as narrows
      from published p
      join pg_catalog.pg_policy q on q.polrelid = p.oid
      where ${APPLIES}
    ) q
  )`
