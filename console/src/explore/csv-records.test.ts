import { expect, test } from 'vitest'
import { CsvRecords } from './csv-records.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** The text behind the header, and the number of records. */
function read(...parts: readonly string[]): readonly [rest: string, count: number] {
  const records = new CsvRecords()
  const rest = parts.map(part => new TextDecoder().decode(records.read(bytes(part)))).join('')
  return [rest, records.count]
}

test('the first record is left out, and every record counts', () => {
  expect(read('id,name\n1,one\n2,two\n')).toEqual(['1,one\n2,two\n', 3])
  expect(read('id\n')).toEqual(['', 1])
  expect(read('')).toEqual(['', 0])
})

test('line feeds and doubled quotes inside quotes belong to a record', () => {
  expect(read('"a\n""b""",c\n"1\n2",""\n')).toEqual(['"1\n2",""\n', 2])
})

test('the parts can end anywhere', () => {
  const text = '"a\n""b""",c\n"1\n""2",""\n3,"4\n"\n'
  for (let at = 0; at <= text.length; at++) {
    expect(read(text.slice(0, at), text.slice(at))).toEqual(['"1\n""2",""\n3,"4\n"\n', 3])
  }
})
