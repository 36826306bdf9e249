/** A change of one row, and the operation that it is for a subscriber who sees some rows and not others (docs/reference/realtime.md#server-messages). */
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
  /** The row is visible. */
  readonly now: boolean
  /** Whether the row was visible before each of the transition's `found`; null: unknown. */
  readonly before: readonly (boolean | null)[]
}

/** What one transaction did to a row, as a subscriber sees it. */
export interface Step {
  readonly operation: Operation
  readonly txid: string
}

/**
 * The steps of a transition, one for each transaction that the subscriber can notice. Null: the row is not visible, and it is unknown whether it was.
 * `decisive`: the columns that decide whether a row is visible; null: unknown.
 */
export function stepsOf(
  { found, assigned }: Transition,
  { now, before }: Sight,
  decisive: ReadonlySet<string> | null,
): readonly Step[] | null {
  const were = found.map(({ operation }, index) => (operation === 'INSERT' ? false : (before[index] ?? null)))
  if (!now && !were.includes(true)) {
    // Columns that decide nothing leave the row as hidden as it was.
    const isHidden = assigned !== null && decisive !== null && !assigned.some(name => decisive.has(name))
    return were.includes(null) && !isHidden ? null : []
  }
  // Whoever wants updates is told once too often rather than once too few: what is unknown counts as visible.
  const visible = [...were.map(was => was !== false), now]
  return found.flatMap(({ txid }, index): readonly Step[] => {
    const operation = operationOf(visible[index] === true, visible[index + 1] === true)
    return operation === null ? [] : [{ operation, txid }]
  })
}

function operationOf(before: boolean, after: boolean): Operation | null {
  if (before) return after ? 'UPDATE' : 'DELETE'
  return after ? 'INSERT' : null
}

/** Several steps as one; the steps that a subscriber does not want are left out before. Null: there is nothing to tell, or no row to tell it with. */
export function mergeSteps(steps: readonly Step[], now: boolean): Operation | null {
  const last = steps.at(-1)?.operation ?? null
  if (last === 'DELETE' || last === null) return last
  if (!now) return null
  return steps[0]?.operation === 'INSERT' ? 'INSERT' : 'UPDATE'
}
