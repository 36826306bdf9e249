/** How many relations a mention of a table has PostgreSQL plan: the table, the relations of a view, and those that policies ask. */
import type { Catalog, Table } from '../catalog/model.ts'

const known = new WeakMap<Catalog, Map<number, number>>()

/**
 * Partitions count as the table that they are part of. A view or policy that mentions a table several times counts it once: PostgreSQL records
 * dependences and no mentions.
 */
export function relationsBehind({ oid }: Table, catalog: Catalog): number {
  let counts = known.get(catalog)
  if (counts === undefined) {
    counts = new Map()
    known.set(catalog, counts)
  }
  return countOf(oid, catalog, counts)
}

function countOf(oid: number, catalog: Catalog, counts: Map<number, number>): number {
  const found = counts.get(oid)
  if (found !== undefined) return found
  // A policy that asks its own table is refused by PostgreSQL; here the second mention counts as a plain table.
  counts.set(oid, 1)
  let count = 1
  for (const { other, how } of catalog.dependences.get(oid)?.ties ?? []) {
    if (how === 'view' || how === 'policy') count += countOf(other, catalog, counts)
  }
  counts.set(oid, Math.min(count, COUNT_MAX))
  return count
}

/** Views of views double it; nothing as large is allowed anyway. */
const COUNT_MAX = 1_000_000
