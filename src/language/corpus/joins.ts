/** Joins. */

import type { Example } from './example.ts'

export const JOINS: readonly Example[] = [
  {
    construct: 'join',
    query: 'get users join posts on users.id = posts.user_id',
    formatted: 'get users\n  left join posts on users.id = posts.user_id',
    sql: 'SELECT * FROM users LEFT JOIN posts ON users.id = posts.user_id',
    note: 'A bare join keeps the rows of the left side that match nothing: it is a left join.',
  },
  {
    construct: 'join',
    query:
      "get users\n  left join posts on users.id = posts.user_id\nfields users.id, posts.title\nwhere active = true and (role = 'admin' or role = 'owner')\norder by posts.created_at desc\nlimit 10",
    sql: "SELECT users.id, posts.title FROM users LEFT JOIN posts ON users.id = posts.user_id WHERE active = true AND (role = 'admin' OR role = 'owner') ORDER BY posts.created_at DESC LIMIT 10",
    note: 'The canonical form: a clause per line, joins indented under the source.',
  },
  {
    construct: 'join',
    query: 'get orders inner join users on orders.user_id = users.id fields orders.id, users.name',
    formatted: 'get orders\n  inner join users on orders.user_id = users.id\nfields orders.id, users.name',
    sql: 'SELECT orders.id, users.name FROM orders INNER JOIN users ON orders.user_id = users.id',
    note: 'Only rows that have both.',
  },
  {
    construct: 'join',
    query: 'get orders right join customers on orders.customer_id = customers.id where orders.id is null',
    formatted: 'get orders\n  right join customers on orders.customer_id = customers.id\nwhere orders.id is null',
    sql: 'SELECT * FROM orders RIGHT JOIN customers ON orders.customer_id = customers.id WHERE orders.id IS NULL',
    note: 'All customers; here those without orders.',
  },
  {
    construct: 'join',
    query: 'get users full join customers on users.email = customers.email',
    formatted: 'get users\n  full join customers on users.email = customers.email',
    sql: 'SELECT * FROM users FULL JOIN customers ON users.email = customers.email',
    note: 'All rows of both sides.',
  },
  {
    construct: 'join',
    query: 'get users cross join products fields users.id, products.id as product_id',
    formatted: 'get users\n  cross join products\nfields users.id, products.id as product_id',
    sql: 'SELECT users.id, products.id AS product_id FROM users CROSS JOIN products',
    note: 'Every pair; takes no "on".',
  },
  {
    construct: 'join',
    query: 'get users join posts',
    formatted: 'get users\n  left join posts',
    sql: 'SELECT * FROM users LEFT JOIN posts ON posts.user_id = users.id',
    note: 'Without "on" the foreign key decides; where no catalogue is at hand, the names do.',
  },
  {
    construct: 'join',
    query: 'get categories c join products p fields c.name, p.name as product',
    formatted: 'get categories as c\n  left join products as p\nfields c.name, p.name as product',
    sql: 'SELECT c.name, p.name AS product FROM categories AS c LEFT JOIN products AS p ON p.category_id = c.id',
    note: 'The singular of the source names the key: categories, category_id.',
  },
  {
    construct: 'join',
    query:
      'get users u join orders o on o.user_id = u.id join customers c on c.id = o.customer_id fields u.name, c.name as customer',
    formatted:
      'get users as u\n  left join orders as o on o.user_id = u.id\n  left join customers as c on c.id = o.customer_id\nfields u.name, c.name as customer',
    sql: 'SELECT u.name, c.name AS customer FROM users AS u LEFT JOIN orders AS o ON o.user_id = u.id LEFT JOIN customers AS c ON c.id = o.customer_id',
    note: 'One after the other.',
  },
  {
    construct: 'join',
    query: 'get users e inner join users m on e.manager_id = m.id fields e.name, m.name as manager',
    formatted: 'get users as e\n  inner join users as m on e.manager_id = m.id\nfields e.name, m.name as manager',
    sql: 'SELECT e.name, m.name AS manager FROM users AS e INNER JOIN users AS m ON e.manager_id = m.id',
    note: 'A table with itself needs aliases.',
  },
  {
    construct: 'join',
    query: "get users inner join orders[status = 'paid'] on orders.user_id = users.id",
    formatted: "get users\n  inner join orders[status = 'paid'] on orders.user_id = users.id",
    sql: "SELECT * FROM users INNER JOIN orders ON orders.user_id = users.id WHERE status = 'paid'",
    note: 'A condition of a joined source.',
  },
  {
    construct: 'join',
    query: 'get users inner join (get orders fields user_id, count(*) as n) as o on o.user_id = users.id where o.n > 3',
    formatted:
      'get users\n  inner join (\n    get orders\n    fields user_id, count(*) as n\n  ) as o on o.user_id = users.id\nwhere o.n > 3',
    sql: 'SELECT * FROM users INNER JOIN (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS o ON o.user_id = users.id WHERE o.n > 3',
    note: 'With a query.',
  },
  {
    construct: 'join',
    query:
      'get users u join lateral (get posts where posts.user_id = u.id order by posts.id desc limit 3) as latest on true fields u.name, latest.title',
    formatted:
      'get users as u\n  left join lateral (\n    get posts\n    where posts.user_id = u.id\n    order by posts.id desc\n    limit 3\n  ) as latest on true\nfields u.name, latest.title',
    sql: 'SELECT u.name, latest.title FROM users AS u LEFT JOIN LATERAL (SELECT * FROM posts WHERE posts.user_id = u.id ORDER BY posts.id DESC LIMIT 3) AS latest ON true',
    note: '"lateral" lets the query see what stands before it: the latest three posts of each user.',
  },
  {
    construct: 'join',
    query:
      'get users u cross join lateral (get posts fields max(views) as best where posts.user_id = u.id) as top fields u.id, top.best',
    formatted:
      'get users as u\n  cross join lateral (\n    get posts\n    fields max(views) as best\n    where posts.user_id = u.id\n  ) as top\nfields u.id, top.best',
    sql: 'SELECT u.id, top.best FROM users AS u CROSS JOIN LATERAL (SELECT MAX(views) AS best FROM posts WHERE posts.user_id = u.id) AS top',
    note: 'The same as a cross join.',
  },
  {
    construct: 'join',
    query: 'get users u join sales.targets t on t.id = u.id join posts p on true fields u.id, t.amount, p.title',
    formatted:
      'get users as u\n  left join sales.targets as t on t.id = u.id\n  left join posts as p on true\nfields u.id, t.amount, p.title',
    sql: 'SELECT u.id, t.amount, p.title FROM users AS u LEFT JOIN sales.targets AS t ON t.id = u.id LEFT JOIN posts AS p ON true',
    note: 'A table of another schema; and every pair, with "on true".',
  },
]
