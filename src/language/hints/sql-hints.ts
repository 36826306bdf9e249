/**
 * Hints for SQL syntax that the language writes differently. Not part of the parser, which browsers load; the
 * code that displays an error adds them.
 */

import { foundText } from '../../text/excerpt.ts'
import { QuerySyntaxError } from '../syntax/syntax-error.ts'

const FIELDS = 'write the fields after the table: get users fields id, name'
const QUOTED = 'single and double quotes are for text; quote a name with backticks: `Order Details`'
const COLUMNS = 'write the columns without parentheses: make notes id:int:pk, text:text'

/**
 * A pattern for the text around the error, with a line break at its position; an item that must be among the
 * expected ones (or empty); the hint. The first match applies.
 */
const SQL_HINTS: readonly (readonly [around: RegExp, expected: string, hint: string])[] = [
  [/\binto\n\w/i, '', 'leave out "into"'],
  [/\b(get|count|cnt|del(ete)?)\nfrom\b/i, '', 'leave out "from"'],
  [/\nouter\b/i, 'join', 'leave out "outer"'],
  [/\nfrom\b/i, 'nest', FIELDS],
  [/\bget\n\*/i, '', FIELDS],
  [/\b(fields|count|cnt)\ndistinct\b/i, '', 'write get distinct users fields role, or count(distinct role)'],
  [/\nusing\b/i, 'on', 'write on posts.user_id = users.id; without "on", the foreign key is used'],
  [/\nset\b/i, 'join', 'write the assignments after "values": set users values name = \'Ann\' where id = 1'],
  [/\nwithin\b/i, '', 'write the order inside the parentheses: percentile_cont(0.5 order by total)'],
  [/\nat\s+time\b/i, '', "write timezone('Europe/Berlin', created_at)"],
  [/\nescape\b/i, '', "in patterns \\ escapes the next character; name ~ '50%' matches all characters literally"],
  [/\ncontains\b/i, '', "write name ~ 'text', or tags @> ['a'] for an array"],
  [/\nstarts_with\b/i, '', "write name like 'A%', or starts_with(name, 'A')"],
  [/\d\n(second|minute|hour|day|week|month|year)s?\b/i, '', 'a duration is one word: 30d, 3mo, 1y'],
  [/\n\[/, 'an operator', "for an array element, write to_jsonb(tags) ->> 0; for JSON, meta -> 'list' -> 0"],
  [/\n\[/, 'a parameter', 'write the list in parentheses: in (1, 2)'],
  [/\bin\n(get|with)\b/i, 'a parameter', 'write the query in parentheses: in (get …)'],
  [/\bin\n[a-z]/i, 'a parameter', "for an array column, write tags @> ['a']; for a list of values, in (1, 2)"],
  [/\n\(/, ':', COLUMNS],
  [/\b(make|create)\s+\S+\n\(/i, '', COLUMNS],
  [/\b(add|insert)\s+\S+\n\(/i, 'fields', 'write the columns after "fields": add users fields name values \'Ann\''],
  [/\n\(/, 'an alias', 'a source is a table or (get …) name; call a function in the fields'],
  [/\n,/, 'join', 'join the other table: cross join posts, or join posts on …'],
  [/=\n=/, '', 'write equality with one sign: ='],
  [/\n&/, '', 'write "and"'],
  [/\n\|[^|]/, '', 'write "or"'],
  [/\n!/, '', 'write "not"'],
  [/\n[a-z]/i, 'a table name', 'a table name is missing; quote a name that is a keyword with backticks: `limit`'],
  [/\n['"]/, 'an alias', QUOTED],
  [/\n['"]/, 'a table name', QUOTED],
  [/\n['"]/, 'a column name', QUOTED],
]

/** Number of characters around the position that the patterns can match. */
const AROUND = 24

/** Returns the error with a hint if the text at its position is SQL syntax, otherwise unchanged. */
export function withSqlHint(error: QuerySyntaxError, text: string): QuerySyntaxError {
  const hint = sqlHintFor(error, text)
  if (hint === null) return error
  const { offset, span, expected, problem } = error
  return new QuerySyntaxError(text, { start: offset, end: span?.end ?? offset, expected, reason: problem, hint })
}

function sqlHintFor({ offset, span, expected }: QuerySyntaxError, text: string): string | null {
  const line = (from: number, to: number): string => text.slice(Math.max(0, from), to).replaceAll('\n', ' ')
  const around = `${line(offset - AROUND, offset).trimEnd()}\n${line(offset, offset + AROUND)}`
  const type = /\b(date|time|timetz|timestamp|timestamptz|interval)\n['"]/i.exec(around)?.[1]?.toLowerCase()
  if (type !== undefined) {
    const value = foundText(text.slice(offset, span?.end ?? offset))
    return `write ${type === 'interval' ? '30d, or ' : ''}${value}::${type}`
  }
  const found = SQL_HINTS.find(([habit, word]) => (word === '' || expected.includes(word)) && habit.test(around))
  return found?.[2] ?? null
}
