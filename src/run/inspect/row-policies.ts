/**
 * The row-level security policies that PostgreSQL adds to a read of a table (PostgreSQL manual, 5.9), as far
 * as the caller may know them.
 */
import { isKnown, isKnownColumn, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { catalogueStatement } from '../../compile/derive.ts'
import type { BoundStatement, ReadStatement } from '../../compile/statement.ts'
import type { ResultRow } from '../run.ts'

/** Limit on the policies of one table that an inspection contains. */
export const POLICIES_MAX = 100

/** Row-level security on a table, for the role of the gateway. */
export interface RowSecurity {
  /** True if row-level security restricts this role. */
  readonly active: boolean
  readonly enabled: boolean
  readonly forced: boolean
  /** Those that apply to reads by this role. */
  readonly policies: readonly RowPolicy[]
  /** False if there are more than `POLICIES_MAX`. */
  readonly complete: boolean
}

/** A policy for reads. */
export interface RowPolicy {
  readonly name: string
  /** One permissive policy must be true, and every restrictive one. */
  readonly permissive: boolean
  readonly command: 'all' | 'select'
  /** The condition as PostgreSQL prints it. */
  readonly condition: string
  /** True if the caller can see every table and column that the condition mentions, so that it is shown. */
  readonly shown: boolean
  /** True if the condition has the same value for all rows. */
  readonly constant: boolean
}

const TEXT = `
SELECT json_build_object('table', c.oid::int8, 'active', row_security_active(c.oid),
  'enabled', c.relrowsecurity, 'forced', c.relforcerowsecurity,
  'policies', (SELECT coalesce(json_agg(p.described), '[]') FROM (
    SELECT json_build_object('name', p.polname, 'permissive', p.polpermissive,
      'command', CASE p.polcmd WHEN 'r' THEN 'select' ELSE 'all' END,
      'condition', coalesce(pg_get_expr(p.polqual, p.polrelid), 'true'),
      'mentions', (SELECT coalesce(json_agg(json_build_array(d.refobjid::int8, a.attname)), '[]')
        FROM pg_catalog.pg_depend AS d LEFT JOIN pg_catalog.pg_attribute AS a
          ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND d.refobjsubid > 0
        WHERE d.classid = 'pg_catalog.pg_policy'::regclass AND d.objid = p.oid AND d.deptype = 'n'
          AND d.refclassid = 'pg_catalog.pg_class'::regclass)) AS described
    FROM pg_catalog.pg_policy AS p
    WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*') AND (p.polroles = '{0}' OR EXISTS (
      SELECT FROM unnest(p.polroles) AS r(oid) WHERE r.oid = 0 OR pg_has_role(r.oid, 'USAGE')))
    ORDER BY p.polpermissive DESC, p.polname LIMIT ${POLICIES_MAX + 1}) AS p))
FROM pg_catalog.pg_class AS c WHERE c.oid = ANY ($1::oid[])`.trim()

/** Returns one row for each of the tables that exists. */
export function rowPoliciesOf(tables: readonly Table[]): BoundStatement<ReadStatement> {
  return catalogueStatement(TEXT, [`{${tables.map(({ oid }) => oid).join(',')}}`])
}

interface RawRowSecurity {
  readonly table: number
  readonly active: boolean
  readonly enabled: boolean
  readonly forced: boolean
  readonly policies: readonly {
    readonly name: string
    readonly permissive: boolean
    readonly command: 'all' | 'select'
    readonly condition: string
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
