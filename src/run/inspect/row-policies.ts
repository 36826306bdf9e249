/**
 * The row-level security policies that PostgreSQL adds to a statement (PostgreSQL manual, 5.9), and the
 * triggers that a write runs, as far as the caller may know them.
 */
import { isKnown, isKnownColumn, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { catalogueStatement } from '../../compile/derive.ts'
import type { BoundStatement, ReadStatement } from '../../compile/statement.ts'
import type { WriteOperation } from '../../compile/table-dependencies.ts'
import type { ResultRow } from '../run.ts'

/** Limit on the policies of one table that an inspection contains. */
export const POLICIES_MAX = 100

/** Row-level security on a table, for the role of the gateway. */
export interface RowSecurity {
  /** True if row-level security restricts this role. */
  readonly active: boolean
  readonly enabled: boolean
  readonly forced: boolean
  /** Those that apply to the statement and this role. */
  readonly policies: readonly RowPolicy[]
  /** False if there are more than `POLICIES_MAX`. */
  readonly complete: boolean
}

/** A policy. */
export interface RowPolicy {
  readonly name: string
  /** One permissive policy must be true, and every restrictive one. */
  readonly permissive: boolean
  readonly command: PolicyCommand
  /** The condition on existing rows, as PostgreSQL prints it; `true` without one. */
  readonly condition: string
  /** The condition on new rows; null for a policy that checks none. */
  readonly check: string | null
  /** True if the caller can see every table and column that the condition mentions, so that it is shown. */
  readonly shown: boolean
  /** True if the condition has the same value for all rows. */
  readonly constant: boolean
}

/** The statements that a policy applies to. */
export type PolicyCommand = 'all' | 'select' | 'insert' | 'update' | 'delete'

/** A trigger that a write runs. */
export interface RowTrigger {
  readonly name: string
  readonly timing: 'before' | 'after' | 'instead of'
  readonly level: 'row' | 'statement'
  readonly operations: readonly WriteOperation[]
  /** With its schema. */
  readonly function: string
  /** The language of a function whose effects a rollback may not undo; null otherwise. */
  readonly untrusted: string | null
}

/** The name of a policy's command in the catalog, by the operation of a write. */
const COMMANDS = { insert: 'a', update: 'w', delete: 'd' } as const

const TEXT = `
SELECT json_build_object('table', c.oid::int8, 'active', row_security_active(c.oid),
  'enabled', c.relrowsecurity, 'forced', c.relforcerowsecurity,
  'policies', (SELECT coalesce(json_agg(p.described), '[]') FROM (
    SELECT json_build_object('name', p.polname, 'permissive', p.polpermissive,
      'command', CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update'
        WHEN 'd' THEN 'delete' ELSE 'all' END,
      'check', CASE WHEN p.polcmd IN ('a', 'w', '*')
        THEN pg_get_expr(coalesce(p.polwithcheck, p.polqual), p.polrelid) END,
      'condition', coalesce(pg_get_expr(p.polqual, p.polrelid), 'true'),
      'mentions', (SELECT coalesce(json_agg(json_build_array(d.refobjid::int8, a.attname)), '[]')
        FROM pg_catalog.pg_depend AS d LEFT JOIN pg_catalog.pg_attribute AS a
          ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND d.refobjsubid > 0
        WHERE d.classid = 'pg_catalog.pg_policy'::regclass AND d.objid = p.oid AND d.deptype = 'n'
          AND d.refclassid = 'pg_catalog.pg_class'::regclass)) AS described
    FROM pg_catalog.pg_policy AS p
    WHERE p.polrelid = c.oid AND p.polcmd = ANY ($2::"char"[]) AND (p.polroles = '{0}' OR EXISTS (
      SELECT FROM unnest(p.polroles) AS r(oid) WHERE r.oid = 0 OR pg_has_role(r.oid, 'USAGE')))
    ORDER BY p.polpermissive DESC, p.polname LIMIT ${POLICIES_MAX + 1}) AS p))
FROM pg_catalog.pg_class AS c WHERE c.oid = ANY ($1::oid[])`.trim()

/** Returns one row for each of the tables that exists. `writes`: the operations on these tables. */
export function rowPoliciesOf(
  tables: readonly Table[],
  writes: readonly WriteOperation[],
): BoundStatement<ReadStatement> {
  const commands = ['r', '*', ...new Set(writes.map(operation => COMMANDS[operation]))]
  return catalogueStatement(TEXT, [oidsOf(tables), `{${commands.join(',')}}`])
}

function oidsOf(tables: readonly Table[]): string {
  return `{${tables.map(({ oid }) => oid).join(',')}}`
}

/** Limit on the triggers of one table that an inspection contains. */
export const INSPECTED_TRIGGERS_MAX = 100

const TRIGGERS_TEXT = `
SELECT json_build_object('table', c.oid::int8, 'foreign', c.relkind = 'f',
  'triggers', (SELECT coalesce(json_agg(t.described), '[]') FROM (
    SELECT json_build_object('name', t.tgname, 'type', t.tgtype, 'function', n.nspname || '.' || f.proname,
      'untrusted', CASE WHEN NOT l.lanpltrusted AND l.lanname <> 'internal' THEN l.lanname END) AS described
    FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS f ON f.oid = t.tgfoid
      JOIN pg_catalog.pg_namespace AS n ON n.oid = f.pronamespace
      JOIN pg_catalog.pg_language AS l ON l.oid = f.prolang
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
    ORDER BY t.tgname LIMIT ${INSPECTED_TRIGGERS_MAX}) AS t))
FROM pg_catalog.pg_class AS c WHERE c.oid = ANY ($1::oid[])`.trim()

/** Returns one row for each of the tables that exists. */
export function triggersOf(tables: readonly Table[]): BoundStatement<ReadStatement> {
  return catalogueStatement(TRIGGERS_TEXT, [oidsOf(tables)])
}

/** A table that is written, with its triggers. */
export interface WrittenTable {
  /** True for a table of another server, whose rows a rollback may not restore. */
  readonly foreign: boolean
  readonly triggers: readonly RowTrigger[]
}

interface RawTriggers {
  readonly table: number
  readonly foreign: boolean
  readonly triggers: readonly (Pick<RowTrigger, 'name' | 'function' | 'untrusted'> & { readonly type: number })[]
}

/** Reads the result of `triggersOf`, by the OID of the table. */
export function readTableTriggers(rows: readonly ResultRow[]): ReadonlyMap<number, WrittenTable> {
  return new Map(
    rows.map(([text]) => {
      const { table, foreign, triggers } = JSON.parse(text?.toString() ?? '') as RawTriggers
      return [table, { foreign, triggers: triggers.map(describeTrigger) }]
    }),
  )
}

/** `type` has the bits of `pg_trigger.tgtype`. */
function describeTrigger({ type, name, function: called, untrusted }: RawTriggers['triggers'][number]): RowTrigger {
  const timing = (type & 64) !== 0 ? 'instead of' : (type & 2) !== 0 ? 'before' : 'after'
  const operations = (
    [
      [4, 'insert'],
      [16, 'update'],
      [8, 'delete'],
    ] as const
  ).flatMap(([bit, operation]) => ((type & bit) === 0 ? [] : [operation]))
  return { name, timing, level: (type & 1) !== 0 ? 'row' : 'statement', operations, function: called, untrusted }
}

interface RawRowSecurity {
  readonly table: number
  readonly active: boolean
  readonly enabled: boolean
  readonly forced: boolean
  readonly policies: readonly {
    readonly name: string
    readonly permissive: boolean
    readonly command: PolicyCommand
    readonly condition: string
    readonly check: string | null
    readonly mentions: readonly (readonly [relation: number, column: string | null])[]
  }[]
}

/** Reads the result of `rowPoliciesOf`, by the OID of the table. */
export function readRowPolicies(rows: readonly ResultRow[], view: View): ReadonlyMap<number, RowSecurity> {
  const byOid = new Map([...view.catalog.tables.values()].map(table => [table.oid, table]))
  const isShown = ([relation, column]: readonly [number, string | null]): boolean => {
    const table = byOid.get(relation)
    if (table === undefined || !isKnown(table, view.rights)) return false
    const rights = view.rights.of(table)
    return column === null ? rights.read === 'any' : isKnownColumn(column, rights)
  }
  return new Map(
    rows.map(([text]) => {
      const { table, policies, ...about } = JSON.parse(text?.toString() ?? '') as RawRowSecurity
      const kept = policies.slice(0, POLICIES_MAX).map(({ mentions, ...policy }) => ({
        ...policy,
        shown: mentions.every(isShown),
        constant: mentions.length === 0,
      }))
      return [table, { ...about, policies: kept, complete: policies.length <= POLICIES_MAX }]
    }),
  )
}
