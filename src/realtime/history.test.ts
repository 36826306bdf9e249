import { expect, test } from 'vitest'
import type { ChangeEvent } from './change-event.ts'
import { createHistory, HISTORY_CHANGES_MAX } from './history.ts'

const change = (seq: number): ChangeEvent => ({
  seq,
  operation: 'UPDATE',
  key: '{}',
  before: null,
  assigned: [],
  at: '',
  txid: '',
  routes: null,
  from: '',
  to: '',
})

test('a token leads to the changes after it', () => {
  const history = createHistory()
  const start = history.token()
  const first = change(history.next())
  history.add([first])
  const middle = history.token()
  const second = change(history.next())
  history.add([second])
  expect(history.since(start)).toEqual([first, second])
  expect(history.since(middle)).toEqual([second])
  expect(history.since(history.tokenAt(1))).toEqual([second])
  expect(history.since(history.token())).toEqual([])
})

test('tokens that are invalidated, expired or unknown lead nowhere', () => {
  const history = createHistory()
  const start = history.token()
  history.invalidate()
  expect(history.since(start)).toBeNull()
  const after = history.token()
  expect(history.since(after)).toEqual([])
  for (let n = 0; n <= HISTORY_CHANGES_MAX; n++) history.add([change(history.next())])
  expect(history.since(after)).toBeNull()
  expect(history.since(history.tokenAt(3))).toHaveLength(HISTORY_CHANGES_MAX - 1)
  for (const token of [
    '',
    '.',
    '7',
    createHistory().token(),
    history.tokenAt(1e9),
    history.tokenAt(-1),
    `${start}e3`,
  ]) {
    expect(history.since(token)).toBeNull()
  }
})
