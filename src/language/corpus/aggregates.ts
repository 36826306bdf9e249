/** Aggregates and their groups. */

import type { Example } from './example.ts'

export const AGGREGATES: readonly Example[] = [
  {
    construct: 'aggregate',
    query: 'get orders fields count(*), sum(total), avg(total), min(placed_at), max(placed_at)',
    formatted: 'get orders\nfields count(*), sum(total), avg(total), min(placed_at), max(placed_at)',
    sql: 'SELECT COUNT(*), SUM(total), AVG(total), MIN(placed_at), MAX(placed_at) FROM orders',
    note: 'One row over all rows.',
  },
  {
    construct: 'aggregate',
    query: 'get orders fields status, count(*) as n',
    formatted: 'get orders\nfields status, count(*) as n',
    sql: 'SELECT status, COUNT(*) AS n FROM orders GROUP BY status',
    note: 'Beside an aggregate the other fields are what is grouped by.',
  },
  {
    construct: 'aggregate',
    query: 'get orders fields lower(status) as status, sum(total) + 1 as total',
    formatted: 'get orders\nfields lower(status) as status, sum(total) + 1 as total',
    sql: 'SELECT LOWER(status) AS status, SUM(total) + 1 AS total FROM orders GROUP BY LOWER(status)',
    note: 'Expressions, too.',
  },
  {
    construct: 'aggregate',
    query: 'get orders fields user_id, sum(total) group by user_id, status',
    formatted: 'get orders\nfields user_id, sum(total)\ngroup by user_id, status',
    sql: 'SELECT user_id, SUM(total) FROM orders GROUP BY user_id, status',
    note: '"group by" says it otherwise.',
  },
  {
    construct: 'aggregate',
    query: 'get orders fields user_id group by user_id',
    formatted: 'get orders\nfields user_id\ngroup by user_id',
    sql: 'SELECT user_id FROM orders GROUP BY user_id',
    note: 'Groups without an aggregate.',
  },
  {
    construct: 'aggregate',
    query: 'get users fields count(distinct role) as roles',
    formatted: 'get users\nfields count(distinct role) as roles',
    sql: 'SELECT COUNT(DISTINCT role) AS roles FROM users',
    note: 'Of equal values one counts.',
  },
  {
    construct: 'aggregate',
    query:
      'get orders fields status, percentile_cont(0.5 order by total) as median, mode(order by customer_id desc) as best',
    formatted:
      'get orders\nfields\n  status,\n  percentile_cont(0.5 order by total) as median,\n  mode(order by customer_id desc) as best',
    sql: 'SELECT status, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY total) AS median, mode() WITHIN GROUP (ORDER BY customer_id DESC) AS best FROM orders GROUP BY status',
    note: 'What SQL orders behind the parentheses, WITHIN GROUP, is ordered inside of them as in every aggregate.',
  },
  {
    construct: 'aggregate',
    query: "get users fields role, string_agg(name, ', ' order by name) as names",
    formatted: "get users\nfields role, string_agg(name, ', ' order by name) as names",
    sql: "SELECT role, string_agg(name, ', ' ORDER BY name) AS names FROM users GROUP BY role",
    note: 'In this order.',
  },
  {
    construct: 'aggregate',
    query: "get orders fields count(*) as all_orders, count(*) filter (where status = 'paid') as paid",
    formatted: "get orders\nfields count(*) as all_orders, count(*) filter (where status = 'paid') as paid",
    sql: "SELECT COUNT(*) AS all_orders, COUNT(*) FILTER (WHERE status = 'paid') AS paid FROM orders",
    note: 'Only rows that meet the condition.',
  },
  {
    construct: 'aggregate',
    query: 'get posts fields user_id, array_agg(distinct title order by title desc) filter (where views > 0) as titles',
    formatted:
      'get posts\nfields\n  user_id,\n  array_agg(distinct title order by title desc) filter (\n    where views > 0\n  ) as titles',
    sql: 'SELECT user_id, ARRAY_AGG(DISTINCT title ORDER BY title DESC) FILTER (WHERE views > 0) AS titles FROM posts GROUP BY user_id',
    note: 'All of it together.',
  },
  {
    construct: 'aggregate',
    query:
      'get order_items i inner join products p on p.id = i.product_id fields p.name, sum(i.quantity * i.unit_price) as revenue order by revenue desc limit 10',
    formatted:
      'get order_items as i\n  inner join products as p on p.id = i.product_id\nfields p.name, sum(i.quantity * i.unit_price) as revenue\norder by revenue desc\nlimit 10',
    sql: 'SELECT p.name, SUM(i.quantity * i.unit_price) AS revenue FROM order_items AS i INNER JOIN products AS p ON p.id = i.product_id GROUP BY p.name ORDER BY revenue DESC LIMIT 10',
    note: 'Over a join; "order by" may name a field by its alias.',
  },
  {
    construct: 'aggregate',
    query:
      "get orders fields date_trunc('month', placed_at) as month, sum(total) as total where status <> 'cancelled' group by 1 order by 1 desc limit 12",
    formatted:
      "get orders\nfields date_trunc('month', placed_at) as month, sum(total) as total\nwhere status <> 'cancelled'\ngroup by 1\norder by 1 desc\nlimit 12",
    sql: "SELECT date_trunc('month', placed_at) AS month, SUM(total) AS total FROM orders WHERE status <> 'cancelled' GROUP BY 1 ORDER BY 1 DESC LIMIT 12",
    note: 'A number is the position of a field: the last twelve months.',
  },
  {
    construct: 'having',
    query: 'get users fields role, count(*) as n having count(*) > 5',
    formatted: 'get users\nfields role, count(*) as n\nhaving count(*) > 5',
    sql: 'SELECT role, COUNT(*) AS n FROM users GROUP BY role HAVING COUNT(*) > 5',
    note: 'A condition on groups.',
  },
  {
    construct: 'having',
    query: 'get users fields role, count(*) as n having n > 5',
    formatted: 'get users\nfields role, count(*) as n\nhaving n > 5',
    sql: 'SELECT role, COUNT(*) AS n FROM users GROUP BY role HAVING COUNT(*) > 5',
    note: 'An alias stands for its expression; SQL has no such rule, so it is repeated there.',
  },
  {
    construct: 'having',
    query: 'get orders fields user_id, sum(total) as total having sum(total) > 100 and total < 1000',
    formatted: 'get orders\nfields user_id, sum(total) as total\nhaving sum(total) > 100 and total < 1000',
    sql: 'SELECT user_id, SUM(total) AS total FROM orders GROUP BY user_id HAVING SUM(total) > 100 AND SUM(total) < 1000',
    note: 'Inside an aggregate a name is a column, outside it is the alias.',
  },
]
