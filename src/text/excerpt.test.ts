/** What syntax errors show: safe for a terminal, and short whatever the text. */
import { expect, test } from 'vitest'
import { alternatives, excerptAt, foundText } from './excerpt.ts'

test('a line that fits is shown whole, with a caret below the position; tabs keep their width', () => {
  const text = 'orders\n\t| wehre total > 5\n| limit 3'
  expect(excerptAt(text, text.indexOf('wehre'))).toEqual({
    line: '\t| wehre total > 5',
    lines: ['  \t| wehre total > 5', '  \t  ^'],
  })
})

test.each(['\n', '\r\n', '\r'])('a line ends with %j', ending => {
  expect(excerptAt(`one${ending}two${ending}three`, 3 + ending.length).line).toBe('two')
})

test('a long line is shortened to a window around the position', () => {
  const { line, lines } = excerptAt(`${'a'.repeat(200)}!${'b'.repeat(200)}`, 200)
  expect(line).toBe(`…${'a'.repeat(50)}!${'b'.repeat(49)}…`)
  expect(lines[1].indexOf('^')).toBe(2 + 1 + 50)
})

test('the end of a text and an empty text are valid positions', () => {
  expect(excerptAt('orders |', 8).lines).toEqual(['  orders |', `  ${' '.repeat(8)}^`])
  expect(excerptAt('', 0).lines).toEqual(['  ', '  ^'])
})

test('control characters and halves of surrogate pairs are not sent to a terminal', () => {
  expect(excerptAt('a\u001b[2J\ud800b', 0).line).toBe('a\ufffd[2J\ufffdb')
  expect(foundText('\u0007x')).toBe('\ufffdx')
})

test('only the beginning of a long found text is shown', () => {
  expect(foundText('x'.repeat(40))).toBe('x'.repeat(40))
  expect(foundText('x'.repeat(41))).toBe(`${'x'.repeat(40)}…`)
})

test('in a list of alternatives, literals are quoted, kinds are not, and the number is limited', () => {
  expect(alternatives(['on', 'as', 'a table'])).toBe('"on", "as" or a table')
  expect(alternatives(['on'])).toBe('"on"')
  expect(alternatives(['a', 'b', 'c'], 2)).toBe('"a", "b" or …')
})
