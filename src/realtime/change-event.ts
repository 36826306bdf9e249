/**
 * A change to one row, and the operation it amounts to for a subscriber who can see only some of the rows
 * (docs/reference/realtime.md#server-messages).
 */
import type { ChangeOperation } from '../compile/row-images.ts'
import type { Routes } from './route.ts'

/** A change to one row, before visibility is known. */
export interface ChangeEvent {
  /** The position among the changes to its table that this process has received. */
  readonly seq: number
  readonly operation: ChangeOperation
  /**
   * The key as JSON text. Sessions with different settings print it differently, so rows are looked up by it
   * and never compared as text.
   */
  readonly key: string
  /** The row before the change, as JSON text; null if it is unknown or did not exist. */
  readonly before: string | null
  /** The columns that the change assigned; null if the row was inserted or deleted, or they are unknown. */
  readonly assigned: readonly string[] | null
  readonly at: string
  /** The transaction that made the change. */
  readonly txid: string
  /**
   * The transaction that stored it in the log, if it is another one. Positions in the log refer to this one.
   */
  readonly storedBy?: string | null
  /** The routing values of the row; null if every visibility group may be concerned. */
  readonly routes: Routes | null
  /**
   * The resume token before this change and everything received with it, and the token after it if no other
   * change can be missed by using it.
   */
  readonly from: string
  readonly to: string
}

/** All changes to a row between two visibility queries, merged. */
export interface Transition {
  readonly first: ChangeEvent
  readonly last: ChangeEvent
  /** The columns that any of the changes assigned; null if the row was inserted or deleted. */
  readonly assigned: readonly string[] | null
  /**
   * The first change of each transaction. Its old row may have been visible, because a visibility query can
   * be faster than the notification of a change. A row that the same transaction changed again was never
   * visible to others.
   */
  readonly found: readonly ChangeEvent[]
}

/** Merges changes by row, in the order of each row's last change. */
export function transitionsOf(changes: readonly ChangeEvent[]): readonly Transition[] {
  const transitions = new Map<string, Transition>()
  for (const change of changes) {
    const known = transitions.get(change.key)
    transitions.delete(change.key)
    transitions.set(change.key, known === undefined ? startTransition(change) : extendTransition(known, change))
  }
  return [...transitions.values()]
}

function startTransition(change: ChangeEvent): Transition {
  return { first: change, last: change, assigned: change.assigned, found: [change] }
}

function extendTransition({ first, assigned, found }: Transition, change: ChangeEvent): Transition {
  return {
    ...{ first, last: change },
    assigned: assigned === null || change.assigned === null ? null : [...assigned, ...change.assigned],
    found: found.some(({ txid }) => txid === change.txid) ? found : [...found, change],
  }
}

/** The part of a transition that a subscriber can see. */
export interface Visibility {
  /** True if the row is visible now. */
  readonly now: boolean
  /** True if the row was visible before each change in the transition's `found`; null if unknown. */
  readonly before: readonly (boolean | null)[]
}

/** The change that one transaction made to a row, as a subscriber sees it. */
export interface Step {
  readonly operation: ChangeOperation
  readonly txid: string
  /** As in `ChangeEvent`; absent if it is the same transaction. */
  readonly storedBy?: string
}

/**
 * Determines the steps of a transition, one for each transaction that is visible to the subscriber. Null if
 * the row is not visible and it is unknown whether it was. `decisive`: the columns that decide whether a row
 * is visible; null if unknown.
 */
export function stepsOf(
  { found, assigned }: Transition,
  { now, before }: Visibility,
  decisive: ReadonlySet<string> | null,
): readonly Step[] | null {
  const wasVisible = found.map(({ operation }, index) => (operation === 'INSERT' ? false : (before[index] ?? null)))
  if (!now && !wasVisible.includes(true)) {
    // A change to columns that do not affect visibility leaves a hidden row hidden.
    const isHidden = assigned !== null && decisive !== null && !assigned.some(name => decisive.has(name))
    return wasVisible.includes(null) && !isHidden ? null : []
  }
  // An unknown visibility counts as visible: a redundant update is better than a missing one.
  const visible = [...wasVisible.map(was => was !== false), now]
  return found.flatMap(({ txid, storedBy = null }, index): readonly Step[] => {
    const operation = operationOf(visible[index] === true, visible[index + 1] === true)
    return operation === null ? [] : [{ operation, txid, ...(storedBy === null ? {} : { storedBy }) }]
  })
}

function operationOf(before: boolean, after: boolean): ChangeOperation | null {
  if (before) return after ? 'UPDATE' : 'DELETE'
  return after ? 'INSERT' : null
}

/**
 * Merges several steps into one operation; steps that the subscriber has not requested are removed before.
 * Null if there is nothing to send, or no row to send.
 */
export function mergeSteps(steps: readonly Step[], now: boolean): ChangeOperation | null {
  const last = steps.at(-1)?.operation ?? null
  if (last === 'DELETE' || last === null) return last
  if (!now) return null
  return steps[0]?.operation === 'INSERT' ? 'INSERT' : 'UPDATE'
}
