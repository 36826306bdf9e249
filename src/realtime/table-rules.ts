/**
 * What decides who sees a row of a table: its policies, as PostgreSQL has them now. From them follow three things that a subscription needs – which of the
 * caller's settings matter, whether a row that is gone was to be seen, and which other tables' changes may show or hide rows of this one.
 */
import type { Table } from '../catalog/model.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { settingsOf } from '../identity/settings.ts'
import { quoteIdentifier } from '../language/sql/quote.ts'
import type { Database } from '../postgres/types.ts'
import { exactColumns, type PolicyCondition, type Route, routeOf } from './route.ts'

export interface TableRules {
  /** Of the policies as they were read; what runs by these rules checks that it still holds (`FINGERPRINT`). */
  readonly fingerprint: string
  /** The settings that policies read: callers who have these in common see the same rows. Null: nobody can tell which. */
  readonly settings: readonly string[] | null
  /** SQL of "to be seen by the caller" over a row called like the table; null where it cannot be asked of a row that is no longer there. */
  readonly condition: string | null
  /** What a row must have to be seen; null: that is not so simple. */
  readonly route: Route | null
  /** The columns that policies look at: a change of others neither shows nor hides a row. Null: nobody can tell. */
  readonly columns: ReadonlySet<string> | null
  /** Tables, as `schema.name`, whose changes change who sees rows of this one: those that its policies read, and what those are made of in turn. */
  readonly reads: readonly string[]
  /** Views among those: names by which the tables may be written to. */
  readonly views: readonly string[]
  /** Tables that inherit from it: their rows are rows of this one. */
  readonly heirs: readonly string[]
  /** Tables, views and partitions that rows of this one are written by, and that a write of them does not tell. */
  readonly writtenBy: readonly string[]
}

/** `xmin` of a row of the catalogue changes with every change of the row. `$1` is the table. */
export const FINGERPRINT = `SELECT concat_ws(' ', c.relrowsecurity, c.relforcerowsecurity, row_security_active(c.oid), (
  SELECT string_agg(concat_ws('.', p.oid, p.xmin), ' ' ORDER BY p.oid) FROM pg_catalog.pg_policy AS p WHERE p.polrelid = c.oid
)) FROM pg_catalog.pg_class AS c WHERE c.oid = $1::oid`

/** With a search path of PostgreSQL's own names alone, every other name in a condition is printed with its schema. */
const SEARCH_PATH = "SELECT set_config('search_path', 'pg_catalog', true)"

/** A chain of cascading keys that is followed. */
const CASCADE_DEPTH_MAX = 16

const RULES = `
WITH RECURSIVE policy AS (
  SELECT p.oid, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) AS condition
  FROM pg_policy AS p
  WHERE p.polrelid = $1::oid AND p.polcmd IN ('r', '*')
    AND (p.polroles = '{0}' OR EXISTS (SELECT FROM unnest(p.polroles) AS r(oid) WHERE r.oid = 0 OR pg_has_role(r.oid, 'USAGE')))
), mention AS (
  SELECT d.refclassid, d.refobjid, d.refobjsubid
  FROM pg_depend AS d JOIN policy AS p ON d.classid = 'pg_policy'::regclass AND d.objid = p.oid
), asked(oid) AS (
  SELECT refobjid FROM mention WHERE refclassid = 'pg_class'::regclass AND refobjid <> $1::oid
  UNION
  SELECT d.refobjid FROM asked AS a
  CROSS JOIN LATERAL (
    SELECT 'pg_rewrite'::regclass AS classid, w.oid FROM pg_rewrite AS w WHERE w.ev_class = a.oid
    UNION ALL
    SELECT 'pg_policy'::regclass, p.oid FROM pg_policy AS p JOIN pg_class AS t ON t.oid = p.polrelid
      WHERE p.polrelid = a.oid AND t.relrowsecurity AND p.polcmd IN ('r', '*')
  ) AS by JOIN pg_depend AS d ON d.classid = by.classid AND d.objid = by.oid AND d.refclassid = 'pg_class'::regclass
), asked_name(name, relkind) AS (
  SELECT n.nspname || '.' || c.relname, c.relkind FROM asked AS a
  JOIN pg_class AS c ON c.oid = coalesce(pg_partition_root(a.oid)::oid, a.oid) JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.oid <> $1::oid
), changes_from(oid, depth) AS (
  SELECT confrelid, 1 FROM pg_constraint
  WHERE conrelid = $1::oid AND contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
  UNION
  SELECT k.confrelid, f.depth + 1 FROM changes_from AS f JOIN pg_constraint AS k ON k.conrelid = f.oid
  WHERE k.contype = 'f' AND k.confdeltype = 'c' AND f.depth < ${CASCADE_DEPTH_MAX}
), other_name(oid) AS (
  SELECT inhrelid FROM pg_inherits WHERE inhparent = $1::oid
  UNION SELECT inhparent FROM pg_inherits WHERE inhrelid = $1::oid
  UNION SELECT r.ev_class FROM pg_depend AS d JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1::oid
)
SELECT json_build_object(
  'fingerprint', (${FINGERPRINT}),
  'active', row_security_active($1::oid),
  'readable', has_table_privilege($1::oid, 'SELECT'),
  'triggers', EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::oid AND NOT tgisinternal AND tgtype & 2 = 2),
  'policies', (SELECT coalesce(json_agg(json_build_object('permissive', polpermissive, 'condition', condition) ORDER BY oid), '[]') FROM policy),
  'columns', (SELECT coalesce(json_agg(DISTINCT a.attname), '[]') FROM mention AS m JOIN pg_attribute AS a
    ON m.refclassid = 'pg_class'::regclass AND m.refobjid = $1::oid AND a.attrelid = m.refobjid AND a.attnum = m.refobjsubid),
  'inexact', (SELECT coalesce(json_agg(a.attname), '[]') FROM pg_attribute AS a JOIN pg_collation AS k ON k.oid = a.attcollation
    WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT k.collisdeterministic),
  'foreign', EXISTS (SELECT FROM mention WHERE refclassid <> 'pg_class'::regclass
    AND (refclassid <> 'pg_type'::regclass OR refobjid IN (SELECT oid FROM pg_type WHERE typtype = 'd'))),
  'reads', (SELECT coalesce(json_agg(DISTINCT name), '[]') FROM asked_name WHERE relkind <> 'v'),
  'views', (SELECT coalesce(json_agg(DISTINCT name), '[]') FROM asked_name WHERE relkind = 'v'),
  'heirs', (SELECT coalesce(json_agg(DISTINCT n.nspname || '.' || c.relname), '[]') FROM pg_inherits AS i JOIN pg_class AS c
    ON c.oid = i.inhrelid AND NOT c.relispartition JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE i.inhparent = $1::oid),
  'written', (SELECT coalesce(json_agg(DISTINCT n.nspname || '.' || c.relname), '[]')
    FROM (SELECT oid FROM changes_from UNION SELECT oid FROM other_name) AS f JOIN pg_class AS c ON c.oid = f.oid AND c.oid <> $1::oid JOIN pg_namespace AS n ON n.oid = c.relnamespace)
)`

interface Read {
  readonly fingerprint: string | null
  readonly active: boolean
  readonly readable: boolean
  /** There are triggers that may change a row on its way into the table. */
  readonly triggers: boolean
  readonly policies: readonly { readonly permissive: boolean; readonly condition: string | null }[]
  readonly columns: readonly string[]
  /** Columns in which different texts can be equal. */
  readonly inexact: readonly string[]
  /** A policy calls something that is not PostgreSQL's own; a domain's check may call anything. */
  readonly foreign: boolean
  readonly reads: readonly string[]
  readonly views: readonly string[]
  readonly heirs: readonly string[]
  /** Tables whose changes cascade here; partitions and views through which rows of this table are written. */
  readonly written: readonly string[]
}

/** Null: the table is gone. */
export async function readTableRules(database: Database, table: Table): Promise<TableRules | null> {
  const commands = [
    { text: SEARCH_PATH, parameters: [] },
    { text: RULES, parameters: [String(table.oid)] },
  ]
  const [, result] = await database.run(commands).result
  const read = JSON.parse(result?.rows[0]?.[0]?.toString() ?? 'null') as Read | null
  return read?.fingerprint == null ? null : rulesOf(read, table)
}

export function rulesOf(read: Read, table: Table): TableRules {
  const { fingerprint, active, readable, triggers, foreign, reads, views, heirs, written } = read
  const base = { fingerprint: fingerprint ?? '', reads, views, heirs, writtenBy: written }
  const isTable = table.kind === 'table' || table.kind === 'partitioned'
  const columns = triggers || table.columns.some(({ generated }) => generated !== null) ? null : new Set(read.columns)
  if (!active) return { ...base, settings: [], columns, route: null, condition: readable && isTable ? 'true' : null }
  const conditions = read.policies.map(({ condition }) => condition ?? 'true')
  const known = foreign || reads.length + views.length > 0 ? null : settingsIn(conditions)
  const permissive = conditions.filter((_, index) => read.policies[index]?.permissive === true)
  const restrictive = conditions.filter((_, index) => read.policies[index]?.permissive === false)
  const any = permissive.length === 0 ? 'false' : permissive.map(text => `(${text})`).join(' OR ')
  const condition = [any, ...restrictive].map(text => `(${text})`).join(' AND ')
  const exact = new Set(exactColumns(table).filter(name => !read.inexact.includes(name)))
  const route = known === null ? null : routeOf(policiesOf(read), exact, SETTINGS)
  return { ...base, settings: known, columns, route, condition: readable && isTable ? condition : null }
}

function policiesOf({ policies }: Read): readonly PolicyCondition[] {
  return policies.map(({ permissive, condition }) => ({ permissive, condition: condition ?? 'true' }))
}

/** What every statement of the gateway sets. */
const SETTINGS: ReadonlySet<string> = new Set(settingsOf(ANONYMOUS).map(([name]) => name))

const SETTING = /\bcurrent_setting\('((?:[^'\\]|'')*)'::text/g

/** Null where a setting's name is computed, or the conditions set any. */
function settingsIn(conditions: readonly string[]): readonly string[] | null {
  const text = conditions.join('\n')
  const names = [...text.matchAll(SETTING)].map(([, name = '']) => name.replaceAll("''", "'").toLowerCase())
  const calls = text.match(/\bcurrent_setting\(/g)?.length ?? 0
  if (calls !== names.length || /\b(set_config|pg_settings|pg_show_all_settings)\b/.test(text)) return null
  return [...new Set(names)].sort()
}

/** The rows of `$1`, a JSON array of them, each answered by `t` where the caller would have seen it. */
export function conditionStatement(table: Table, condition: string): string {
  const name = quoteIdentifier(table.name)
  const type = `${quoteIdentifier(table.schema)}.${name}`
  return `SELECT (${condition}) IS TRUE FROM pg_catalog.json_populate_recordset(NULL::${type}, $1) AS ${name}`
}
