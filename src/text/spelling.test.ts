/** The word that was meant, or none: a wrong suggestion is worse than no suggestion. */
import { expect, test } from 'vitest'
import { nearestWord } from './spelling.ts'

const WORDS = ['where', 'having', 'on', 'or', 'order', 'limit', 'int', 'inet', 'int4', 'timestamp']

test.each([
  ['wher', 'where'],
  ['WEHRE', 'where'],
  ['limt', 'limit'],
  ['limits', 'limit'],
  ['timestmap', 'timestamp'],
  ['tmestmap', 'timestamp'],
  ['intt', 'int'],
  ['un', 'on'],
  ['int4', 'int4'],
])('%s: %s', (word, meant) => {
  expect(nearestWord(word, WORDS)).toBe(meant)
})

test.each(['', 'x', 'wxyz', 'whither', 'tistamp_', 'timestamp'.repeat(5)])('%s: nothing is near', word => {
  expect(nearestWord(word, WORDS)).toBeNull()
})
