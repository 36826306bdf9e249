/**
 * The SQL statement that reads the schema, and a second one that returns only its fingerprint.
 * One statement is one snapshot: tables, keys and types are always consistent, whatever commits concurrently,
 * through any pool, without an explicit transaction. (The functions that print types and defaults see the
 * latest state. If they meet a concurrent change, the statement fails or the next fingerprint differs.) Both
 * texts are built from the same sections, so nothing is read that the fingerprint does not cover.
 * Types and defaults are printed according to the session's search_path, as psql shows them to the same role.
 * Only `pg_catalog` is read (PostgreSQL manual, System Catalogs): `information_schema` hides what the role
 * has no privilege on and contains neither indexes nor partitions. No table is locked, with one exception:
 * `pg_relation_is_updatable` opens the view or foreign table it is called for.
 */

import { DEPENDENCE_SECTIONS, DEPENDENCE_SHARED } from './dependency-sections.ts'
import { REACH_SECTIONS, REACH_SHARED } from './function-reach.ts'
import { INLINED_SECTION } from './inlined-bodies.ts'
import type { ManagedColumns } from './model.ts'
import { SETTING_SECTIONS, SETTING_SHARED } from './setting-readers.ts'
import { type ConfiguredTable, parseTableName } from './table-names.ts'
import { VIEW_KEY_SECTIONS, VIEW_KEY_SHARED } from './view-keys.ts'

export interface CatalogOptions {
  /** In order; tables of the first are addressed by their bare name. */
  readonly schemas: readonly string[]
  /** Views listed although they are not `security_invoker`: `name` in the first schema, or `schema.name`. */
  readonly exposedViews: readonly string[]
  /** True if every view is a resource, because its readers have separate roles. */
  readonly allViews?: boolean
  /** The table of revoked tokens, written like the views; it is never a resource. */
  readonly jwtDenylistTable?: string | null
  /** Also reads dependencies (`dependency-sections.ts`), which the result cache needs and which take time. */
  readonly dependencies?: boolean
  /** Also reads dependencies, and which session settings can be read (`setting-readers.ts`). */
  readonly settingReaders?: boolean
  /** The columns that the gateway manages, by the name of a table in the configuration. */
  readonly tables?: ReadonlyMap<string, ManagedColumns>
}

export interface CatalogStatement {
  readonly text: string
  readonly parameters: readonly string[]
}

/**
 * Returns rows of two cells: the name of a section and one item of it as JSON (`fingerprint`: the bare
 * value).
 */
export function catalogStatement(options: CatalogOptions): CatalogStatement {
  return { text: TEXTS[scopeOf(options)].catalog, parameters: parametersOf(options) }
}

/**
 * Returns one row with one cell: the fingerprint that `catalogStatement` would return in the same snapshot.
 */
export function fingerprintStatement(options: CatalogOptions): CatalogStatement {
  return { text: TEXTS[scopeOf(options)].fingerprint, parameters: parametersOf(options) }
}

export interface ServerItem {
  readonly version: number
  readonly database: string
}

/** A configured schema that exists. */
export interface SchemaItem {
  readonly name: string
}

/** Sent only when a configured schema is missing, for the error message. */
export interface OtherSchemaItem {
  readonly name: string
}

export interface RelationItem {
  readonly oid: number
  readonly schema: string
  readonly name: string
  /** `pg_class.relkind`. */
  readonly kind: 'r' | 'p' | 'f' | 'v' | 'm'
  readonly comment: string | null
  readonly rowSecurity: boolean
  readonly forced: boolean
  /** `pg_relation_is_updatable`: 4 update, 8 insert, 16 delete. */
  readonly writable: number
}

/** A view of a configured schema that is not a resource. */
export interface UnpublishedViewItem {
  readonly schema: string
  readonly name: string
  readonly materialized: boolean
}

export interface ColumnItem {
  readonly relation: number
  readonly number: number
  readonly name: string
  readonly type: number
  readonly typeText: string
  readonly notNull: boolean
  readonly default: string | null
  /** `pg_attribute.attgenerated`: empty, stored, virtual. */
  readonly generated: '' | 's' | 'v'
  /** `pg_attribute.attidentity`: empty, always, by default. */
  readonly identity: '' | 'a' | 'd'
  readonly comment: string | null
}

export interface TypeItem {
  readonly oid: number
  readonly schema: string
  readonly name: string
  /** `pg_type.typtype`: base, composite, domain, enum, multirange, pseudo, range. */
  readonly kind: 'b' | 'c' | 'd' | 'e' | 'm' | 'p' | 'r'
  /** As `format_type` shows it without modifiers. */
  readonly text: string
  readonly array: boolean
  readonly category: string
  readonly of: number | null
  readonly notNull: boolean
  readonly default: string | null
  readonly labels: readonly string[] | null
  /** The row type of a relation, or a composite type that contains one somewhere. */
  readonly rows: boolean
}

export interface KeyItem {
  readonly relation: number
  readonly primary: boolean
  /** Column numbers in key order, separated by blanks; columns that are only included come last. */
  readonly columns: string
  readonly width: number
}

/** A constraint, or a unique index that belongs to none. */
export interface ConstraintItem {
  readonly relation: number
  readonly name: string
  /** Column numbers; 0 means an expression. */
  readonly columns: readonly number[]
}

export interface PartitionItem {
  /** The OID of the partitioned table. Its partitions, at any level, are not resources. */
  readonly relation: number
  readonly schema: string
  readonly name: string
  /** Columns by the name of their constraint or unique index. */
  readonly constraints: Readonly<Record<string, readonly string[]>>
}

export interface ForeignKeyItem {
  readonly relation: number
  readonly name: string
  readonly columns: readonly number[]
  readonly target: number
  readonly targetColumns: readonly number[]
}

/** A function of the configured schemas that a statement can call. */
export interface FunctionItem {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly comment: string | null
  /** `pg_proc.provolatile`: immutable, stable, volatile. */
  readonly volatility: 'i' | 's' | 'v'
  readonly returnsSet: boolean
  /** True for a set that is declared with `ROWS 1`. */
  readonly oneRow: boolean
  readonly strict: boolean
  /** True if the current role has EXECUTE on it and USAGE on its schema. */
  readonly executable: boolean
  readonly identity: string
  readonly resultText: string
  readonly result: number
  /** All arguments as declared, including outputs. */
  readonly types: readonly number[]
  /** `pg_proc.proargmodes`: in, out, in and out, variadic, table; null: all are in. */
  readonly modes: readonly ('i' | 'o' | 'b' | 'v' | 't')[] | null
  /** Empty for an argument without a name; null if no argument has one. */
  readonly names: readonly string[] | null
  /** The defaults' expressions; null: none has one. */
  readonly defaults: readonly (string | null)[] | null
  /** `name=value` of each setting that the function makes for itself; null without any. */
  readonly settings: readonly string[] | null
}

/** An implicit cast between a domain and json or text. */
export interface RepresentationItem {
  readonly domain: number
  readonly schema: string
  readonly name: string
  readonly kind: 'toJson' | 'fromJson' | 'fromText'
}

/** An aggregate that returns a domain with the name of a media type, or a function that makes GeoJSON. */
export interface MediaHandlerItem {
  readonly schema: string
  readonly name: string
  readonly makes: 'value' | 'features'
  readonly mediaType: string
  readonly binary: boolean
  /** 0 for an aggregate over `anyelement`. */
  readonly relation: number
}

/** A composite type that a column, a function or another composite type uses. */
export interface CompositeItem {
  readonly type: number
  /** The table whose rows it describes, or the relation of a composite type. */
  readonly relation: number
}

export interface AttributeItem {
  readonly relation: number
  readonly number: number
  readonly name: string
  readonly type: number
  readonly typeText: string
}

/** A column that a foreign key refers to in a table that is not among the relations. */
export interface OutsideColumnItem {
  readonly relation: number
  readonly schema: string
  readonly table: string
  readonly number: number
  readonly name: string
}

/** The columns of each constraint and unique index of the partition `p`, by name. */
export const CONSTRAINTS_OF_PARTITION = `
      select coalesce(jsonb_object_agg(o.name, (
        select coalesce(jsonb_agg(a.attname order by k.place), '[]')
        from unnest(o.columns) with ordinality k (number, place)
        join pg_catalog.pg_attribute a on a.attrelid = p.oid and a.attnum = k.number
      )), '{}')
      from (
        select c.conname, c.conkey
        from pg_catalog.pg_constraint c
        where c.conrelid = p.oid and c.contype in ('p', 'u', 'x', 'c', 'f') and c.conkey is not null
        union all
        select x.relname, array(
          select k.number from unnest(i.indkey::int2[]) with ordinality k (number, place)
          where k.place <= i.indnkeyatts order by k.place
        )
        from pg_catalog.pg_index i
        join pg_catalog.pg_class x on x.oid = i.indexrelid
        where i.indrelid = p.oid and i.indisunique and not exists (
          select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.contype in ('p', 'u', 'x')
        )
      ) o (name, columns)
    `

/** Each section is a separate select; the common table expressions below are shared. */
const SECTIONS = {
  server: `
    select current_setting('server_version_num')::int as version, current_database() as database`,

  schema: `
    select s.name from schema s`,

  'other schema': `
    select n.nspname as name
    from pg_catalog.pg_namespace n
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and (select count(*) from schema) < jsonb_array_length($1::jsonb)`,

  relation: `
    select r.oid::int8 as oid, r.schema, r.name, r.kind, d.description as comment,
      r.row_security as "rowSecurity", r.forced,
      case
        when r.kind in ('r', 'p') then 28
        when r.kind = 'm' or r.oid in (select oid from broken) then 0
        else pg_relation_is_updatable(r.oid, true)
      end as writable
    from relation r
    left join pg_catalog.pg_description d
      on d.objoid = r.oid and d.classoid = 'pg_catalog.pg_class'::regclass and d.objsubid = 0`,

  'media handler': `
    select s.name as schema, p.proname as name, 'value' as makes, lower(d.typname) as "mediaType",
      d.typbasetype = 'pg_catalog.bytea'::regtype as binary, a.typrelid::int8 as relation
    from pg_catalog.pg_aggregate g
    join pg_catalog.pg_proc p on p.oid = g.aggfnoid and p.pronargs = 1
    join schema s on s.oid = p.pronamespace
    join pg_catalog.pg_type d on d.oid = p.prorettype and d.typtype = 'd'
    join pg_catalog.pg_type a on a.oid = p.proargtypes[0]
    where (d.typname ~ '^[A-Za-z0-9.-]+/[A-Za-z0-9.+-]+$' or d.typname = '*/*')
      and (a.oid = 'pg_catalog.anyelement'::regtype or a.typrelid in (select oid from relation))
    union all
    select n.nspname, p.proname, 'features', 'application/geo+json', false, 0
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where p.proname = 'st_asgeojson' and p.proargtypes[0] = 'pg_catalog.record'::regtype
      and p.pronargs - p.pronargdefaults <= 1 and p.prorettype = 'pg_catalog.text'::regtype
      and (n.nspname in (select name from schema) or exists (
        select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
      ))`,

  // PostgreSQL itself ignores these casts, because it treats a domain as its base type.
  representation: `
    select d.oid::int8 as domain, n.nspname as schema, p.proname as name,
      case when c.castsource = d.oid then 'toJson' when o.typname = 'json' then 'fromJson' else 'fromText' end as kind
    from pg_catalog.pg_cast c
    join pg_catalog.pg_proc p on p.oid = c.castfunc
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    join pg_catalog.pg_type d on d.oid in (c.castsource, c.casttarget) and d.typtype = 'd'
    join pg_catalog.pg_type o on o.oid in (c.castsource, c.casttarget) and o.oid <> d.oid
    where c.castcontext = 'i' and c.castmethod = 'f' and o.typnamespace = 'pg_catalog'::regnamespace
      and (o.typname = 'json' or o.typname = 'text' and c.casttarget = d.oid)`,

  // Excludes views of extensions.
  'unpublished view': `
    select s.name as schema, c.relname as name, c.relkind = 'm' as materialized
    from pg_catalog.pg_class c
    join schema s on s.oid = c.relnamespace
    where c.relkind in ('v', 'm') and c.oid not in (select oid from relation)
      and not exists (
        select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
      )`,

  // A default has no column references, so its text needs no relation (PostgreSQL manual, pg_get_expr): no
  // lock is taken. A not-null constraint that is not yet valid (PostgreSQL 18) does not keep NULL out of the
  // rows that were there.
  column: `
    select a.attrelid::int8 as relation, a.attnum as number, a.attname as name, a.atttypid::int8 as type,
      format_type(a.atttypid, a.atttypmod) as "typeText",
      a.attnotnull and loose.conrelid is null as "notNull",
      case a.attgenerated when '' then pg_get_expr(f.adbin, 0) end as "default",
      a.attgenerated as generated, a.attidentity as identity, d.description as comment
    from pg_catalog.pg_attribute a
    join relation r on r.oid = a.attrelid
    left join pg_catalog.pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
    left join pg_catalog.pg_description d
      on d.objoid = a.attrelid and d.classoid = 'pg_catalog.pg_class'::regclass and d.objsubid = a.attnum
    left join pg_catalog.pg_constraint loose
      on loose.conrelid = a.attrelid and loose.contype = 'n' and not loose.convalidated and loose.conkey[1] = a.attnum
    where a.attnum > 0 and not a.attisdropped`,

  type: `
    select t.oid::int8 as oid, n.nspname as schema, t.typname as name, t.typtype as kind,
      format_type(t.oid, null) as text, u.is_array as "array",
      t.typcategory as category, nullif(u.made_of, 0)::int8 as "of", t.typnotnull as "notNull",
      case t.typtype when 'd' then t.typdefault end as "default",
      case t.typtype when 'e' then array(
        select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder
      ) end as labels,
      t.oid in (select h.root from holds h where h.kind <> 'c') as rows
    from used u
    join pg_catalog.pg_type t on t.oid = u.oid
    join pg_catalog.pg_namespace n on n.oid = t.typnamespace`,

  // Valid unique indexes over plain columns without a condition; a unique constraint is one of them. A
  // constraint WITHOUT OVERLAPS (PostgreSQL 18) compares ranges by && instead of =; as a primary key it still
  // names one row.
  key: `
    select i.indrelid::int8 as relation, i.indisprimary as "primary", i.indkey::text as columns, i.indnkeyatts as width
    from pg_catalog.pg_index i
    join relation r on r.oid = i.indrelid
    where i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
      and (i.indisprimary or not i.indisexclusion)`,

  // By the name that appears in errors; expressions have no columns.
  constraint: `
    select c.conrelid::int8 as relation, c.conname as name, c.conkey as columns
    from pg_catalog.pg_constraint c
    join relation r on r.oid = c.conrelid
    where c.contype in ('p', 'u', 'x', 'c', 'f') and c.conkey is not null
    union all
    select i.indrelid::int8, x.relname, array(
      select k.number from unnest(i.indkey::int2[]) with ordinality k (number, place)
      where k.place <= i.indnkeyatts order by k.place
    )
    from pg_catalog.pg_index i
    join relation r on r.oid = i.indrelid
    join pg_catalog.pg_class x on x.oid = i.indexrelid
    where i.indisunique and not exists (
      select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.contype in ('p', 'u', 'x')
    )`,

  // A row violates the constraint of its partition, which has a separate name. `pg_partition_tree` would wait
  // for locks.
  partition: `
    with recursive below(oid, part) as (
      select r.oid, r.oid from relation r join pg_catalog.pg_class c on c.oid = r.oid and c.relkind = 'p'
      union all
      select b.oid, i.inhrelid from below b join pg_catalog.pg_inherits i on i.inhparent = b.part
    )
    select r.oid::int8 as relation, n.nspname as schema, p.relname as name, (
      ${CONSTRAINTS_OF_PARTITION}
    ) as constraints
    from below r
    join pg_catalog.pg_class p on p.oid = r.part and p.relkind <> 'p'
    join pg_catalog.pg_namespace n on n.oid = p.relnamespace`,

  // conparentid excludes keys that PostgreSQL cloned for partitions. A key with PERIOD (PostgreSQL 18) refers
  // to an index WITHOUT OVERLAPS and matches by containment: equal values do not connect rows, so it is not a
  // relation.
  'foreign key': `
    select c.conrelid::int8 as relation, c.conname as name, c.conkey as columns,
      c.confrelid::int8 as target, c.confkey as "targetColumns"
    from pg_catalog.pg_constraint c
    join relation r on r.oid = c.conrelid
    left join pg_catalog.pg_index i on i.indexrelid = c.conindid
    where c.contype = 'f' and c.conparentid = 0 and i.indisexclusion is not true`,

  'outside column': `
    select a.attrelid::int8 as relation, n.nspname as schema, t.relname as "table", a.attnum as number,
      a.attname as name
    from (
      select distinct c.confrelid, unnest(c.confkey) as number
      from pg_catalog.pg_constraint c
      join relation r on r.oid = c.conrelid
      where c.contype = 'f' and c.conparentid = 0 and c.confrelid not in (select oid from relation)
    ) o
    join pg_catalog.pg_attribute a on a.attrelid = o.confrelid and a.attnum = o.number
    join pg_catalog.pg_class t on t.oid = o.confrelid
    join pg_catalog.pg_namespace n on n.oid = t.relnamespace`,

  // Only the parts needed for a call: the body can change without affecting the catalog.
  function: `
    select f.oid::int8 as oid, f.schema, p.proname as name, d.description as comment, p.provolatile as volatility,
      p.proretset as "returnsSet", p.proretset and p.prorows = 1 as "oneRow", p.proisstrict as strict,
      (has_schema_privilege(p.pronamespace, 'usage')
        and has_function_privilege(p.oid, 'execute')) is true as executable,
      pg_get_function_identity_arguments(p.oid) as identity,
      pg_get_function_result(p.oid) as "resultText", p.prorettype::int8 as result,
      f.types::int8[] as types, p.proargmodes::text[] as modes, p.proargnames as names,
      case when p.pronargdefaults > 0 then array(
        select pg_get_function_arg_default(p.oid, n) from generate_series(1, cardinality(f.types)) n order by n
      ) end as defaults, p.proconfig as settings
    from function f
    join pg_catalog.pg_proc p on p.oid = f.oid
    left join pg_catalog.pg_description d
      on d.objoid = f.oid and d.classoid = 'pg_catalog.pg_proc'::regclass and d.objsubid = 0`,

  composite: `
    select c.oid::int8 as type, c.relation::int8 as relation from composite c`,

  attribute: `
    select a.attrelid::int8 as relation, a.attnum as number, a.attname as name, a.atttypid::int8 as type,
      format_type(a.atttypid, a.atttypmod) as "typeText"
    from composite c
    join pg_catalog.pg_attribute a on a.attrelid = c.relation and a.attnum > 0 and not a.attisdropped`,
} as const

/**
 * The common table expressions of the sections.
 * - relation: the resources. A partition is never one (decision 0002).
 * - broken: foreign tables whose wrapper has no handler, and the views over them. Asking whether they are
 *   writable is an error in PostgreSQL, and one such table must not prevent reading the others.
 * - function: callable functions. Excludes those of extensions, and those with types that no statement can
 *   have (README, "Callable functions").
 * - used: the types of columns and functions, followed downwards: domain to base, array to element, range and
 *   multirange to bound, composite type to attributes. `part` is not materialized, so that the planner knows
 *   that an OID is one type; otherwise it expects millions of rows, and JIT-compiles a statement of half a
 *   second for three seconds.
 * - composite: the types among them that have attributes.
 * - holds: what these composite types consist of, down to row types of relations.
 */
const SHARED = `
  schema as materialized (
    select n.oid, n.nspname as name, s.position
    from jsonb_array_elements_text($1::jsonb) with ordinality as s(name, position)
    join pg_catalog.pg_namespace n on n.nspname = s.name
  ),
  exposed as (
    select value as name from jsonb_array_elements_text($2::jsonb)
  ),
  relation as materialized (
    select c.oid, s.name as schema, c.relname as name, c.relkind as kind,
      c.relrowsecurity as row_security, c.relforcerowsecurity as forced
    from pg_catalog.pg_class c
    join schema s on s.oid = c.relnamespace
    where not c.relispartition
      and not (s.name = $3::text and c.relname::text = $4::text)
      and (
      c.relkind in ('r', 'p', 'f')
      or c.relkind in ('v', 'm') and (
        exists (
          select from pg_options_to_table(c.reloptions) o
          where o.option_name = 'security_invoker' and o.option_value::boolean
        )
        or s.name || '.' || c.relname in (select name from exposed)
        or s.position = 1 and c.relname::text in (select name from exposed)
        or $5::boolean
      )
    )
  ),
  broken(oid) as (
    select f.ftrelid
    from pg_catalog.pg_foreign_table f
    join pg_catalog.pg_foreign_server s on s.oid = f.ftserver
    join pg_catalog.pg_foreign_data_wrapper w on w.oid = s.srvfdw
    where w.fdwhandler = 0
    union
    select v.ev_class
    from broken b
    join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = b.oid
    join pg_catalog.pg_rewrite v on d.classid = 'pg_catalog.pg_rewrite'::regclass and v.oid = d.objid
  ),
  part as not materialized (
    select t.oid,
      case
        when t.typtype = 'd' then t.typbasetype
        when t.typtype in ('r', 'm') then g.rngsubtype
        when t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc then t.typelem
        else 0
      end as made_of,
      t.typtype = 'b' and t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc as is_array
    from pg_catalog.pg_type t
    left join pg_catalog.pg_range g on t.oid in (g.rngtypid, g.rngmultitypid)
  ),
  unspeakable(oid) as (
    select t.oid from pg_catalog.pg_type t
    where t.typtype = 'p' and t.typname in (
      'cstring', 'internal', 'trigger', 'event_trigger', 'pg_ddl_command', 'language_handler', 'fdw_handler',
      'index_am_handler', 'table_am_handler', 'tsm_handler'
    )
  ),
  function as materialized (
    select p.oid, s.name as schema, p.prorettype as result, coalesce(p.proallargtypes, p.proargtypes::oid[]) as types
    from pg_catalog.pg_proc p
    join schema s on s.oid = p.pronamespace
    where p.prokind = 'f'
      and p.prorettype not in (select oid from unspeakable)
      and not exists (select from unspeakable u where u.oid = any (p.proargtypes))
      and not exists (
        select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.objsubid = 0 and d.deptype = 'e'
      )
  ),
  used(oid, made_of, is_array) as (
    select p.oid, p.made_of, p.is_array
    from (
      select a.atttypid as oid
      from pg_catalog.pg_attribute a
      join relation r on r.oid = a.attrelid
      where a.attnum > 0 and not a.attisdropped
      union
      select unnest(f.result || f.types) from function f
    ) c
    join part p on p.oid = c.oid
    union
    select p.oid, p.made_of, p.is_array
    from used u
    cross join lateral (
      select u.made_of
      union all
      select a.atttypid
      from pg_catalog.pg_type t
      join pg_catalog.pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
      where t.oid = u.oid and t.typtype = 'c'
    ) next(oid)
    join part p on p.oid = next.oid
  ),
  composite as materialized (
    select t.oid, t.typrelid as relation
    from used u
    join pg_catalog.pg_type t on t.oid = u.oid and t.typtype = 'c'
  ),
  holds(root, oid, relation, kind, made_of) as (
    select u.oid, u.oid, c.oid, c.relkind, 0::oid
    from used u
    join pg_catalog.pg_type t on t.oid = u.oid and t.typtype = 'c'
    join pg_catalog.pg_class c on c.oid = t.typrelid
    union
    select h.root, p.oid, c.oid, c.relkind, p.made_of
    from holds h
    cross join lateral (
      select a.atttypid
      from pg_catalog.pg_attribute a
      where h.kind = 'c' and a.attrelid = h.relation and a.attnum > 0 and not a.attisdropped
      union all
      select h.made_of
    ) next(oid)
    join part p on p.oid = next.oid
    join pg_catalog.pg_type t on t.oid = p.oid
    left join pg_catalog.pg_class c on c.oid = t.typrelid and t.typtype = 'c'
  )`

const RESOURCE_SECTIONS = {
  ...SECTIONS,
  ...VIEW_KEY_SECTIONS,
  ...REACH_SECTIONS,
  'inlined body': INLINED_SECTION,
}

/** A new partition changes no resource, so it does not require reading the catalog again. */
const UNCOUNTED = 'partition'

/**
 * The sections of each scope with their common table expressions. The prefix of the fingerprint distinguishes
 * a schema without dependencies from one whose dependencies were not requested.
 */
const SCOPES = {
  resources: {
    mark: '',
    shared: `${SHARED},${VIEW_KEY_SHARED},${REACH_SHARED}`,
    sections: RESOURCE_SECTIONS,
  },
  'resources and dependencies': {
    mark: 'd',
    shared: `${SHARED},${VIEW_KEY_SHARED},${REACH_SHARED},${DEPENDENCE_SHARED}`,
    sections: { ...RESOURCE_SECTIONS, ...DEPENDENCE_SECTIONS },
  },
  'resources, dependencies and settings': {
    mark: 's',
    shared: `${SHARED},${VIEW_KEY_SHARED},${REACH_SHARED},${DEPENDENCE_SHARED},${SETTING_SHARED}`,
    sections: { ...RESOURCE_SECTIONS, ...DEPENDENCE_SECTIONS, ...SETTING_SECTIONS },
  },
} as const

type Scope = keyof typeof SCOPES

const TEXTS = {
  resources: textsOf('resources'),
  'resources and dependencies': textsOf('resources and dependencies'),
  'resources, dependencies and settings': textsOf('resources, dependencies and settings'),
}

function scopeOf({ dependencies = false, settingReaders = false }: CatalogOptions): Scope {
  if (settingReaders) return 'resources, dependencies and settings'
  return dependencies ? 'resources and dependencies' : 'resources'
}

function textsOf(scope: Scope): { readonly catalog: string; readonly fingerprint: string } {
  const { mark, shared, sections } = SCOPES[scope]
  const fingerprint = `'${mark}' || sum(hash)::text`
  return {
    catalog: `with recursive${shared},
  item(section, item, hash) as (${union(sections, (section, hash) => `'${section}', row_to_json(x)::text, ${hash}`)}
  )
  select section, item from item
  union all
  select 'fingerprint', ${fingerprint} from item`,
    fingerprint: `with recursive${shared},
  item(hash) as (${union(sections, (section, hash) => (section === UNCOUNTED ? null : hash))}
  )
  select ${fingerprint} from item`,
  }
}

/**
 * The seed of the hash is the section's number, so items of two sections never cancel out. `offset 0`
 * prevents PostgreSQL from merging the section into this select, where every expression would be evaluated
 * once per cell. A section for which `cells` returns null is omitted.
 */
function union(
  sections: Readonly<Record<string, string>>,
  cells: (section: string, hash: string) => string | null,
): string {
  return Object.entries(sections)
    .flatMap(([name, select], seed) => {
      const shown = cells(name, name === UNCOUNTED ? '0' : `hash_record_extended(x, ${seed})`)
      return shown === null ? [] : [`\n    select ${shown} from (${select}\n    offset 0) x`]
    })
    .join('\n    union all')
}

function parametersOf(options: CatalogOptions): readonly string[] {
  const { schemas, exposedViews, jwtDenylistTable = null, allViews = false } = options
  const hidden = jwtDenylistTable === null ? NO_TABLE : parseTableName(jwtDenylistTable, schemas)
  return [
    JSON.stringify([...new Set(schemas)]),
    JSON.stringify(exposedViews),
    hidden.schema,
    hidden.table,
    String(allViews),
  ]
}

const NO_TABLE: ConfiguredTable = { schema: '', table: '' }
