import { expect, test } from 'vitest'
import { ArrayElements } from './array-elements.ts'
import { CsvRecords } from './csv-records.ts'

function elementsOf(text: string, elements: ArrayElements = new ArrayElements()): ArrayElements {
  const records = new CsvRecords(Buffer.from(text), 1)
  while (records.read()) elements.add(records, 0)
  return elements
}

test('elements are quoted, and NULL is not', () => {
  const elements = elementsOf('a\n\n""\nNULL\n"x ""y"""\nb\\{,\n☃\n')
  expect(elements.print(0, 7).toString()).toBe(String.raw`{"a",NULL,"","NULL","x \"y\"","b\\{","☃"}`)
  expect(Array.from({ length: 7 }, (_, index) => elements.text(index))).toEqual([
    ...['a', null, '', 'NULL', 'x "y"', 'b\\{', '☃'],
  ])
})

test('a part of the elements is an array', () => {
  const elements = elementsOf('a\nb\nc\n')
  expect([elements.print(1, 2), elements.print(1, 3), elements.print(1, 1)].map(String)).toEqual([
    ...['{"b"}', '{"b","c"}', '{}'],
  ])
  expect(elements.print(0, 3).toString()).toBe('{"a","b","c"}')
})

test('a part can be taken after the whole', () => {
  const elements = elementsOf('a\nb\nc\n')
  const whole = elements.print(0, 3)
  expect([elements.print(0, 2), elements.print(2, 3), whole].map(String)).toEqual([
    ...['{"a","b"}', '{"c"}', '{"a","b","c"}'],
  ])
  expect(elements.text(2)).toBe('c')
})

test('cleared memory takes other elements', () => {
  const elements = elementsOf('a\n'.repeat(5_000))
  expect(elements.print(4_999, 5_000).toString()).toBe('{"a"}')
  elements.clear()
  expect(elements.print(0, 0).toString()).toBe('{}')
  elementsOf('x\n\n', elements)
  expect([elements.print(0, 2), elements.print(1, 2)].map(String)).toEqual(['{"x",NULL}', '{NULL}'])
})

test('large elements are kept whole', () => {
  const long = '\\'.repeat(50_000)
  const elements = elementsOf(`a\n${long}\nb\n`)
  expect([0, 1, 2].map(index => elements.text(index))).toEqual(['a', long, 'b'])
})
