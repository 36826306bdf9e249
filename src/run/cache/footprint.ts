/** Which relations of the database stand behind the tables that a statement names, as far as the catalogue shows it. */
import type { Catalog, Dependence, Tie } from '../../catalog/model.ts'
import { isSteady } from '../../compile/steady.ts'
import type { Operation } from '../../compile/touches.ts'

/** Of relations, by OID. */
export interface ReadFootprint {
  readonly relations: ReadonlySet<number>
  /** It also reads tables that cannot be known: through functions of the database. */
  readonly opaque: boolean
  /** The same rows are the same answer another time. */
  readonly steady: boolean
}

/** What a read of these relations reads: their partitions and heirs, what views are made of, and what policies ask. */
export function readFootprint(catalog: Catalog, start: readonly number[]): ReadFootprint {
  const relations = new Set(start)
  let opaque = false
  let steady = true
  // A set can be added to while it is gone through.
  for (const relation of relations) {
    const { ties, unsteady } = catalog.dependences.get(relation) ?? NOTHING
    for (const { other, how } of ties) {
      if (how === 'child' || how === 'view' || how === 'policy') relations.add(other)
    }
    for (const { cause, name } of unsteady) {
      if (cause === 'opaque') opaque = true
      else if (cause === 'volatile' || !isSteady(name)) steady = false
    }
  }
  return { relations, opaque, steady }
}

/** The relations with their partitions and children: the change log has only the name of the partitioned table. */
export function withParts({ dependences }: Catalog, start: readonly number[]): ReadonlySet<number> {
  const relations = new Set(start)
  for (const relation of relations) {
    for (const { other, how } of dependences.get(relation)?.ties ?? []) if (how === 'child') relations.add(other)
  }
  return relations
}

export interface WriteStep {
  readonly relation: number
  readonly operation: Operation
}

/** What a write may change: heirs, the tables under a view, and what foreign keys carry on. Null: a trigger, a rule or a function may change anything. */
export function writeFootprint(catalog: Catalog, start: readonly WriteStep[]): ReadonlySet<number> | null {
  const relations = new Set<number>()
  const seen = new Set<string>()
  const open = [...start]
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    const { relation, operation } = step
    const key = `${operation} ${relation}`
    if (seen.has(key)) continue
    seen.add(key)
    relations.add(relation)
    const { ties, effect } = catalog.dependences.get(relation) ?? NOTHING
    if (effect?.[operation]) return null
    for (const { other, how } of ties) {
      for (const next of carriedOn(how, operation)) open.push({ relation: other, operation: next })
    }
  }
  return relations
}

const NOTHING: Dependence = { ties: [], mentions: [], unsteady: [], effect: null }

/** What happens to the other relation of a tie when this is done to the first. */
function carriedOn(how: Tie['how'], operation: Operation): readonly Operation[] {
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
