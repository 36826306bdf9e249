/** The relations that a statement's tables depend on, as far as the catalog shows them. */
import type { Catalog, Dependency, Tie } from '../../catalog/model.ts'
import { isDeterministic } from '../../compile/determinism.ts'
import type { WriteOperation } from '../../compile/table-dependencies.ts'

/** The relations that a read depends on, by OID. */
export interface ReadDependencies {
  readonly relations: ReadonlySet<number>
  /** True if it also reads unknown tables, through database functions. */
  readonly opaque: boolean
  /** True if the same rows give the same result later. */
  readonly deterministic: boolean
}

/**
 * The relations read by a read of `start`: partitions and child tables, underlying tables of views, and
 * tables that policies read.
 */
export function readDependencies(catalog: Catalog, start: readonly number[]): ReadDependencies {
  const relations = new Set(start)
  let opaque = false
  let deterministic = true
  // The loop also visits relations that are added to the set during the iteration.
  for (const relation of relations) {
    const { ties, nondeterminism: unsteady } = catalog.dependencies.get(relation) ?? NOTHING
    for (const { other, how } of ties) {
      if (how === 'child' || how === 'view' || how === 'policy') relations.add(other)
    }
    for (const { cause, name } of unsteady) {
      if (cause === 'opaque') opaque = true
      else if (cause === 'volatile' || !isDeterministic(name)) deterministic = false
    }
  }
  return { relations, opaque, deterministic }
}

/**
 * Adds the partitions and children of the relations, because the change log has only the name of the
 * partitioned table.
 */
export function withPartitions({ dependencies }: Catalog, start: readonly number[]): ReadonlySet<number> {
  const relations = new Set(start)
  for (const relation of relations) {
    for (const { other, how } of dependencies.get(relation)?.ties ?? []) if (how === 'child') relations.add(other)
  }
  return relations
}

/** A relation with the operations on it. */
export interface WriteStep {
  readonly relation: number
  readonly operation: WriteOperation
}

/**
 * The relations that a write may change: child tables, tables under a view, and cascades of foreign keys.
 * Null if a trigger, rule or function may change anything.
 */
export function writeDependencies(catalog: Catalog, start: readonly WriteStep[]): ReadonlySet<number> | null {
  const relations = new Set<number>()
  const seen = new Set<string>()
  const open = [...start]
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    const { relation, operation } = step
    const key = `${operation} ${relation}`
    if (seen.has(key)) continue
    seen.add(key)
    relations.add(relation)
    const { ties, effect } = catalog.dependencies.get(relation) ?? NOTHING
    if (effect?.[operation]) return null
    for (const { other, how } of ties) {
      for (const next of cascadedOperations(how, operation)) open.push({ relation: other, operation: next })
    }
  }
  return relations
}

const NOTHING: Dependency = { ties: [], mentions: [], nondeterminism: [], effect: null }

/** The operations on the other relation of a tie when this happens to the first. */
function cascadedOperations(how: Tie['how'], operation: WriteOperation): readonly WriteOperation[] {
  switch (how) {
    case 'child':
    case 'view':
      return [operation]
    case 'policy':
      return []
    case 'delete deletes':
      return operation === 'delete' ? ['delete'] : []
    case 'delete updates':
      return operation === 'delete' ? ['update'] : []
    case 'update updates':
      return operation === 'update' ? ['update'] : []
    case 'update moves':
      return operation === 'update' ? ['delete', 'insert'] : []
  }
}
