/**
 * Habits of SQL: what is written here instead, where one of them stopped being a query. No part of the
 * parser, which browsers load: whoever shows an error asks.
 */

import { foundText } from '../../text/excerpt.ts'
import { QuerySyntaxError } from '../syntax/syntax-error.ts'

const FIELDS = 'the fields come behind the table: get users fields id, name'
const QUOTED = 'both quotes make a text; a name that needs quotes stands in back-ticks: `Order Details`'
const COLUMNS = 'columns stand without parentheses: make notes id:int:pk, text:text'

/**
 * What stands around the place, which is the line break; what must be possible there; what to do. The first
 * that fits is meant.
 */
const HABITS: readonly (readonly [around: RegExp, expected: string, hint: string])[] = [
  [/\binto\n\w/i, '', 'leave out "into"'],
  [/\b(get|count|cnt|del(ete)?)\nfrom\b/i, '', 'leave out "from"'],
  [/\nouter\b/i, 'join', 'leave out "outer"'],
  [/\nfrom\b/i, 'nest', FIELDS],
  [/\bget\n\*/i, '', FIELDS],
  [/\b(fields|count|cnt)\ndistinct\b/i, '', 'write get distinct users fields role, or count(distinct role)'],
  [/\nusing\b/i, 'on', 'write on posts.user_id = users.id; without "on" the foreign key decides'],
  [/\nset\b/i, 'join', 'assignments stand behind "values": set users values name = \'Ann\' where id = 1'],
  [/\nwithin\b/i, '', 'the order stands inside of the parentheses: percentile_cont(0.5 order by total)'],
  [/\nat\s+time\b/i, '', "write timezone('Europe/Berlin', created_at)"],
  [/\nescape\b/i, '', "in patterns \\ takes the next character literally; name ~ '50%' takes all of them so"],
  [/\ncontains\b/i, '', "write name ~ 'text', or tags @> ['a'] of an array"],
  [/\nstarts_with\b/i, '', "write name like 'A%', or starts_with(name, 'A')"],
  [/\d\n(second|minute|hour|day|week|month|year)s?\b/i, '', 'a duration is one word: 30d, 3mo, 1y'],
  [/\n\[/, 'an operator', "an element of an array is to_jsonb(tags) ->> 0; of JSON, meta -> 'list' -> 0"],
  [/\n\[/, 'a parameter', 'a list stands in parentheses: in (1, 2)'],
  [/\bin\n(get|with)\b/i, 'a parameter', 'a query stands in parentheses: in (get …)'],
  [
    /\bin\n[a-z]/i,
    'a parameter',
    "an array column is asked tags @> ['a']; a list of values stands in parentheses: in (1, 2)",
  ],
  [/\n\(/, ':', COLUMNS],
  [/\b(make|create)\s+\S+\n\(/i, '', COLUMNS],
  [/\b(add|insert)\s+\S+\n\(/i, 'fields', 'columns stand behind "fields": add users fields name values \'Ann\''],
  [/\n\(/, 'an alias', 'rows come from tables and from (get …) name; a function is called among the fields'],
  [/\n,/, 'join', 'another table is joined: cross join posts, or join posts on …'],
  [/=\n=/, '', 'equality is one sign: ='],
  [/\n&/, '', 'write "and"'],
  [/\n\|[^|]/, '', 'write "or"'],
  [/\n!/, '', 'write "not"'],
  [/\n[a-z]/i, 'a table name', 'a table is missing; a keyword that is the name of one stands in back-ticks: `limit`'],
  [/\n['"]/, 'an alias', QUOTED],
  [/\n['"]/, 'a table name', QUOTED],
  [/\n['"]/, 'a column name', QUOTED],
]

/** The longest word that is looked for, and room around it. */
const AROUND = 24

/** The error as it is to be shown: where what stands there is a habit, with what is written here. */
export function withHabit(error: QuerySyntaxError, text: string): QuerySyntaxError {
  const hint = habitOf(error, text)
  if (hint === null) return error
  const { offset, span, expected, problem } = error
  return new QuerySyntaxError(text, { start: offset, end: span?.end ?? offset, expected, reason: problem, hint })
}

function habitOf({ offset, span, expected }: QuerySyntaxError, text: string): string | null {
  const line = (from: number, to: number): string => text.slice(Math.max(0, from), to).replaceAll('\n', ' ')
  const around = `${line(offset - AROUND, offset).trimEnd()}\n${line(offset, offset + AROUND)}`
  const type = /\b(date|time|timetz|timestamp|timestamptz|interval)\n['"]/i.exec(around)?.[1]?.toLowerCase()
  if (type !== undefined) {
    const value = foundText(text.slice(offset, span?.end ?? offset))
    return `write ${type === 'interval' ? '30d, or ' : ''}${value}::${type}`
  }
  const found = HABITS.find(([habit, word]) => (word === '' || expected.includes(word)) && habit.test(around))
  return found?.[2] ?? null
}
