import { expect, test } from 'vitest'
import { commentEnd } from './comment-end.ts'

test.each([
  ['/**/', 0, 4],
  ['a /* b */ c', 2, 9],
  ['/* a /* b */ c */ d */', 0, 17],
  ['/*/ a */', 0, 8],
  ['/* a */ /* b */', 8, 15],
  ['/* a', 0, null],
  ['/* a /* b */', 0, null],
])('%s: the comment at %i ends at %s', (text, start, end) => {
  expect(commentEnd(text, start)).toBe(end)
})
