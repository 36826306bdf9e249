/**
 * Facts about a statement that the cache needs, computed once: its part of the key, and the changes that
 * affect it.
 */
import type { Catalog } from '../../catalog/model.ts'
import { hasClockLiteral } from '../../compile/determinism.ts'
import type { ReadableStatement, WriteStatement } from '../../compile/statement.ts'
import { relationOid } from '../relation-oid.ts'
import type { ChangeClock, RelationChange } from './change-clock.ts'
import { type ReadDependencies, readDependencies, writeDependencies } from './dependencies.ts'
import { digestOfText } from './key.ts'

/** The plan of a read. */
export interface CachedReadPlan {
  readonly digest: string
  /** The changes that affect its result. */
  readonly changes: readonly RelationChange[]
}

/** The plans of statements. */
export interface CachePlans {
  /** Null if the result cannot be cached. */
  reading(statement: ReadableStatement): CachedReadPlan | null
  /** The relations that statements may change; null if they may change any relation. */
  writing(statements: readonly WriteStatement[]): ReadonlySet<number> | null
}

/** Creates plans for one catalog, because names may refer to other relations in another one. */
export function createCachePlans(catalog: Catalog, changes: ChangeClock): CachePlans {
  const plans = new WeakMap<ReadableStatement, CachedReadPlan | null>()

  function planOf(statement: ReadableStatement): CachedReadPlan | null {
    const read = deterministicReads(statement, catalog)
    if (read === null) return null
    const { relations, opaque } = read
    return {
      digest: digestOfText(statement.text),
      changes: [...Array.from(relations, changes.of), ...(opaque ? [changes.any] : [])],
    }
  }

  return {
    reading(statement) {
      const known = plans.get(statement)
      if (known !== undefined) return known
      const plan = planOf(statement)
      plans.set(statement, plan)
      return plan
    },
    writing(statements) {
      const steps = []
      for (const { dependencies } of statements) {
        for (const { table, operation } of dependencies.writes) {
          const relation = relationOid(table, catalog)
          if (relation === null) return null
          steps.push({ relation, operation })
        }
      }
      return writeDependencies(catalog, steps)
    },
  }
}

/**
 * The relations that a statement's result depends on, if it depends only on them and its values; null if it
 * also depends on time, randomness or a write.
 */
export function deterministicReads(
  { kind, text, dependencies }: ReadableStatement,
  catalog: Catalog,
): Pick<ReadDependencies, 'relations' | 'opaque'> | null {
  // The output of EXPLAIN depends on the moment: on row counts, and on durations.
  if (kind === 'explain') return null
  if (!dependencies.deterministic || dependencies.writes.length > 0 || hasClockLiteral(text)) return null
  const tables = dependencies.reads.map(name => relationOid(name, catalog))
  if (!tables.every(oid => oid !== null)) return null
  const { relations, opaque, deterministic } = readDependencies(catalog, tables)
  return deterministic ? { relations, opaque } : null
}
