/**
 * Where a subscription begins: a snapshot of the database that is taken after `subscribe` was received and before `subscribed` is sent. What it sees is what the
 * client reads; every change that it does not see is delivered.
 */
import { covers, printToken, readToken, type Snapshot } from './snapshot.ts'

export interface Boundary {
  /** The resume token that stands for it. */
  readonly token: string
  /** Whether a transaction was committed before. */
  includes(txid: string): boolean
  /** `token`, or the boundary's own where that is later. */
  laterOf(token: string): string
}

/** `token`: a resume token that means something else than a snapshot. */
export function createBoundary(snapshot: Snapshot, token: string): Boundary {
  return { token, includes: includedIn(snapshot), laterOf: later => later }
}

/** `epoch`: as in the resume tokens of the change log. */
export function createLogBoundary(snapshot: Snapshot, epoch: string): Boundary {
  const token = printToken(epoch, snapshot)
  let passed = false
  return {
    token,
    includes: includedIn(snapshot),
    laterOf(later) {
      if (passed) return later
      const other = readToken(later, epoch)
      passed = other === null || covers(other, snapshot)
      return passed ? later : token
    },
  }
}

/** Compares texts: this is asked for every change and subscriber. */
function includedIn({ xmax, open }: Snapshot): (txid: string) => boolean {
  const end = xmax.toString()
  const unseen = new Set(open.map(String))
  return txid => (txid.length === end.length ? txid < end : txid.length < end.length) && !unseen.has(txid)
}
