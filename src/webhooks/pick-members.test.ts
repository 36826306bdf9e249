import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pickMembers } from './pick-members.ts'

test('picked members keep their text and order', () => {
  const json = '{"id":9007199254740993,"a\\"b":[1,{"id":2}],"total":1.10, "x" : {"}":","},"last":null}'
  expect(pickMembers(json, new Set(['total', 'id']))).toBe('{"id":9007199254740993,"total":1.10}')
  expect(pickMembers(json, new Set(['a"b']))).toBe('{"a\\"b":[1,{"id":2}]}')
  expect(pickMembers(json, new Set(['x', 'last']))).toBe('{"x" : {"}":","},"last":null}')
  expect(pickMembers(json, new Set())).toBe('{}')
  expect(pickMembers('{}', new Set(['id']))).toBe('{}')
})

test('picked members of any object parse to the same values', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.array(fc.string()),
      fc.constantFrom(undefined, 2),
      (object, more, indent) => {
        const keys = Object.keys(object)
        const wanted = new Set([...keys.filter((_, index) => index % 2 === 0), ...more])
        const expected = keys.filter(key => wanted.has(key)).map(key => [key, object[key]])
        const picked = JSON.parse(pickMembers(JSON.stringify(object, null, indent), wanted))
        expect(Object.entries(picked)).toEqual(Object.entries(JSON.parse(JSON.stringify(Object.fromEntries(expected)))))
      },
    ),
  )
})
