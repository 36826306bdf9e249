import { expect, test } from 'vitest'
import { cellAfter } from './grid-keys.ts'

const NONE = { ctrlKey: false, altKey: false, metaKey: false, shiftKey: false }
const LAST = { row: 25, column: 4 }

test.each([
  ['ArrowUp', NONE, [11, 2]],
  ['ArrowDown', NONE, [13, 2]],
  ['ArrowLeft', NONE, [12, 1]],
  ['ArrowRight', NONE, [12, 3]],
  ['PageUp', NONE, [2, 2]],
  ['PageDown', NONE, [22, 2]],
  ['Home', NONE, [12, 0]],
  ['End', NONE, [12, 4]],
  ['Home', { ...NONE, ctrlKey: true }, [0, 0]],
  ['End', { ...NONE, ctrlKey: true }, [25, 4]],
] as const)('%s moves', (key, modifiers, [row, column]) => {
  expect(cellAfter({ key, ...modifiers }, { row: 12, column: 2 }, LAST)).toEqual({ row, column })
})

test('the edges of the grid are not left', () => {
  for (const key of ['ArrowUp', 'ArrowLeft', 'PageUp'])
    expect(cellAfter({ key, ...NONE }, { row: 0, column: 0 }, LAST)).toEqual({ row: 0, column: 0 })
  for (const key of ['ArrowDown', 'ArrowRight', 'PageDown'])
    expect(cellAfter({ key, ...NONE }, LAST, LAST)).toEqual(LAST)
})

test('other keys, and those of the browser, do not move', () => {
  expect(cellAfter({ key: 'a', ...NONE }, { row: 1, column: 1 }, LAST)).toBeNull()
  for (const modifier of ['altKey', 'metaKey', 'shiftKey', 'ctrlKey'])
    expect(cellAfter({ key: 'ArrowLeft', ...NONE, [modifier]: true }, { row: 1, column: 1 }, LAST)).toBeNull()
})
