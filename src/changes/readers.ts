/** The readers of the change log in the process that stores changes: they get these without reading them. */
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'
import type { JoinedRead } from '../realtime/joined-read.ts'
import { type LogEntry, OLD_BYTES_MAX } from '../realtime/log-statements.ts'
import { type BulkChange, bulkValues } from './bulk.ts'
import { valueJson } from './row-json.ts'
import type { DecodedChange, Entry } from './store.ts'
import type { LoggedTable } from './tables.ts'

/** The readers in this process. */
export interface LogReaders {
  /** Sent with each notification, so that this process knows its own. */
  readonly id: string
  /** Joins the transaction that is about to be committed; null if that is not possible. */
  join(): JoinedRead | null
  /**
   * Changes have been stored. `tables`: which have changed, as `schema.name`; null if that is unknown.
   * `hasJoined`: true if the log's subscribers have the changes.
   */
  stored(tables: readonly string[] | null, hasJoined: boolean): void
}

/** An entry that was stored, with the change that it is about. */
export interface StoredEntry {
  readonly entry: Entry
  readonly table: LoggedTable
  readonly change: DecodedChange | BulkChange
}

/** The entries of a transaction as a read would return them; null if one of them could have another text. */
export function entriesAsRead(
  stored: readonly StoredEntry[],
  columns: JoinedRead['columns'],
  { xid, at }: { readonly xid: bigint; readonly at: string },
): readonly LogEntry[] | null {
  const storedBy = xid.toString()
  const found: LogEntry[] = []
  for (const { entry, table, change } of stored) {
    const name = table.qualified
    const column = columns.get(name)
    if (column === undefined) continue
    if (!table.hasPlainKey) return null
    const { operation, key, was, before } = entry
    const old = before !== null && Buffer.byteLength(before) <= OLD_BYTES_MAX ? before : null
    const routes = column === null ? NO_ROUTES : routesOf(table, change, column)
    found.push({ txid: String(entry.writer), storedBy, at, table: name, operation, key, oldKey: was, old, routes })
  }
  return found
}

const NO_ROUTES = [null, null] as const

/** The values of a column that the entry has. */
function routesOf(
  { columns, routing }: LoggedTable,
  change: DecodedChange | BulkChange,
  column: string,
): LogEntry['routes'] {
  if (!('operation' in change)) return [null, bulkValues(change, JSON.stringify(column))]
  const index = columns.findIndex(({ name }) => name === column)
  const type = columns[index]?.type
  if (type === undefined) return NO_ROUTES
  const textOf = (tuple: DecodedChange['before']) => {
    const value = tuple === null ? UNCHANGED : (tuple[index] ?? null)
    return value === UNCHANGED ? null : valueJson(value, type)
  }
  return [textOf(change.before), routing.includes(index) ? textOf(change.after) : null]
}
