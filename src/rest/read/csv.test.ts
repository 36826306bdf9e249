import { expect, test } from 'vitest'
import { joinRecords, printHeader } from './csv.ts'

const linesOf = (...records: readonly string[]) =>
  joinRecords(
    Buffer.from('a\n'),
    records.map(record => [Buffer.from(record)]),
    records.length,
  ).toString()

test.each([
  ['()', ''],
  ['(1,,"")', '1,,""'],
  ['("a ""b""",2)', '"a ""b""",2'],
  [String.raw`("\\")`, String.raw`"\"`],
  [String.raw`("\\\\x00",1,"a\\",2)`, String.raw`"\\x00",1,"a\",2`],
  ['("☃ (a)")', '"☃ (a)"'],
])('the record %s becomes the line %s', (record, line) => {
  expect(linesOf(record, '(2)')).toBe(`a\n${line}\n2\n`)
})

test('only the first rows of a page are printed', () => {
  expect(joinRecords(Buffer.alloc(0), [[Buffer.from('(1)')], [Buffer.from('(2)')]], 1).toString()).toBe('1\n')
})

test('a name is quoted where a field would be', () => {
  expect(printHeader(['id', 'a b', 'x"y', 'p,q', '☃']).toString()).toBe('id,"a b","x""y","p,q",☃\n')
})
