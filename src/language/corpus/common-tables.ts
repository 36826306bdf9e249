/** Common tables: `with`. */

import type { Example } from './example.ts'

export const COMMON_TABLES: readonly Example[] = [
  {
    construct: 'with',
    query: 'with active as (get users where active = true) get active order by id',
    formatted: 'with active as (get users where active = true)\nget active\norder by id',
    sql: 'WITH active AS (SELECT * FROM users WHERE active = true) SELECT * FROM active ORDER BY id',
    note: 'A query with a name, to be used as a table.',
  },
  {
    construct: 'with',
    query:
      'with big as (get orders where total > 100), buyers as (get users where id in (get big fields user_id)) get buyers',
    formatted:
      'with\n  big as (get orders where total > 100),\n  buyers as (get users where id in (get big fields user_id))\nget buyers',
    sql: 'WITH big AS (SELECT * FROM orders WHERE total > 100), buyers AS (SELECT * FROM users WHERE id IN (SELECT user_id FROM big)) SELECT * FROM buyers',
    note: 'Several; each sees those before it.',
  },
  {
    construct: 'with',
    query: 'with s (who, spent) as (get orders fields user_id, sum(total)) get s where spent > 100',
    formatted: 'with s (who, spent) as (get orders fields user_id, sum(total))\nget s\nwhere spent > 100',
    sql: 'WITH s (who, spent) AS (SELECT user_id, SUM(total) FROM orders GROUP BY user_id) SELECT * FROM s WHERE spent > 100',
    note: 'Names for its columns.',
  },
  {
    construct: 'with',
    query:
      'with recursive chain as (get users fields id, manager_id where id = 7 union all get users u inner join chain c on c.manager_id = u.id fields u.id, u.manager_id) get chain',
    formatted:
      'with recursive chain as (\n  get users\n  fields id, manager_id\n  where id = 7\n  union all\n  get users as u\n    inner join chain as c on c.manager_id = u.id\n  fields u.id, u.manager_id\n)\nget chain',
    sql: 'WITH RECURSIVE chain AS (SELECT id, manager_id FROM users WHERE id = 7 UNION ALL SELECT u.id, u.manager_id FROM users AS u INNER JOIN chain AS c ON c.manager_id = u.id) SELECT * FROM chain',
    note: 'A query that goes on from its own rows: everybody above user 7.',
  },
  {
    construct: 'with',
    query: 'with x as (del sessions where id = 1 returning *) get x',
    formatted: 'with x as (del sessions where id = 1 returning *)\nget x',
    sql: 'WITH x AS (DELETE FROM sessions WHERE id = 1 RETURNING *) SELECT * FROM x',
    note: 'A write as a table: what it returns.',
  },
  {
    construct: 'with',
    query:
      "with old as (get orders where placed_at < '2020-01-01') del order_items where order_id in (get old fields id)",
    formatted:
      "with old as (get orders where placed_at < '2020-01-01')\ndel order_items\nwhere order_id in (get old fields id)",
    sql: "WITH old AS (SELECT * FROM orders WHERE placed_at < '2020-01-01') DELETE FROM order_items WHERE order_id IN (SELECT id FROM old)",
    note: 'Before a write.',
  },
  {
    construct: 'with',
    query: "with moved as (set orders values status = 'archived' where status = 'done' returning id) count moved",
    formatted:
      "with moved as (\n  set orders\n  values status = 'archived'\n  where status = 'done'\n  returning id\n)\ncount moved",
    sql: "WITH moved AS (UPDATE orders SET status = 'archived' WHERE status = 'done' RETURNING id) SELECT COUNT(*) FROM moved",
    note: 'How many rows were changed.',
  },
  {
    construct: 'with',
    query: "with fresh as (add customers fields name, email values 'A', 'a@x.io') get fresh fields id",
    formatted: "with fresh as (add customers fields name, email values 'A', 'a@x.io')\nget fresh\nfields id",
    sql: "WITH fresh AS (INSERT INTO customers (name, email) VALUES ('A', 'a@x.io') RETURNING *) SELECT id FROM fresh",
    note: 'The key of a new row.',
  },
]
