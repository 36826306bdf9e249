/** Literals. */

import type { Example } from './example.ts'

export const LITERALS: readonly Example[] = [
  {
    construct: 'literal',
    query: "get users where name = 'O''Brian' or name = \"O'Brian\"",
    formatted: "get users\nwhere name = 'O''Brian' or name = 'O''Brian'",
    sql: "SELECT * FROM users WHERE name = 'O''Brian' OR name = 'O''Brian'",
    note: 'Both quotes make text; a doubled quote is the quote itself.',
  },
  {
    construct: 'literal',
    query: "get users where name = '''raw 'text' with \"quotes\" '''",
    formatted: "get users\nwhere name = 'raw ''text'' with \"quotes\" '",
    sql: "SELECT * FROM users WHERE name = 'raw ''text'' with \"quotes\" '",
    note: 'Three quotes open a raw text.',
  },
  {
    construct: 'literal',
    query: "get users where name = \"'x\" or name = 'C:\\n'",
    formatted: "get users\nwhere name = \"'x\" or name = 'C:\\n'",
    sql: "SELECT * FROM users WHERE name = '''x' OR name = 'C:\\n'",
    note: 'A text that begins with a quote is written with the other one; a back-slash is a back-slash.',
  },
  {
    construct: 'literal',
    query: 'get users where active = TRUE or active = false or role = NULL',
    formatted: 'get users\nwhere active = true or active = false or role = null',
    sql: 'SELECT * FROM users WHERE active = true OR active = false OR role = NULL',
    note: 'Words for values.',
  },
  {
    construct: 'literal',
    query: 'get users where n = 9223372036854775808 or n = -5',
    formatted: 'get users\nwhere n = 9223372036854775808 or n = -5',
    sql: 'SELECT * FROM users WHERE n = 9223372036854775808 OR n = -5',
    note: 'Integers of any size keep their digits.',
  },
  {
    construct: 'literal',
    query: 'get products where price = 0.10 or price = 1e3 or price > .5 or price < 1.5E-3',
    formatted: 'get products\nwhere price = 0.10 or price = 1e3 or price > .5 or price < 1.5E-3',
    sql: 'SELECT * FROM products WHERE price = 0.10 OR price = 1e3 OR price > .5 OR price < 1.5E-3',
    note: 'Decimals, too.',
  },
  {
    construct: 'literal',
    query: 'get users where created_at > now() - 24h',
    formatted: 'get users\nwhere created_at > now() - 24h',
    sql: "SELECT * FROM users WHERE created_at > NOW() - INTERVAL '24 hours'",
    note: 'A duration: a number and a unit.',
  },
  {
    construct: 'literal',
    query: 'get sessions where seen_at < now() - 30s or seen_at < now() - 1m or seen_at < now() - 7d',
    formatted: 'get sessions\nwhere seen_at < now() - 30s or seen_at < now() - 1m or seen_at < now() - 7d',
    sql: "SELECT * FROM sessions WHERE seen_at < NOW() - INTERVAL '30 seconds' OR seen_at < NOW() - INTERVAL '1 minute' OR seen_at < NOW() - INTERVAL '7 days'",
    note: 's, m, h and d are seconds, minutes, hours and days.',
  },
  {
    construct: 'literal',
    query: 'get sessions fields seen_at + 2w, seen_at + 3mo, seen_at + 1y',
    formatted: 'get sessions\nfields seen_at + 2w, seen_at + 3mo, seen_at + 1y',
    sql: "SELECT seen_at + INTERVAL '2 weeks', seen_at + INTERVAL '3 months', seen_at + INTERVAL '1 year' FROM sessions",
    note: 'w, mo and y are weeks, months and years.',
  },
  {
    construct: 'literal',
    query: "get orders where placed_at >= '2025-01-01' and placed_at < '2025-02-01'::date",
    formatted: "get orders\nwhere placed_at >= '2025-01-01' and placed_at < '2025-02-01'::date",
    sql: "SELECT * FROM orders WHERE placed_at >= '2025-01-01' AND placed_at < '2025-02-01'::date",
    note: 'Dates and times are texts, which take their type from what they meet, or a cast.',
  },
  {
    construct: 'literal',
    query: 'get users fields 1 - 1, 1 - -1, 2 * -3',
    formatted: 'get users\nfields 1 - 1, 1 - -1, 2 * -3',
    sql: 'SELECT 1 - 1, 1 - -1, 2 * -3 FROM users',
    note: 'A minus before a number is part of it.',
  },
  {
    construct: 'literal',
    query: 'get users where name = """he said "hi" """ or name = \'\'',
    formatted: "get users\nwhere name = 'he said \"hi\" ' or name = ''",
    sql: "SELECT * FROM users WHERE name = 'he said \"hi\" ' OR name = ''",
    note: 'Raw text may stand between three double quotes; two quotes are the empty text.',
  },
  {
    construct: 'literal',
    query: 'get users /* a comment /* in a comment */ */ where id = 1 -- and one at the end',
    formatted: 'get users\n/* a comment /* in a comment */ */ where id = 1 -- and one at the end',
    sql: 'SELECT * FROM users WHERE id = 1',
    note: 'Block comments may stand in each other.',
  },
]
