/** Messages of a shape: one for each row of the initial sync and for each change, and control messages. */
import { mergeSteps } from '../realtime/change-event.ts'
import type { ChangeNotification, OldRow } from '../realtime/visibility-query.ts'
import { lsnOf, printSnapshot } from './position.ts'
import type { ReplicaMode } from './shape-request.ts'

/** The table that the messages name. */
export interface MessageTable {
  readonly schema: string
  readonly name: string
  readonly primaryKey: readonly string[]
  readonly columns: readonly string[]
  readonly replica: ReplicaMode
}

/** Prints messages as JSON. */
export interface MessagePrinter {
  /** The insert of a row of the initial sync. `row` is a JSON object with string values. */
  row(row: string): string
  /** The insert of a row of a subset. `mark` identifies the response. */
  markedRow(row: string, mark: number): string
  /** The messages of changes that were delivered together; none for a change that the shape does not show. */
  changes(notifications: readonly ChangeNotification[]): readonly string[]
}

/** The body of a response that asks the client to start again. */
export const MUST_REFETCH = '[{"headers":{"control":"must-refetch"}}]'

/** The message `up-to-date`: the client has every change up to a resume token. */
export function printUpToDate(token: string): string {
  return JSON.stringify({ headers: { control: 'up-to-date', global_last_seen_lsn: lsnOf(token) } })
}

/**
 * The message after the rows of an initial sync: changes of the transactions that its snapshot includes are
 * in the rows. A client that has written something learns from it whether the rows were read after its write.
 */
export function printSnapshotEnd(token: string): string {
  return JSON.stringify({ headers: { control: 'snapshot-end', ...printSnapshot(token) } })
}

/** Creates the printer of a shape. */
export function createMessagePrinter(table: MessageTable): MessagePrinter {
  const { schema, name, primaryKey, columns, replica } = table
  const relation = [schema, name]
  const prefix = `${quoted(schema)}.${quoted(name)}`
  const inserted = { operation: 'insert', relation }
  const insertEnd = `,"headers":${JSON.stringify(inserted)}}`

  function keyOf(row: OldRow): string {
    return [prefix, ...primaryKey.map(column => keyPart(row[column] ?? null))].join('/')
  }

  function keyColumns(row: OldRow): OldRow {
    return pick(row, primaryKey)
  }

  function change(item: ChangeNotification, position: number, isLast: boolean): string | null {
    const { steps, row, old, token } = item
    const operation = mergeSteps(steps, row !== null)
    if (operation === null) return null
    const headers = {
      operation: operation.toLowerCase(),
      relation,
      txids: [...new Set(steps.map(({ txid }) => txid))].map(toXid),
      ...{ lsn: lsnOf(token), op_position: position },
      ...(isLast ? { last: true } : {}),
    }
    if (operation === 'DELETE') {
      const known = JSON.parse(item.key) as OldRow
      const before = old.findLast(each => each !== null)
      const value = replica === 'full' && before !== undefined ? before : keyColumns(known)
      return JSON.stringify({ key: keyOf(known), value, headers })
    }
    const text = row ?? '{}'
    const current = JSON.parse(text) as OldRow
    const key = JSON.stringify(keyOf(current))
    const whole = `{"key":${key},"value":${text},"headers":${JSON.stringify(headers)}}`
    if (operation === 'INSERT') return whole
    const changed = changedColumns(columns, [...old, current])
    if (changed === null) return whole
    if (changed.length === 0) return null
    if (replica === 'full') {
      const oldValue = JSON.stringify(pick(old[0] ?? {}, changed))
      return `{"key":${key},"value":${text},"old_value":${oldValue},"headers":${JSON.stringify(headers)}}`
    }
    return JSON.stringify({
      key: keyOf(current),
      value: { ...keyColumns(current), ...pick(current, changed) },
      headers,
    })
  }

  function insertOf(row: string, end: string): string {
    return `{"key":${JSON.stringify(keyOf(JSON.parse(row) as OldRow))},"value":${row}${end}`
  }

  return {
    row: row => insertOf(row, insertEnd),
    markedRow: (row, mark) => insertOf(row, `,"headers":${JSON.stringify({ ...inserted, snapshot_mark: mark })}}`),
    changes(notifications) {
      const last = notifications.length - 1
      return notifications.flatMap((item, index) => change(item, index, index === last) ?? [])
    },
  }
}

/**
 * The columns that changed between any of these states of a row; null if a state is unknown. Comparing the
 * first with the last is not enough, because a client can already have a state in between.
 */
function changedColumns(columns: readonly string[], states: readonly (OldRow | null)[]): readonly string[] | null {
  const known = states.filter(state => state !== null)
  if (known.length < states.length) return null
  return columns.filter(name => known.some((state, index) => index > 0 && state[name] !== known[index - 1]?.[name]))
}

function pick(row: OldRow, names: readonly string[]): OldRow {
  return Object.fromEntries(names.map(name => [name, row[name] ?? null]))
}

/** Clients compare the 32 bits of PostgreSQL's type `xid`. */
function toXid(txid: string): number {
  return Number(BigInt.asUintN(32, BigInt(txid)))
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Slashes separate the values of a key. */
function keyPart(value: string | null): string {
  return value === null ? '_' : `"${value.replaceAll('/', '//')}"`
}
