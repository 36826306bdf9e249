import { expect, test } from 'vitest'
import type { ChangeOperation } from '../compile/row-images.ts'
import {
  type ChangeEvent,
  mergeSteps,
  stepsOf,
  type Transition,
  transitionsOf,
  type Visibility,
} from './change-event.ts'

let txids = 0

/** In a separate transaction unless one is given. */
function change(operation: ChangeOperation, more: Partial<ChangeEvent> = {}): ChangeEvent {
  const where = { seq: 1, key: '{"id": 1}', at: '', txid: String(txids++), from: '', to: '' }
  return { ...where, operation, before: null, assigned: null, routes: null, ...more }
}

function transition(...changes: readonly ChangeEvent[]) {
  const [found] = transitionsOf(changes)
  if (found === undefined) throw new Error('there is a change')
  return found
}

/** The notification that a subscriber to these events receives; by default to all events. */
function outcomeOf(
  of: Transition,
  sight: Visibility,
  decisive: ReadonlySet<string> | null,
  events: readonly ChangeOperation[] = ['INSERT', 'UPDATE', 'DELETE'],
): ChangeOperation | 'nothing' | 'unknown' {
  const steps = stepsOf(of, sight, decisive)
  if (steps === null) return 'unknown'
  const wanted = steps.filter(({ operation }) => events.includes(operation))
  return mergeSteps(wanted, sight.now) ?? 'nothing'
}

test.each([
  // Operation; whether the row is visible now; whether it was before; the result.
  ['INSERT', true, null, 'INSERT'],
  ['INSERT', false, null, 'nothing'],
  ['UPDATE', true, true, 'UPDATE'],
  ['UPDATE', true, false, 'INSERT'],
  ['UPDATE', true, null, 'UPDATE'],
  ['UPDATE', false, true, 'DELETE'],
  ['UPDATE', false, false, 'nothing'],
  ['UPDATE', false, null, 'unknown'],
  ['DELETE', false, true, 'DELETE'],
  ['DELETE', false, false, 'nothing'],
  ['DELETE', false, null, 'unknown'],
  // The row was inserted again.
  ['DELETE', true, true, 'UPDATE'],
] as const)('%s, visible now: %s, before: %s, gives %s', (operation, now, before, outcome) => {
  expect(outcomeOf(transition(change(operation)), { now, before: [before] }, null)).toBe(outcome)
})

test('a change to columns that do not affect visibility neither shows nor hides a row', () => {
  const sight = { now: false, before: [null] }
  const decisive = new Set(['tenant'])
  const changed = (...assigned: string[]) => transition(change('UPDATE', { assigned }))
  expect(outcomeOf(changed('note'), sight, decisive)).toBe('nothing')
  expect(outcomeOf(changed('note', 'tenant'), sight, decisive)).toBe('unknown')
  expect(outcomeOf(changed('note'), sight, null)).toBe('unknown')
})

test('several changes to a row become one transition from before the first', () => {
  const created = change('INSERT')
  expect(outcomeOf(transition(created, change('UPDATE')), { now: true, before: [null, true] }, null)).toBe('INSERT')
  const both = transition(change('UPDATE', { assigned: ['note'] }), change('UPDATE', { assigned: ['tenant'] }))
  expect(outcomeOf(both, { now: false, before: [null, null] }, new Set(['tenant']))).toBe('unknown')
})

test('the state between two changes may have been visible to a query that was faster than the notification', () => {
  const away = transition(change('UPDATE'), change('UPDATE'))
  expect(outcomeOf(away, { now: false, before: [false, true] }, null)).toBe('DELETE')
  expect(outcomeOf(away, { now: false, before: [false, false] }, null)).toBe('nothing')
  expect(outcomeOf(away, { now: false, before: [false, null] }, null)).toBe('unknown')
  const gone = transition(change('INSERT'), change('DELETE'))
  expect(outcomeOf(gone, { now: false, before: [null, true] }, null)).toBe('DELETE')
})

test('a state that one transaction made and changed again was never visible', () => {
  const gone = transition(change('INSERT', { txid: '7' }), change('DELETE', { txid: '7' }))
  expect(gone.found).toHaveLength(1)
  expect(outcomeOf(gone, { now: false, before: [null] }, null)).toBe('nothing')
})

test.each([
  // Operations; whether the row was visible before each and is visible now; the events; the result.
  [['INSERT', 'UPDATE'], [false, true, true], ['UPDATE'], 'UPDATE'],
  [['INSERT', 'UPDATE'], [false, true, true], ['INSERT'], 'INSERT'],
  [['INSERT', 'UPDATE'], [false, true, true], ['INSERT', 'UPDATE'], 'INSERT'],
  [['INSERT', 'UPDATE'], [false, true, true], ['DELETE'], 'nothing'],
  // It is unknown whether the row was visible to the update.
  [['INSERT', 'UPDATE'], [false, null, true], ['UPDATE'], 'UPDATE'],
  // The second change makes the row match the filter, which is an insert.
  [['INSERT', 'UPDATE'], [false, false, true], ['UPDATE'], 'nothing'],
  [['INSERT', 'UPDATE'], [false, false, true], ['INSERT'], 'INSERT'],
  // The row no longer exists, so the update cannot be sent.
  [['UPDATE', 'DELETE'], [true, true, false], ['UPDATE'], 'nothing'],
  [['UPDATE', 'DELETE'], [true, true, false], ['DELETE'], 'DELETE'],
  [['INSERT', 'DELETE'], [false, true, false], ['INSERT'], 'nothing'],
  [['INSERT', 'DELETE'], [false, true, false], ['DELETE'], 'DELETE'],
  // Deleted and inserted again.
  [['DELETE', 'INSERT'], [true, false, true], ['DELETE'], 'DELETE'],
  [['DELETE', 'INSERT'], [true, false, true], ['INSERT'], 'INSERT'],
  [['DELETE', 'INSERT'], [true, false, true], ['UPDATE'], 'nothing'],
  [['DELETE', 'INSERT'], [true, false, true], ['INSERT', 'UPDATE', 'DELETE'], 'UPDATE'],
] as const)('%s, visible %s, for a subscriber to %s: %s', (operations, visible, events, outcome) => {
  const sight = { now: visible.at(-1) === true, before: visible.slice(0, -1) }
  expect(outcomeOf(transition(...operations.map(operation => change(operation))), sight, null, events)).toBe(outcome)
})

test("transitions are in the order of each row's last change", () => {
  const [a, b] = ['{"id": 1}', '{"id": 2}']
  const changes = [change('INSERT', { key: a }), change('INSERT', { key: b }), change('UPDATE', { key: a })]
  expect(transitionsOf(changes).map(({ last }) => [last.key, last.operation])).toEqual([
    [b, 'INSERT'],
    [a, 'UPDATE'],
  ])
})
