import { expect, test } from 'vitest'
import { type Change, outcomeOf, transitionsOf } from './change.ts'
import type { Operation } from './notice.ts'

function change(operation: Operation, more: Partial<Change> = {}): Change {
  return { seq: 1, operation, key: '{"id": 1}', before: null, assigned: null, at: '', txid: '1', ...more }
}

function transition(...changes: readonly Change[]) {
  const [found] = transitionsOf(changes).values()
  if (found === undefined) throw new Error('there is a change')
  return found
}

test.each([
  // What happened; whether the row is seen now; whether it was; what that comes to.
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
  // It is there again.
  ['DELETE', true, true, 'UPDATE'],
] as const)('%s, seen now: %s, before: %s', (operation, now, before, outcome) => {
  expect(outcomeOf(transition(change(operation)), { now, before }, null)).toBe(outcome)
})

test('a change of columns that decide nothing neither shows nor hides a row', () => {
  const sight = { now: false, before: null }
  const decisive = new Set(['tenant'])
  const changed = (...assigned: string[]) => transition(change('UPDATE', { assigned }))
  expect(outcomeOf(changed('note'), sight, decisive)).toBe('nothing')
  expect(outcomeOf(changed('note', 'tenant'), sight, decisive)).toBe('unknown')
  expect(outcomeOf(changed('note'), sight, null)).toBe('unknown')
})

test('several changes of a row are one, from before the first', () => {
  const created = change('INSERT')
  const removed = change('DELETE', { seq: 2 })
  expect(outcomeOf(transition(created, removed), { now: false, before: null }, null)).toBe('nothing')
  expect(outcomeOf(transition(created, change('UPDATE', { assigned: ['n'] })), { now: true, before: null }, null)).toBe(
    'INSERT',
  )
  const both = transition(change('UPDATE', { assigned: ['note'] }), change('UPDATE', { assigned: ['tenant'] }))
  expect(outcomeOf(both, { now: false, before: null }, new Set(['tenant']))).toBe('unknown')
})
