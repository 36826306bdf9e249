/** Shapes of texts are kept, within bounds, and are those that they would be anew. */
import { expect, test } from 'vitest'
import { shapeOfQuery } from '../access/list/query-shape.ts'
import { parse } from '../language/syntax/parse.ts'
import { createShapes } from './shapes.ts'

const plain = (text: string) => {
  const { key, values, line } = shapeOfQuery(parse(text))
  return { key, values, line: line() }
}

test('a text has its own shape and line, the first time and every time', () => {
  const shapes = createShapes()
  const texts = [
    "get t where a = 'x'",
    "get t where a = 'y'",
    "get t fields m ->> 'k'",
    `get t where a = '${'x'.repeat(20_000)}'`,
  ]
  for (const text of [...texts, ...texts]) {
    const { key, values, line } = shapes.of(text, parse(text))
    expect({ key, values, line: line() }).toEqual(plain(text))
  }
})

test('a kept shape is the same object inside, a long text is not kept, nor is the first of a thousand others', () => {
  const shapes = createShapes()
  const valuesOf = (text: string) => shapes.of(text, parse(text)).values
  const long = `get t where a = '${'x'.repeat(20_000)}'`
  const first = valuesOf('get t where a = 1')
  expect(valuesOf('get t where a = 1')).toBe(first)
  expect(valuesOf(long)).not.toBe(valuesOf(long))
  for (let n = 0; n < 1_000; n++) valuesOf(`get t${n}`)
  expect(valuesOf('get t where a = 1')).not.toBe(first)
})
