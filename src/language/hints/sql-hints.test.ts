/**
 * Hints for SQL syntax beyond the examples of the reference (corpus/invalid/), and cases that get no hint.
 */
import { expect, test } from 'vitest'
import { parse } from '../syntax/parse.ts'
import { QuerySyntaxError } from '../syntax/syntax-error.ts'
import { withSqlHint } from './sql-hints.ts'

function shown(text: string): QuerySyntaxError {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof QuerySyntaxError) return withSqlHint(error, text)
  }
  throw new Error(`${text} is a query, or more than syntax is wrong with it`)
}

const hintOf = (text: string): string | null => shown(text).hint

test('a hint changes nothing else in an error', () => {
  expect(shown('get users\nwhere id == 1')).toMatchObject({
    problem: 'expected an expression; found "="',
    ...{ line: 2, column: 11, found: '=', sourceLine: 'where id == 1' },
    message:
      'expected an expression; found "=" (line 2, column 11)\n  where id == 1\n            ^\nwrite ' +
      'equality with one sign: =',
  })
})

test.each<[string, string]>([
  ['get * from users', 'write the fields after the table: get users fields id, name'],
  ['get users fields distinct role', 'write get distinct users fields role, or count(distinct role)'],
  ['count distinct role users', 'write get distinct users fields role, or count(distinct role)'],
  ['get users join posts using (user_id)', 'write on posts.user_id = users.id; without "on", the foreign key is used'],
  ['delete from users where id = 1', 'leave out "from"'],
  ['get from users', 'leave out "from"'],
  ['get users where id in get orders', 'write the query in parentheses: in (get …)'],
  ['get limit fields id', 'a table name is missing; quote a name that is a keyword with backticks: `limit`'],
  ['get users join values on true', 'a table name is missing; quote a name that is a keyword with backticks: `limit`'],
  ["get users where 'a' in tags", "for an array column, write tags @> ['a']; for a list of values, in (1, 2)"],
  ['add users (name) values (1)', 'write the columns after "fields": add users fields name values \'Ann\''],
  ['create table notes (id int)', 'write the columns without parentheses: make notes id:int:pk, text:text'],
  ['make notes (id:int)', 'write the columns without parentheses: make notes id:int:pk, text:text'],
  ['get users where id in [1, 2]', 'write the list in parentheses: in (1, 2)'],
  ['get users where !active', 'write "not"'],
  ['get users where a | b', 'write "or"'],
  ['get users where created_at > now() - 1 day', 'a duration is one word: 30d, 3mo, 1y'],
  ["get users where at > TIMESTAMP '2026-01-01 10:00'", "write '2026-01-01 10:00'::timestamp"],
  ["get users where name starts_with 'x'", "write name like 'A%', or starts_with(name, 'A')"],
  [
    "get users where name like 'a!%' escape '!'",
    "in patterns \\ escapes the next character; name ~ '50%' matches all characters literally",
  ],
  ["get users where name contains 'x'", "write name ~ 'text', or tags @> ['a'] for an array"],
  [
    'get users fields name as "n"',
    'single and double quotes are for text; quote a name with backticks: `Order Details`',
  ],
])('SQL syntax gets a hint: %s', (text, hint) => {
  expect(hintOf(text)).toBe(hint)
})

test.each<[string, string | null]>([
  ['get users fields id at', 'did you mean "as"?'],
  ['get users where a = 5 days', 'a duration is one word: 30d, 3mo, 1y'],
  ['get users where a = b days', null],
  ['get users fields a constructor', null],
  ['add users set a = 1', null],
  ["get users title || 'x'", null],
  ['add users fields id values 1 conflict ((id) nothing', null],
  ["insert users fields name ('A')", null],
  ['get users where id = 1 from posts', null],
])('an error that is not SQL syntax gets no misleading hint: %s', (text, hint) => {
  expect(hintOf(text)).toBe(hint)
})

test('a long text is not repeated in the hint', () => {
  expect(hintOf(`get users where at > date '${'x'.repeat(60_000)}'`)).toMatch(/^write 'x{39}…::date$/)
})
