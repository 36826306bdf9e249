import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { and, column, compare, isNull, or, order, position, row } from '../../language/tree/build.ts'
import { afterCursor, createCursorCodec } from './cursor.ts'

const codec = createCursorCodec('a key')
const values = fc.array(fc.option(fc.string({ unit: 'grapheme' }).filter(text => !text.includes('\0'))), {
  minLength: 1,
  maxLength: 4,
})

describe('codec', () => {
  test('an encoded cursor is decoded, and is valid in its own scope only', () => {
    fc.assert(
      fc.property(fc.string(), values, (scope, list) => {
        const cursor = codec.encode(scope, list)
        fc.pre(cursor !== null)
        expect(cursor).toMatch(/^[\w-]+$/)
        const decoded = codec.decode(cursor ?? '')
        expect(decoded.values).toEqual(list)
        codec.verify(scope, decoded.digest, decoded.values)
        expect(() => codec.verify(`${scope}x`, decoded.digest, decoded.values)).toThrow('altered')
        expect(() => createCursorCodec('another key').verify(scope, decoded.digest, decoded.values)).toThrow('altered')
      }),
    )
  })
  test('a change of any character is detected', () => {
    fc.assert(
      fc.property(values, fc.nat(), fc.constantFrom('A', 'b', '-', '0'), (list, at, character) => {
        const cursor = codec.encode('s', list) ?? ''
        const index = at % cursor.length
        const altered = cursor.slice(0, index) + character + cursor.slice(index + 1)
        fc.pre(altered !== cursor)
        expect(() => {
          const decoded = codec.decode(altered)
          codec.verify('s', decoded.digest, decoded.values)
        }).toThrow(expect.objectContaining({ code: 'PARSE_ERROR' }))
      }),
    )
  })
  test('any other text causes PARSE_ERROR', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json().map(json => Buffer.from(json).toString('base64url')),
        ),
        text => {
          try {
            const { digest, values: list } = codec.decode(text)
            codec.verify('s', digest, list)
            throw new Error('accepted')
          } catch (error) {
            expect(error).toMatchObject({ code: 'PARSE_ERROR' })
          }
        },
      ),
    )
  })
  test('sort values that are too long have no cursor', () => {
    expect(codec.encode('s', ['x'.repeat(9_000)])).toBeNull()
    expect(() => codec.decode('A'.repeat(9_000))).toThrow('altered')
  })
})

describe('the rows after a cursor', () => {
  const a = column('a')
  const b = column('b')
  const $1 = position(1)
  const $2 = position(2)
  const up = { nullable: false, value: $1, order: order(a) }
  const down = { nullable: false, value: $1, order: order(a, { descending: true }) }

  test('are compared by a single key', () => {
    expect(afterCursor([up])).toEqual(compare('>', a, $1))
    expect(afterCursor([down])).toEqual(compare('<', a, $1))
  })
  test('are found by one row comparison if all keys have the same direction', () => {
    expect(afterCursor([up, { ...up, value: $2, order: order(b) }])).toEqual(compare('>', row([a, b]), row([$1, $2])))
  })
  test('are found key by key after a bound on the first key if directions are mixed', () => {
    expect(afterCursor([down, { ...up, value: $2, order: order(b) }])).toEqual(
      and(compare('<=', a, $1), or(compare('<', a, $1), and(compare('=', a, $1), compare('>', b, $2)))),
    )
  })
  test('have NULLs last in ascending and first in descending order unless the sort says otherwise', () => {
    const nullable = { ...up, nullable: true }
    expect(afterCursor([nullable])).toEqual(or(compare('>', a, $1), isNull(a)))
    expect(afterCursor([{ ...down, nullable: true }])).toEqual(compare('<', a, $1))
    expect(afterCursor([{ ...nullable, order: order(a, { nulls: 'first' }) }])).toEqual(compare('>', a, $1))
    expect(afterCursor([{ ...down, nullable: true, value: null }])).toEqual(isNull(a, 'negated'))
    expect(
      afterCursor([
        { ...nullable, value: null },
        { ...up, value: $2, order: order(b) },
      ]),
    ).toEqual(and(isNull(a), compare('>', b, $2)))
  })
})
