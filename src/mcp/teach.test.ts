/** Issue of the language's errors: "position, expected, the nearest valid form", and an example that is right. */
import { describe, expect, test } from 'vitest'
import { CONSTRUCTS, type Construct } from '../language/corpus/constructs.ts'
import { INVALID } from '../language/corpus/index.ts'
import { parse } from '../language/parse.ts'
import { printSql } from '../language/print.ts'
import { parseSchema } from '../language/schema/parse.ts'
import { summarize } from '../language/schema/summary.ts'
import { constructNear } from './near.ts'
import { exampleFor, exampleOf, type Lesson, taught } from './teach.ts'
import { SCHEMA_EXAMPLE } from './tools/schema-summary.ts'

function lesson(query: string): Lesson['error'] {
  const answer = taught(query, exampleFor(query), () => printSql(parse(query)))
  if ('error' in answer) return answer.error
  throw new Error(`nobody refuses ${query}`)
}

test('a text that is right is what the work makes of it', () => {
  expect(
    taught(
      'x',
      () => '',
      () => 7,
    ),
  ).toBe(7)
})

test('a defect is none of the text', () => {
  const broken = (): never => {
    throw new TypeError('x is not a function')
  }
  expect(() => taught('x', () => '', broken)).toThrow(TypeError)
})

test('a text with a slip is mended', () => {
  expect(lesson('get users wher id = 1').example).toBe('get users where id = 1')
  expect(lesson('gte users').example).toBe('get users')
  expect(lesson('get users where id = 1 limt 5').example).toBe('get users where id = 1 limit 5')
  expect(lesson('GET wher WHER Id = 1').example).toBe('GET wher where Id = 1')
})

test('a text that is too long is not sent back, mended or not', () => {
  const { example } = lesson(`get users wher id = '${'x'.repeat(3_000)}'`)
  expect(example.length).toBeLessThan(200)
})

test('what only the printer refuses has its place as well', () => {
  const query = 'get users\nwhere id = 1\nunion get posts returning id'
  expect(lesson(query)).toMatchObject({ line: 3, column: expect.any(Number), found: expect.any(String) })
  const { message, line, column } = lesson('add users values 1 conflict update a = 1')
  expect([message, line, column]).toEqual([expect.any(String), 1, expect.any(Number)])
})

describe('of everything that is refused', () => {
  test.each(INVALID)('$query', ({ query, error, line, column, hint = null }) => {
    const told = lesson(query)
    expect(told).toMatchObject({ message: error, line, column, hint })
    expect(() => printSql(parse(told.example))).not.toThrow()
  })
})

test.each(Object.keys(CONSTRUCTS) as Construct[])('%s has an example', construct => {
  expect(() => printSql(parse(exampleOf(construct)))).not.toThrow()
})

test.each<readonly [string, Construct]>([
  ['get users order by |', 'order'],
  ['get users join posts |', 'join'],
  ['add users fields name values 1 conflict (|', 'conflict'],
  ['with a as (get b) |', 'get'],
  ['|nest', 'nest'],
  ['|', 'get'],
  ['|__proto__', 'get'],
  ['set users values a = 1 |', 'set'],
])('%s is about %s', (text, construct) => {
  expect(constructNear(text.replace('|', ''), text.indexOf('|'))).toBe(construct)
})

test('the example beside errors of schema documents has nothing to warn of', () => {
  expect(summarize(parseSchema(SCHEMA_EXAMPLE)).warnings).toEqual([])
})
