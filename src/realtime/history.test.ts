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
  expect(history.since(start, () => false)).toEqual([first, second])
  expect(history.since(middle, () => false)).toEqual([second])
  expect(history.since(history.tokenAt(1), () => false)).toEqual([second])
  expect(history.since(history.token(), () => false)).toEqual([])
})

test('tokens that are invalidated, expired or unknown lead nowhere', () => {
  const history = createHistory()
  const start = history.token()
  history.invalidate(null)
  expect(history.since(start, () => false)).toBeNull()
  const after = history.token()
  expect(history.since(after, () => false)).toEqual([])
  for (let n = 0; n <= HISTORY_CHANGES_MAX; n++) history.add([change(history.next())])
  expect(history.since(after, () => false)).toBeNull()
  expect(history.since(history.tokenAt(3), () => false)).toHaveLength(HISTORY_CHANGES_MAX - 1)
  for (const token of [
    '',
    '.',
    '7',
    createHistory().token(),
    history.tokenAt(1e9),
    history.tokenAt(-1),
    `${start}e3`,
  ]) {
    expect(history.since(token, () => false)).toBeNull()
  }
})

test('an invalidation for some callers leaves the tokens of others valid', () => {
  const history = createHistory()
  const start = history.token()
  history.invalidate({ column: 'tenant', values: ['"a"'] })
  const first = change(history.next())
  history.add([first])
  const since = (value: string) => history.since(start, ({ values }) => values.includes(value))
  expect(since('"a"')).toBeNull()
  expect(since('"b"')).toEqual([first])
  expect(history.since(history.tokenAt(1), () => true)).toEqual([first])
})

test('the number of invalidations for some callers is limited', () => {
  const history = createHistory()
  const start = history.token()
  for (let n = 0; n <= 1_000; n++) history.invalidate({ column: 'tenant', values: ['"a"'] })
  expect(history.since(start, () => false)).toBeNull()
  expect(history.since(history.tokenAt(1), () => false)).toEqual([])
})
