import { expect, test } from 'vitest'
import {
  describeToken,
  refuseBody,
  refuseUtf8,
  scanNumber,
  scanString,
  skipWhiteSpace,
  typeOf,
  unescapeString,
} from './json-scanner.ts'

const bytes = (text: string): Buffer => Buffer.from(text)

test('a scan ends after the last byte of its token, whatever follows', () => {
  expect(skipWhiteSpace(bytes(' \t\r\n x'), 0)).toBe(5)
  expect(skipWhiteSpace(bytes('  '), 0)).toBe(2)
  expect(scanString(bytes('"a" b'), 0)).toBe(3)
  expect(scanString(bytes('x"\\"\\u0041é"'), 1)).toBe(13)
  expect(scanString(bytes('"\\ud83d\\ude00"'), 0)).toBe(14)
  expect(scanNumber(bytes('-12.5e+3,'), 0)).toBe(8)
  expect(scanNumber(bytes('0]'), 0)).toBe(1)
  expect(scanNumber(bytes('7'), 0)).toBe(1)
})

test.each([
  ['', ''],
  ['a', 'a'],
  ['\\"\\\\\\/\\b\\f\\n\\r\\t', '"\\/\b\f\n\r\t'],
  ['a\\u0062\\u00E9c', 'abéc'],
  ['\\ud83d\\ude00', '😀'],
  ['\\\\u0041', '\\u0041'],
  ['😀\\n', '😀\n'],
])('a string is unescaped as by JSON.parse: %j', (content, text) => {
  expect(unescapeString(content)).toBe(text)
  expect(JSON.parse(`"${content}"`)).toBe(text)
})

test.each([
  ['{}', 'object'],
  ['[]', 'array'],
  ['""', 'string'],
  ['true', 'boolean'],
  ['null', 'null'],
  ['0', 'integer'],
  ['-123456789012345678901234567890', 'integer'],
  ['1.0', 'number'],
  ['1e3', 'number'],
  ['1E3', 'number'],
])('the type of %s is %s', (text, expected) => {
  expect(typeOf(bytes(text), 0, text.length)).toBe(expected)
})

test('only the bytes of a number decide whether it is an integer', () => {
  expect(typeOf(bytes('1.5,23,4e5'), 4, 6)).toBe('integer')
})

test.each([
  ['a', 0, 'line 1, column 1'],
  ['a\nb', 2, 'line 2, column 1'],
  ['a\r\n\r\nbc', 6, 'line 3, column 2'],
  // Two, three and four bytes are one character each.
  ['é€😀x', 9, 'line 1, column 4'],
  ['é\n😀x', 7, 'line 2, column 2'],
  ['abc', 3, 'line 1, column 4'],
])('positions count lines and characters: %j at byte %i', (text, at, expected) => {
  expect(() => refuseBody(bytes(text), at, 'no')).toThrow(`${expected} of the body: no`)
})

test('the position is also available as numbers', () => {
  expect(() => refuseBody(bytes('a\nb'), 2, 'no')).toThrow(
    expect.objectContaining({ code: 'PARSE_ERROR', status: 400, details: { line: 2, column: 1 } }),
  )
})

test.each([
  ['NaN]', '"NaN"'],
  ['-x1.5e+3,', '"-x1.5e+3"'],
  ['é', '"é"'],
  ['😀', '"😀"'],
  ['}', '"}"'],
  ['"', 'a double quote'],
  ['\u00a0', 'U+00A0'],
  ['\0', 'U+0000'],
  ['\u{e0001}', 'U+E0001'],
  ['', 'the end of the body'],
  ['x'.repeat(1000), `"${'x'.repeat(80)}…"`],
])('the text at the position is shown: %j', (text, expected) => {
  expect(describeToken(bytes(text), 0)).toBe(expected)
})

test('the first invalid UTF-8 byte is found, even after a literal replacement character', () => {
  const body = Buffer.concat([bytes('\ufffd\né'), Buffer.from([0xe2, 0x82]), bytes('"')])
  expect(() => refuseUtf8(body)).toThrow('line 2, column 2 of the body: found the byte 0xE2, expected UTF-8')
})

test('a character cut off by the end of the body is found', () => {
  expect(() => refuseUtf8(Buffer.from([0x22, 0xf0, 0x9f]))).toThrow('line 1, column 2 of the body: found the byte 0xF0')
})
