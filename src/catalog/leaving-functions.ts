/**
 * The part of the catalog statement that separates the functions that can leave something in the session – a
 * setting, a role, a lock, a temporary table – from those that cannot, which need no reset (decision 0044).
 * A function is harmless if it is written in SQL or PL/pgSQL, its body has no word that a command needs that
 * leaves something or runs a text, and everything that it may run is harmless as well.
 */
import { KNOWN_EXTENSIONS } from './known-extensions.ts'
import { FIRST_OWN_OID, classOf as of } from './own-oids.ts'

/**
 * PostgreSQL's own functions that change the session, run the text they are given, or run the expressions of
 * an index. In a body, every name that contains one of these counts.
 */
const SESSION_FUNCTION_PARTS = 'set_config|advisory_lock|_to_xml|ts_stat|ts_rewrite|brin_summarize'
const SESSION_FUNCTIONS =
  '^(set_config|pg_(try_)?advisory_lock(_shared)?' +
  '|(query|cursor|table|schema|database)_to_xml.*|ts_stat|ts_rewrite|brin_summarize_.*)$'

/**
 * Words of commands that change the session, run a text, change what exists, or write: a write runs triggers
 * and can defer them. INTO and DECLARE make tables and cursors in SQL, and only variables in PL/pgSQL.
 */
const COMMANDS: readonly string[] = [
  ...[
    'alter',
    'analyse',
    'analyze',
    'call',
    'cluster',
    'comment',
    'copy',
    'create',
    'deallocate',
    'delete',
    'discard',
    'do',
  ],
  ...['drop', 'execute', 'grant', 'import', 'insert', 'listen', 'load', 'merge', 'prepare', 'reassign', 'refresh'],
  ...['reindex', 'reset', 'revoke', 'security', 'set', 'truncate', 'unlisten', 'update'],
]
const COMMANDS_OF_SQL: readonly string[] = ['into', 'declare']

/** Limit on the characters of a body that is searched. */
const BODY_MAX = 5_000

/** A name that is a single word of a body, in lower case. */
const WORD = '^[a-z0-9_]+$'

/** Limit on the bytes of a name; PostgreSQL cuts off the rest (NAMEDATALEN). */
const NAME_MAX = 63

const oneOf = (...catalogs: readonly string[]): string => `(${catalogs.map(of).join(', ')})`

/** Before PostgreSQL 15, a word can follow a number without a space. */
const words = (list: readonly string[]): string => String.raw`(^|[^a-z_])(${list.join('|')})\M`

/** Parts of a relation that a read of its rows runs, or the planning of one. */
const PARTS: readonly string[] = ['pg_policy', 'pg_rewrite', 'pg_attrdef', 'pg_constraint', 'pg_statistic_ext']

/** Objects that a body which only reads does not run. */
const IGNORED: readonly string[] = ['pg_trigger', 'pg_event_trigger', 'pg_publication_rel']

/**
 * The common table expressions.
 * - session_function: PostgreSQL's functions are pinned and not in `pg_depend`, so they are searched for in
 *   the expression trees.
 * - leaving_expression: the relations with expressions that call one of these.
 * - leaving_pair: the two types of an operator, cast or operator class that is one of these, and twice the
 *   domain whose check or default calls one.
 * - own_function: the functions of the database. `is_compiled` is true for those of extensions and of range
 *   types. Of these, the latter and those of known extensions that are not VOLATILE are harmless.
 * - body: the functions whose own body leaves nothing, with its text in lower case. Letters outside ASCII
 *   stay as they are, as in names, except in encodings of one byte. The body of a function between BEGIN
 *   ATOMIC and END is a tree, whose queries are numbered by command: 1 is SELECT (nodes.h, CmdType).
 * - called: the names of functions and relations that a text can have.
 * - following: from an object that can run something to those that run it by that. Through `pg_depend`, to
 *   functions, parts of relations, and indexes; from a part to its relation; between a relation and its
 *   parent. Foreign keys, triggers and defaults are left out, because these bodies write nothing, and so are
 *   the row types of relations. PostgreSQL reads a text only when it runs, in any search path, so a text
 *   follows each function and relation whose name is in it, whatever it means there. Operators, casts and
 *   types can be used without being named: they are one object, 0, which every text follows.
 * - leaving: all functions but those bodies, and what follows them. Of compiled functions, what follows by
 *   object 0 does not count, because extensions define types and operators; of the functions of schema svc,
 *   only functions count, because its triggers restore what they change.
 * - harmless: the other functions.
 */
export const LEAVING_SHARED: string = `
  session_function(mark) as materialized (
    select mark || p.oid || ' '
    from pg_catalog.pg_proc p
    cross join (values (':funcid '), (':opfuncid ')) m (mark)
    where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '${SESSION_FUNCTIONS}'
  ),
  leaving_expression(relation, on_read) as materialized (
    select e.relation, e.on_read
    from (
      select v.ev_class, v.ev_type = '1', concat(v.ev_qual, v.ev_action) from pg_catalog.pg_rewrite v
        where v.ev_class >= ${FIRST_OWN_OID}
      union all
      select p.polrelid, p.polcmd in ('*', 'r'), concat(p.polqual, p.polwithcheck) from pg_catalog.pg_policy p
      union all
      select a.adrelid, false, a.adbin::text from pg_catalog.pg_attrdef a
      union all
      select c.conrelid, true, c.conbin::text from pg_catalog.pg_constraint c
        where c.conrelid >= ${FIRST_OWN_OID} and c.conbin is not null
      union all
      select t.tgrelid, false, t.tgqual::text from pg_catalog.pg_trigger t where t.tgqual is not null
    ) e (relation, on_read, tree)
    where exists (select from session_function f where strpos(e.tree, f.mark) > 0)
  ),
  leaving_pair(left_type, right_type) as materialized (
    select e.left_type, e.right_type
    from (
      select c.contypid, c.contypid, c.conbin::text from pg_catalog.pg_constraint c where c.contypid >= ${FIRST_OWN_OID}
      union all
      select t.oid, t.oid, t.typdefaultbin::text from pg_catalog.pg_type t
        where t.oid >= ${FIRST_OWN_OID} and t.typdefaultbin is not null
      union all
      select o.oprleft, o.oprright, format(':funcid %s ', o.oprcode::oid) from pg_catalog.pg_operator o
        where o.oid >= ${FIRST_OWN_OID}
      union all
      select c.castsource, c.casttarget, format(':funcid %s ', c.castfunc) from pg_catalog.pg_cast c
        where c.oid >= ${FIRST_OWN_OID}
      union all
      select a.amproclefttype, a.amprocrighttype, format(':funcid %s ', a.amproc::oid) from pg_catalog.pg_amproc a
        where a.oid >= ${FIRST_OWN_OID}
    ) e (left_type, right_type, tree)
    where exists (select from session_function f where strpos(e.tree, f.mark) > 0)
  ),
  own_function(oid, name, language, kind, is_compiled, is_known, is_service) as materialized (
    select p.oid, lower(p.proname collate "C"), l.lanname, p.prokind,
      d.deptype is not null and l.lanname in ('c', 'internal'),
      p.provolatile <> 'v' and (d.deptype = 'i' or e.extname in (${KNOWN_EXTENSIONS})), n.nspname = 'svc'
    from pg_catalog.pg_proc p
    join pg_catalog.pg_language l on l.oid = p.prolang
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    left join pg_catalog.pg_depend d
      on d.classid = ${of('pg_proc')} and d.objid = p.oid and d.objsubid = 0
        and (d.deptype = 'e' or d.deptype = 'i' and d.refclassid = ${of('pg_type')})
    left join pg_catalog.pg_extension e on d.refclassid = ${of('pg_extension')} and e.oid = d.refobjid
    where p.oid >= ${FIRST_OWN_OID}
  ),
  body(oid, text) as materialized (
    select f.oid, t.text
    from own_function f
    join pg_catalog.pg_proc p on p.oid = f.oid
    cross join lateral (
      select lower(p.prosrc collate "C"), concat(p.prosqlbody, p.proargdefaults)
    ) t (text, tree)
    where f.kind = 'f' and f.language in ('sql', 'plpgsql') and length(p.prosrc) <= ${BODY_MAX}
      and t.text !~ 'u&|${SESSION_FUNCTION_PARTS}|${words(COMMANDS)}'
      and (f.language = 'plpgsql' or t.text !~ '${words(COMMANDS_OF_SQL)}')
      and t.tree !~ ':commandType [^1]'
      and not exists (select from session_function s where strpos(t.tree, s.mark) > 0)
  ),
  called(classid, oid, name) as materialized (
    select ${of('pg_proc')}, oid, name from own_function
    union all
    select ${of('pg_class')}, c.oid, lower(c.relname collate "C")
    from pg_catalog.pg_class c
    where c.oid >= ${FIRST_OWN_OID} and c.relkind in ('r', 'p', 'v', 'm', 'f')
  ),
  following(classid, oid, by_class, by) as materialized (
    select d.refclassid, d.refobjid, case when n.is_named then d.classid else 0 end,
      case when n.is_named then d.objid else 0 end
    from pg_catalog.pg_depend d
    cross join lateral (values (d.classid in ${oneOf('pg_proc', 'pg_class', ...PARTS)})) n (is_named)
    where d.refclassid in ${oneOf('pg_proc', 'pg_class')} and d.refobjid >= ${FIRST_OWN_OID}
      and d.classid not in ${oneOf(...IGNORED)}
      and (d.classid <> ${of('pg_attrdef')} or exists (
        select from pg_catalog.pg_attrdef a
        join pg_catalog.pg_attribute c on c.attrelid = a.adrelid and c.attnum = a.adnum
        where a.oid = d.objid and c.attgenerated <> ''
      ))
      and (d.refclassid = ${of('pg_proc')} or d.classid not in ${oneOf('pg_type', 'pg_constraint')})
    union all
    select d.classid, d.objid, case when d.refclassid = ${of('pg_class')} then d.refclassid else 0 end,
      case when d.refclassid = ${of('pg_class')} then d.refobjid else 0 end
    from pg_catalog.pg_depend d
    where d.deptype in ('a', 'i') and d.objid >= ${FIRST_OWN_OID}
      and d.refclassid in ${oneOf('pg_class', 'pg_type')} and (d.classid in ${oneOf(...PARTS)}
        or d.classid = ${of('pg_class')} and d.refclassid = ${of('pg_class')})
    union all
    select ${of('pg_class')}, n.relation, ${of('pg_class')}, n.other
    from pg_catalog.pg_inherits i
    cross join lateral (values (i.inhrelid, i.inhparent), (i.inhparent, i.inhrelid)) n (relation, other)
    union all
    select n.classid, n.oid, ${of('pg_proc')}, s.oid
    from called n
    join (
      select distinct left(w.word, ${NAME_MAX}), b.oid
      from body b
      cross join lateral regexp_split_to_table(b.text, '[^a-z0-9_]+') w (word)
      union all
      select n.name, b.oid
      from (select distinct name from called where name !~ '${WORD}') n
      join body b on strpos(b.text, n.name) > 0 or strpos(n.name, '"') > 0 or getdatabaseencoding() <> 'UTF8'
    ) s (word, oid) on s.word = n.name
    union all
    select 0, 0, ${of('pg_proc')}, oid from body
  ),
  leaving(classid, oid) as (
    select b.classid, b.oid
    from (
      select ${of('pg_proc')}, f.oid
      from own_function f
      where not f.is_compiled and not f.is_service and not exists (select from body b where b.oid = f.oid)
      union all
      select n.by_class, n.by
      from own_function f
      join following n on n.classid = ${of('pg_proc')} and n.oid = f.oid
      where f.is_compiled and not f.is_known and n.by_class <> 0
        or f.is_service and n.by_class = ${of('pg_proc')}
      union all
      select ${of('pg_class')}, relation from leaving_expression where on_read
      union all
      select 0, 0 from leaving_pair
    ) b (classid, oid)
    union
    select n.by_class, n.by
    from leaving l
    join following n on n.classid = l.classid and n.oid = l.oid
  ),
  harmless(oid) as materialized (
    select b.oid from body b
    where not exists (select from leaving l where l.classid = ${of('pg_proc')} and l.oid = b.oid)
  )`
