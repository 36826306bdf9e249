/** Statements around statements: `call`, transactions, `explain`. */

import type { Example } from './example.ts'

export const COMMANDS: readonly Example[] = [
  {
    construct: 'call',
    query: "call archive_orders('2020-01-01', true)",
    sql: "CALL archive_orders('2020-01-01', true)",
    note: 'A procedure of the database.',
  },
  {
    construct: 'call',
    query: 'call sales.refresh()',
    sql: 'CALL sales.refresh()',
    note: 'Of a schema, without arguments.',
  },
  {
    construct: 'call',
    query: 'call archive_orders(:before, $1)',
    sql: 'CALL archive_orders($1, $2)',
    note: 'With parameters.',
  },
  {
    construct: 'transaction',
    query: 'begin',
    sql: 'BEGIN',
    note: 'Begins a transaction.',
  },
  {
    construct: 'transaction',
    query: 'commit',
    sql: 'COMMIT',
    note: 'Ends it and keeps what was done.',
  },
  {
    construct: 'transaction',
    query: 'rollback',
    sql: 'ROLLBACK',
    note: 'Ends it and undoes what was done.',
  },
  {
    construct: 'explain',
    query: 'explain get orders where user_id = 1',
    formatted: 'explain get orders\nwhere user_id = 1',
    sql: 'EXPLAIN SELECT * FROM orders WHERE user_id = 1',
    note: 'The plan of a statement, which is not run.',
  },
  {
    construct: 'explain',
    query: "explain set users values active = false where created_at < '2020-01-01'",
    formatted: "explain set users\nvalues active = false\nwhere created_at < '2020-01-01'",
    sql: "EXPLAIN UPDATE users SET active = false WHERE created_at < '2020-01-01'",
    note: 'Of a write, too.',
  },
]
