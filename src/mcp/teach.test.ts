/**
 * docs/guides/agents.md#tools: a query that does not parse is answered with its place, what was found and
 * expected, a hint, and an example.
 */
import { describe, expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { printSql } from '../language/sql/print.ts'
import { parse } from '../language/syntax/parse.ts'
import { parseSchema } from '../schema/parse.ts'
import { summarize } from '../schema/summary.ts'
import { exampleFor, exampleOf, type Lesson, resultOrLesson } from './lesson.ts'
import { constructNear, OPENS } from './nearest-construct.ts'
import { SCHEMA_EXAMPLE } from './tools/schema-summary.ts'

function lesson(query: string): Lesson['error'] {
  const answer = resultOrLesson(query, exampleFor(query, CORPUS), () => printSql(parse(query)))
  if ('error' in answer) return answer.error
  throw new Error(`${query} was accepted`)
}

test('for a valid text, the result of the function is returned', () => {
  expect(
    resultOrLesson(
      'x',
      () => '',
      () => 7,
    ),
  ).toBe(7)
})

test('a defect of the server is not reported as an error in the text', () => {
  const broken = (): never => {
    throw new TypeError('x is not a function')
  }
  expect(() => resultOrLesson('x', () => '', broken)).toThrow(TypeError)
})

test('a text with a small mistake is corrected', () => {
  expect(lesson('get users wher id = 1').example).toBe('get users where id = 1')
  expect(lesson('gte users').example).toBe('get users')
  expect(lesson('get users where id = 1 limt 5').example).toBe('get users where id = 1 limit 5')
  expect(lesson('GET wher WHER Id = 1').example).toBe('GET wher where Id = 1')
})

/** Queries of users who are used to SQL. */
test.each([
  ['SELECT id, name FROM users WHERE active = true LIMIT 5', 'get users fields id, name WHERE active = true LIMIT 5'],
  ['select * from users', 'get users'],
  ['select distinct role from users order by role', 'get distinct users fields role order by role'],
  [
    'select u.name, count(*) as n from users u join posts p on p.user_id = u.id group by u.name having n > 3',
    'get users u join posts p on p.user_id = u.id fields u.name, count(*) as n group by u.name having n > 3',
  ],
  ['get id, name from users', 'get users fields id, name'],
  ["insert into users (name) values ('a')", "add users fields name values ('a')"],
  [
    "insert into users (email, name) values ('a', 'b') on conflict (email) do update set name = excluded.name",
    "add users fields email, name values ('a', 'b') conflict (email) update name = excluded.name",
  ],
  ['update users set a = 1 where id = 1', 'set users values a = 1 where id = 1'],
  ['delete from users where id = 1', 'del users where id = 1'],
  ["get users where created_at > now() - interval '3 days'", 'get users where created_at > now() - 3d'],
  ['get users where id == 1', 'get users where id = 1'],
  ["get users where name = 'x' order created_at", "get users where name = 'x' order by created_at"],
  ['get users order by name descending', 'get users order by name desc'],
])('a query that does not parse is answered with a better one: %s', (query, example) => {
  expect(lesson(query).example).toBe(example)
})

test('a surplus word is not simply removed, because it was meant to say something', () => {
  expect(lesson('get users select id').example).toBe('get users')
  expect(lesson("get users where name is 'x'").example).toBe('get users\nwhere active is false')
})

test('no example changes a whole table', () => {
  for (const construct of Object.keys(CORPUS.constructs))
    expect(exampleOf(construct, CORPUS)).not.toContain('where all')
  expect(lesson('del users').example).toMatch(/^del \w+.*\nwhere (?!all)/s)
  expect(lesson('delete from users').example).not.toContain('where all')
})

test('a text that cannot be corrected gets the most similar example', () => {
  expect(lesson('get users join posts on posts.user_id = users.id where').example).toMatch(/where/)
  expect(lesson('get customers where exists orders').example).toMatch(/^get customers\nwhere exists|exists \(get/)
})

test('the search for a correction is fast for hostile texts', () => {
  const floods = [
    'select ',
    'select a from ',
    ' from',
    'insert into a (',
    'update a set ',
    "interval '1",
    'a ',
    ', ',
    '= ',
  ]
  for (const flood of floods) {
    const began = process.cpuUsage()
    lesson(`select ${flood.repeat(Math.floor(1_990 / flood.length))} `)
    const { user, system } = process.cpuUsage(began)
    // Milliseconds of the processor, whatever else the machine does; quadratic in the text it would still be
    // a few.
    expect([flood, (user + system) / 1_000 < 500]).toEqual([flood, true])
  }
})

test('a text that is too long is not repeated in the response', () => {
  const { example } = lesson(`get users wher id = '${'x'.repeat(3_000)}'`)
  expect(example.length).toBeLessThan(200)
})

test('an error of the printer has a position as well', () => {
  const query = 'get users\nwhere id = 1\nunion get posts returning id'
  expect(lesson(query)).toMatchObject({ line: 3, column: expect.any(Number), found: expect.any(String) })
  const { message, line, column } = lesson('add users values 1 conflict update a = 1')
  expect([message, line, column]).toEqual([expect.any(String), 1, expect.any(Number)])
})

describe('invalid queries of the corpus', () => {
  test.each(CORPUS.invalid)('$query', ({ query, error, line, column, hint = null }) => {
    const told = lesson(query)
    expect(told).toMatchObject({ message: error, line, column, hint })
    expect(() => printSql(parse(told.example))).not.toThrow()
  })
})

test.each(Object.keys(CORPUS.constructs))('%s has an example', construct => {
  expect(() => printSql(parse(exampleOf(construct, CORPUS)))).not.toThrow()
})

test.each([
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

test('every word that begins a construct leads to an existing construct', () => {
  expect(Object.values(OPENS).filter(construct => !Object.hasOwn(CORPUS.constructs, construct))).toEqual([])
})

test('the example shown with errors of schema documents causes no warnings', () => {
  expect(summarize(parseSchema(SCHEMA_EXAMPLE)).warnings).toEqual([])
})
