/** A change of one row, and what it comes to for somebody who sees some rows and not others (decisions 9). */
import type { Operation } from './notice.ts'

export interface Change {
  /** Its place among the changes of its table. */
  readonly seq: number
  readonly operation: Operation
  readonly key: string
  /** The row as it was, as JSON text; null: not known, or there was none. */
  readonly before: string | null
  readonly assigned: readonly string[] | null
  readonly at: string
  readonly txid: string
}

/** The changes of a row between two looks at it are one: from what it was before the first to what it is now. */
export interface Transition {
  readonly first: Change
  readonly last: Change
  /** Columns that any of them assigned; null: rows came or went. */
  readonly assigned: readonly string[] | null
}

/** In the order of their first change. */
export function transitionsOf(changes: readonly Change[]): ReadonlyMap<string, Transition> {
  const found = new Map<string, Transition>()
  for (const change of changes) {
    const known = found.get(change.key)
    const assigned =
      known === undefined
        ? change.assigned
        : known.assigned === null || change.assigned === null
          ? null
          : [...known.assigned, ...change.assigned]
    found.set(change.key, { first: known?.first ?? change, last: change, assigned })
  }
  return found
}

export interface Sight {
  /** The row is to be seen. */
  readonly now: boolean
  /** It was, before the first change; null: nobody can tell. */
  readonly before: boolean | null
}

/** `nothing`: they never saw it. `unknown`: they may have. */
export type Outcome = Operation | 'nothing' | 'unknown'

/** `decisive`: the columns that decide whether the row is seen; null: nobody knows which. */
export function outcomeOf(
  { first, assigned }: Transition,
  { now, before }: Sight,
  decisive: ReadonlySet<string> | null,
): Outcome {
  const was = first.operation === 'INSERT' ? false : before
  if (now) return was === false ? 'INSERT' : 'UPDATE'
  if (was !== null) return was ? 'DELETE' : 'nothing'
  // It is as much to be seen as before.
  if (assigned !== null && decisive !== null && !assigned.some(name => decisive.has(name))) return 'nothing'
  return 'unknown'
}
