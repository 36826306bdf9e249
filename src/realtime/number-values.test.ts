import { expect, test } from 'vitest'
import {
  arithmetic,
  cast,
  column,
  compare,
  integer,
  inValues,
  jsonStep,
  literal,
  position,
} from '../language/tree/build.ts'
import { Values } from '../rest/values.ts'
import { numbersAsValues } from './number-values.ts'

const a = column('a')

function replaced(condition: Parameters<typeof numbersAsValues>[0]) {
  const values = new Values()
  return { tree: numbersAsValues(condition, values), values: values.all }
}

test.each([
  ['5', 'integer', 'int4'],
  ['-2147483647', 'integer', 'int4'],
  ['2147483648', 'integer', 'int8'],
  ['9223372036854775807', 'integer', 'int8'],
  ['9223372036854775808', 'integer', 'numeric'],
  ['1.50', 'decimal', 'numeric'],
] as const)('%s, %s, is a value of the type %s', (value, kind, type) => {
  expect(replaced(compare('=', a, literal(kind, value)))).toEqual({
    tree: compare('=', a, cast(position(1), type)),
    values: [value],
  })
})

test('numbers inside of operators are values in the order of the text', () => {
  expect(
    replaced(compare('=', arithmetic('%', arithmetic('/', a, integer('7')), integer('10')), integer('3'))),
  ).toEqual({
    tree: compare(
      '=',
      arithmetic('%', arithmetic('/', a, cast(position(1), 'int4')), cast(position(2), 'int4')),
      cast(position(3), 'int4'),
    ),
    values: ['7', '10', '3'],
  })
})

test.each([
  ['a list', inValues(a, [integer('1'), integer('2')])],
  ['a step in JSON', compare('=', jsonStep('->>', a, integer('0')), literal('text', 'x'))],
  ['a condition without numbers', compare('=', a, literal('boolean', 'true'))],
])('%s stays as it is', (_, condition) => {
  expect(replaced(condition)).toEqual({ tree: condition, values: [] })
})
