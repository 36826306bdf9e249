/**
 * docs/reference/language.md#names: identifiers are unquoted if PostgreSQL reads them unchanged, and quoted
 * otherwise; nothing is truncated silently.
 */
import { expect, test } from 'vitest'
import { LanguageError } from '../tree/error.ts'
import { quoteFunctionOrType, quoteIdentifier, quoteLiteral } from './quote.ts'

test.each([
  ['users', 'users'],
  ['_private', '_private'],
  ['a1', 'a1'],
  ['1a', '"1a"'],
  ['Users', '"Users"'],
  ['order', '"order"'],
  ['left', '"left"'],
  ['values', 'values'],
  ['name', 'name'],
  ['__proto__', '__proto__'],
  ['constructor', 'constructor'],
  ['Server Today', '"Server Today"'],
  ['do$llar$s', '"do$llar$s"'],
  ['تست', '"تست"'],
  ['a"b', '"a""b"'],
  ['a"; drop table users; --', '"a""; drop table users; --"'],
  ['a\nb', '"a\nb"'],
])('%j is printed as %s', (name, written) => {
  expect(quoteIdentifier(name)).toBe(written)
})

test('only functions and types can have the unquoted name left', () => {
  expect(quoteFunctionOrType('left')).toBe('left')
  expect(quoteFunctionOrType('values')).toBe('"values"')
  expect(quoteFunctionOrType('order')).toBe('"order"')
})

test('a name of 63 bytes is accepted and one of 64 is not, in any alphabet', () => {
  expect(quoteIdentifier('a'.repeat(63))).toBe('a'.repeat(63))
  expect(quoteIdentifier(`${'é'.repeat(31)}a`)).toBe(`"${'é'.repeat(31)}a"`)
  expect(() => quoteIdentifier('a'.repeat(64))).toThrow('has 64 bytes; PostgreSQL accepts at most 63')
  expect(() => quoteIdentifier('é'.repeat(32))).toThrow('has 64 bytes')
  expect(() => quoteIdentifier('😀'.repeat(16))).toThrow('has 64 bytes')
  expect(() => quoteFunctionOrType('a'.repeat(64))).toThrow(LanguageError)
})

test.each([
  ['', 'a name is empty'],
  ['a\0b', 'contains a NUL character'],
  ['a\ud800', 'contains an unpaired surrogate'],
])('%j is not a valid name', (name, message) => {
  expect(() => quoteIdentifier(name)).toThrow(message)
})

test('a quoted text keeps all its characters and never ends early', () => {
  expect(quoteLiteral("it's")).toBe("'it''s'")
  expect(quoteLiteral("\\' or 1=1 --")).toBe("'\\'' or 1=1 --'")
  expect(quoteLiteral('')).toBe("''")
  expect(() => quoteLiteral('a\0')).toThrow('contains a NUL character')
  expect(() => quoteLiteral('\udc00')).toThrow('contains an unpaired surrogate')
})
