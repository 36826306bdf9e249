/** Nests: related rows in the row they belong to. */

import type { Example } from './example.ts'

export const NESTS: readonly Example[] = [
  {
    construct: 'nest',
    query: 'get orders nest customers as customer on customer.id = orders.customer_id fields orders.id, orders.total',
    formatted:
      'get orders\n  nest customers as customer on customer.id = orders.customer_id\nfields orders.id, orders.total',
    sql: 'SELECT orders.id, orders.total, (SELECT row_to_json(n.*) FROM (SELECT * FROM customers AS customer WHERE customer.id = orders.customer_id) AS n) AS customer FROM orders',
    note: 'The related row as an object, in a column with the name of the alias.',
  },
  {
    construct: 'nest',
    query: 'get orders nest customers as customer',
    formatted: 'get orders\n  nest customers as customer',
    sql: 'SELECT *, (SELECT row_to_json(n.*) FROM (SELECT * FROM customers AS customer WHERE orders.customer_id = customer.id) AS n) AS customer FROM orders',
    note: 'Without "on" the foreign key decides; where no catalogue is at hand, the names do.',
  },
  {
    construct: 'nest',
    query: 'get users nest many posts',
    formatted: 'get users\n  nest many posts',
    sql: "SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT * FROM posts WHERE posts.user_id = users.id) AS n) AS posts FROM users",
    note: 'Related rows as an array, empty where there are none.',
  },
  {
    construct: 'nest',
    query: 'get users nest many posts { fields id, title where published_at is not null order by id desc limit 3 }',
    formatted:
      'get users\n  nest many posts {\n    fields id, title\n    where published_at is not null\n    order by id desc\n    limit 3\n  }',
    sql: "SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT id, title FROM posts WHERE posts.user_id = users.id AND published_at IS NOT NULL ORDER BY id DESC LIMIT 3) AS n) AS posts FROM users",
    note: 'Fields, condition, order and limit of the nested rows: here the latest three posts of each user.',
  },
  {
    construct: 'nest',
    query:
      'get users nest many orders as purchases on purchases.user_id = users.id { nest many order_items as items on items.order_id = purchases.id { fields line, quantity } } fields users.name',
    formatted:
      'get users\n  nest many orders as purchases on purchases.user_id = users.id {\n    nest many order_items as items on items.order_id = purchases.id {\n      fields line, quantity\n    }\n  }\nfields users.name',
    sql: "SELECT users.name, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT line, quantity FROM order_items AS items WHERE items.order_id = purchases.id) AS n) AS items FROM orders AS purchases WHERE purchases.user_id = users.id) AS n) AS purchases FROM users",
    note: 'Nests in nests.',
  },
  {
    construct: 'nest',
    query:
      'get users nest posts as latest on latest.user_id = users.id { order by latest.created_at desc } fields users.id',
    formatted:
      'get users\n  nest posts as latest on latest.user_id = users.id {\n    order by latest.created_at desc\n  }\nfields users.id',
    sql: 'SELECT users.id, (SELECT row_to_json(n.*) FROM (SELECT * FROM posts AS latest WHERE latest.user_id = users.id ORDER BY latest.created_at DESC LIMIT 1) AS n) AS latest FROM users',
    note: 'One of several rows: with an order it is the first.',
  },
  {
    construct: 'nest',
    query: 'get users nest many posts { order by id limit 5 offset 5 }',
    formatted: 'get users\n  nest many posts { order by id limit 5 offset 5 }',
    sql: "SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT * FROM posts WHERE posts.user_id = users.id ORDER BY id LIMIT 5 OFFSET 5) AS n) AS posts FROM users",
    note: 'A page of the nested rows.',
  },
  {
    construct: 'nest',
    query:
      'get orders nest customers as customer { fields name, country } nest many order_items as items { fields line, quantity }',
    formatted:
      'get orders\n  nest customers as customer { fields name, country }\n  nest many order_items as items { fields line, quantity }',
    sql: "SELECT *, (SELECT row_to_json(n.*) FROM (SELECT name, country FROM customers AS customer WHERE orders.customer_id = customer.id) AS n) AS customer, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT line, quantity FROM order_items AS items WHERE items.order_id = orders.id) AS n) AS items FROM orders",
    note: 'Several nests, one after the other.',
  },
  {
    construct: 'nest',
    query: 'get users nest many sales.targets as goals on goals.id = users.id { where amount > 10 }',
    formatted: 'get users\n  nest many sales.targets as goals on goals.id = users.id { where amount > 10 }',
    sql: "SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT * FROM sales.targets AS goals WHERE goals.id = users.id AND amount > 10) AS n) AS goals FROM users",
    note: 'Of another schema.',
  },
]
