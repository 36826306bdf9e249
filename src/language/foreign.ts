/** Habits of SQL: what is written here instead, where one of them stops being a query. */

import type { Token } from './lexer.ts'
import { shortened } from './showing.ts'

/** Where the parser stands. */
interface Place {
  readonly text: string
  readonly token: Token
  readonly isWord: boolean
  readonly start: number
  readonly end: number
  /** Where the token before this one ended. */
  readonly before: number
  readonly expected: readonly string[]
}

const FIELDS = 'the fields come behind the table: get users fields id, name'
const DURATION = 'a duration is one word: 30d, 3mo, 1y'
const QUOTES = 'both quotes make a text; a name that needs quotes stands in back-ticks: `Order Details`'
const ELEMENT = "an element of an array is to_jsonb(tags) ->> 0; of JSON, meta -> 'list' -> 0"
const SOURCE = 'rows come from tables and from (get …) name; a function is called among the fields'

/** By the word that stands there. */
const WORDS: Readonly<Record<string, (place: Place) => string | null>> = {
  within: () => 'the order stands inside of the parentheses: percentile_cont(0.5 order by total)',
  at: ({ text, end }) =>
    /^\s+time\s+zone\b/i.test(text.slice(end, end + 32)) ? "write timezone('Europe/Berlin', created_at)" : null,
  escape: () => "in patterns \\ takes the next character literally; name ~ '50%' takes all of them so",
  outer: () => 'leave out "outer"',
  using: place =>
    expects(place, 'on') ? 'write on posts.user_id = users.id; without "on" the foreign key decides' : null,
  from: place => (/^del(ete)?$/.test(wordBefore(place)) ? 'leave out "from"' : isRead(place) ? FIELDS : null),
  set: place =>
    expects(place, 'values') && expects(place, 'join')
      ? 'assignments stand behind "values": set users values name = \'Ann\' where id = 1'
      : null,
  distinct: place =>
    /^(fields|count|cnt)$/.test(wordBefore(place))
      ? 'write get distinct users fields role, or count(distinct role)'
      : null,
  contains: () => "write name ~ 'text', or tags @> ['a'] of an array",
  starts_with: () => "write name like 'A%', or starts_with(name, 'A')",
}

/** By the sign. */
const SIGNS: Readonly<Partial<Record<Token | string, (place: Place) => string | null>>> = {
  '[': place =>
    expects(place, 'an operator')
      ? ELEMENT
      : expects(place, 'a parameter')
        ? 'a list stands in parentheses: in (1, 2)'
        : null,
  '(': place => {
    if (expects(place, ':') || expects(place, 'a column name'))
      return 'columns stand without parentheses: make notes id:int:pk, text:text'
    if (expects(place, 'fields') && expects(place, 'defaults'))
      return 'columns stand behind "fields": add users fields name values \'Ann\''
    return expects(place, 'an alias') ? SOURCE : null
  },
  '*': place => (wordBefore(place) === 'get' ? FIELDS : null),
  ',': place => (expects(place, 'join') ? 'another table is joined: cross join posts, or join posts on …' : null),
  '=': ({ text, start }) => (text.charAt(start - 1) === '=' ? 'equality is one sign: =' : null),
  '&': () => 'write "and"',
  '|': () => 'write "or"',
  '!': () => 'write "not"',
}

/** What is written instead; null where no habit is known. */
export function foreignHint(place: Place): string | null {
  const word = place.text.slice(place.start, place.end)
  if (place.isWord) {
    if (wordBefore(place) === 'into') return 'leave out "into"'
    if (UNIT.test(word) && /[0-9]/.test(place.text.charAt(place.before - 1))) return DURATION
    return Object.hasOwn(WORDS, word.toLowerCase()) ? (WORDS[word.toLowerCase()]?.(place) ?? null) : null
  }
  if (place.token === '#text') return textHint(place, shortened(word))
  return Object.hasOwn(SIGNS, word) ? (SIGNS[word]?.(place) ?? null) : null
}

const UNIT = /^(second|minute|hour|day|week|month|year)s?$/i
const TYPE_OF_TIME = /^(date|time|timetz|timestamp|timestamptz|interval)$/

/** `date '2026-01-01'`, and names in double quotes. */
function textHint(place: Place, text: string): string | null {
  const type = wordBefore(place)
  if (type === 'interval') return `write 30d, or ${text}::interval`
  if (TYPE_OF_TIME.test(type)) return `write ${text}::${type}`
  return ['an alias', 'a table name', 'a column name'].some(kind => expects(place, kind)) ? QUOTES : null
}

function expects({ expected }: Place, word: string): boolean {
  return expected.includes(word)
}

function isRead(place: Place): boolean {
  return expects(place, 'fields') && !expects(place, 'defaults')
}

/** In lower case; empty where no word stands before. Words of other letters are none of SQL. */
function wordBefore({ text, before }: Place): string {
  return /[a-z_]+$/i.exec(text.slice(Math.max(0, before - 32), before))?.[0].toLowerCase() ?? ''
}
