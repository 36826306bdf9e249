/** JSON in queries and columns. */

import type { Example } from './example.ts'

export const JSON_VALUES: readonly Example[] = [
  {
    construct: 'json',
    query: 'get docs where meta @> {"a": 1}',
    formatted: 'get docs\nwhere meta @> {"a": 1}',
    sql: 'SELECT * FROM docs WHERE meta @> \'{"a": 1}\'::jsonb',
    note: 'An object of JSON, as JSON is written.',
  },
  {
    construct: 'json',
    query: 'get docs where meta @> [{"kind": "note"}] or meta <@ {"a": [1, 2, null]}',
    formatted: 'get docs\nwhere meta @> [{"kind": "note"}] or meta <@ {"a": [1, 2, null]}',
    sql: 'SELECT * FROM docs WHERE meta @> \'[{"kind": "note"}]\'::jsonb OR meta <@ \'{"a": [1, 2, null]}\'::jsonb',
    note: 'A list with an object in it is JSON; any other list is an array as long as it meets no JSON.',
  },
  {
    construct: 'json',
    query: "get docs where meta -> 'tags' @> ['new', 1] or meta -> 'tags' = []",
    formatted: "get docs\nwhere meta -> 'tags' @> ['new', 1] or meta -> 'tags' = []",
    sql: "SELECT * FROM docs WHERE meta -> 'tags' @> '[\"new\", 1]'::jsonb OR meta -> 'tags' = '[]'::jsonb",
    note: 'A list beside JSON is JSON. Over HTTP the catalogue says what else is: `meta = []` of a JSON column.',
  },
  {
    construct: 'json',
    query: "get docs where meta @> '[1, 2]'::jsonb",
    formatted: "get docs\nwhere meta @> '[1, 2]'::jsonb",
    sql: "SELECT * FROM docs WHERE meta @> '[1, 2]'::jsonb",
    note: 'Without a catalogue a JSON list of plain values is a text with a cast.',
  },
  {
    construct: 'json',
    query: 'get docs fields meta.theme, meta.author.name as author',
    formatted: 'get docs\nfields meta.theme, meta.author.name as author',
    sql: "SELECT meta->>'theme', meta->'author'->>'name' AS author FROM docs",
    note: 'A path into a JSON column; the last step is text.',
  },
  {
    construct: 'json',
    query: "get docs d where d.meta.theme = 'dark'",
    formatted: "get docs as d\nwhere d.meta.theme = 'dark'",
    sql: "SELECT * FROM docs AS d WHERE d.meta->>'theme' = 'dark'",
    note: 'Behind an alias that is in scope the second part is the column.',
  },
  {
    construct: 'json',
    query: "get docs where meta ->> 'theme' = 'dark' and meta -> 'pages' = '3'",
    formatted: "get docs\nwhere meta ->> 'theme' = 'dark' and meta -> 'pages' = '3'",
    sql: "SELECT * FROM docs WHERE meta ->> 'theme' = 'dark' AND meta -> 'pages' = '3'",
    note: 'One step: ->> answers text, -> JSON.',
  },
  {
    construct: 'json',
    query: "get docs fields meta #> ['author', 'tags'], meta #>> ['author', 'name']",
    formatted: "get docs\nfields meta #> ['author', 'tags'], meta #>> ['author', 'name']",
    sql: "SELECT meta #> ARRAY['author', 'tags'], meta #>> ARRAY['author', 'name'] FROM docs",
    note: 'Several steps at once.',
  },
  {
    construct: 'json',
    query: "get docs where (meta ->> 'pages')::int + 1 > 10",
    formatted: "get docs\nwhere (meta ->> 'pages')::int + 1 > 10",
    sql: "SELECT * FROM docs WHERE (meta ->> 'pages')::int + 1 > 10",
    note: 'A cast binds tighter than a step, so it needs parentheses.',
  },
  {
    construct: 'json',
    query: "get docs where meta ? 'theme' and meta ?| ['a', 'b'] and meta ?& ['c', 'd']",
    formatted: "get docs\nwhere meta ? 'theme' and meta ?| ['a', 'b'] and meta ?& ['c', 'd']",
    sql: "SELECT * FROM docs WHERE meta ? 'theme' AND meta ?| ARRAY['a', 'b'] AND meta ?& ARRAY['c', 'd']",
    note: 'Has this key; has one of these keys; has all of them.',
  },
  {
    construct: 'json',
    query: "get docs where meta json_exists '$.pages ? (@ > 3)'",
    formatted: "get docs\nwhere meta json_exists '$.pages ? (@ > 3)'",
    sql: "SELECT * FROM docs WHERE jsonb_path_exists(meta, '$.pages ? (@ > 3)')",
    note: 'Whether a path of JSON finds anything.',
  },
  {
    construct: 'json',
    query: "get docs where meta json_query '$.author' and meta json_value '$.author.name'",
    formatted: "get docs\nwhere meta json_query '$.author' and meta json_value '$.author.name'",
    sql: "SELECT * FROM docs WHERE jsonb_path_query_first(meta, '$.author') IS NOT NULL AND jsonb_path_query_first(meta, '$.author.name') #>> '{}' IS NOT NULL",
    note: 'Whether it finds a value, and one that is not null.',
  },
  {
    construct: 'json',
    query: 'set docs values meta = meta || {"seen": true} where id = 1',
    formatted: 'set docs\nvalues meta = meta || {"seen": true}\nwhere id = 1',
    sql: 'UPDATE docs SET meta = meta || \'{"seen": true}\'::jsonb WHERE id = 1',
    note: 'Changes one key and keeps the others.',
  },
  {
    construct: 'json',
    query: 'add docs fields title, meta values \'A\', {"theme": "dark", "pages": 3}',
    formatted: 'add docs\nfields title, meta\nvalues \'A\', {"theme": "dark", "pages": 3}',
    sql: 'INSERT INTO docs (title, meta) VALUES (\'A\', \'{"theme": "dark", "pages": 3}\'::jsonb) RETURNING *',
    note: 'As a value.',
  },
]
