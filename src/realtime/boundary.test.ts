import { expect, test } from 'vitest'
import { createBoundary, createLogBoundary } from './boundary.ts'
import { covers, parseSnapshot, printToken } from './snapshot.ts'

test.each([
  ['8', true],
  ['9', false],
  ['10', true],
  ['11', false],
  ['12', false],
  ['100', false],
  ['099', false],
  ['', true],
])('transaction "%s" is included in 9:12:9,11: %s', (txid, before) => {
  expect(createBoundary(parseSnapshot('9:12:9,11'), '').includes({ txid })).toBe(before)
})

test.each([
  // Later, earlier.
  ['10:10:', '10:10:', true],
  ['10:12:', '10:10:', true],
  ['10:10:', '10:12:', false],
  ['10:12:10', '10:12:10,11', true],
  ['10:12:10,11', '10:12:10', false],
  ['10:15:10,13', '10:12:10', true],
])('%s covers %s: %s', (later, earlier, expected) => {
  expect(covers(parseSnapshot(later), parseSnapshot(earlier))).toBe(expected)
})

test('a client that has the rows has changes that were stored later, and one that has the entries has not', () => {
  const change = { txid: '9', storedBy: '12' }
  const [rows, entries] = (['rows', 'entries'] as const).map(has =>
    createLogBoundary(parseSnapshot('12:12:'), 'epoch', has),
  )
  expect([rows?.includes(change), entries?.includes(change)]).toEqual([true, false])
  expect([rows?.includes({ txid: '12' }), entries?.includes({ txid: '11' })]).toEqual([false, true])
})

test('a token from before the boundary is replaced by the token of the boundary', () => {
  const boundary = createLogBoundary(parseSnapshot('10:12:10'), 'epoch', 'rows')
  const [early, late] = ['9:11:9', '12:14:13'].map(text => printToken('epoch', parseSnapshot(text)))
  expect(boundary.token).toBe(printToken('epoch', parseSnapshot('10:12:10')))
  expect(boundary.laterOf(early ?? '')).toBe(boundary.token)
  expect(boundary.laterOf(late ?? '')).toBe(late)
})
