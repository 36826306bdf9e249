-- Orders, and the role that the gateway connects as.

create table orders (
  id integer generated always as identity primary key,
  customer text not null,
  total numeric(10, 2) not null check (total >= 0),
  status text not null default 'pending' check (status in ('pending', 'paid', 'shipped'))
);

create role gateway login password 'example';
grant select, insert, update, delete on orders to gateway;
