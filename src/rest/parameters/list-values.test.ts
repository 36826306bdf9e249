import { describe, expect, test } from 'vitest'
import { toArrayLiteral } from '../../text/array-text.ts'
import { parseListItems, toArrayOperand, toMultirangeOperand, toRangeOperand } from './list-values.ts'

const fail = (message: string): never => {
  throw new Error(message)
}

describe('the operand of an array column', () => {
  test.each([
    ['{a,b}', '{a,b}'],
    ['{}', '{}'],
    ['{{1,2},{3,4}}', '{{1,2},{3,4}}'],
    ['[0:1]={a,b}', '[0:1]={a,b}'],
    ['[-1:0][2:3]={{1,2},{3,4}}', '[-1:0][2:3]={{1,2},{3,4}}'],
    ['{a\n,b}', '{a\n,b}'],
    ['(a,"b,c")', '{"a","b,c"}'],
    ['()', '{}'],
    ['a', '{"a"}'],
    ['a,b', '{"a,b"}'],
    ['', '{""}'],
    ['NULL', '{"NULL"}'],
    ['[0:1]', '{"[0:1]"}'],
    ['[x]={a}', '{"[x]={a}"}'],
    ['a"\\', '{"a\\"\\\\"}'],
  ])('%s', (operand, expected) => {
    expect(toArrayOperand(operand, fail)).toBe(expected)
  })
})

describe('the operand of a range or multirange column', () => {
  test.each([
    ['[1,5)', '[1,5)', '{[1,5)}'],
    ['empty', 'empty', '{empty}'],
    ['3', '["3","3"]', '{["3","3"]}'],
    ['a"b', '["a\\"b","a\\"b"]', '{["a\\"b","a\\"b"]}'],
  ])('%s', (operand, range, multirange) => {
    expect(toRangeOperand(operand)).toBe(range)
    expect(toMultirangeOperand(operand)).toBe(multirange)
  })
  test('accepts a multirange literal unchanged', () => {
    expect(toMultirangeOperand('{[1,2),[3,4)}')).toBe('{[1,2),[3,4)}')
  })
})

test('list elements become an array literal', () => {
  expect(parseListItems('(a,"b,\\"c\\\\",,d e)', fail)).toEqual(['a', 'b,"c\\', '', 'd e'])
  expect(parseListItems('()', fail)).toEqual([])
  expect(parseListItems('a,b', fail)).toEqual(['a', 'b'])
  expect(() => parseListItems('"a', fail)).toThrow('closing double quote is missing')
  expect(() => parseListItems('("a"b)', fail)).toThrow('text after a quoted list element')
  expect(toArrayLiteral(['a', 'b"c', 'NULL', ''])).toBe('{"a","b\\"c","NULL",""}')
})
