import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Json, parseJson, printJson } from './values.ts'

const again = (text: string): string => printJson(parseJson(text))

test.each([
  [' { "a" : [ 1 , true , null , { } , [ ] ] } ', '{"a":[1,true,null,{},[]]}'],
  ['12345678901234567890', '12345678901234567890'],
  ['-0.50e+10', '-0.50e+10'],
  ['"\\u0061\\n\\/ü\\ud83d\\ude00"', '"a\\n/ü😀"'],
  ['{"__proto__":1,"constructor":2}', '{"__proto__":1,"constructor":2}'],
  ['{"2":1,"1":2}', '{"2":1,"1":2}'],
])('a value is printed without blanks: %s', (text, printed) => {
  expect(again(text)).toBe(printed)
})

test.each([
  '',
  ' ',
  '{',
  '}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{,}',
  '[1,]',
  '[,]',
  '[1 2]',
  '01',
  '+1',
  '1.',
  '.5',
  '1e',
  '-',
  'NaN',
  'tru',
  'True',
  "'a'",
  '"a',
  '"\\x"',
  '"\\u12"',
  '"\n"',
  '"\u0001"',
  '1 1',
  '{} x',
  '\uFEFF1',
  '\u00a01',
  '// c\n1',
  'undefined',
])('%j is not valid JSON', text => {
  expect(() => parseJson(text)).toThrow('is not valid JSON')
})

test('a repeated key is rejected at any depth and in any spelling', () => {
  expect(() => parseJson('{"a":1,"a":1}')).toThrow('repeats a key')
  expect(() => parseJson('{"a":1,"\\u0061":2}')).toThrow('repeats a key')
  expect(() => parseJson('[{"b":{"":1,"":2}}]')).toThrow('repeats a key')
})

test('characters that PostgreSQL cannot store are rejected, in keys too', () => {
  expect(() => parseJson('{"a":"x\\u0000"}')).toThrow('NUL')
  expect(() => parseJson('{"\\u0000":1}')).toThrow('NUL')
  expect(() => parseJson('"\\ud83d"')).toThrow('surrogate')
  expect(() => parseJson('"\\ude00\\ud83d"')).toThrow('surrogate')
  // A backslash and letters, not the character itself.
  expect(again('"\\\\u0000"')).toBe('"\\\\u0000"')
})

test('nesting is limited to 32 levels', () => {
  expect(again('['.repeat(33) + ']'.repeat(33))).toBe('['.repeat(33) + ']'.repeat(33))
  expect(() => parseJson('['.repeat(34) + ']'.repeat(34))).toThrow('nests deeper than 32')
  expect(() => parseJson('{"a":'.repeat(5_000))).toThrow('nests deeper than 32')
})

describe('fuzz: agrees with JSON.parse on texts that both accept', () => {
  test('any JSON text without NUL and unpaired surrogates', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        fc.pre(!text.includes('\\u0000'))
        expect(again(text)).toBe(JSON.stringify(value))
      }),
    )
  })

  test('texts that are almost JSON', () => {
    const noise = fc.string({
      unit: fc.constantFrom(
        '{',
        '}',
        '[',
        ']',
        ':',
        ',',
        '"',
        '\\',
        'u',
        '0',
        '1',
        '-',
        '.',
        'e',
        ' ',
        '\n',
        'true',
        'null',
        '"a"',
      ),
    })
    fc.assert(
      fc.property(noise, text => {
        let read: Json | undefined
        try {
          read = parseJson(text)
        } catch (error) {
          expect((error as Error).name).toBe('JsonError')
          return
        }
        expect(JSON.parse(printJson(read))).toEqual(JSON.parse(text))
      }),
      { numRuns: 3_000 },
    )
  })
})
