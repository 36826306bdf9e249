/**
 * Listens for changes to the tables that a statement reads, if all of them are captured. Changes that
 * cannot concern the caller are left out.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import { hasClockWord } from '../compile/determinism.ts'
import type { BoundStatement, ReadStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import { deterministicReads } from '../run/cache/cache-plans.ts'
import { type CaptureSources, nameOf, type SourceListener, type SourceSubscription } from './capture-sources.ts'
import type { QueryRoutes } from './query-routes.ts'
import { mayConcern, type Routes, type RouteValue } from './route.ts'

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
  readonly routes: QueryRoutes
}

/** Creates a function that starts listening for a statement. */
export function createDependencyListener({ sources, catalog, routes }: DependencyListenerParts) {
  /** Null if a table is not captured, or if the result depends on anything other than tables. */
  return (
    statement: BoundStatement<ReadStatement>,
    identity: Identity,
    onChange: () => void,
  ): DependencyListener | null => {
    const current = catalog()
    const relations = current.knowsDependencies ? relationsOf(statement, current) : null
    // A view has no rows itself; its underlying tables are among the relations.
    const tables = relations?.filter(({ kind }) => kind !== 'view')
    const isCaptured = (table: Table) => sources.captureOf(capturedName(table)) === 'trigger'
    if (relations === null || tables?.every(isCaptured) !== true) return null
    let known: ReadonlyMap<string, RouteValue> = new Map()
    // Until the routes are known, every change is reported.
    routes(statement, relations, identity).then(
      found => {
        known = found
      },
      () => {},
    )
    const subscriptions: readonly SourceSubscription[] = tables.map(table =>
      sources.listen(
        capturedName(table),
        listenerOf(() => known.get(nameOf(table)) ?? null, onChange),
      ),
    )
    return {
      ready: Promise.all(subscriptions.map(({ ready }) => ready)),
      close() {
        for (const one of subscriptions) one.close()
      },
    }
  }
}

/** Reports changes that may concern a routing value; null for all. */
function listenerOf(routeValue: () => RouteValue | null, onChange: () => void): SourceListener {
  const report = (all: readonly (Routes | null)[]) => {
    const value = routeValue()
    if (all.some(routes => mayConcern(routes, value))) onChange()
  }
  return {
    changed: changes => report(changes.map(({ routes }) => routes)),
    // Any other reason than a bulk change means that changes are unknown.
    invalidate: (reason, routes = null) => report([reason === 'bulk' ? routes : null]),
    // While the log is unreadable, the statement is treated as changed.
    unavailable: onChange,
    notification: onChange,
    gap: onChange,
    routeBy: () => routeValue()?.column ?? null,
  }
}

function capturedName({ schema, name, resource }: Table) {
  return { name: nameOf({ schema, name }), resource }
}

/**
 * The relations a statement reads; null if they are not all known, or if the result depends on anything else.
 */
function relationsOf({ statement, values }: BoundStatement<ReadStatement>, catalog: Catalog): readonly Table[] | null {
  const read = deterministicReads(statement, catalog)
  if (read === null || read.opaque || values.some(hasClockWord)) return null
  const byOid = new Map([...catalog.tables.values()].map(table => [table.oid, table]))
  const found = [...read.relations].map(oid => byOid.get(oid))
  return found.every(table => table !== undefined) ? found : null
}
