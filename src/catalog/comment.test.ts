/** The last line of a comment can be an example; everything else is the description. */
import { expect, test } from 'vitest'
import { readComment } from './comment.ts'

test.each([
  ['What is owed.\n@example 12.50', 'What is owed.', '12.50'],
  ['Two lines.\nOf words.\n\n  @example a b ', 'Two lines.\nOf words.', 'a b'],
  ['Of Windows.\r\n@example a\r\n', 'Of Windows.', 'a'],
  ['@example {"a": 1}', null, '{"a": 1}'],
  ['@example', null, ''],
  ['A separator that does not end a line.\n@example a\u2028b', 'A separator that does not end a line.', 'a\u2028b'],
])('a comment is split into a description and an example: %j', (text, comment, example) => {
  expect(readComment(text)).toEqual({ comment, example })
})

test.each([
  null,
  '',
  'What is owed.\n',
  'Say @example 5 to the clerk.',
  '@example 5\nis what it begins with.',
  '@examples are good',
])('%j has no example', text => {
  expect(readComment(text)).toEqual({ comment: text, example: null })
})
