import { expect, test } from 'vitest'
import { type JsonArray, parseJsonBody } from '../../json/json-body.ts'
import { batches, inBodyOrder, withoutDuplicates } from './batch.ts'

function grouped(json: string, keySetsMax = 100) {
  const body = parseJsonBody(Buffer.from(json), 100) as JsonArray
  return batches(body, keySetsMax).map(({ columns, bytes, positions }) => [columns, bytes.toString(), positions])
}

test('rows with the same keys in any order are one batch, and batches are in order of appearance', () => {
  expect(grouped('[{"b":1,"a":2}, {"c":3},{"a":4,"b":5} ,{}, {"c":6}]')).toEqual([
    [['a', 'b'], '[{"b":1,"a":2},{"a":4,"b":5}]', [0, 2]],
    [['c'], '[{"c":3},{"c":6}]', [1, 4]],
    [[], '[{}]', [3]],
  ])
})

test('a body with one key set is passed on unchanged', () => {
  expect(grouped(' [ {"a":1} , {"a":2}] ')).toEqual([[['a'], '[ {"a":1} , {"a":2}]', [0, 1]]])
  expect(grouped('[]')).toEqual([])
})

test('only the first of several rows with the same key remains', () => {
  const body = parseJsonBody(Buffer.from('[{"a":1},{"a":2,"b":1},{"a":2},{"b":3},{"a":1,"b":3}]'), 100) as JsonArray
  const found = batches(body, 100)
  const left = withoutDuplicates(found, ['1', '2', '2', undefined, '1'], body)
  expect(left.map(({ bytes, positions }) => [bytes.toString(), positions])).toEqual([
    ['[{"a":1}]', [0]],
    ['[{"a":2,"b":1}]', [1]],
    ['[{"b":3}]', [3]],
  ])
})

test('more key sets than allowed are rejected with 413', () => {
  expect(grouped('[{"a":1},{"b":1},{"a":2}]', 2)).toHaveLength(2)
  expect(() => grouped('[{"a":1},{"b":1},{"c":2}]', 2)).toThrow('more than 2 different sets of columns')
})

test('rows are returned in the order of the body, and omitted rows leave no gap', () => {
  const body = parseJsonBody(Buffer.from('[{"a":1},{"b":1},{"a":2},{"b":2},{"a":3}]'), 100) as JsonArray
  const found = batches(body, 100)
  expect(
    inBodyOrder(
      found,
      [
        ['a1', 'a2', 'a3'],
        ['b1', 'b2'],
      ],
      () => null,
    ),
  ).toEqual(['a1', 'b1', 'a2', 'b2', 'a3'])
  expect(
    inBodyOrder(
      found,
      [
        ['a2', 'a3'],
        ['b1', 'b2'],
      ],
      () => [1, 2],
    ),
  ).toEqual(['b1', 'a2', 'b2', 'a3'])
  expect(inBodyOrder(found, [['a2'], ['b1', 'b2']], () => null)).toEqual(['a2', 'b1', 'b2'])
})
