/** Definitions: `make` and `index`. */

import type { Example } from './example.ts'

export const DEFINITIONS: readonly Example[] = [
  {
    construct: 'make',
    query: 'make notes id:i64:pk, text:string, done:bool:default=false',
    formatted: 'make notes id:int8:pk, text:text, done:bool:default=false',
    sql: 'CREATE TABLE notes (id int8 PRIMARY KEY, text text NOT NULL, done bool NOT NULL DEFAULT false)',
    note: 'Columns are not null unless they say "nullable".',
  },
  {
    construct: 'make',
    query:
      'create ratings user_id:int8:ref=users.id, product_id:int8:ref=products.id, stars:int2:check=stars between 1 and 5, remark:text:nullable primary key (user_id, product_id)',
    formatted:
      'make ratings\n  user_id:int8:ref=users.id,\n  product_id:int8:ref=products.id,\n  stars:int2:check=stars between 1 and 5,\n  remark:text:nullable\nprimary key (user_id, product_id)',
    sql: 'CREATE TABLE ratings (user_id int8 NOT NULL REFERENCES users (id), product_id int8 NOT NULL REFERENCES products (id), stars int2 NOT NULL CHECK (stars BETWEEN 1 AND 5), remark text, PRIMARY KEY (user_id, product_id))',
    note: 'References, checks, and a key of several columns; "create" is another word for "make".',
  },
  {
    construct: 'make',
    query:
      'make sales.plans id:uuid:pk:default=gen_random_uuid(), code:varchar(8):unique, year:int4, quarter:int4, target_id:int8:nullable:ref=sales.targets.id unique (year, quarter)',
    formatted:
      'make sales.plans\n  id:uuid:pk:default=gen_random_uuid(),\n  code:varchar(8):unique,\n  year:int4,\n  quarter:int4,\n  target_id:int8:nullable:ref=sales.targets.id\nunique (year, quarter)',
    sql: 'CREATE TABLE sales.plans (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), code varchar(8) NOT NULL UNIQUE, year int4 NOT NULL, quarter int4 NOT NULL, target_id int8 REFERENCES sales.targets (id), UNIQUE (year, quarter))',
    note: 'In a schema, with defaults and unique columns.',
  },
  {
    construct: 'make',
    query: 'make `Event Log` at:timestamptz:default=now(), what:jsonb, tags:text[]:nullable',
    sql: 'CREATE TABLE "Event Log" (at timestamptz NOT NULL DEFAULT NOW(), what jsonb NOT NULL, tags text[])',
    note: 'Types as in casts.',
  },
  {
    construct: 'make',
    query: 'make pairs a:int, b:int primary key (a, b)',
    formatted: 'make pairs a:int, b:int\nprimary key (a, b)',
    sql: 'CREATE TABLE pairs (a int NOT NULL, b int NOT NULL, PRIMARY KEY (a, b))',
    note: 'A key of two columns.',
  },
  {
    construct: 'index',
    query: 'index orders_by_user on orders user_id, placed_at',
    sql: 'CREATE INDEX orders_by_user ON orders (user_id, placed_at)',
    note: 'An index over columns.',
  },
  {
    construct: 'index',
    query: 'index one_open_session on sessions user_id unique where expired = false',
    formatted: 'index one_open_session on sessions user_id\nunique\nwhere expired = false',
    sql: 'CREATE UNIQUE INDEX one_open_session ON sessions (user_id) WHERE expired = false',
    note: 'Unique, and only over some rows.',
  },
]
