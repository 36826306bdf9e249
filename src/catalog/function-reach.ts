/**
 * The sections of the catalog statement that determine which statements can run database functions, and which
 * of them can leave settings, a role or locks in the session: a policy, view, trigger or cast may call one
 * (decision 0026).
 * The search starts at the functions and follows `pg_depend` upwards, so a database without functions costs
 * nothing, however many tables it has. A function counts whatever its volatility, because PostgreSQL does not
 * check IMMUTABLE. Functions of extensions do not count unless they are VOLATILE and not compiled.
 */
import { LEAVING_SHARED } from './leaving-functions.ts'
import type { FunctionReach, Reach } from './model.ts'
import { FIRST_OWN_OID, classOf as of } from './own-oids.ts'

/** A resource whose use can run a function of the database. */
export interface ReachItem {
  readonly relation: number
  /** True if reading is enough; false if only a write runs it. */
  readonly read: boolean
  /** True if that function can leave something in the session. */
  readonly leaves: boolean
}

/** A type whose casts, operators, ordering or checks run one. */
export interface ReachTypeItem {
  readonly name: string
  /** True for a built-in type. */
  readonly own: boolean
  /** True if that function can leave something in the session. */
  readonly leaves: boolean
}

/** The name of functions of the published schemas, none of which can leave anything in the session. */
export interface HarmlessItem {
  readonly schema: string
  readonly name: string
}

const dependent = (on: string, classid: string): string =>
  `join pg_catalog.pg_depend d on d.refclassid = ${classid} and d.refobjid = ${on}`

/**
 * The common table expressions of these sections.
 * - reach_function: the functions that count, including aggregates. `leaves`, here and below, is true for
 *   those that can leave something in the session.
 * - reach_type: types of a cast or operator implemented by such a function (of two types, the one defined in
 *   the database), domains whose checks call one, types whose ordering or subtraction uses one; and arrays,
 *   domains, ranges and composites of these.
 * - reach_object: what an expression can depend on.
 * - reach_direct: relations that call one themselves. An index, a default or a check runs when a row is
 *   written, and a constant part of an index, check, partition key or statistics object also when a read is
 *   planned; a materialized view when it is refreshed. Before PostgreSQL 15, what a generated column calls is
 *   a dependency of the column, and not of its expression. PostgreSQL's own functions are pinned and not in
 *   `pg_depend`; the few that leave something are searched for in the expression trees.
 * - reach: relations that read or write those in turn. A cascading foreign key leads from the referenced
 *   table. Where something can be left, a partition also runs the keys and triggers of its table, and a write
 *   to either side of a foreign key plans a read of the other.
 * - reach_deferring: relations with a trigger that can be deferred, and those that write to them in turn.
 *   Foreign keys and unique constraints that can be deferred have triggers too.
 */
export const REACH_SHARED: string = `${LEAVING_SHARED},
  reach_function(oid, leaves) as materialized (
    select p.oid, h.oid is null
    from pg_catalog.pg_proc p
    left join harmless h on h.oid = p.oid
    join pg_catalog.pg_language l on l.oid = p.prolang
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where p.oid >= ${FIRST_OWN_OID} and n.nspname <> 'svc'
      and (p.provolatile = 'v' and (l.lanname not in ('internal', 'c') or p.prokind = 'a') or not exists (
        select from pg_catalog.pg_depend d
        where d.classid = ${of('pg_proc')} and d.objid = p.oid
          and (d.deptype = 'e' or d.deptype = 'i' and d.refclassid = ${of('pg_type')})
      ))
  ),
  reach_type(oid, leaves) as (
    select t.oid, pair.leaves
    from (
      select c.castsource, c.casttarget, f.leaves
      from reach_function f
      join pg_catalog.pg_cast c on c.castfunc = f.oid
      union all
      select o.oprleft, o.oprright, f.leaves
      from reach_function f
      join pg_catalog.pg_operator o on o.oprcode = f.oid
      union all
      select a.amproclefttype, a.amprocrighttype, f.leaves
      from reach_function f
      join pg_catalog.pg_amproc a on a.amproc = f.oid
      union all
      select c.contypid, c.contypid, f.leaves
      from reach_function f
      ${dependent('f.oid', of('pg_proc'))} and d.classid = ${of('pg_constraint')}
      join pg_catalog.pg_constraint c on c.oid = d.objid and c.contypid <> 0
      union all
      select d.objid, d.objid, f.leaves
      from reach_function f
      ${dependent('f.oid', of('pg_proc'))} and d.classid = ${of('pg_type')}
      union all
      select left_type, right_type, true from leaving_pair
    ) pair (one, other, leaves)
    join pg_catalog.pg_type t
      on t.oid = case when pair.one >= ${FIRST_OWN_OID} or pair.other = 0 then pair.one else pair.other end
    union
    select n.oid, r.leaves
    from reach_type r
    cross join lateral (
      select t.oid from pg_catalog.pg_type t where t.typbasetype = r.oid or t.typelem = r.oid
      union all
      select unnest(array[g.rngtypid, g.rngmultitypid]) from pg_catalog.pg_range g where g.rngsubtype = r.oid
      union all
      select c.reltype
      from pg_catalog.pg_attribute a
      join pg_catalog.pg_class c on c.oid = a.attrelid
      where a.atttypid = r.oid and a.attnum > 0 and not a.attisdropped and c.reltype <> 0
    ) n (oid)
  ),
  reach_object(classid, oid, leaves) as materialized (
    select ${of('pg_proc')}, oid, leaves from reach_function
    union all
    select ${of('pg_operator')}, o.oid, f.leaves
    from reach_function f
    join pg_catalog.pg_operator o on o.oprcode = f.oid
    union all
    select ${of('pg_type')}, oid, leaves from reach_type
  ),
  reach_direct(relation, on_read, leaves) as materialized (
    select v.ev_class, v.ev_type = '1', o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_rewrite')}
    join pg_catalog.pg_rewrite v on v.oid = d.objid
    join pg_catalog.pg_class c on c.oid = v.ev_class and c.relkind <> 'm'
    union all
    select p.polrelid, p.polcmd in ('*', 'r'), o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_policy')}
    join pg_catalog.pg_policy p on p.oid = d.objid
    union all
    select t.tgrelid, false, o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_trigger')}
    join pg_catalog.pg_trigger t on t.oid = d.objid
    union all
    select a.adrelid, c.attgenerated = 'v', o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_attrdef')}
    join pg_catalog.pg_attrdef a on a.oid = d.objid
    join pg_catalog.pg_attribute c on c.attrelid = a.adrelid and c.attnum = a.adnum
    union all
    select d.objid, o.leaves, o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_class')}
    join pg_catalog.pg_class c on c.oid = d.objid and (d.objsubid > 0 or c.relkind = 'p')
    union all
    select s.stxrelid, o.leaves, o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_statistic_ext')}
    join pg_catalog.pg_statistic_ext s on s.oid = d.objid
    union all
    select c.conrelid, o.leaves, o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_constraint')}
    join pg_catalog.pg_constraint c on c.oid = d.objid and c.conrelid <> 0
    union all
    select i.indrelid, o.leaves, o.leaves
    from reach_object o
    ${dependent('o.oid', 'o.classid')} and d.classid = ${of('pg_class')}
    join pg_catalog.pg_index i on i.indexrelid = d.objid
    union all
    select a.attrelid, true, t.leaves
    from reach_type t
    join pg_catalog.pg_attribute a on a.atttypid = t.oid and a.attnum > 0 and not a.attisdropped
    union all
    select e.relation, e.on_read, true from leaving_expression e
  ),
  reach(relation, on_read, leaves) as (
    select relation, on_read, leaves from reach_direct
    union
    select n.relation, n.on_read, r.leaves
    from reach r
    cross join lateral (
      select v.ev_class, v.ev_type = '1' and r.on_read
      from pg_catalog.pg_depend d
      join pg_catalog.pg_rewrite v on d.classid = ${of('pg_rewrite')} and v.oid = d.objid
      join pg_catalog.pg_class c on c.oid = v.ev_class and c.relkind <> 'm'
      where d.refclassid = ${of('pg_class')} and d.refobjid = r.relation
      union all
      select p.polrelid, p.polcmd in ('*', 'r')
      from pg_catalog.pg_depend d
      join pg_catalog.pg_policy p on d.classid = ${of('pg_policy')} and p.oid = d.objid
      where r.on_read and d.refclassid = ${of('pg_class')} and d.refobjid = r.relation
      union all
      select i.inhparent, r.on_read from pg_catalog.pg_inherits i where i.inhrelid = r.relation
      union all
      select i.inhrelid, r.on_read from pg_catalog.pg_inherits i where i.inhparent = r.relation and r.leaves
      union all
      select c.confrelid, false
      from pg_catalog.pg_constraint c
      where c.conrelid = r.relation and c.contype = 'f' and (c.confdeltype in ('c', 'n', 'd')
        or c.confupdtype in ('c', 'n', 'd') or r.leaves and r.on_read)
      union all
      select c.conrelid, false
      from pg_catalog.pg_constraint c
      where c.confrelid = r.relation and c.contype = 'f' and r.leaves and r.on_read
    ) n (relation, on_read)
  ),
  reach_deferring(relation) as (
    select t.tgrelid from pg_catalog.pg_trigger t where t.tgdeferrable
    union
    select n.relation
    from reach_deferring r
    cross join lateral (
      select v.ev_class
      from pg_catalog.pg_depend d
      join pg_catalog.pg_rewrite v on d.classid = ${of('pg_rewrite')} and v.oid = d.objid
      where d.refclassid = ${of('pg_class')} and d.refobjid = r.relation
      union all
      select i.inhparent from pg_catalog.pg_inherits i where i.inhrelid = r.relation
      union all
      select c.confrelid
      from pg_catalog.pg_constraint c
      where c.conrelid = r.relation and c.contype = 'f' and (c.confdeltype in ('c', 'n', 'd')
        or c.confupdtype in ('c', 'n', 'd'))
    ) n (relation)
  )`

export const REACH_SECTIONS: { readonly [section in 'reach' | 'reach type' | 'harmless' | 'deferring']: string } = {
  reach: `
    select r.relation::int8 as relation, bool_or(r.on_read) as read, r.leaves
    from reach r
    join relation known on known.oid = r.relation
    group by r.relation, r.leaves`,

  'reach type': `
    select distinct t.typname::text as name, t.oid < ${FIRST_OWN_OID} as own, r.leaves
    from reach_type r
    join pg_catalog.pg_type t on t.oid = r.oid`,

  harmless: `
    select s.name as schema, p.proname::text as name
    from pg_catalog.pg_proc p
    join schema s on s.oid = p.pronamespace
    left join harmless h on h.oid = p.oid
    group by s.name, p.proname
    having bool_and(h.oid is not null)`,

  deferring: `
    select r.relation::int8 as relation
    from reach_deferring r
    join relation known on known.oid = r.relation`,
}

export function buildFunctionReach(
  relations: readonly ReachItem[],
  types: readonly ReachTypeItem[],
  harmless: readonly HarmlessItem[],
  deferring: readonly Pick<ReachItem, 'relation'>[],
): FunctionReach {
  return {
    running: reachOf(relations, types),
    leaving: reachOf(
      relations.filter(({ leaves }) => leaves),
      types.filter(({ leaves }) => leaves),
    ),
    harmless: namesBySchema(harmless),
    deferring: new Set(deferring.map(({ relation }) => relation)),
  }
}

function reachOf(relations: readonly ReachItem[], types: readonly ReachTypeItem[]): Reach {
  const reading = new Set(relations.filter(({ read }) => read).map(({ relation }) => relation))
  return {
    relations: new Map(relations.map(({ relation }) => [relation, reading.has(relation) ? 'read' : 'write'])),
    types: new Set(types.map(({ name }) => name)),
    everywhere: types.some(({ own }) => own),
  }
}

function namesBySchema(items: readonly HarmlessItem[]): FunctionReach['harmless'] {
  const schemas = new Map<string, Set<string>>()
  for (const { schema, name } of items) {
    const names = schemas.get(schema) ?? new Set<string>()
    schemas.set(schema, names.add(name))
  }
  return schemas
}
