/**
 * The sections of the catalog statement that determine which session settings anything in the database can
 * read (decision 0043): every function, policy, default, constraint, index, trigger and rule that was not
 * created with the database, whether a statement reaches it or not. Expressions are read as PostgreSQL stores
 * them, because printing them would wait for locks on tables.
 */
import { KNOWN_EXTENSIONS } from './known-extensions.ts'
import type { SettingReaders } from './model.ts'
import { FIRST_OWN_OID, classOf as of } from './own-oids.ts'
import { ANY_SETTING, settingNamesOf, textOfConstant } from './setting-names.ts'

/** A function that may read settings. */
export interface SettingFunctionItem {
  readonly name: string
  readonly language: string
  /** Null for a body that is too long to be searched. */
  readonly body: string | null
}

/** An expression, operator or aggregate that reads settings. */
export interface SettingExpressionItem {
  readonly kind: string
  readonly name: string
  /** The number of calls of `current_setting`. */
  readonly calls: number
  /** The settings that they name, as stored constants. */
  readonly constants: readonly string[]
  /** True if it reads settings in another way. */
  readonly other: boolean
}

/** Both event triggers of `svc install` are enabled. */
export interface SettingWatchItem {
  readonly announced: boolean
}

/** Limit on the characters of a body that is searched. */
const BODY_MAX = 1_000_000

/** A call of `current_setting` in a stored expression, with a constant as the name. */
const STORED_CALL =
  String.raw`\{FUNCEXPR :funcid (?:%s) [^{}]*:args \(` +
  String.raw`\{CONST :consttype 25 [^{}]*:constvalue (-?\d+ \[[-0-9 ]+\])`

/**
 * The common table expressions of these sections. `setting_reader` has the OIDs of PostgreSQL's functions, as
 * alternatives of a regular expression.
 */
export const SETTING_SHARED: string = `
  setting_reader(named, others, settings_view) as materialized (
    select
      (select string_agg(p.oid::text, '|') from pg_catalog.pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = 'current_setting'),
      (select string_agg(p.oid::text, '|') from pg_catalog.pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '^(${ANY_SETTING})$'),
      (select c.oid::text from pg_catalog.pg_class c
        where c.relnamespace = 'pg_catalog'::regnamespace and c.relname = 'pg_settings')
  ),
  setting_tree(kind, relation, name, tree) as (
    select 'policy', p.polrelid, p.polname::text, concat(p.polqual, p.polwithcheck) from pg_catalog.pg_policy p
    union all
    select 'default', d.adrelid, a.attname::text, d.adbin::text
    from pg_catalog.pg_attrdef d
    join pg_catalog.pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
    union all
    select 'rule', v.ev_class, v.rulename::text, concat(v.ev_qual, v.ev_action)
    from pg_catalog.pg_rewrite v
    where v.oid >= ${FIRST_OWN_OID}
    union all
    select 'constraint', c.conrelid, c.conname::text, c.conbin::text
    from pg_catalog.pg_constraint c
    where c.conbin is not null and c.oid >= ${FIRST_OWN_OID}
    union all
    select 'index', i.indexrelid, null, concat(i.indexprs, i.indpred)
    from pg_catalog.pg_index i
    where i.indexrelid >= ${FIRST_OWN_OID} and (i.indexprs is not null or i.indpred is not null)
    union all
    select 'partition key', p.partrelid, null, p.partexprs::text from pg_catalog.pg_partitioned_table p
    union all
    select 'trigger', t.tgrelid, t.tgname::text, t.tgqual::text from pg_catalog.pg_trigger t where t.tgqual is not null
    union all
    select 'type', 0, t.typname::text, t.typdefaultbin::text
    from pg_catalog.pg_type t
    where t.oid >= ${FIRST_OWN_OID} and t.typdefaultbin is not null
    union all
    select 'function', 0, p.proname::text, concat(p.prosqlbody, p.proargdefaults)
    from pg_catalog.pg_proc p
    where p.oid >= ${FIRST_OWN_OID}
  )`

/** Bodies without any of these words read nothing. */
const WORDS = `current_setting|u&|\\m(execute|show|do|create|pg_settings|${ANY_SETTING})\\M`

export const SETTING_SECTIONS: {
  readonly [section in 'setting function' | 'setting expression' | 'setting watch']: string
} = {
  'setting function': `
    select n.nspname || '.' || p.proname as name, l.lanname as language,
      case when length(p.prosrc) <= ${BODY_MAX} then p.prosrc end as body
    from pg_catalog.pg_proc p
    join pg_catalog.pg_language l on l.oid = p.prolang
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where p.oid >= ${FIRST_OWN_OID} and n.nspname <> 'svc' and p.prokind <> 'a'
      and (l.lanname not in ('sql', 'plpgsql') or length(p.prosrc) > ${BODY_MAX} or p.prosrc ~* '${WORDS}')
      and not exists (
        select from pg_catalog.pg_depend d
        join pg_catalog.pg_extension e on e.oid = d.refobjid
        where d.classid = ${of('pg_proc')} and d.objid = p.oid and d.deptype = 'e'
          and d.refclassid = ${of('pg_extension')} and e.extname in (${KNOWN_EXTENSIONS})
      )`,

  'setting expression': `
    select s.kind, concat_ws('.', n.nspname, c.relname, s.name) as name, s.calls, s.constants, s.other
    from (
      select t.kind, t.relation, t.name,
        (select count(*)::int from regexp_matches(t.tree, format(':funcid (?:%s) ', r.named), 'g')) as calls,
        array(
          select m[1] from regexp_matches(t.tree, format('${STORED_CALL}', r.named), 'g') m
        ) as constants,
        t.tree ~ format(':funcid (?:%s) |:relid %s ', r.others, r.settings_view) as other
      from setting_tree t, setting_reader r
      where t.tree ~ format(':funcid (?:%s|%s) |:relid %s ', r.named, r.others, r.settings_view)
      union all
      select 'operator', 0, o.oprname, 0, '{}', true
      from pg_catalog.pg_operator o, setting_reader r
      where o.oid >= ${FIRST_OWN_OID} and o.oprcode::oid::text ~ format('^(%s|%s)$', r.named, r.others)
      union all
      select 'cast', 0, c.castsource::regtype::text, 0, '{}', true
      from pg_catalog.pg_cast c, setting_reader r
      where c.oid >= ${FIRST_OWN_OID} and c.castfunc::text ~ format('^(%s|%s)$', r.named, r.others)
      union all
      select 'aggregate', 0, a.aggfnoid::regproc::text, 0, '{}', true
      from pg_catalog.pg_aggregate a, setting_reader r
      where a.aggfnoid::oid >= ${FIRST_OWN_OID} and exists (
        select from unnest(array[
          a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn
        ]) f(oid)
        where f.oid::oid::text ~ format('^(%s|%s)$', r.named, r.others)
      )
    ) s
    left join pg_catalog.pg_class c on c.oid = s.relation
    left join pg_catalog.pg_namespace n on n.oid = c.relnamespace`,

  'setting watch': `
    select count(*) = 2 as announced
    from pg_catalog.pg_event_trigger t
    where t.evtname in ('svc_schema_changed', 'svc_schema_dropped') and t.evtenabled in ('O', 'A')`,
}

/** Combines the sections. */
export function buildSettingReaders(
  functions: readonly SettingFunctionItem[],
  expressions: readonly SettingExpressionItem[],
  watch: readonly SettingWatchItem[],
): SettingReaders {
  const names = new Map<string, string>()
  let unclear: string | null = null
  const add = (reader: string, found: readonly (string | null)[], reason: string | null) => {
    if (reason !== null || found.includes(null)) unclear ??= `${reader} ${reason ?? 'computes the name of a setting'}`
    for (const name of found) if (name !== null && !names.has(name)) names.set(name, reader)
  }
  for (const { name, language, body } of functions) {
    const reader = `function ${name}`
    if (body === null) add(reader, [], 'is too long to be searched')
    else if (language !== 'sql' && language !== 'plpgsql') add(reader, [], `is written in ${language}`)
    else {
      const read = settingNamesOf(body)
      add(reader, read.names, read.unclear)
    }
  }
  for (const { kind, name, calls, constants, other } of expressions) {
    const found = constants.map(constant => textOfConstant(constant)?.toLowerCase() ?? null)
    const reason = other ? 'reads settings by computed names' : null
    add(`${kind} ${name}`, calls === found.length ? found : [...found, null], reason)
  }
  return Object.freeze({ names, unclear, isAnnounced: watch[0]?.announced ?? false })
}
