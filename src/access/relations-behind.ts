/**
 * How many relations a mention of a table or function has PostgreSQL plan: the table, those of a view or
 * body, and those that policies read.
 */
import { type Catalog, type DatabaseFunction, inlinedKey, type Table } from '../catalog/model.ts'

type Use = 'read' | 'write'

type Counts = Readonly<Record<Use, Map<number, number>>>

const known = new WeakMap<Catalog, Counts>()

/**
 * A function that a query reads from: itself, and what is in its body if PostgreSQL puts that in its place.
 */
export function relationsIn(called: DatabaseFunction, catalog: Catalog): number {
  return countFor(inlinedKey(called), catalog, 'read')
}

/**
 * Each mention counts, as often as a view or policy repeats it, with all that is behind it. Partitions count
 * as the table that they are part of.
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
  // PostgreSQL refuses a policy that leads back to its own table.
  counts[use].set(oid, 1)
  let count = 1
  for (const { other, how, times } of catalog.dependencies.get(oid)?.mentions ?? []) {
    if (how === 'write' && use === 'read') continue
    // A write to a view is one to its table.
    count += times * (other === null ? 1 : countOf(other, how === 'view' ? use : 'read', catalog, counts))
  }
  const bounded = Math.min(count, COUNT_MAX)
  counts[use].set(oid, bounded)
  return bounded
}

/** Views of views multiply it; nothing as large is allowed anyway. */
const COUNT_MAX = 1_000_000
