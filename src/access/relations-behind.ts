/**
 * How many relations PostgreSQL plans for one mention of a table or function: the table, the relations in a
 * view or function body, and those that policies read.
 */
import { type Catalog, type DatabaseFunction, inlinedKey, type Table } from '../catalog/model.ts'

type Use = 'read' | 'write'

type Counts = Readonly<Record<Use, Map<number, number>>>

const known = new WeakMap<Catalog, Counts>()

/**
 * The relations of a function call in a query: the function itself, and the relations of its body if
 * PostgreSQL inlines it.
 */
export function relationsIn(called: DatabaseFunction, catalog: Catalog): number {
  return countFor(inlinedKey(called), catalog, 'read')
}

/**
 * Every mention counts with everything behind it, as often as a view or policy repeats it. Partitions count
 * as part of their parent table.
 */
export function relationsBehind({ oid }: Table, catalog: Catalog, use: Use): number {
  return countFor(oid, catalog, use)
}

function countFor(oid: number, catalog: Catalog, use: Use): number {
  const counts = known.get(catalog) ?? { read: new Map(), write: new Map() }
  known.set(catalog, counts)
  return countOf(oid, use, catalog, counts)
}

function countOf(oid: number, use: Use, catalog: Catalog, counts: Counts): number {
  const found = counts[use].get(oid)
  if (found !== undefined) return found
  // PostgreSQL rejects a policy that refers back to its own table.
  counts[use].set(oid, 1)
  let count = 1
  for (const { other, how, times } of catalog.dependencies.get(oid)?.mentions ?? []) {
    if (how === 'write' && use === 'read') continue
    // A write to a view is a write to its table.
    count += times * (other === null ? 1 : countOf(other, how === 'view' ? use : 'read', catalog, counts))
  }
  const bounded = Math.min(count, COUNT_MAX)
  counts[use].set(oid, bounded)
  return bounded
}

/** Nested views multiply the count; nothing this large is allowed anyway. */
const COUNT_MAX = 1_000_000
