/** Compounds: `union`, `intersect`, `except`. */

import type { Example } from './example.ts'

export const COMPOUNDS: readonly Example[] = [
  {
    construct: 'compound',
    query: 'get users fields email union get customers fields email',
    formatted: 'get users\nfields email\nunion\nget customers\nfields email',
    sql: 'SELECT email FROM users UNION SELECT email FROM customers',
    note: 'The rows of both, each once.',
  },
  {
    construct: 'compound',
    query: 'get users fields email union all get customers fields email order by email limit 10',
    formatted: 'get users\nfields email\nunion all\nget customers\nfields email\norder by email\nlimit 10',
    sql: 'SELECT email FROM users UNION ALL SELECT email FROM customers ORDER BY email LIMIT 10',
    note: 'With "all" equal rows stay; order and limit belong to the whole.',
  },
  {
    construct: 'compound',
    query: 'get users fields email intersect get customers fields email',
    formatted: 'get users\nfields email\nintersect\nget customers\nfields email',
    sql: 'SELECT email FROM users INTERSECT SELECT email FROM customers',
    note: 'Rows that both have.',
  },
  {
    construct: 'compound',
    query: 'get users fields email except get customers fields email',
    formatted: 'get users\nfields email\nexcept\nget customers\nfields email',
    sql: 'SELECT email FROM users EXCEPT SELECT email FROM customers',
    note: 'Rows of the first that the second does not have.',
  },
  {
    construct: 'compound',
    query:
      'get users fields id union get posts fields id intersect all get orders fields id except all get sessions fields id',
    formatted:
      'get users\nfields id\nunion\nget posts\nfields id\nintersect all\nget orders\nfields id\nexcept all\nget sessions\nfields id',
    sql: 'SELECT id FROM users UNION SELECT id FROM posts INTERSECT ALL SELECT id FROM orders EXCEPT ALL SELECT id FROM sessions',
    note: '"intersect" binds tighter than the others, as in SQL.',
  },
  {
    construct: 'compound',
    query: 'get users fields name union all (get customers fields name order by id desc limit 3)',
    formatted: 'get users\nfields name\nunion all\n(get customers fields name order by id desc limit 3)',
    sql: 'SELECT name FROM users UNION ALL (SELECT name FROM customers ORDER BY id DESC LIMIT 3)',
    note: 'In parentheses a part has an order and limit of its own.',
  },
  {
    construct: 'compound',
    query: "get (get users fields email union get customers fields email) as people where people.email like '%.org'",
    formatted:
      "get (get users fields email union get customers fields email) as people\nwhere people.email like '%.org'",
    sql: "SELECT * FROM (SELECT email FROM users UNION SELECT email FROM customers) AS people WHERE people.email LIKE '%.org'",
    note: 'As a source.',
  },
]
