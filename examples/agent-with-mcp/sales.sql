-- Sales of companies that must not see each other's rows. An agent has a token and sees only its company's rows.

create table orders (
  tenant_id text not null default nullif(current_setting('app.current_tenant_id', true), ''),
  id integer generated always as identity primary key,
  customer text not null,
  status text not null,
  total numeric(10, 2) not null,
  placed_on date not null
);

alter table orders enable row level security;
alter table orders force row level security;
create policy own_tenant on orders
  using (tenant_id = (select nullif(current_setting('app.current_tenant_id', true), '')));
create index on orders (tenant_id, placed_on);

insert into orders (tenant_id, customer, status, total, placed_on) values
  ('red', 'Ada', 'paid', 120.00, '2026-01-10'), ('red', 'Ada', 'paid', 80.50, '2026-02-03'),
  ('red', 'Bo', 'paid', 310.00, '2026-02-11'), ('red', 'Bo', 'pending', 45.00, '2026-03-01'),
  ('red', 'Cy', 'paid', 20.00, '2026-03-02'), ('blue', 'Dee', 'paid', 9999.00, '2026-03-02');

-- It may read, and that is all.
create role gateway login password 'example' nosuperuser nobypassrls;
grant select on orders to gateway;
