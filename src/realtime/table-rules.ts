/**
 * The visibility rules of a table, derived from its current policies: the session settings that matter,
 * whether a deleted row was visible, and which other tables can show or hide rows of this one when they
 * change.
 */
import type { Table } from '../catalog/model.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { settingsOf } from '../identity/settings.ts'
import { quoteIdentifier } from '../language/sql/quote.ts'
import type { Command, Database } from '../postgres/types.ts'
import { exactColumns, type PolicyCondition, routeOf, type VisibilityRoute } from './route.ts'

/** The rules that decide which rows of a table are visible. */
export interface TableRules {
  /**
   * Identifies the policies as they were read; statements that rely on these rules check it again
   * (`FINGERPRINT`).
   */
  readonly fingerprint: string
  /**
   * The settings that policies read: callers with equal values see the same rows. Null if they are unknown.
   */
  readonly settings: readonly string[] | null
  /**
   * SQL of the visibility condition on a row named like the table; null if it cannot be evaluated on a row
   * that no longer exists.
   */
  readonly condition: string | null
  /** The value a row must have to be visible; null if there is no such simple condition. */
  readonly route: VisibilityRoute | null
  /**
   * The columns that policies read; a change to others does not affect visibility. Null if they are unknown.
   */
  readonly columns: ReadonlySet<string> | null
  /**
   * Tables, as `schema.name`, whose changes affect visibility: those that policies read, and their underlying
   * tables.
   */
  readonly reads: readonly string[]
  /** The views among them, whose names can be used for writes to the tables. */
  readonly views: readonly string[]
  /** Tables that inherit from this one; their rows are rows of this table. */
  readonly inheriting: readonly string[]
  /**
   * Tables, views and partitions through which rows of this table are written without its own notification.
   */
  readonly writtenBy: readonly string[]
}

/** The `xmin` of a catalog row changes with every change of the row. `$1` is the table. */
export const FINGERPRINT = `SELECT concat_ws(' ', c.relrowsecurity, c.relforcerowsecurity, row_security_active(c.oid), (
  SELECT string_agg(concat_ws('.', p.oid, p.xmin), ' ' ORDER BY p.oid) FROM pg_catalog.pg_policy AS p
    WHERE p.polrelid = c.oid
)) FROM pg_catalog.pg_class AS c WHERE c.oid = $1::oid`

/** With only `pg_catalog` in the search path, every other name in a condition is printed with its schema. */
const SEARCH_PATH = "SELECT set_config('search_path', 'pg_catalog', true)"

/** Limit on the length of a chain of cascading keys. */
const CASCADE_DEPTH_MAX = 16

const RULES = `
WITH RECURSIVE policy AS (
  SELECT p.oid, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) AS condition
  FROM pg_policy AS p
  WHERE p.polrelid = $1::oid AND p.polcmd IN ('r', '*')
    AND (p.polroles = '{0}' OR EXISTS (SELECT FROM unnest(p.polroles) AS r(oid) WHERE r.oid = 0
      OR pg_has_role(r.oid, 'USAGE')))
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
  JOIN pg_class AS c ON c.oid = coalesce(pg_partition_root(a.oid)::oid, a.oid)
  JOIN pg_namespace AS n ON n.oid = c.relnamespace
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
  UNION SELECT r.ev_class FROM pg_depend AS d JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass
    AND d.objid = r.oid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1::oid
)
SELECT json_build_object(
  'fingerprint', (${FINGERPRINT}),
  'active', row_security_active($1::oid),
  'readable', has_table_privilege($1::oid, 'SELECT'),
  'triggers', EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::oid AND NOT tgisinternal AND tgtype & 2 = 2),
  'policies', (SELECT coalesce(json_agg(
    json_build_object('permissive', polpermissive, 'condition', condition) ORDER BY oid), '[]') FROM policy),
  'columns', (SELECT coalesce(json_agg(DISTINCT a.attname), '[]')
    FROM mention AS m JOIN pg_attribute AS a
    ON m.refclassid = 'pg_class'::regclass AND m.refobjid = $1::oid AND a.attrelid = m.refobjid
      AND a.attnum = m.refobjsubid),
  'inexact', (SELECT coalesce(json_agg(a.attname), '[]')
    FROM pg_attribute AS a JOIN pg_collation AS k ON k.oid = a.attcollation
    WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT k.collisdeterministic),
  'foreign', EXISTS (SELECT FROM mention WHERE refclassid <> 'pg_class'::regclass
    AND (refclassid <> 'pg_type'::regclass OR refobjid IN (SELECT oid FROM pg_type WHERE typtype = 'd'))),
  'reads', (SELECT coalesce(json_agg(DISTINCT name), '[]') FROM asked_name WHERE relkind <> 'v'),
  'views', (SELECT coalesce(json_agg(DISTINCT name), '[]') FROM asked_name WHERE relkind = 'v'),
  'inheriting', (SELECT coalesce(json_agg(DISTINCT n.nspname || '.' || c.relname), '[]')
    FROM pg_inherits AS i JOIN pg_class AS c
    ON c.oid = i.inhrelid AND NOT c.relispartition JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE i.inhparent = $1::oid),
  'written', (SELECT coalesce(json_agg(DISTINCT n.nspname || '.' || c.relname), '[]')
    FROM (SELECT oid FROM changes_from UNION SELECT oid FROM other_name) AS f
    JOIN pg_class AS c ON c.oid = f.oid AND c.oid <> $1::oid JOIN pg_namespace AS n ON n.oid = c.relnamespace)
)`

/** The rules as the database returns them. */
interface RawTableRules {
  readonly fingerprint: string | null
  readonly active: boolean
  readonly readable: boolean
  /** True if triggers may change a row when it is written. */
  readonly triggers: boolean
  readonly policies: readonly { readonly permissive: boolean; readonly condition: string | null }[]
  readonly columns: readonly string[]
  /** Columns with a nondeterministic collation, in which different texts can be equal. */
  readonly inexact: readonly string[]
  /** True if a policy calls something that is not built in; a domain's constraint may call anything. */
  readonly foreign: boolean
  readonly reads: readonly string[]
  readonly views: readonly string[]
  readonly inheriting: readonly string[]
  /**
   * Tables whose changes cascade to this one, and partitions and views through which its rows are written.
   */
  readonly written: readonly string[]
}

/** The command that takes a role until the end of the transaction; none for null. */
export function takeRole(role: string | null): readonly Command[] {
  if (role === null) return []
  return [{ text: "SELECT set_config('role', $1, true)", parameters: [role] }]
}

/**
 * Reads the rules of a table for the sessions of a role; null if the table no longer exists. Policies are
 * written for roles, so each role has its own rules.
 */
export async function readTableRules(
  database: Database,
  table: Table,
  role: string | null,
): Promise<TableRules | null> {
  const commands = [
    ...takeRole(role),
    { text: SEARCH_PATH, parameters: [] },
    { text: RULES, parameters: [String(table.oid)] },
  ]
  const result = (await database.run(commands).result).at(-1)
  const read = JSON.parse(result?.rows[0]?.[0]?.toString() ?? 'null') as RawTableRules | null
  return read?.fingerprint == null ? null : rulesOf(read, table)
}

/** Derives the rules from what the database returned. */
export function rulesOf(read: RawTableRules, table: Table): TableRules {
  const { fingerprint, active, readable, triggers, foreign, reads, views, inheriting, written } = read
  const base = { fingerprint: fingerprint ?? '', reads, views, writtenBy: written, inheriting }
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

function policiesOf({ policies }: RawTableRules): readonly PolicyCondition[] {
  return policies.map(({ permissive, condition }) => ({ permissive, condition: condition ?? 'true' }))
}

/** The settings of every statement that the gateway runs. */
const SETTINGS: ReadonlySet<string> = new Set(settingsOf(ANONYMOUS).map(([name]) => name))

const SETTING = /\bcurrent_setting\('((?:[^'\\]|'')*)'::text/g

/** Null if the name of a setting is computed, or if the conditions set one. */
function settingsIn(conditions: readonly string[]): readonly string[] | null {
  const text = conditions.join('\n')
  const names = [...text.matchAll(SETTING)].map(([, name = '']) => name.replaceAll("''", "'").toLowerCase())
  const calls = text.match(/\bcurrent_setting\(/g)?.length ?? 0
  if (calls !== names.length || /\b(set_config|pg_settings|pg_show_all_settings)\b/.test(text)) return null
  return [...new Set(names)].sort()
}

/**
 * Evaluates the condition on the rows of `$1`, a JSON array: `t` for each row that the caller would have
 * seen.
 */
export function conditionStatement(table: Table, condition: string): string {
  const name = quoteIdentifier(table.name)
  const type = `${quoteIdentifier(table.schema)}.${name}`
  return `SELECT (${condition}) IS TRUE FROM pg_catalog.json_populate_recordset(NULL::${type}, $1) AS ${name}`
}
