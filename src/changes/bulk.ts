/**
 * The entry for the rows of a table that are not logged one by one. Like that of a trigger it has the values
 * of the routing columns, so that only subscribers who could see one of the rows read again.
 */
import { ROUTING_VALUES_MAX } from '../install/capture.ts'
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'
import { type Row, valueJson } from './row-json.ts'
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
export function addToBulk({ values }: BulkChange, table: LoggedTable, versions: readonly Row[]): void {
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
export function bulkEntry(change: BulkChange): Omit<Entry, 'writer'> {
  const { schema, name, values } = change
  const members = [...values.keys()].flatMap(label => {
    const found = bulkValues(change, label)
    return found === null ? [] : [`${label}:${found}`]
  })
  return {
    ...{ schema, table: name, operation: 'B', key: null, was: null, before: null },
    after: members.length === 0 ? null : `{${members.join(',')}}`,
  }
}

/** The values of a routing column, whose name is given as JSON; null if they are unknown. */
export function bulkValues({ values }: BulkChange, label: string): string | null {
  const found = values.get(label) ?? null
  return found === null ? null : `[${[...found].join(',')}]`
}
