import { expect, test } from 'vitest'
import { Digits } from './json.ts'
import { quoted, rowId } from './schema.ts'

test('the path of a row has the values of its key', () => {
  expect(rowId({ primary_key: ['id'] }, { id: 'a/b,c' })).toBe('a%2Fb%2Cc')
  expect(rowId({ primary_key: ['a', 'b'] }, { a: new Digits('9007199254740993'), b: 'x,y' })).toBe(
    '9007199254740993,x%252Cy',
  )
})

test.each([
  ['no key', [], { id: 1 }],
  ['a row without its key', ['id'], { name: 'a' }],
  ['a dot segment', ['id'], { id: '..' }],
])('%s has no path', (_title, key, row) => {
  expect(rowId({ primary_key: key }, row)).toBeNull()
})

test('a name with punctuation is quoted', () => {
  expect([quoted('größe'), quoted('a.b'), quoted('say "x"')]).toEqual(['größe', '"a.b"', '"say ""x"""'])
})
