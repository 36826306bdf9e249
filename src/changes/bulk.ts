/**
 * The entry for the rows of a table that are not logged one by one. Like that of a trigger it has the values
 * of the routing columns, so that only subscribers who could see one of the rows read again.
 */
import { ROUTING_VALUES_MAX } from '../install/capture.ts'
import type { Tuple } from '../postgres/replication/pgoutput.ts'
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'
import { valueJson } from './row-json.ts'
import type { Entry } from './store.ts'
import type { LoggedTable } from './tables.ts'

/** The rows of one transaction in one table or, under the name of its root, in its partitions. */
export interface BulkChange {
  readonly schema: string
  readonly name: string
  /** By routing column: its values as JSON; null if there are too many or some are unknown. */
  readonly values: Map<string, Set<string> | null>
}

/** A bulk change without rows. */
export function createBulk({ schema, name, columns, routing }: LoggedTable): BulkChange {
  return { schema, name, values: new Map(routing.map(index => [columns[index]?.label ?? '', new Set()])) }
}

/**
 * Adds a row, with its versions as far as they exist; none if they are unknown. Its table can have its
 * columns in another order than those before: another partition, or the same table after a change.
 */
export function addToBulk({ values }: BulkChange, table: LoggedTable, versions: readonly Tuple[]): void {
  for (const [label, found] of values) {
    if (found === null) continue
    const index = table.routing.find(each => table.columns[each]?.label === label) ?? -1
    const type = table.columns[index]?.type
    if (versions.length === 0 || type === undefined) {
      values.set(label, null)
      continue
    }
    for (const version of versions) {
      // An unchanged value is that of the other version.
      const value = version[index] ?? null
      if (value !== UNCHANGED) found.add(valueJson(value, type))
    }
    if (found.size > ROUTING_VALUES_MAX) values.set(label, null)
  }
}

/** The row of the change log. */
export function bulkEntry({ schema, name, values }: BulkChange): Omit<Entry, 'writer'> {
  const members = [...values].flatMap(([label, found]) =>
    found === null ? [] : [`${label}:[${[...found].join(',')}]`],
  )
  return {
    ...{ schema, table: name, operation: 'B', key: null, was: null, before: null },
    after: members.length === 0 ? null : `{${members.join(',')}}`,
  }
}
