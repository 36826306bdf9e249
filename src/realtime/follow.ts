/** Which statements change their answers only when tables change that triggers capture, and hearing of those. */
import type { Catalog } from '../catalog/model.ts'
import type { BoundStatement, ReadStatement } from '../compile/statement.ts'
import { hasClockWord } from '../compile/steady.ts'
import { steadyReads } from '../run/cache/plans.ts'
import type { Heard, Named, Sources } from './sources.ts'

export interface Follow {
  /** Every change from then on is heard of. */
  readonly ready: Promise<unknown>
  close(): void
}

export interface FollowParts {
  readonly sources: Sources
  readonly catalog: () => Catalog
}

export function createFollower({ sources, catalog }: FollowParts) {
  /** Null: not all of them are captured, or something else than tables is in the answer. */
  return (statement: BoundStatement<ReadStatement>, onChange: () => void): Follow | null => {
    const current = catalog()
    const tables = current.knowsDependences ? capturedTables(statement, current) : null
    if (tables === null || tables.some(table => sources.captureOf(table) !== 'trigger')) return null
    // While the log cannot be read, nobody knows: it is asked as if it had changed.
    const hearer = {
      changed: onChange,
      doubt: onChange,
      silent: onChange,
      notice: onChange,
      gap: onChange,
      routeBy: () => null,
    }
    const heard: readonly Heard[] = tables.map(table => sources.hear(table, hearer))
    return {
      ready: Promise.all(heard.map(({ ready }) => ready)),
      close() {
        for (const one of heard) one.close()
      },
    }
  }
}

/** Null: they are not all known, or not all of it is rows of tables. */
function capturedTables(
  { statement, values }: BoundStatement<ReadStatement>,
  catalog: Catalog,
): readonly Named[] | null {
  const read = steadyReads(statement, catalog)
  if (read === null || read.opaque || values.some(hasClockWord)) return null
  const byOid = new Map([...catalog.tables.values()].map(table => [table.oid, table]))
  const found = [...read.relations].map(oid => byOid.get(oid))
  if (!found.every(table => table !== undefined)) return null
  // A view has no rows of its own; the tables that it is made of are among the relations.
  const tables = found.filter(({ kind }) => kind !== 'view')
  return tables.map(({ schema, name, resource }) => ({ name: `${schema}.${name}`, resource }))
}
