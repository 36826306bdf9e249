/** Listens for changes to the tables that a statement reads, if triggers capture all of them. */
import type { Catalog } from '../catalog/model.ts'
import { hasClockWord } from '../compile/determinism.ts'
import type { BoundStatement, ReadStatement } from '../compile/statement.ts'
import { deterministicReads } from '../run/cache/cache-plans.ts'
import type { CapturedName, CaptureSources, SourceSubscription } from './capture-sources.ts'

/** Listens for changes to a statement's tables. */
export interface DependencyListener {
  /** Resolves once every later change is reported. */
  readonly ready: Promise<unknown>
  close(): void
}

/** The dependencies of a dependency listener. */
export interface DependencyListenerParts {
  readonly sources: CaptureSources
  readonly catalog: () => Catalog
}

/** Creates a function that starts listening for a statement. */
export function createDependencyListener({ sources, catalog }: DependencyListenerParts) {
  /** Null if a table is not captured, or if the result depends on anything other than tables. */
  return (statement: BoundStatement<ReadStatement>, onChange: () => void): DependencyListener | null => {
    const current = catalog()
    const tables = current.knowsDependencies ? capturedTables(statement, current) : null
    if (tables === null || tables.some(table => sources.captureOf(table) !== 'trigger')) return null
    // While the log is unreadable, the statement is treated as changed.
    const listener = {
      changed: onChange,
      invalidate: onChange,
      unavailable: onChange,
      notification: onChange,
      gap: onChange,
      routeBy: () => null,
    }
    const subscriptions: readonly SourceSubscription[] = tables.map(table => sources.listen(table, listener))
    return {
      ready: Promise.all(subscriptions.map(({ ready }) => ready)),
      close() {
        for (const one of subscriptions) one.close()
      },
    }
  }
}

/**
 * The tables a statement reads; null if they are not all known, or if the result depends on anything else.
 */
function capturedTables(
  { statement, values }: BoundStatement<ReadStatement>,
  catalog: Catalog,
): readonly CapturedName[] | null {
  const read = deterministicReads(statement, catalog)
  if (read === null || read.opaque || values.some(hasClockWord)) return null
  const byOid = new Map([...catalog.tables.values()].map(table => [table.oid, table]))
  const found = [...read.relations].map(oid => byOid.get(oid))
  if (!found.every(table => table !== undefined)) return null
  // A view has no rows itself; its underlying tables are among the relations.
  const tables = found.filter(({ kind }) => kind !== 'view')
  return tables.map(({ schema, name, resource }) => ({ name: `${schema}.${name}`, resource }))
}
