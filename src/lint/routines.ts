/** Lints of functions and procedures that run with the rights of their owner. */
import type { Lint } from './lint.ts'

/**
 * Excludes functions of extensions, which their authors must fix. Trigger functions of published tables count
 * wherever they are defined.
 */
const DEFINERS = `
        select f.oid, f.prokind as kind, f.proconfig as config, f.prorettype as result, f.proowner as owner,
          f.oid::regprocedure::text as signature, n.nspname as schema
        from pg_catalog.pg_proc f
        join pg_catalog.pg_namespace n on n.oid = f.pronamespace
        where f.prosecdef
          and (
            f.pronamespace in (select oid from schema)
            or f.oid in (select t.tgfoid from pg_catalog.pg_trigger t join published p on p.oid = t.tgrelid)
          )
          and n.nspname <> 'pg_catalog'
          and not exists (
            select from pg_catalog.pg_depend d
            where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = f.oid and d.objsubid = 0 and d.deptype = 'e'
          )`

export const ROUTINE_LINTS: readonly Lint[] = [
  {
    name: 'definer-search-path',
    level: 'error',
    boot: false,
    what: () => 'SECURITY DEFINER functions without a fixed search_path',
    why:
      'They resolve names in the search_path of the caller: a role that can create objects anywhere can make ' +
      'them run with the rights of the owner.',
    remedy: 'Set the search_path: the schemas whose objects the function uses, and pg_temp last.',
    rows: `
      select f.signature as object, array[
        format('alter routine %s set search_path = %s, pg_temp;', f.signature, (
          select string_agg(quote_ident(name), ', ' order by position) from (
            select f.schema::text as name, 0 as position
            union all
            select s.name, s.position from schema s where s.name <> f.schema
          ) paths
        ))
      ] as sql
      from (${DEFINERS}) f
      where not exists (select from unnest(f.config) as setting(text) where setting.text like 'search\\_path=%')`,
  },
  {
    name: 'definer-bypasses-rls',
    level: 'warning',
    boot: false,
    what: () => 'SECURITY DEFINER functions that callers can call and that row-level security does not bind',
    why: "Their owner bypasses it, so they read and write every tenant's rows.",
    remedy: 'Make them SECURITY INVOKER, change their owner to a role to which policies apply, or revoke EXECUTE.',
    rows: `
      select f.signature as object, array[format('alter routine %s security invoker;', f.signature)] as sql
      from (${DEFINERS}) f
      join pg_catalog.pg_roles o on o.oid = f.owner
      where (o.rolsuper or o.rolbypassrls)
        and f.kind = 'f' and f.result not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
        and has_function_privilege(f.oid, 'execute')`,
  },
]
