/** A small shop for black-box tests: a few rows, two tenants, forced row-level security. */
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'

export async function shopDatabase(): Promise<TestDatabase> {
  const database = await testDatabase()
  await execute(database.adminUrl, SHOP)
  return database
}

const SHOP = `
create type status as enum ('draft', 'paid', 'shipped');
create domain email as text check (value like '%@%');

create table users (id int primary key, tenant_id text not null, name text not null, boss_id int references users);
create table customers (
  id int primary key, tenant_id text not null, name text not null, mail email, zip text, tags text[] not null
    default '{}',
  meta jsonb not null default '{}', born date, vip boolean
);
create table orders (
  id bigint primary key, tenant_id text not null, customer_id int not null references customers,
  created_by int not null references users, approved_by int references users,
  status status not null, total numeric(30, 2) not null, placed_at timestamptz not null, note text, open int4range
);
create table products (id int primary key, tenant_id text not null, name text not null, description text not null
  default '', words tsvector
  generated always as (to_tsvector('english', name)) stored);
create table order_items (
  order_id bigint references orders, line int, tenant_id text not null, product_id int not null references products,
  quantity int not null, primary key (order_id, line)
);
create table labels (id int primary key, tenant_id text not null, name text not null);
create table product_labels (product_id int references products, label_id int references labels,
  primary key (product_id, label_id));
create table codes (part text, sub text, tenant_id text not null, title text not null, primary key (part, sub));
create table journal (tenant_id text not null, at int not null, what text not null);

insert into users values (1, 't1', 'Ann', null), (2, 't1', 'Bob', 1), (3, 't1', 'Cyd', 1), (9, 't2', 'Zoe', null);
insert into customers values
  (1, 't1', 'Acme', 'a@acme.io', '01234', '{big,old}', '{"theme": "dark", "a": [10, {"b": "x"}], "n": 5}',
    '1999-12-31', true),
  (2, 't1', 'Bolt', null, '1234', '{old}', '{"theme": "light"}', null, false),
  (3, 't1', 'Cord', 'c@cord.io', null, '{}', '{}', '2001-01-01', null),
  (9, 't2', 'Zinc', 'z@zinc.io', '99999', '{big}', '{"theme": "dark"}', null, true);
insert into orders values
  (1, 't1', 1, 1, 2, 'paid', 100.00, '2026-01-01T00:00:00Z', 'first', '[1,5)'),
  (2, 't1', 1, 2, null, 'paid', 12345678901234567890123456.78, '2026-01-02T00:00:00Z', null, '[5,9)'),
  (3, 't1', 2, 1, 1, 'shipped', 7.50, '2026-01-02T00:00:00Z', 'in.x', null),
  (4, 't1', 2, 3, null, 'draft', 0.00, '2026-01-04T00:00:00Z', '100%', 'empty'),
  (9007199254740993, 't1', 1, 1, 3, 'draft', 55.00, '2026-01-05T00:00:00Z', null, null),
  (99, 't2', 9, 9, 9, 'paid', 1.00, '2026-01-06T00:00:00Z', 'secret', null);
insert into products values (1, 't1', 'Red bicycle', 'a fast ride'), (2, 't1', 'Blue lamp',
  'shines on bicycles'), (3, 't1', 'Cup', ''), (9, 't2', 'Bicycle', '');
insert into order_items values (1, 1, 't1', 1, 2), (1, 2, 't1', 2, 1), (2, 1, 't1', 1, 5), (3, 1, 't1', 3, 1),
  (99, 1, 't2', 9, 1);
insert into labels values (1, 't1', 'sport'), (2, 't1', 'home'), (9, 't2', 'hidden');
insert into product_labels values (1, 1), (2, 1), (2, 2), (9, 9);
insert into codes values ('a,b', 'c', 't1', 'comma'), ('x', 'y/z', 't1', 'slash'), ('50%', 'q', 't1', 'percent'),
  ('x', 'y', 't2', 'foreign');
insert into journal values ('t1', 1, 'one'), ('t1', 1, 'two'), ('t1', 2, 'three'), ('t2', 1, 'other');

do $$
declare name text;
begin
  foreach name in array
    array['users', 'customers', 'orders', 'products', 'order_items', 'labels', 'codes', 'journal']
  loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format(
      'create policy own on %I using (tenant_id = (select current_setting(''app.current_tenant_id'', true)))', name);
  end loop;
end $$;
alter table product_labels enable row level security;
alter table product_labels force row level security;
create policy both_ends on product_labels using (exists (select from products p where p.id = product_id));
create view plain_view as select * from users;
create view safe_view with (security_invoker = true) as select id, name from users;
grant select, insert, update, delete on all tables in schema public to app;
`
