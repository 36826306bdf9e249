/** Writes: `add`, `set`, `del`. */

import type { Example } from './example.ts'

export const WRITES: readonly Example[] = [
  {
    construct: 'add',
    query: "add users fields name, email values 'A', 'a@x.io'",
    formatted: "add users\nfields name, email\nvalues 'A', 'a@x.io'",
    sql: "INSERT INTO users (name, email) VALUES ('A', 'a@x.io') RETURNING *",
    note: 'A row; without "returning" all of it is answered.',
  },
  {
    construct: 'add',
    query: "insert users fields name, email values ('A', 'a@x.io'), ('B', 'b@x.io')",
    formatted: "add users\nfields name, email\nvalues ('A', 'a@x.io'), ('B', 'b@x.io')",
    sql: "INSERT INTO users (name, email) VALUES ('A', 'a@x.io'), ('B', 'b@x.io') RETURNING *",
    note: 'Several rows stand in parentheses; "insert" is another word for "add".',
  },
  {
    construct: 'add',
    query: "add arrivals values 'ABC-1', 5, now()",
    formatted: "add arrivals\nvalues 'ABC-1', 5, now()",
    sql: "INSERT INTO arrivals VALUES ('ABC-1', 5, NOW()) RETURNING *",
    note: 'Without "fields" the values are those of all columns in their order.',
  },
  {
    construct: 'add',
    query: 'add arrivals fields sku, quantity from (get products fields sku, stock where stock < 10)',
    formatted: 'add arrivals\nfields sku, quantity\nfrom (get products fields sku, stock where stock < 10)',
    sql: 'INSERT INTO arrivals (sku, quantity) SELECT sku, stock FROM products WHERE stock < 10 RETURNING *',
    note: 'The rows of a query.',
  },
  {
    construct: 'add',
    query: 'add sessions defaults',
    formatted: 'add sessions\ndefaults',
    sql: 'INSERT INTO sessions DEFAULT VALUES RETURNING *',
    note: 'A row of nothing but defaults.',
  },
  {
    construct: 'add',
    query:
      "with source as (get customers where country = 'NO') add users fields name, email from (get source fields name, email) conflict (email) nothing",
    formatted:
      "with source as (get customers where country = 'NO')\nadd users\nfields name, email\nfrom (get source fields name, email)\nconflict (email) nothing",
    sql: "WITH source AS (SELECT * FROM customers WHERE country = 'NO') INSERT INTO users (name, email) SELECT name, email FROM source ON CONFLICT (email) DO NOTHING RETURNING *",
    note: 'From a common table.',
  },
  {
    construct: 'conflict',
    query: "add users fields name, email values 'A', 'a@x.io' conflict (email) update name = excluded.name",
    formatted: "add users\nfields name, email\nvalues 'A', 'a@x.io'\nconflict (email) update name = excluded.name",
    sql: "INSERT INTO users (name, email) VALUES ('A', 'a@x.io') ON CONFLICT (email) DO UPDATE SET name = excluded.name RETURNING *",
    note: 'Insert or update; "excluded" is the row that could not be added.',
  },
  {
    construct: 'conflict',
    query: "add users fields name, email values 'A', 'a@x.io' conflict nothing",
    formatted: "add users\nfields name, email\nvalues 'A', 'a@x.io'\nconflict nothing",
    sql: "INSERT INTO users (name, email) VALUES ('A', 'a@x.io') ON CONFLICT DO NOTHING RETURNING *",
    note: 'Leaves the row that is there; nothing is returned then.',
  },
  {
    construct: 'conflict',
    query: "add users fields email values 'a@x.io' conflict (email) nothing returning id",
    formatted: "add users\nfields email\nvalues 'a@x.io'\nconflict (email) nothing\nreturning id",
    sql: "INSERT INTO users (email) VALUES ('a@x.io') ON CONFLICT (email) DO NOTHING RETURNING id",
    note: 'Only where this key is the reason.',
  },
  {
    construct: 'conflict',
    query:
      "add products fields sku, name, stock values 'ABC-1', 'Lamp', 5 conflict (sku) update stock = products.stock + excluded.stock, name = excluded.name where products.active = true",
    formatted:
      "add products\nfields sku, name, stock\nvalues 'ABC-1', 'Lamp', 5\nconflict (sku) update\n  stock = products.stock + excluded.stock,\n  name = excluded.name\n  where products.active = true",
    sql: "INSERT INTO products (sku, name, stock) VALUES ('ABC-1', 'Lamp', 5) ON CONFLICT (sku) DO UPDATE SET stock = products.stock + excluded.stock, name = excluded.name WHERE products.active = true RETURNING *",
    note: "The old row has the table's name; with a condition, other rows stay as they are.",
  },
  {
    construct: 'returning',
    query: "add posts fields user_id, title values 1, 'Hello' returning id, created_at as at",
    formatted: "add posts\nfields user_id, title\nvalues 1, 'Hello'\nreturning id, created_at as at",
    sql: "INSERT INTO posts (user_id, title) VALUES (1, 'Hello') RETURNING id, created_at AS at",
    note: 'Fields as in "get".',
  },
  {
    construct: 'returning',
    query: 'set products values stock = stock - 1 where id = 5 returning *',
    formatted: 'set products\nvalues stock = stock - 1\nwhere id = 5\nreturning *',
    sql: 'UPDATE products SET stock = stock - 1 WHERE id = 5 RETURNING *',
    note: '"set" and "del" return rows only where it is said.',
  },
  {
    construct: 'returning',
    query:
      "set orders o inner join customers c on c.id = o.customer_id values status = 'held' where c.country = 'XX' returning o.id, c.name as customer",
    formatted:
      "set orders as o\n  inner join customers as c on c.id = o.customer_id\nvalues status = 'held'\nwhere c.country = 'XX'\nreturning o.id, c.name as customer",
    sql: "UPDATE orders AS o SET status = 'held' FROM customers AS c WHERE c.id = o.customer_id AND c.country = 'XX' RETURNING o.id, c.name AS customer",
    note: 'Columns of what is joined, too.',
  },
  {
    construct: 'set',
    query: 'set users values n = n + 1 where id = $1',
    formatted: 'set users\nvalues n = n + 1\nwhere id = $1',
    sql: 'UPDATE users SET n = n + 1 WHERE id = $1',
    note: 'Changes the rows that meet the condition.',
  },
  {
    construct: 'set',
    query: "update users u values name = 'X', role = null where u.id = 1",
    formatted: "set users as u\nvalues name = 'X', role = null\nwhere u.id = 1",
    sql: "UPDATE users AS u SET name = 'X', role = NULL WHERE u.id = 1",
    note: 'Several columns; "update" is another word for "set".',
  },
  {
    construct: 'set',
    query: 'set sessions values expired = true where all',
    formatted: 'set sessions\nvalues expired = true\nwhere all',
    sql: 'UPDATE sessions SET expired = true',
    note: 'All rows must be said.',
  },
  {
    construct: 'set',
    query:
      "set orders inner join customers on customers.id = orders.customer_id values status = 'hold' where customers.country = 'XX'",
    formatted:
      "set orders\n  inner join customers on customers.id = orders.customer_id\nvalues status = 'hold'\nwhere customers.country = 'XX'",
    sql: "UPDATE orders SET status = 'hold' FROM customers WHERE customers.id = orders.customer_id AND customers.country = 'XX'",
    note: 'With the columns of another table; joins of a write are inner joins.',
  },
  {
    construct: 'set',
    query:
      'set products values price = (get order_items fields max(unit_price) where order_items.product_id = products.id) where price is null',
    formatted:
      'set products\nvalues\n  price = (\n    get order_items\n    fields max(unit_price)\n    where order_items.product_id = products.id\n  )\nwhere price is null',
    sql: 'UPDATE products SET price = (SELECT MAX(unit_price) FROM order_items WHERE order_items.product_id = products.id) WHERE price IS NULL',
    note: 'A value from a query.',
  },
  {
    construct: 'del',
    query: 'del sessions where user_id = $1 or expired = true',
    formatted: 'del sessions\nwhere user_id = $1 or expired = true',
    sql: 'DELETE FROM sessions WHERE user_id = $1 OR expired = true',
    note: 'Deletes the rows that meet the condition.',
  },
  {
    construct: 'del',
    query: 'delete sessions where all returning id',
    formatted: 'del sessions\nwhere all\nreturning id',
    sql: 'DELETE FROM sessions RETURNING id',
    note: 'All rows must be said; "delete" is another word for "del".',
  },
  {
    construct: 'del',
    query: 'del sessions s inner join users u on u.id = s.user_id where u.active = false returning s.id',
    formatted: 'del sessions as s\n  inner join users as u on u.id = s.user_id\nwhere u.active = false\nreturning s.id',
    sql: 'DELETE FROM sessions AS s USING users AS u WHERE u.id = s.user_id AND u.active = false RETURNING s.id',
    note: 'With the columns of another table.',
  },
]
