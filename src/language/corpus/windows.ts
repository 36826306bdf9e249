/** Windows. */

import type { Example } from './example.ts'

export const WINDOWS: readonly Example[] = [
  {
    construct: 'window',
    query: 'get posts fields title, row_number() over (partition by user_id order by created_at desc) as place',
    formatted:
      'get posts\nfields\n  title,\n  row_number() over (partition by user_id order by created_at desc) as place',
    sql: 'SELECT title, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY created_at DESC) AS place FROM posts',
    note: 'A number per row, counted anew for each user.',
  },
  {
    construct: 'window',
    query:
      'get orders fields id, total, sum(total) over (order by placed_at rows between unbounded preceding and current row) as so_far',
    formatted:
      'get orders\nfields\n  id,\n  total,\n  sum(total) over (\n    order by placed_at\n    rows between unbounded preceding and current row\n  ) as so_far',
    sql: 'SELECT id, total, SUM(total) OVER (ORDER BY placed_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far FROM orders',
    note: 'A running total.',
  },
  {
    construct: 'window',
    query: 'get orders fields id, avg(total) over (order by placed_at rows 6 preceding)',
    formatted: 'get orders\nfields id, avg(total) over (order by placed_at rows 6 preceding)',
    sql: 'SELECT id, AVG(total) OVER (ORDER BY placed_at ROWS 6 PRECEDING) FROM orders',
    note: 'Of this row and the six before it.',
  },
  {
    construct: 'window',
    query:
      'get orders fields id, count(*) over (order by placed_at range between 7d preceding and 7d following) as around',
    formatted:
      'get orders\nfields\n  id,\n  count(*) over (\n    order by placed_at\n    range between 7d preceding and 7d following\n  ) as around',
    sql: "SELECT id, COUNT(*) OVER (ORDER BY placed_at RANGE BETWEEN INTERVAL '7 days' PRECEDING AND INTERVAL '7 days' FOLLOWING) AS around FROM orders",
    note: 'By distance in time.',
  },
  {
    construct: 'window',
    query: 'get orders fields id, max(total) over (order by status groups between 1 preceding and unbounded following)',
    formatted:
      'get orders\nfields\n  id,\n  max(total) over (\n    order by status\n    groups between 1 preceding and unbounded following\n  )',
    sql: 'SELECT id, MAX(total) OVER (ORDER BY status GROUPS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM orders',
    note: 'By groups of equals.',
  },
  {
    construct: 'window',
    query: 'get users fields name, rank() over w, lag(name) over w window w as (partition by role order by age desc)',
    formatted:
      'get users\nfields name, rank() over w, lag(name) over w\nwindow w as (partition by role order by age desc)',
    sql: 'SELECT name, RANK() OVER w, LAG(name) OVER w FROM users WINDOW w AS (PARTITION BY role ORDER BY age DESC)',
    note: 'A window with a name.',
  },
  {
    construct: 'window',
    query: 'get orders fields id, sum(total) over (w rows 1 preceding) window w as (partition by user_id order by id)',
    formatted:
      'get orders\nfields id, sum(total) over (w rows 1 preceding)\nwindow w as (partition by user_id order by id)',
    sql: 'SELECT id, SUM(total) OVER (w ROWS 1 PRECEDING) FROM orders WINDOW w AS (PARTITION BY user_id ORDER BY id)',
    note: 'A window may begin with another.',
  },
  {
    construct: 'window',
    query:
      "get orders fields total / sum(total) over () as share, count(*) filter (where status = 'paid') over (partition by user_id)",
    formatted:
      "get orders\nfields\n  total / sum(total) over () as share,\n  count(*) filter (where status = 'paid') over (partition by user_id)",
    sql: "SELECT total / SUM(total) OVER () AS share, COUNT(*) FILTER (WHERE status = 'paid') OVER (PARTITION BY user_id) FROM orders",
    note: 'Over all rows; and only some of them.',
  },
  {
    construct: 'window',
    query:
      'get users fields first_value(name) over a, last_value(name) over b window a as (order by id), b as (a range between current row and unbounded following)',
    formatted:
      'get users\nfields first_value(name) over a, last_value(name) over b\nwindow a as (order by id)\nwindow b as (a range between current row and unbounded following)',
    sql: 'SELECT FIRST_VALUE(name) OVER a, LAST_VALUE(name) OVER b FROM users WINDOW a AS (ORDER BY id), b AS (a RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)',
    note: 'Several windows.',
  },
  {
    construct: 'window',
    query:
      'get posts fields id, ntile(4) over (partition by user_id, published_at is null order by views desc nulls last, id)',
    formatted:
      'get posts\nfields\n  id,\n  ntile(4) over (\n    partition by user_id, published_at is null\n    order by views desc nulls last, id\n  )',
    sql: 'SELECT id, NTILE(4) OVER (PARTITION BY user_id, published_at IS NULL ORDER BY views DESC NULLS LAST, id) FROM posts',
    note: 'By several expressions.',
  },
]
