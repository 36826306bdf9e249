/** What the cache has to know of a statement, worked out once: what it is called in keys, and which changes concern it. */
import type { Catalog } from '../../catalog/model.ts'
import type { Readable, WriteStatement } from '../../compile/statement.ts'
import { hasClockLiteral } from '../../compile/steady.ts'
import { relationOid } from '../relation-oid.ts'
import type { Change, Changes } from './changes.ts'
import { type ReadFootprint, readFootprint, writeFootprint } from './footprint.ts'
import { digestOfText } from './key.ts'

export interface ReadPlan {
  readonly digest: string
  /** Whoever keeps its answer must have heard of these. */
  readonly changes: readonly Change[]
}

export interface StatementPlans {
  /** Null: its answer cannot be kept. */
  reading(statement: Readable): ReadPlan | null
  /** The relations that statements may change; null: any. */
  writing(statements: readonly WriteStatement[]): ReadonlySet<number> | null
}

/** For one catalogue: another one means other relations by the same names. */
export function createStatementPlans(catalog: Catalog, changes: Changes): StatementPlans {
  const plans = new WeakMap<Readable, ReadPlan | null>()

  function planOf(statement: Readable): ReadPlan | null {
    const read = steadyReads(statement, catalog)
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
      for (const { touches } of statements) {
        for (const { table, operation } of touches.writes) {
          const relation = relationOid(table, catalog)
          if (relation === null) return null
          steps.push({ relation, operation })
        }
      }
      return writeFootprint(catalog, steps)
    },
  }
}

/** The relations that a statement's answer depends on, if on nothing else but them and its values; null: the clock, chance or a write is in it too. */
export function steadyReads(
  { kind, text, touches }: Readable,
  catalog: Catalog,
): Pick<ReadFootprint, 'relations' | 'opaque'> | null {
  // A plan is of this moment: of how many rows there are, and how long it took.
  if (kind === 'explain') return null
  if (!touches.steady || touches.writes.length > 0 || hasClockLiteral(text)) return null
  const tables = touches.reads.map(name => relationOid(name, catalog))
  if (!tables.every(oid => oid !== null)) return null
  const { relations, opaque, steady } = readFootprint(catalog, tables)
  return steady ? { relations, opaque } : null
}
