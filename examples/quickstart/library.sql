-- A library: two tables, some rows, and the role that the gateway connects as.

create table authors (
  id integer generated always as identity primary key,
  name text not null unique
);

create table books (
  id integer generated always as identity primary key,
  author_id integer not null references authors,
  title text not null,
  published smallint not null,
  price numeric(8, 2) not null check (price >= 0),
  subjects text[] not null default '{}'
);

insert into authors (name) values ('Ursula K. Le Guin'), ('Italo Calvino'), ('Toni Morrison');

insert into books (author_id, title, published, price, subjects) values
  (1, 'The Dispossessed', 1974, 12.90, '{utopia,physics}'),
  (1, 'The Lathe of Heaven', 1971, 11.50, '{dreams}'),
  (2, 'Invisible Cities', 1972, 10.00, '{cities,travel}'),
  (2, 'Cosmicomics', 1965, 9.80, '{physics}'),
  (3, 'Beloved', 1987, 14.20, '{memory}');

-- No superuser, and it owns nothing: what it may do is what is granted here.
create role gateway login password 'example';
grant select on authors, books to gateway;
grant insert, update, delete on books to gateway;
