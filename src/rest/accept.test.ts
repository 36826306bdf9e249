import { expect, test } from 'vitest'
import { prefersCsv } from './accept.ts'

test.each([
  [undefined, false],
  ['*/*', false],
  ['text/*', false],
  ['application/json', false],
  ['text/csv', true],
  ['TEXT/CSV; charset=utf-8', true],
  ['text/csv, */*', true],
  ['*/*, text/csv', true],
  ['text/csv, application/json', true],
  ['application/json, text/csv', false],
  ['application/json;q=0.5, text/csv;q=0.9', true],
  ['text/csv;q=0.5, application/json', false],
  ['text/csv;q=0.5, application/*;q=0.4', true],
  ['text/csv;q=0.5, */*', false],
  ['text/csv;q=0', false],
  ['text/csv;q=x', false],
  ['text/csvx', false],
])('%s prefers CSV: %s', (accept, expected) => {
  expect(prefersCsv(accept)).toBe(expected)
})

test('types beyond the limit are ignored', () => {
  expect(prefersCsv(`${'a/b,'.repeat(64)}text/csv`)).toBe(false)
})
