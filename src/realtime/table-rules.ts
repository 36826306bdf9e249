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
  /**
   * The tables among them of which each caller sees only rows with one value in a column, by name: a change
   * of rows with other values does not affect what the caller sees of this table.
   */
  readonly guards: ReadonlyMap<string, Guard>
  /** The OIDs of the tables that policies read, and their policies as they were read (`fingerprintsOf`). */
  readonly readPolicies: { readonly oids: readonly string[]; readonly fingerprint: string }
  /** The views among them, whose names can be used for writes to the tables. */
  readonly views: readonly string[]
  /** Tables that inherit from this one; their rows are rows of this table. */
  readonly inheriting: readonly string[]
  /**
   * Tables, views and partitions through which rows of this table are written without its own notification.
   */
  readonly writtenBy: readonly string[]
}

/** A table that policies read, of which each caller sees only rows with one value in a column. */
export interface Guard {
  readonly route: VisibilityRoute
  /** True if columns of its rows change only when a write assigns them. */
  readonly isPlain: boolean
}

/** The `xmin` of a catalog row changes with every change of the row. */
const FINGERPRINT_OF_C = `concat_ws(' ', c.relrowsecurity, c.relforcerowsecurity, row_security_active(c.oid), (
  SELECT string_agg(concat_ws('.', p.oid, p.xmin), ' ' ORDER BY p.oid) FROM pg_catalog.pg_policy AS p
    WHERE p.polrelid = c.oid
))`

/** Identifies the policies of the table `$1`. */
export const FINGERPRINT: string = `SELECT ${FINGERPRINT_OF_C} FROM pg_catalog.pg_class AS c WHERE c.oid = $1::oid`

/** Identifies the policies of the tables that the SQL of an array of OIDs lists. */
const fingerprintsOf = (oids: string) =>
  `coalesce((SELECT string_agg(${FINGERPRINT_OF_C}, E'\n' ORDER BY c.oid) FROM pg_catalog.pg_class AS c
  WHERE c.oid = ANY (${oids})), '')`

/** Reads `FINGERPRINT`, and `readPolicies.fingerprint` of the OIDs `$2`. */
export const FINGERPRINTS: string = `SELECT (${FINGERPRINT}), ${fingerprintsOf('$2::oid[]')}`

/** With only `pg_catalog` in the search path, every other name in a condition is printed with its schema. */
const SEARCH_PATH = "SELECT set_config('search_path', 'pg_catalog', true)"

/** Limit on the length of a chain of cascading keys. */
const CASCADE_DEPTH_MAX = 16

/** The policies `p` for reading that apply to the gateway. */
const APPLIES = `p.polcmd IN ('r', '*')
    AND (p.polroles = '{0}' OR EXISTS (SELECT FROM unnest(p.polroles) AS r(oid) WHERE r.oid = 0
      OR pg_has_role(r.oid, 'USAGE')))`

/** True if a policy that `d` is a dependency of calls something that is not built in. */
const CALLS_OTHERS = `d.refclassid <> 'pg_class'::regclass
    AND (d.refclassid <> 'pg_type'::regclass OR d.refobjid IN (SELECT oid FROM pg_type WHERE typtype = 'd'))`

/** The columns of `c` without those that have a nondeterministic collation. */
const COLUMNS = `(SELECT coalesce(json_agg(json_build_object('name', a.attname, 'type', t.typname)), '[]')
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_collation AS k ON k.oid = a.attcollation
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND t.typnamespace = 'pg_catalog'::regnamespace
      AND k.collisdeterministic IS DISTINCT FROM false)`

/** True if triggers can change a row of `c` when it is written. */
const TRIGGERS = 'EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal AND tgtype & 2 = 2)'

const RULES = `
WITH RECURSIVE policy AS (
  SELECT p.oid, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) AS condition
  FROM pg_policy AS p
  WHERE p.polrelid = $1::oid AND ${APPLIES}
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
  'readPolicies', (SELECT json_build_object('oids', coalesce(json_agg(oid::text ORDER BY oid), '[]'),
    'fingerprint', ${fingerprintsOf('ARRAY(SELECT oid FROM asked)')}) FROM asked),
  'guards', (SELECT coalesce(json_agg(json_build_object(
    'name', n.nspname || '.' || c.relname,
    'active', row_security_active(c.oid),
    'plain', NOT ${TRIGGERS}
      AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attgenerated <> ''),
    'policies', (SELECT coalesce(json_agg(json_build_object('permissive', p.polpermissive,
      'condition', pg_get_expr(p.polqual, p.polrelid)) ORDER BY p.oid), '[]')
      FROM pg_policy AS p WHERE p.polrelid = c.oid AND ${APPLIES}),
    'foreign', EXISTS (SELECT FROM pg_policy AS p JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass
      AND d.objid = p.oid WHERE p.polrelid = c.oid AND ${APPLIES} AND ${CALLS_OTHERS}),
    'columns', ${COLUMNS})), '[]')
    FROM asked AS a JOIN pg_class AS c ON c.oid = a.oid AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND NOT EXISTS (SELECT FROM asked AS part WHERE part.oid <> c.oid AND pg_partition_root(part.oid) = c.oid)
    JOIN pg_namespace AS n ON n.oid = c.relnamespace),
  'active', row_security_active($1::oid),
  'readable', has_table_privilege($1::oid, 'SELECT'),
  'triggers', (SELECT ${TRIGGERS} FROM pg_class AS c WHERE c.oid = $1::oid),
  'policies', (SELECT coalesce(json_agg(
    json_build_object('permissive', polpermissive, 'condition', condition) ORDER BY oid), '[]') FROM policy),
  'columns', (SELECT coalesce(json_agg(DISTINCT a.attname), '[]')
    FROM mention AS m JOIN pg_attribute AS a
    ON m.refclassid = 'pg_class'::regclass AND m.refobjid = $1::oid AND a.attrelid = m.refobjid
      AND a.attnum = m.refobjsubid),
  'exact', (SELECT ${COLUMNS} FROM pg_class AS c WHERE c.oid = $1::oid),
  'foreign', EXISTS (SELECT FROM mention AS d WHERE ${CALLS_OTHERS}),
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
  /** The columns in which different texts are never equal, with their types. */
  readonly exact: readonly { readonly name: string; readonly type: string }[]
  /** True if a policy calls something that is not built in; a domain's constraint may call anything. */
  readonly foreign: boolean
  readonly readPolicies: TableRules['readPolicies']
  /** The tables that policies read, without those of which they read a partition. */
  readonly guards: readonly RawGuard[]
  readonly reads: readonly string[]
  readonly views: readonly string[]
  readonly inheriting: readonly string[]
  /**
   * Tables whose changes cascade to this one, and partitions and views through which its rows are written.
   */
  readonly written: readonly string[]
}

interface RawGuard extends Pick<RawTableRules, 'active' | 'policies' | 'foreign'> {
  /** `schema.name`. */
  readonly name: string
  readonly plain: boolean
  readonly columns: RawTableRules['exact']
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
  const { fingerprint, active, readable, triggers, foreign, reads, views, inheriting, written, readPolicies } = read
  const guards = guardsOf(read)
  const base = { fingerprint: fingerprint ?? '', reads, guards, readPolicies, views, writtenBy: written, inheriting }
  const isTable = table.kind === 'table' || table.kind === 'partitioned'
  const columns = triggers || table.columns.some(({ generated }) => generated !== null) ? null : new Set(read.columns)
  if (!active) return { ...base, settings: [], columns, route: null, condition: readable && isTable ? 'true' : null }
  const conditions = conditionsOf(read)
  const known = foreign || reads.length + views.length > 0 ? null : settingsIn(conditions)
  const permissive = conditions.filter((_, index) => read.policies[index]?.permissive === true)
  const restrictive = conditions.filter((_, index) => read.policies[index]?.permissive === false)
  const any = permissive.length === 0 ? 'false' : permissive.map(text => `(${text})`).join(' OR ')
  const condition = [any, ...restrictive].map(text => `(${text})`).join(' AND ')
  const route = keepsSettings(read) ? routeOf(policiesOf(read), exactColumns(read.exact), SETTINGS) : null
  return { ...base, settings: known, columns, route, condition: readable && isTable ? condition : null }
}

/**
 * The guards among the tables that policies read. Their row-level security applies to the reads of a policy
 * as to those of the caller; in a view, that of its owner would apply.
 */
function guardsOf(read: RawTableRules): ReadonlyMap<string, Guard> {
  if (!keepsSettings(read)) return new Map()
  return new Map(
    read.guards.flatMap(guard => {
      const route = guard.active ? routeOf(policiesOf(guard), exactColumns(guard.columns), SETTINGS) : null
      return route === null ? [] : [[guard.name, { route, isPlain: guard.plain }] as const]
    }),
  )
}

/** True if nothing that the policies evaluate can change a setting that their conditions read. */
function keepsSettings({ foreign, views, reads, guards, policies }: RawTableRules): boolean {
  const names = new Set(guards.map(({ name }) => name))
  if (foreign || views.length > 0 || !reads.every(name => names.has(name))) return false
  return [{ policies }, ...guards].every(of => settingsIn(conditionsOf(of)) !== null) && !guards.some(of => of.foreign)
}

function conditionsOf({ policies }: Pick<RawTableRules, 'policies'>): readonly string[] {
  return policies.map(({ condition }) => condition ?? 'true')
}

function policiesOf({ policies }: Pick<RawTableRules, 'policies'>): readonly PolicyCondition[] {
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
