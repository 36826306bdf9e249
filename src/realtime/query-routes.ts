/**
 * Routing of live queries: which changes of the tables that a query reads cannot concern its caller. A table
 * whose policies require `column = <a setting of the caller>` shows the caller only rows with one value, so a
 * change of rows with other values leaves the result as it is (`route.ts`).
 */
import type { Catalog, Table } from '../catalog/model.ts'
import { catalogueStatement } from '../compile/derive.ts'
import type { BoundStatement, ReadStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import type { Database } from '../postgres/types.ts'
import type { Runner } from '../run/run.ts'
import { canRunFunction } from '../run/session-reset.ts'
import { nameOf } from './capture-sources.ts'
import { databaseRoleOf } from './group-keys.ts'
import type { Limiter } from './limiter.ts'
import { type RouteValue, routeStatement, routeValueOf, type VisibilityRoute } from './route.ts'
import { readTableRules } from './table-rules.ts'

/** The dependencies of routing. */
export interface QueryRoutesParts {
  readonly database: Database
  readonly catalog: () => Catalog
  readonly runner: Pick<Runner, 'read'>
  /** The limit on concurrent reads, in total and per tenant. */
  readonly limiter: Limiter
}

/**
 * The value of the routing column of each table that has one, by `schema.name`, for a caller. A change of a
 * table without an entry may concern every caller.
 */
export type QueryRoutes = (
  statement: BoundStatement<ReadStatement>,
  relations: readonly Table[],
  identity: Identity,
) => Promise<ReadonlyMap<string, RouteValue>>

/**
 * True unless one of the relations `$1` is a view that reads its tables with its owner's rights, or a table
 * that inherits from another one, whose policies apply when its rows are read as rows of that one.
 */
const READS_AS_CALLER = `SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c
  WHERE c.oid = ANY ($1::oid[]) AND (
    c.relkind = 'v' AND NOT coalesce((SELECT o.option_value::boolean
      FROM pg_catalog.pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'security_invoker'), false)
    OR EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = c.oid)))`

/** Creates the function that finds the routes of a query. */
export function createQueryRoutes({ database, catalog, runner, limiter }: QueryRoutesParts): QueryRoutes {
  // Policies are a part of the catalog: when they change, there is another one, and every query begins again.
  const known = new WeakMap<Catalog, Map<string, Promise<unknown>>>()

  /** The result of a read of the catalog, of which there is one for each text of `key`. */
  function once<T>(key: string, read: () => Promise<T>): Promise<T> {
    const current = catalog()
    const results = known.get(current) ?? new Map<string, Promise<unknown>>()
    known.set(current, results)
    const found = (results.get(key) as Promise<T> | undefined) ?? read()
    results.set(key, found)
    found.catch(() => results.delete(key))
    return found
  }

  function routeOf(table: Table, role: string | null): Promise<VisibilityRoute | null> {
    const read = async () => (await readTableRules(database, table, role))?.route ?? null
    return once(`route ${JSON.stringify([table.oid, role])}`, read)
  }

  function readsAsCaller(relations: readonly Table[]): Promise<boolean> {
    const oids = `{${relations.map(({ oid }) => oid).join(',')}}`
    return once(`caller ${oids}`, async () => {
      const [result] = await database.run([{ text: READS_AS_CALLER, parameters: [oids] }]).result
      return result?.rows[0]?.[0]?.toString() === 't'
    })
  }

  return async ({ statement }, relations, identity) => {
    // A function could change a setting that the policies compare, or read tables with other rights.
    if (canRunFunction(statement, catalog()) || !(await readsAsCaller(relations))) return new Map()
    const role = databaseRoleOf(identity)
    const tables = relations.filter(({ kind }) => kind !== 'view')
    const found = await Promise.all(
      tables.map(async table => ({ name: nameOf(table), route: await routeOf(table, role) })),
    )
    const routed = found.flatMap(({ name, route }) => (route === null ? [] : [{ name, route }]))
    const read = () =>
      readRouteValues(
        runner,
        identity,
        routed.map(({ route }) => route),
      )
    const values = routed.length === 0 ? [] : await limiter.run(callerKey(identity), read)
    return new Map(
      routed.flatMap(({ name }, index) => {
        const value = values[index]
        return value === undefined ? [] : [[name, value] as const]
      }),
    )
  }
}

/** Reads the values that all rows visible to a caller have in routing columns. */
export async function readRouteValues(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  routes: readonly VisibilityRoute[],
): Promise<readonly RouteValue[]> {
  const statements = routes.map(route => catalogueStatement(routeStatement(route), []))
  const results = await runner.read(identity, statements, { ms: 0 }).result
  return routes.map((route, index) => routeValueOf(route, results[index]?.[0] ?? []))
}
