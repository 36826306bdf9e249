/** Searching in texts. */

import type { Example } from './example.ts'

export const SEARCH: readonly Example[] = [
  {
    construct: 'search',
    query: 'get users where name ~ "ann"',
    formatted: "get users\nwhere name ~ 'ann'",
    sql: "SELECT * FROM users WHERE name ILIKE '%ann%'",
    note: 'Contains the text, in any case.',
  },
  {
    construct: 'search',
    query: "get products where name ~ '50%_\\'",
    formatted: "get products\nwhere name ~ '50%_\\'",
    sql: "SELECT * FROM products WHERE name ILIKE '%50\\%\\_\\\\%'",
    note: 'Nothing in the text is a wildcard.',
  },
  {
    construct: 'search',
    query: 'get users where name ~ :part',
    formatted: 'get users\nwhere name ~ :part',
    sql: "SELECT * FROM users WHERE name ILIKE '%' || replace(replace(replace($1, '\\', '\\\\'), '%', '\\%'), '_', '\\_') || '%'",
    note: 'Nor in a parameter.',
  },
  {
    construct: 'search',
    query: "get docs where body @@ 'running dogs -cats'",
    formatted: "get docs\nwhere body @@ 'running dogs -cats'",
    sql: "SELECT * FROM docs WHERE to_tsvector('english', COALESCE(body, '')) @@ websearch_to_tsquery('english', 'running dogs -cats')",
    note: 'Words in any form, as one types them into a search engine.',
  },
  {
    construct: 'search',
    query: "get docs where title || ' ' || body @@ $1 and not body @@ 'draft'",
    formatted: "get docs\nwhere title || ' ' || body @@ $1 and not body @@ 'draft'",
    sql: "SELECT * FROM docs WHERE to_tsvector('english', COALESCE(title || ' ' || body, '')) @@ websearch_to_tsquery('english', $1) AND NOT to_tsvector('english', COALESCE(body, '')) @@ websearch_to_tsquery('english', 'draft')",
    note: 'Of several columns; a missing one counts as empty.',
  },
]
