import { expect, test } from 'vitest'
import { CsvRecords } from './csv-records.ts'

function read(text: string, line = 1) {
  const records = new CsvRecords(Buffer.from(text), line)
  const found: [number, (string | null)[]][] = []
  for (let at = records.line; records.read(); at = records.line) {
    found.push([at, Array.from({ length: records.count }, (_, index) => records.text(index))])
  }
  return found
}
test('an empty field is NULL, and empty quotes are the empty text', () => {
  expect(read('a,,""\n,\n')).toEqual([
    [1, ['a', null, '']],
    [2, [null, null]],
  ])
  expect(read('\n')).toEqual([[1, [null]]])
  expect(read('')).toEqual([])
})

test('a record ends with LF, CRLF or the end of the text, and the next begins on the next line', () => {
  expect(read('a\r\n"b\nc"\n"d""e"', 7)).toEqual([
    [7, ['a']],
    [8, ['b\nc']],
    [10, ['d"e']],
  ])
})

test('a comma or a line break in quotes belongs to the field', () => {
  expect(read('"a,b","c\r\nd",e\n')).toEqual([[1, ['a,b', 'c\r\nd', 'e']]])
  expect(read('""""\n')).toEqual([[1, ['"']]])
})

test.each([
  ['"a', 'line 1: the record has a quoted field that is not closed'],
  ['x\n"a"b', 'line 2: the record has text after a quoted field'],
  ['a"b', 'line 1: the record has a quote inside an unquoted field'],
  ['a\rb', 'line 1: the record has a carriage return outside quotes'],
])('%j is rejected', (text, message) => {
  expect(() => read(text)).toThrow(message)
})
