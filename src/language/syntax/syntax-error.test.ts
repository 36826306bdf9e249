/** A syntax error reports its position for any kind of text. */
import { expect, test } from 'vitest'
import { LanguageError } from '../tree/error.ts'
import { parse } from './parse.ts'
import { QuerySyntaxError } from './syntax-error.ts'

function refusal(text: string): QuerySyntaxError {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof QuerySyntaxError) return error
  }
  throw new Error(`${text} was accepted`)
}

test('a syntax error has all details of its position', () => {
  const error = refusal('get users\n  where a = 1 an b')
  expect(error).toBeInstanceOf(LanguageError)
  expect(error).toMatchObject({
    name: 'QuerySyntaxError',
    line: 2,
    column: 15,
    offset: 24,
    span: { start: 24, end: 26 },
    found: 'an',
    hint: 'did you mean "and"?',
    sourceLine: '  where a = 1 an b',
  })
  expect(error.expected).toEqual([
    'an operator',
    'group by',
    'having',
    'window',
    'union',
    'intersect',
    'except',
    'order by',
    'limit',
    'offset',
    'for',
    ';',
    'the end of the query',
  ])
})

test('the message has the source line and a caret under the position', () => {
  expect(refusal('get users wher a = 1').message.split('\n').slice(1)).toEqual([
    '  get users wher a = 1',
    '                 ^',
    'did you mean "where" instead of "wher"?',
  ])
  expect(refusal('get users where').message).toBe(
    'expected an expression; found the end of the query (line 1, column 16)\n  get users where\n                 ^',
  )
})

test('the end of the query is at the end of its last word, before trailing line breaks', () => {
  expect(refusal('get users where\n\n')).toMatchObject({ line: 1, column: 16, span: null, found: 'end of the query' })
  expect(refusal('\n')).toMatchObject({ line: 1, column: 1 })
})

test('columns count characters, and tabs keep the caret under its position', () => {
  const error = refusal("get t where a = '🙂🙂' and\t'x' 'y'")
  expect(error).toMatchObject({ column: 30, offset: 31 })
  expect(error.message.split('\n').slice(1)).toEqual([
    "  get t where a = '🙂🙂' and\t'x' 'y'",
    '                          \t    ^',
  ])
})

test('a long source line is shortened around the position', () => {
  const error = refusal(`get t where ${'a and '.repeat(1000)}where ${'b and '.repeat(1000)}`)
  expect(error.column).toBe(6013)
  expect(error.sourceLine).toMatch(/^….*a and a and where b and b .*…$/)
  const [, line = '', caret = ''] = error.message.split('\n')
  expect(line.slice(caret.indexOf('^'))).toMatch(/^where b and/)
  expect(line.length).toBeLessThan(110)
})

test('control characters and unpaired surrogates are replaced in messages', () => {
  const error = refusal("get t where a = '\u001b[31m\u0000' \ud800")
  expect(error.message).not.toMatch(/[\x00-\x09\x0b-\x1f]|\p{Surrogate}/u)
  expect(error.sourceLine).toBe("get t where a = '\ufffd[31m\ufffd' \ufffd")
})
