/** Names the types of a result's columns by the OIDs that PostgreSQL sends with it. */
import { baseOf } from '../../access/types.ts'
import type { Column } from '../../catalog/model.ts'

/**
 * Returns a function from a type's OID to `pg_type.typname`. PostgreSQL sends the OID of a domain's base
 * type.
 */
export function resultTypeNames(columns: readonly Column[]): (oid: number) => string {
  const names = new Map(columns.map(({ type }) => [baseOf(type).oid, baseOf(type).name]))
  return oid => names.get(oid) ?? CHOSEN.get(oid) ?? String(oid)
}

/** The types that polymorphic results and paths into JSON can have (PostgreSQL's pg_type.dat). */
const CHOSEN: ReadonlyMap<number, string> = new Map([
  [16, 'bool'],
  [20, 'int8'],
  [23, 'int4'],
  [25, 'text'],
  [114, 'json'],
  [1000, '_bool'],
  [1007, '_int4'],
  [1009, '_text'],
  [1016, '_int8'],
  [1231, '_numeric'],
  [1700, 'numeric'],
  [3802, 'jsonb'],
  [3807, '_jsonb'],
])
