import fc from 'fast-check'
import { expect, test } from 'vitest'
import { leavesOf } from './json-leaves.ts'

const read = (json: string) => {
  const bytes = Buffer.from(json)
  return [...leavesOf(bytes)].map(({ type, start, end }) => [type, bytes.toString('utf8', start, end)])
}

test('finds values of all types, through all arrays', () => {
  expect(read('[1, -2.5,[ "a,]\\"\\\\", [true]], null ,1e3,1E3,\n0, false, []]')).toEqual([
    ['integer', '1'],
    ['number', '-2.5'],
    ['string', '"a,]\\"\\\\"'],
    ['boolean', 'true'],
    ['null', 'null'],
    ['number', '1e3'],
    ['number', '1E3'],
    ['integer', '0'],
    ['boolean', 'false'],
  ])
})

test('descends into the first object only', () => {
  expect(read('[1, {"a": [2]}, 3]')).toEqual([
    ['integer', '1'],
    ['object', '{'],
  ])
})

test('leaves agree with JSON.parse, however the text is formatted', () => {
  const leaf = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
  )
  const { tree } = fc.letrec(tie => ({ tree: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('tree'))) }))
  fc.assert(
    fc.property(fc.array(tree), fc.constantFrom(0, 1, '\t'), (value, indent) => {
      const found = read(JSON.stringify(value, null, indent)).map(([, text = '']) => JSON.parse(text))
      // -0 is printed as 0.
      expect(found).toEqual(JSON.parse(JSON.stringify(value.flat(Number.POSITIVE_INFINITY))))
    }),
  )
})
