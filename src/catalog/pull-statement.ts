/**
 * The SQL statement that reads everything that a schema document can contain. One statement is one snapshot:
 * see `statement.ts`, which it follows.
 * Foreign tables are tables. Not included, because documents cannot express them: partitions, triggers,
 * rules, sequences, grants, collations, storage, procedures, aggregates, composite and range types, names of
 * constraints. Also not included: constraints that are not enforced (PostgreSQL 18), and objects of
 * extensions.
 */

/** The statement's parameter `$1`. */
export function pullParameters(schemas: readonly string[]): readonly string[] {
  return [JSON.stringify(schemas)]
}

export interface PulledRelation {
  readonly oid: number
  readonly schema: string
  readonly name: string
  /** `pg_class.relkind`. */
  readonly kind: 'r' | 'p' | 'f' | 'v' | 'm'
  readonly rowSecurity: boolean
  readonly forced: boolean
  /** `RANGE (at)`. */
  readonly partition: string | null
  readonly securityInvoker: boolean
  readonly query: string | null
}

export interface PulledType {
  readonly oid: number
  /** For an array, the schema of the element type. */
  readonly schema: string
  readonly name: string
  readonly array: boolean
}

export interface PulledColumn {
  readonly relation: number
  readonly number: number
  readonly name: string
  readonly type: number
  readonly typeText: string
  readonly dimensions: number
  readonly notNull: boolean
  readonly default: string | null
  readonly generated: '' | 's' | 'v'
  readonly identity: '' | 'a' | 'd'
}

export interface PulledConstraint {
  readonly relation: number
  readonly name: string
  readonly kind: 'p' | 'u' | 'f' | 'c' | 'x'
  readonly columns: readonly string[]
  readonly deferrable: boolean
  readonly deferred: boolean
  readonly nullsNotDistinct: boolean | null
  /** True if its index belongs to an exclusion constraint, which can use other operators than equality. */
  readonly exclusion: boolean | null
  readonly method: string | null
  readonly target: { readonly schema: string; readonly name: string } | null
  readonly targetColumns: readonly string[]
  /** `pg_constraint.confdeltype`. */
  readonly onDelete: string
  readonly onDeleteColumns: readonly string[]
  readonly onUpdate: string
  readonly match: string
  readonly expression: string | null
  readonly where: string | null
  readonly definition: string | null
}

export interface PulledIndex {
  readonly relation: number
  readonly name: string
  readonly unique: boolean
  readonly nullsNotDistinct: boolean
  readonly method: string
  readonly definition: string
  readonly include: readonly string[]
  readonly where: string | null
}

export interface PulledPolicy {
  readonly relation: number
  readonly name: string
  /** `pg_policy.polcmd`. */
  readonly operation: 'r' | 'a' | 'w' | 'd' | '*'
  readonly permissive: boolean
  readonly roles: readonly string[]
  readonly using: string | null
  readonly withCheck: string | null
}

export interface PulledEnum {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly labels: readonly string[]
}

export interface PulledDomain {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly type: number
  readonly typeText: string
  readonly dimensions: number
  readonly notNull: boolean
  readonly default: string | null
  readonly checks: readonly string[]
}

export interface PulledFunction {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly types: readonly number[]
  readonly modes: readonly string[] | null
  readonly names: readonly string[] | null
  readonly defaults: readonly (string | null)[]
  readonly result: number
  readonly set: boolean
  readonly language: string
  readonly volatility: 'i' | 's' | 'v'
  readonly securityDefiner: boolean
  readonly strict: boolean
  readonly body: string
}

export interface PulledComment {
  readonly on: 'relation' | 'type' | 'function'
  readonly oid: number
  /** The number of a column; 0 for the object itself. */
  readonly number: number
  readonly column: string | null
  readonly text: string
}

/** The items of each section; each section is a separate select. */
export interface Pulled {
  readonly database: { readonly name: string }[]
  readonly schema: { readonly name: string }[]
  readonly otherSchema: { readonly name: string }[]
  readonly extension: { readonly name: string }[]
  readonly relation: PulledRelation[]
  readonly type: PulledType[]
  readonly column: PulledColumn[]
  readonly constraint: PulledConstraint[]
  readonly index: PulledIndex[]
  readonly policy: PulledPolicy[]
  readonly enum: PulledEnum[]
  readonly domain: PulledDomain[]
  readonly function: PulledFunction[]
  readonly comment: PulledComment[]
}

/** Columns of system catalogs added in PostgreSQL 15, read so that PostgreSQL 14 returns null for them. */
const NULLS_NOT_DISTINCT = `coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::bool, false)`
const DELETE_SET_COLUMNS =
  "array(select n::int2 from jsonb_array_elements_text(nullif(to_jsonb(c) -> 'confdelsetcols', 'null')) n)"

/** Names of columns in the order of their numbers in an array. */
function columnNames(relation: string, numbers: string): string {
  return `array(
        select a.attname::text from unnest(${numbers}) with ordinality as k(number, position)
        join pg_catalog.pg_attribute a on a.attrelid = ${relation} and a.attnum = k.number
        order by k.position
      )`
}

const SECTIONS: Readonly<Record<keyof Pulled, string>> = {
  database: `
    select current_database() as name`,

  schema: `
    select s.name from schema s`,

  otherSchema: `
    select n.nspname as name
    from pg_catalog.pg_namespace n
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and (select count(*) from schema) < jsonb_array_length($1::jsonb)`,

  // Excludes plpgsql, which every database has.
  extension: `
    select e.extname as name from pg_catalog.pg_extension e where e.extname <> 'plpgsql'`,

  relation: `
    select r.oid::int8 as oid, r.schema, r.name, r.kind, r.row_security as "rowSecurity", r.forced,
      case r.kind when 'p' then pg_get_partkeydef(r.oid) end as partition,
      exists (
        select from pg_options_to_table(r.options) o
        where o.option_name = 'security_invoker' and o.option_value::boolean
      ) as "securityInvoker",
      case when r.kind in ('v', 'm') then pg_get_viewdef(r.oid) end as query
    from relation r`,

  type: `
    select t.oid::int8 as oid, n.nspname as schema, m.typname as name, m.oid <> t.oid as "array"
    from used u
    join pg_catalog.pg_type t on t.oid = u.oid
    join pg_catalog.pg_type m on m.oid = case
      when t.typtype = 'b' and t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc then t.typelem
      else t.oid
    end
    join pg_catalog.pg_namespace n on n.oid = m.typnamespace`,

  // A not-null constraint that is not yet valid (PostgreSQL 18) does not keep NULL out of the rows that were
  // there.
  column: `
    select a.attrelid::int8 as relation, a.attnum as number, a.attname as name, a.atttypid::int8 as type,
      format_type(a.atttypid, a.atttypmod) as "typeText", a.attndims as dimensions,
      a.attnotnull and loose.conrelid is null as "notNull", pg_get_expr(f.adbin, f.adrelid) as "default",
      a.attgenerated as generated, a.attidentity as identity
    from relation r
    join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_catalog.pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
    left join pg_catalog.pg_constraint loose
      on loose.conrelid = a.attrelid and loose.contype = 'n' and not loose.convalidated and loose.conkey[1] = a.attnum
    where r.kind in ('r', 'p', 'f')`,

  // conparentid excludes constraints that PostgreSQL cloned for partitions. conenforced exists since
  // PostgreSQL 18.
  constraint: `
    select c.conrelid::int8 as relation, c.conname as name, c.contype as kind,
      ${columnNames('c.conrelid', 'c.conkey')} as columns,
      c.condeferrable as deferrable, c.condeferred as deferred,
      ${NULLS_NOT_DISTINCT} as "nullsNotDistinct", i.indisexclusion as exclusion, m.amname as method,
      case when c.contype = 'f' then (
        select json_build_object('schema', n.nspname, 'name', t.relname)
        from pg_catalog.pg_class t
        join pg_catalog.pg_namespace n on n.oid = t.relnamespace
        where t.oid = c.confrelid
      ) end as target,
      ${columnNames('c.confrelid', 'c.confkey')} as "targetColumns",
      c.confdeltype as "onDelete", ${columnNames('c.conrelid', DELETE_SET_COLUMNS)} as "onDeleteColumns",
      c.confupdtype as "onUpdate", c.confmatchtype as match,
      case c.contype when 'c' then pg_get_expr(c.conbin, c.conrelid) end as expression,
      case c.contype when 'x' then pg_get_expr(i.indpred, i.indrelid) end as "where",
      case c.contype when 'x' then pg_get_constraintdef(c.oid) end as definition
    from relation r
    join pg_catalog.pg_constraint c on c.conrelid = r.oid
    left join pg_catalog.pg_index i on i.indexrelid = c.conindid
    left join pg_catalog.pg_class x on x.oid = i.indexrelid
    left join pg_catalog.pg_am m on m.oid = x.relam
    where c.contype in ('p', 'u', 'f', 'c', 'x') and c.conparentid = 0
      and (to_jsonb(c) ->> 'conenforced') is distinct from 'false'`,

  index: `
    select i.indrelid::int8 as relation, x.relname as name, i.indisunique as unique,
      ${NULLS_NOT_DISTINCT} as "nullsNotDistinct", m.amname as method, pg_get_indexdef(i.indexrelid) as definition,
      ${columnNames('i.indrelid', '(i.indkey::int2[])[i.indnkeyatts:]')} as include,
      pg_get_expr(i.indpred, i.indrelid) as "where"
    from relation r
    join pg_catalog.pg_index i on i.indrelid = r.oid and i.indisvalid
    join pg_catalog.pg_class x on x.oid = i.indexrelid
    join pg_catalog.pg_am m on m.oid = x.relam
    where not exists (
      select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.contype in ('p', 'u', 'x')
    )`,

  policy: `
    select p.polrelid::int8 as relation, p.polname as name, p.polcmd as operation, p.polpermissive as permissive,
      array(
        select case o.role when 0 then 'public' else pg_get_userbyid(o.role) end
        from unnest(p.polroles) with ordinality as o(role, position) order by o.position
      ) as roles,
      pg_get_expr(p.polqual, p.polrelid) as "using", pg_get_expr(p.polwithcheck, p.polrelid) as "withCheck"
    from relation r
    join pg_catalog.pg_policy p on p.polrelid = r.oid`,

  enum: `
    select t.oid::int8 as oid, t.schema, t.name, array(
      select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder
    ) as labels
    from own_type t
    where t.kind = 'e'`,

  domain: `
    select t.oid::int8 as oid, t.schema, t.name, d.typbasetype::int8 as type,
      format_type(d.typbasetype, d.typtypmod) as "typeText", d.typndims as dimensions, d.typnotnull as "notNull",
      pg_get_expr(d.typdefaultbin, 0) as "default", array(
        select pg_get_expr(c.conbin, 0) from pg_catalog.pg_constraint c
        where c.contypid = t.oid and c.contype = 'c' order by c.conname
      ) as checks
    from own_type t
    join pg_catalog.pg_type d on d.oid = t.oid
    where t.kind = 'd'`,

  // The body of a function in standard SQL is a tree; PostgreSQL prints it.
  function: `
    select p.oid::int8 as oid, f.schema, p.proname as name, f.types::int8[] as types, p.proargmodes as modes,
      p.proargnames as names,
      array(select pg_get_function_arg_default(p.oid, n) from generate_series(1, cardinality(f.types)) n) as defaults,
      p.prorettype::int8 as result, p.proretset as set, l.lanname as language, p.provolatile as volatility,
      p.prosecdef as "securityDefiner", p.proisstrict as strict,
      coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) as body
    from routine f
    join pg_catalog.pg_proc p on p.oid = f.oid
    join pg_catalog.pg_language l on l.oid = p.prolang`,

  comment: `
    select o.what as "on", d.objoid::int8 as oid, d.objsubid as number, a.attname as "column", d.description as text
    from (
      select 'relation' as what, 'pg_catalog.pg_class'::regclass as class, oid from relation
      union all select 'type', 'pg_catalog.pg_type'::regclass, oid from own_type
      union all select 'function', 'pg_catalog.pg_proc'::regclass, oid from routine
    ) o
    join pg_catalog.pg_description d on d.classoid = o.class and d.objoid = o.oid
    left join pg_catalog.pg_attribute a on o.what = 'relation' and a.attrelid = d.objoid
      and a.attnum = d.objsubid and d.objsubid > 0`,
}

/**
 * The common table expressions of the sections.
 * - member: objects of extensions.
 * - relation: tables and views. A partition is part of its table.
 * - own_type: enums and domains. routine: functions, with the types of all arguments.
 * - used: every type that is mentioned.
 */
const SHARED = `
  schema as materialized (
    select n.oid, n.nspname as name
    from pg_catalog.pg_namespace n
    where n.nspname in (select jsonb_array_elements_text($1::jsonb))
  ),
  member as materialized (
    select d.classid, d.objid from pg_catalog.pg_depend d where d.deptype = 'e'
  ),
  relation as materialized (
    select c.oid, s.name as schema, c.relname as name, c.relkind as kind,
      c.relrowsecurity as row_security, c.relforcerowsecurity as forced, c.reloptions as options
    from pg_catalog.pg_class c
    join schema s on s.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'f', 'v', 'm') and not c.relispartition
      and not exists (select from member m where m.classid = 'pg_catalog.pg_class'::regclass and m.objid = c.oid)
  ),
  own_type as materialized (
    select t.oid, s.name as schema, t.typname as name, t.typtype as kind
    from pg_catalog.pg_type t
    join schema s on s.oid = t.typnamespace
    where t.typtype in ('e', 'd')
      and not exists (select from member m where m.classid = 'pg_catalog.pg_type'::regclass and m.objid = t.oid)
  ),
  routine as materialized (
    select p.oid, s.name as schema, coalesce(p.proallargtypes, p.proargtypes::oid[]) as types, p.prorettype as result
    from pg_catalog.pg_proc p
    join schema s on s.oid = p.pronamespace
    where p.prokind = 'f'
      and not exists (select from member m where m.classid = 'pg_catalog.pg_proc'::regclass and m.objid = p.oid)
  ),
  used as materialized (
    select a.atttypid as oid
    from pg_catalog.pg_attribute a
    join relation r on r.oid = a.attrelid
    where a.attnum > 0 and not a.attisdropped
    union select t.typbasetype from own_type o join pg_catalog.pg_type t on t.oid = o.oid and o.kind = 'd'
    union select unnest(f.types) from routine f
    union select f.result from routine f
  )`

/** Returns rows of two cells: the name of a section and one item of it as JSON. */
export const PULL_TEXT: string = `with${SHARED}${Object.entries(SECTIONS)
  .map(([name, select]) => `\n  select '${name}', row_to_json(x)::text from (${select}\n  ) x`)
  .join('\n  union all')}`
