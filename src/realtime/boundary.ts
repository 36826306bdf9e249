/**
 * The start of a subscription: a database snapshot taken after `subscribe` was received and before
 * `subscribed` is sent. The client reads what the snapshot includes; every later change is delivered.
 */
import { covers, printToken, readToken, type Snapshot } from './snapshot.ts'

/** The position at which a subscription starts. */
export interface Boundary {
  /** The resume token of this position. */
  readonly token: string
  /** True if the client has a change: at the start of a subscription by its read, later from the log. */
  includes(change: { readonly txid: string; readonly storedBy?: string | null }): boolean
  /** The later one of `token` and the boundary's own token. */
  laterOf(token: string): string
}

/** The state of a boundary's client. */
export type ClientState = 'rows' | 'entries'

/** A boundary with a resume token that is not derived from a snapshot. */
export function createBoundary(snapshot: Snapshot, token: string): Boundary {
  const isIncluded = includedIn(snapshot)
  return { token, includes: ({ txid }) => isIncluded(txid), laterOf: later => later }
}

/**
 * A boundary in the change log. `epoch` as in the log's resume tokens. `has`: whether the client has read the
 * rows in this snapshot, or has received the entries of the log that it includes. The log can have a
 * transaction later than a read of its rows.
 */
export function createLogBoundary(snapshot: Snapshot, epoch: string, has: ClientState): Boundary {
  const token = printToken(epoch, snapshot)
  const isIncluded = includedIn(snapshot)
  let passed = false
  return {
    token,
    includes: ({ txid, storedBy }) => isIncluded(has === 'rows' ? txid : (storedBy ?? txid)),
    laterOf(later) {
      if (passed) return later
      const other = readToken(later, epoch)
      passed = other === null || covers(other, snapshot)
      return passed ? later : token
    },
  }
}

/** Compares numbers as text, because it is called for every change and subscriber. */
function includedIn({ xmax, open }: Snapshot): (txid: string) => boolean {
  const end = xmax.toString()
  const openTransactions = new Set(open.map(String))
  return txid => (txid.length === end.length ? txid < end : txid.length < end.length) && !openTransactions.has(txid)
}
