/**
 * The sections of the catalog statement about dependencies: the other relations that a read of a relation
 * reads, and that a write to it writes, so that cached results can be invalidated. Relations that are not
 * resources count as well – partitions, tables under a view, tables that only a policy reads. PostgreSQL
 * records the dependencies of views and policies, except on its own functions and tables, which are pinned
 * (PostgreSQL manual, pg_depend); those are read from the expression trees.
 */

import type { NondeterminismCause, RelationMention, Tie } from './model.ts'
import { FIRST_OWN_OID } from './own-oids.ts'

/** A relation that depends on another one. */
export interface TieItem extends Tie {
  readonly relation: number
}

/**
 * A view, policy or inlined function mentions another relation, with the number of times. `relation` and
 * `other` are the negated OID for a function.
 */
export interface MentionItem extends RelationMention {
  readonly relation: number
}

/** Why the rows of a view or policy may change although no row of its tables does. */
export interface UnsteadyItem extends NondeterminismCause {
  readonly relation: number
}

/** Writing to it may change any table: it has triggers, rules, or calls functions that may write. */
export interface EffectItem {
  readonly relation: number
  readonly insert: boolean
  readonly update: boolean
  readonly delete: boolean
}

/**
 * A join for expressions of the statement: the rows of `pg_depend` from an object in one catalog to objects
 * in another.
 */
const dependsOn = (from: string, oid: string, to: string): string =>
  `join pg_catalog.pg_depend d on d.classid = 'pg_catalog.${from}'::regclass and d.objid = ${oid}
      and d.refclassid = 'pg_catalog.${to}'::regclass`

/** The beginning of a function in a range table, before its OID. */
const INLINED = ':functions ({RANGETBLFUNCTION :funcexpr {FUNCEXPR :funcid '

/**
 * The text after each occurrence of a key in an expression tree. Splitting is many times faster than
 * matching.
 */
const textAfter = (key: string): string => `(string_to_array(t.text, '${key} '))[2:]`

/**
 * The common table expressions of these sections.
 * - member: every relation, and the relation it counts as: a partition counts as its partitioned table, so
 *   that a new partition changes nothing.
 * - tie: of all relations of the database; there are few, and looking up one relation at a time would read
 *   whole tables each time.
 * - reached: the resources, and the relations they depend on.
 * - tree: the expressions of what is reached, `how` as in a mention, unpacked once (`|| ''`) rather than by
 *   every function that searches them. Excludes materialized views, which show their rows as of the last
 *   refresh.
 * - inlined: functions that PostgreSQL replaces by their body when a query reads from them
 *   (optimizer/util/clauses.c, inline_set_returning_function), as far as the catalog has the body: one SELECT
 *   between BEGIN ATOMIC and END.
 * - quoted: the same functions with a body that is a string. Only PostgreSQL's parser can read it, so what it
 *   reads from is taken from its words: names after FROM, JOIN or a comma, and each further SELECT, with and
 *   without strings and comments.
 */
export const DEPENDENCE_SHARED: string = `
  member(oid, relation, kind) as materialized (
    select c.oid, case when c.relispartition then pg_partition_root(c.oid)::oid else c.oid end, c.relkind
    from pg_catalog.pg_class c
    where c.relkind in ('r', 'p', 'f', 'v', 'm') and c.oid >= ${FIRST_OWN_OID}
  ),
  tie(relation, other, how) as materialized (
    select m.relation, o.relation, t.how
    from (
      select i.inhparent, i.inhrelid, 'child'
      from pg_catalog.pg_inherits i
      union all
      select v.ev_class, d.refobjid, 'view'
      from pg_catalog.pg_rewrite v
      join pg_catalog.pg_class c on c.oid = v.ev_class and c.relkind = 'v'
      ${dependsOn('pg_rewrite', 'v.oid', 'pg_class')}
      where v.ev_type = '1' and v.ev_class >= ${FIRST_OWN_OID}
      union all
      select p.polrelid, d.refobjid, 'policy'
      from pg_catalog.pg_policy p
      join pg_catalog.pg_class c on c.oid = p.polrelid and c.relrowsecurity
      ${dependsOn('pg_policy', 'p.oid', 'pg_class')}
      union all
      select c.confrelid, c.conrelid, e.how
      from pg_catalog.pg_constraint c
      cross join lateral (
        values (c.confdeltype = 'c', 'delete deletes'), (c.confdeltype in ('n', 'd'), 'delete updates'),
          (c.confupdtype in ('c', 'n', 'd'), 'update updates')
      ) e (happens, how)
      where c.contype = 'f' and e.happens
      union all
      select m.oid, m.oid, 'update moves'
      from member m
      where m.kind = 'p' and m.oid = m.relation
    ) t (oid, other, how)
    join member m on m.oid = t.oid
    join member o on o.oid = t.other
    where o.relation <> m.relation or t.how like '% %'
    group by 1, 2, 3
  ),
  reached(relation) as (
    select oid from relation
    union
    select t.other from reached r join tie t on t.relation = r.relation
  ),
  tree(relation, how, text) as materialized (
    select m.relation, 'view', v.ev_action::text || ''
    from reached r
    join member m on m.relation = r.relation and m.kind = 'v'
    join pg_catalog.pg_rewrite v on v.ev_class = m.oid and v.ev_type = '1'
    union all
    select m.relation, q.how, q.text || ''
    from reached r
    join member m on m.relation = r.relation
    join pg_catalog.pg_class c on c.oid = m.oid and c.relrowsecurity
    join pg_catalog.pg_policy p on p.polrelid = c.oid
    cross join lateral (
      values (case when p.polcmd in ('*', 'r') then 'read'
        else 'write' end, p.polqual::text), ('write', p.polwithcheck::text)
    ) q (how, text)
    where q.text is not null
  ),
  inlined(oid, text) as materialized (
    select p.oid::int8, p.prosqlbody::text || ''
    from pg_catalog.pg_proc p
    where p.oid >= ${FIRST_OWN_OID} and p.prosqlbody is not null and p.prokind = 'f' and p.proretset
      and p.provolatile <> 'v' and not p.proisstrict and not p.prosecdef and p.proconfig is null
      and cardinality(string_to_array(pg_get_function_sqlbody(p.oid), E';\n')) = 2
  ),
  quoted(oid, name, text) as materialized (
    select p.oid::int8, p.proname, p.prosrc
    from pg_catalog.pg_proc p
    join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname = 'sql'
    where p.oid >= ${FIRST_OWN_OID} and p.prosqlbody is null and p.prokind = 'f' and p.proretset
      and p.provolatile <> 'v' and not p.proisstrict and not p.prosecdef and p.proconfig is null
  ),
  named(name, key) as materialized (
    select c.relname, m.relation::int8
    from member m
    join pg_catalog.pg_class c on c.oid = m.oid
    where exists (select from quoted)
    union all
    select p.proname, -i.oid from inlined i join pg_catalog.pg_proc p on p.oid = i.oid
    union all
    select q.name, -q.oid from quoted q
  )`

/** A quoted name, and the same with Unicode escapes (PostgreSQL manual, 4.1.1). */
const QUOTED_NAME = String.raw`(?:u&)?"(?:[^"]|"")+"(?:\s*uescape\s*'.')?`

/**
 * A name after FROM, JOIN or a comma, with or without its schema: the bare name; or the mark of Unicode
 * escapes, the quoted name and the escape character.
 */
const MENTION_IN_TEXT =
  String.raw`(?:\mfrom\M|\mjoin\M|,)[\s(]*(?:(?:only|lateral|table)\s+)?` +
  String.raw`(?:(?:[\w$]+|${QUOTED_NAME})\s*\.\s*)?` +
  String.raw`(?:([\w$]+)|(u&)?"((?:[^"]|"")+)"(?:\s*uescape\s*'(.)')?)`

/**
 * The LIKE pattern for a name with Unicode escapes that `MENTION_IN_TEXT` has found. An escaped character
 * outside ASCII is any character, because the encoding of the database need not have it.
 */
const PATTERN_OF_MENTION = String.raw`(
  select string_agg(case
    when c.code between 56320 and 57343 then ''
    when c.code not between 1 and 127 then '_'
    else regexp_replace(
      case when c.code is not null then chr(c.code) when e.part[3] is not null then s.escape else e.part[4] end,
      '([\\%_])', '\\\1')
    end, '' order by e.at)
  from (select coalesce(w.found[4], '\')) s (escape)
  cross join lateral regexp_matches(translate(replace(w.found[3], '""', '"'), s.escape, chr(1)),
    chr(1) || '(?:([0-9a-f]{4})|\+([0-9a-f]{6})|(' || chr(1) || '))|(.)', 'gi') with ordinality e (part, at)
  cross join lateral (
    select ('x' || lpad(coalesce(e.part[1], e.part[2]), 8, '0'))::bit(32)::int
  ) c (code)
)`

/** A string with or without escapes, or a comment (PostgreSQL manual, 4.1.2 and 4.1.5). */
const SKIPPED_IN_TEXT = String.raw`\me'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|--[^\n]*|/\*(?:[^*]|\*+[^*/])*\*+/`

/** The text as written, and without strings and comments, which can separate words or hide them. */
const READINGS = `(
  values (1, q.text), (2, regexp_replace(q.text, '${SKIPPED_IN_TEXT.replaceAll("'", "''")}', ' ', 'gi'))
) r (reading, text)`

export const DEPENDENCE_SECTIONS: { readonly [section in 'tie' | 'mention' | 'unsteady' | 'effect']: string } = {
  tie: `
    select t.relation::int8 as relation, t.other::int8 as other, t.how
    from tie t
    join reached r on r.relation = t.relation`,

  // A query reads from the entries of its range tables, by kind (parsenodes.h, RTEKind): 0 a relation, 1 a
  // subquery, 3 to 6 functions, VALUES and common tables. Others are joins and results. Before PostgreSQL 16,
  // a view has two entries for itself.
  mention: `
    select t.relation, coalesce(o.relation::int8, -f.oid) as other, t.how, count(*)::int as times
    from (
      select relation::int8, how, text from tree
      union all
      select -oid, 'read', text from inlined
    ) t (relation, how, text)
    cross join lateral unnest(${textAfter(':rtekind')}) s (rest)
    left join member o on o.oid = case when s.rest like '0 :relid %' then split_part(s.rest, ' ', 3)::oid end
    left join (select oid from inlined union all select oid from quoted) f
      on f.oid = case when s.rest like '3 ${INLINED}%'
        then split_part(substr(s.rest, ${INLINED.length + 3}), ' ', 1)::int8 end
    where left(s.rest, 2) in ('0 ', '1 ', '3 ', '4 ', '5 ', '6 ') and o.relation::int8 is distinct from t.relation
    group by 1, 2, 3
    union all
    select oid, key, 'read', max(times)
    from (
      select -q.oid, n.key, r.reading, count(*)::int
      from quoted q
      cross join lateral ${READINGS}
      cross join lateral regexp_matches(r.text, '${MENTION_IN_TEXT.replaceAll("'", "''")}', 'gi') w (found)
      join named n on n.key <> -q.oid and case
        when w.found[1] is not null then n.name in (w.found[1], lower(w.found[1]))
        when w.found[2] is null then n.name = replace(w.found[3], '""', '"')
        else n.name like ${PATTERN_OF_MENTION}
      end
      group by 1, 2, 3
    ) m (oid, key, reading, times)
    group by 1, 2
    union all
    select oid, null, 'read', max(times) - 1
    from (
      select -q.oid, r.reading, count(*)::int
      from quoted q
      cross join lateral ${READINGS}
      cross join lateral regexp_matches(r.text, '\\mselect\\M', 'gi')
      group by 1, 2
    ) m (oid, reading, times)
    group by 1
    having max(times) > 1`,

  // `current_date` and similar words have their own node type, numbered 0 to 8 if they are about time
  // (primnodes.h, SQLValueFunctionOp).
  unsteady: `
    select u.relation::int8 as relation, u.cause, u.name
    from (
      select t.relation, case when p.provolatile = 'v' then 'volatile' when n.nspname = 'pg_catalog'
        then 'stable' else 'opaque' end as cause,
        p.proname::text as name
      from tree t
      cross join lateral unnest(
        ${[':funcid', ':opfuncid', ':aggfnoid', ':winfnoid'].map(textAfter).join(' || ')}
      ) f (rest)
      join pg_catalog.pg_proc p on p.oid = split_part(f.rest, ' ', 1)::oid and p.provolatile <> 'i'
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      where t.how <> 'write'
      union
      select t.relation, 'volatile', 'current_timestamp'
      from tree t
      where t.how <> 'write' and strpos(t.text, 'SQLVALUEFUNCTION') > 0 and t.text ~ 'SQLVALUEFUNCTION :op [0-8] '
      union
      select t.relation, 'volatile', 'tablesample'
      from tree t
      where t.how <> 'write' and strpos(t.text, 'TABLESAMPLECLAUSE') > 0
      union
      select t.relation, 'volatile', c.relname::text
      from tree t
      cross join lateral unnest(${textAfter(':relid')}) s (rest)
      join pg_catalog.pg_class c on c.oid = split_part(s.rest, ' ', 1)::oid
      where t.how <> 'write' and (c.oid < ${FIRST_OWN_OID} or c.relkind = 'S')
      union
      select m.relation, 'volatile', c.relname::text
      from reached r
      join member m on m.relation = r.relation and m.kind = 'f'
      join pg_catalog.pg_class c on c.oid = m.oid
    ) u`,

  // Triggers by their bits (PostgreSQL manual, pg_trigger; trigger.h): 4 insert, 8 delete, 16 update.
  // PostgreSQL's own trigger functions change only their row, and those of schema svc write to that schema.
  // Functions in C and of PostgreSQL draw numbers and create keys; the effects of others are unknown.
  effect: `
    select m.relation::int8 as relation, bool_or(e.insert) as insert, bool_or(e.update) as update,
      bool_or(e.delete) as delete
    from (
      select t.tgrelid as relation, t.tgtype & 4 <> 0 as insert, t.tgtype & 16 <> 0 as update,
        t.tgtype & 8 <> 0 as delete
      from pg_catalog.pg_trigger t
      join pg_catalog.pg_proc p on p.oid = t.tgfoid
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      where not t.tgisinternal and t.tgenabled in ('O', 'A') and n.nspname not in ('pg_catalog', 'svc')
      union all
      select v.ev_class, v.ev_type = '3', v.ev_type = '2', v.ev_type = '4'
      from pg_catalog.pg_rewrite v
      where v.ev_type <> '1' and v.ev_enabled in ('O', 'A')
      union all
      select f.relation, true, true, true
      from (
        select a.adrelid as relation, d.refobjid as function
        from pg_catalog.pg_attrdef a
        ${dependsOn('pg_attrdef', 'a.oid', 'pg_proc')}
        union all
        select p.polrelid, d.refobjid
        from pg_catalog.pg_policy p
        ${dependsOn('pg_policy', 'p.oid', 'pg_proc')}
        union all
        select c.conrelid, d.refobjid
        from pg_catalog.pg_constraint c
        ${dependsOn('pg_constraint', 'c.oid', 'pg_proc')}
        where c.contype = 'c' and c.conrelid <> 0
      ) f
      join pg_catalog.pg_proc p on p.oid = f.function and p.provolatile = 'v'
      join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname not in ('internal', 'c')
    ) e
    join member m on m.oid = e.relation
    join reached r on r.relation = m.relation
    group by m.relation`,
}
