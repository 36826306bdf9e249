/** A change of one row, and what it comes to for somebody who sees some rows and not others (decisions 9). */
import type { Routes } from './route.ts'

export type Operation = 'INSERT' | 'UPDATE' | 'DELETE'

export interface Change {
  /** Its place among the changes of its table that this process has heard of. */
  readonly seq: number
  readonly operation: Operation
  /** As JSON text, which is another in a session with other settings: rows are found by it, and no texts are compared. */
  readonly key: string
  /** The row as it was, as JSON text; null: not known, or there was none. */
  readonly before: string | null
  /** Columns that it assigned; null: rows came or went, or nobody knows. */
  readonly assigned: readonly string[] | null
  readonly at: string
  readonly txid: string
  /** Whom it may concern; null: anybody. */
  readonly routes: Routes | null
  /** The token that leads to it, with whatever came at the same time; and one that leads on, if that is known to miss nothing. */
  readonly from: string
  readonly to: string
}

/** The changes of a row between two looks at it are one. */
export interface Transition {
  readonly first: Change
  readonly last: Change
  /** Columns that any of them assigned; null: rows came or went. */
  readonly assigned: readonly string[] | null
  /**
   * The first change of each transaction: what it found may have been seen, by a look that was faster than the news of the change. What a transaction
   * changed again itself nobody saw.
   */
  readonly found: readonly Change[]
}

/** In the order of their last change. */
export function transitionsOf(changes: readonly Change[]): readonly Transition[] {
  const transitions = new Map<string, Transition>()
  for (const change of changes) {
    const known = transitions.get(change.key)
    transitions.delete(change.key)
    transitions.set(change.key, known === undefined ? begin(change) : goOn(known, change))
  }
  return [...transitions.values()]
}

function begin(change: Change): Transition {
  return { first: change, last: change, assigned: change.assigned, found: [change] }
}

function goOn({ first, assigned, found }: Transition, change: Change): Transition {
  return {
    ...{ first, last: change },
    assigned: assigned === null || change.assigned === null ? null : [...assigned, ...change.assigned],
    found: found.some(({ txid }) => txid === change.txid) ? found : [...found, change],
  }
}

export interface Sight {
  /** The row is to be seen. */
  readonly now: boolean
  /** Whether what each of the transition's `found` began with was to be seen; null: nobody can tell. */
  readonly before: readonly (boolean | null)[]
}

/** `nothing`: they never saw it. `unknown`: they may have. */
export type Outcome = Operation | 'nothing' | 'unknown'

/** `decisive`: the columns that decide whether the row is seen; null: nobody knows which. */
export function outcomeOf(
  { found, assigned }: Transition,
  { now, before }: Sight,
  decisive: ReadonlySet<string> | null,
): Outcome {
  const were = found.map(({ operation }, index) => (operation === 'INSERT' ? false : (before[index] ?? null)))
  if (now) return were[0] === false ? 'INSERT' : 'UPDATE'
  if (were.includes(true)) return 'DELETE'
  if (!were.includes(null)) return 'nothing'
  // It is as much to be seen as before.
  if (assigned !== null && decisive !== null && !assigned.some(name => decisive.has(name))) return 'nothing'
  return 'unknown'
}
