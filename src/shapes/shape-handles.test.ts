import { expect, test } from 'vitest'
import { printToken } from '../realtime/snapshot.ts'
import { digestOf } from './position.ts'
import { createShapeHandles, HANDLES_MAX } from './shape-handles.ts'

const TOKEN = printToken('Ab-_1234', { xmin: 5n, xmax: 5n, open: [] })
const startOf = (owner: string, n = 0) => ({ digest: digestOf(owner, String(n)), token: TOKEN, owner })

test('a shape keeps its handle until a client starts again after it', () => {
  const handles = createShapeHandles(() => 0)
  const first = handles.current(startOf('a'))
  expect(handles.current(startOf('a'))).toBe(first)
  expect(handles.after(null, startOf('a'))).toBe(first)
  const second = handles.after(first, startOf('a'))
  expect(second).not.toBe(first)
  // Another client that starts again after the first one gets the same new handle.
  expect(handles.after(first, startOf('a'))).toBe(second)
})

test('a tenant with thousands of shapes loses its own oldest handles, and no other tenant loses one', () => {
  const handles = createShapeHandles(() => 0)
  const quiet = Array.from({ length: 50 }, (_, n) => handles.current(startOf('quiet', n)))
  const [first] = Array.from({ length: HANDLES_MAX + 500 }, (_, n) => handles.current(startOf('noisy', n)))
  expect(handles.size).toBe(HANDLES_MAX)
  expect(Array.from(quiet, (_, n) => handles.current(startOf('quiet', n)))).toEqual(quiet)
  expect(handles.current(startOf('noisy', 0))).not.toBe(first)
})

test('a handle that was ended or issued long ago is not issued again', () => {
  let now = 0
  const handles = createShapeHandles(() => now)
  const first = handles.current(startOf('a'))
  handles.end(first)
  expect(handles.hasEnded(first)).toBe(true)
  const second = handles.current(startOf('a'))
  expect(second).not.toBe(first)
  now = 13 * 3_600_000
  expect(handles.current(startOf('a'))).not.toBe(second)
})
