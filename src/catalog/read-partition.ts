/** Reads one partition: a catalog does not contain partitions that were attached after it was read. */
import type { Query } from './introspect.ts'
import { CONSTRAINTS_OF_PARTITION } from './statement.ts'

/** The current state of a partition. */
export interface ReadPartition {
  /** The OID of the topmost partitioned table. */
  readonly root: number
  /** As `Table.constraints`. */
  readonly constraints: ReadonlyMap<string, readonly string[]>
}

/** Returns null if there is no such partition. Takes no lock on tables. */
export async function fetchPartition(query: Query, schema: string, name: string): Promise<ReadPartition | null> {
  const [row] = await query(TEXT, [schema, name])
  const [root, constraints] = row ?? []
  if (typeof root !== 'string' || typeof constraints !== 'string') return null
  return { root: Number(root), constraints: new Map(Object.entries(JSON.parse(constraints))) }
}

const TEXT = `
  select pg_partition_root(p.oid)::oid::int8, (${CONSTRAINTS_OF_PARTITION})
  from pg_catalog.pg_class p
  join pg_catalog.pg_namespace n on n.oid = p.relnamespace
  where n.nspname = $1 and p.relname = $2 and p.relispartition`
