/**
 * A read of the change log by the transaction that stores changes from the write-ahead log: this process
 * knows what it stores, so only the entries of others are read.
 */
import type { Command, Result } from '../postgres/types.ts'
import type { LogEntry } from './log-statements.ts'
import type { Snapshot } from './snapshot.ts'

/** A read that continues the one before. Exactly one of its methods must be called. */
export interface JoinedRead {
  /** Run last in the transaction. */
  readonly commands: readonly Command[]
  /** The tables whose entries are needed, as `schema.name`, with their routing columns. */
  readonly columns: ReadonlyMap<string, string | null>
  /** The transaction has been committed. `own`: null if its entries are not known as the log has them. */
  committed(results: readonly Result[], own: OwnEntries | null): void
  /** The transaction has failed, or it is unknown whether it was committed. */
  failed(): void
}

/** The entries that a transaction has stored. */
export interface OwnEntries {
  readonly xid: bigint
  /** Those of the needed tables, in order. */
  readonly entries: readonly LogEntry[]
}

/** Limit on the transactions with smaller numbers than the own one that are listed as in progress. */
const LISTED_MAX = 1_000

/**
 * The snapshot of a read within a transaction, together with that transaction. Null if too many others that
 * began before it may be in progress.
 */
export function withOwn({ xmax, open }: Snapshot, xid: bigint): Snapshot | null {
  if (xid < xmax) {
    const others = open.filter(other => other !== xid)
    return { xmin: others[0] ?? xmax, xmax, open: others }
  }
  if (xid - xmax > LISTED_MAX) return null
  const later = Array.from({ length: Number(xid - xmax) }, (_, index) => xmax + BigInt(index))
  const others = [...open, ...later]
  return { xmin: others[0] ?? xid + 1n, xmax: xid + 1n, open: others }
}
