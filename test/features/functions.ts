/** Small functions of every kind for black-box tests. Two tenants, one table. */
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'

export async function functionsDatabase(): Promise<TestDatabase> {
  const database = await testDatabase()
  await execute(database.adminUrl, TABLES)
  await execute(database.adminUrl, VALUES)
  await execute(database.adminUrl, ROWS)
  await execute(database.adminUrl, ARGUMENTS)
  await execute(database.adminUrl, BEHAVIOUR)
  return database
}

const TABLES = `
create schema sales;
create table notes (id int primary key, tenant_id text not null, body text, price numeric(30, 2),
  tags text[] not null default '{}', doc jsonb);
insert into notes values
  (1, 't1', 'one', 1.50, '{a,b}', '{"k": 1}'), (2, 't1', 'two', 12345678901234567890123456.78, '{}', '{"k": {"d": 2}}'),
  (3, 't1', null, null, '{b}', null), (9, 't2', 'secret', 9.00, '{}', null);
alter table notes enable row level security;
alter table notes force row level security;
create policy own on notes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
create type mood as enum ('sad', 'ok');
create type pair as (a int, b text);
create type nested as (p pair, list pair[], at date);
create domain zip as text check (value ~ '^[0-9]{5}$');
create domain quantity as int check (value > 0);
create table hidden_rows (id int);
grant select, insert, update on notes to app;
grant usage on schema sales to app;
`

const VALUES = `
create function nothing() returns void language plpgsql as 'begin end';
create function an_int() returns int immutable language sql return 42;
create function a_bigint() returns bigint immutable language sql return 9007199254740993;
create function a_numeric() returns numeric immutable language sql return 123456789012345678901234567.890;
create function not_a_number() returns numeric immutable language sql return 'NaN'::numeric;
create function endless() returns float8 immutable language sql return '-Infinity'::float8;
create function a_text() returns text immutable language sql return E'quote " back \\\\ line \\n é 😀';
create function a_bool() returns bool immutable language sql return true;
create function a_null() returns int immutable language sql return null::int;
create function a_json() returns json immutable language sql return '{"b": 1.0, "b": 2,  "a": [ ]}'::json;
create function a_jsonb() returns jsonb immutable language sql
  return '{"n": 100000000000000000000.10, "a": null}'::jsonb;
create function a_json_null() returns jsonb immutable language sql return 'null'::jsonb;
create function a_bytea() returns bytea immutable language sql return '\\x00ff'::bytea;
create function a_date() returns date immutable language sql return date '2026-01-31';
create function a_time() returns timestamptz immutable language sql return timestamptz '2026-01-31 12:00:00+02';
create function an_interval() returns interval immutable language sql return interval '1 day 2 hours';
create function a_uuid() returns uuid immutable language sql return '00000000-0000-0000-0000-000000000001'::uuid;
create function a_mood() returns mood immutable language sql return 'ok'::mood;
create function a_zip() returns zip immutable language sql return '01234'::zip;
create function a_range() returns int4range immutable language sql return '[1,5)'::int4range;
create function an_array() returns int[] immutable language sql return array[[1, 2], [3, null]];
create function a_point() returns point immutable language sql return '(1,2)'::point;
create function an_inet() returns inet immutable language sql return '10.0.0.1/8'::inet;
create function one_out(out total numeric) immutable language sql return 1.10;
create function large() returns text stable language sql return repeat('x', 3000000);
`

const ROWS = `
create function a_pair() returns pair immutable language sql return row(1, 'x')::pair;
create function no_pair() returns pair immutable language sql return null::pair;
create function empty_pair() returns pair immutable language sql return row(null, null)::pair;
create function a_note(id int) returns notes stable language sql begin atomic select * from notes n
  where n.id = a_note.id; end;
create function outs(x int, out double int, out text, inout y int default 5) immutable
  language sql as 'select x * 2, null::text, y + 1';
create function null_outs(out a int, out b int) immutable language sql as 'select null::int, null::int';
create function pairs() returns setof pair immutable language sql as $$values (1, 'x'), (2, null), (null, null)$$;
create function all_notes(cheapest numeric default null) returns setof notes stable language sql
  begin atomic select * from notes where cheapest is null or price >= cheapest order by id; end;
create function list(upto int) returns setof int stable language sql as 'select n from generate_series(1, upto) n';
create function named_list(out n bigint) returns setof bigint stable language sql as 'values (1::bigint), (null), (3)';
create function words() returns table (word text, size int) stable language sql as $$values ('a', 1), ('bcd', 3),
  ('ef', 2)$$;
create function documents() returns setof jsonb stable language sql as $$values ('{"k": 1}'::jsonb), ('[2]'),
  ('null')$$;
create function changing_list() returns setof int volatile language sql as 'values (1), (2)';
create function whatever() returns record language sql as 'select 1, 2';
create function whatevers() returns setof record language sql as 'values (1, 2)';
create function no_rows() returns setof notes stable language sql as 'select * from notes where false';
`

const ARGUMENTS = `
create function echo_int(x int) returns int immutable language sql return x;
create function echo_bigint(x bigint) returns bigint immutable language sql return x;
create function echo_numeric(x numeric) returns numeric immutable language sql return x;
create function echo_float(x float8) returns float8 immutable language sql return x;
create function echo_text(x text) returns text immutable language sql return x;
create function echo_bool(x bool) returns bool immutable language sql return x;
create function echo_json(x json) returns json immutable language sql return x;
create function echo_jsonb(x jsonb) returns jsonb immutable language sql return x;
create function echo_bytea(x bytea) returns bytea immutable language sql return x;
create function echo_date(x date) returns date immutable language sql return x;
create function reads_as_int(x date) returns int immutable language plpgsql as 'begin return x::text::int; end';
create function echo_uuid(x uuid) returns uuid immutable language sql return x;
create function echo_mood(x mood) returns mood immutable language sql return x;
create function echo_zip(x zip) returns zip immutable language sql return x;
create function echo_quantity(x quantity) returns quantity immutable language sql return x;
create function echo_range(x int4range) returns int4range immutable language sql return x;
create function echo_ints(x int[]) returns int[] immutable language sql return x;
create function echo_texts(x text[]) returns text[] immutable language sql return x;
create function echo_zips(x zip[]) returns zip[] immutable language sql return x;
create function echo_pair(x pair) returns pair immutable language sql return x;
create function echo_nested(x nested) returns nested immutable language sql return x;
create function echo_char(x "char") returns "char" immutable language sql return x;
create function null_is(x int) returns text immutable language sql return case when x is null then 'null'
  else 'value' end;
create function strict_value(x int) returns int immutable strict language sql return x;
create function strict_rows(x int) returns setof int immutable strict language sql as 'select x';
create function strict_pair(x int) returns pair immutable strict language sql return row(x, 'x')::pair;
create function middle(a int default 1, b int default 2, c int default 3) returns text immutable language sql
  return concat_ws(',', a, b, c);
create function unnamed(int, int default 7) returns text immutable language sql return concat_ws(',', $1, $2);
create function half_named(int, b int default 2) returns text immutable language sql return concat_ws(',', $1, b);
create function sum_of(variadic numbers numeric[]) returns numeric immutable
  language sql as 'select sum(n) from unnest(numbers) n';
create function tagged(tag text, variadic ids int[] default '{}') returns text immutable language sql
  return tag || ids::text;
create function documents_of(variadic docs jsonb[]) returns jsonb immutable language sql as 'select to_jsonb(docs)';
create function anything(variadic "any") returns text immutable language internal as 'text_concat_ws';
create function type_of(x anyelement) returns text immutable language sql as 'select pg_typeof(x)::text';
create function same(x anyelement, y anyelement) returns anyelement immutable language sql as 'select coalesce(x, y)';
create function first_of(x anyarray) returns anyelement immutable language sql as 'select x[1]';
create function rows_of(x anyarray) returns setof anyelement stable language sql as 'select unnest(x)';
create function common(x anycompatible, y anycompatible) returns text immutable
  language sql as 'select pg_typeof(x)::text';
create function over(a int) returns text immutable language sql return 'int';
create function over(a text) returns text immutable language sql return 'text';
create function over(a numeric) returns text immutable language sql return 'numeric';
create function over(a int[]) returns text immutable language sql return 'ints';
create function over(a int, b int) returns text immutable language sql return 'two';
create function over(a int, c text) returns text immutable language sql return 'a and c';
create function over(zip) returns text immutable language sql return 'zip';
create function tie(a int, b int default 1) returns text immutable language sql return 'int';
create function tie(a int, c text default 'x') returns text immutable language sql return 'text';
create function mixed(a int) returns text stable language sql return 'reads';
create function mixed(a int, b int) returns text volatile language sql return 'writes';
create function "Größe!"("select" int, "a b" text, "ünï" int) returns text immutable language sql
  return concat_ws(',', "select", "a b", "ünï");
create function "a/b?c#d%"() returns int immutable language sql return 1;
create function "select"("limit" int, "order" int default 0) returns int immutable language sql
  return "limit" + "order";
create function "__proto__"("__proto__" int, "constructor" int, "toString" int) returns int immutable language sql
  return "__proto__" + "constructor" + "toString";
create function notes(x int) returns text immutable language sql return 'a function called like a table';
create function sales.report(x int) returns text immutable language sql return 'sales ' || x;
create function sales.an_int() returns int immutable language sql return 43;
create function hundred(${Array.from({ length: 100 }, (_, n) => `a${n} int`).join(', ')}) returns int immutable
  language sql
  return ${Array.from({ length: 100 }, (_, n) => `a${n}`).join(' + ')};
`

const BEHAVIOUR = `
create table journal (at int generated always as identity primary key, what text);
create function note_down(what text) returns int language sql as 'insert into journal (what) values ($1) returning at';
create function lies() returns int stable language sql as $$select note_down('lies')$$;
create function caller(out tenant text, out who text, out read_only text) stable language sql as
  $$select current_setting('app.current_tenant_id'), current_user::text, current_setting('transaction_read_only')$$;
create function as_owner() returns text stable security definer set search_path = pg_catalog language sql
  return current_user::text;
create function own_notes() returns bigint stable language sql as 'select count(*) from notes';
create function become(tenant text) returns text volatile language plpgsql as $$
  begin
    perform set_config('app.current_tenant_id', tenant, false);
    perform set_config('search_path', 'sales', false);
    perform set_config('statement_timeout', '1', false);
    perform set_config('app.is_super_admin', 'true', false);
    return (select string_agg(body, ',') from public.notes);
  end $$;
create function become_and_fail(tenant text) returns text volatile language plpgsql as $$
  begin
    perform set_config('app.current_tenant_id', tenant, false);
    raise exception 'done';
  end $$;
create function fail(code text default 'P0001', hint text default 'try less') returns int volatile
  language plpgsql as $$
  begin raise exception 'it is not possible' using errcode = code, hint = hint, detail = 'because'; end $$;
create function divide(a int, b int) returns int immutable language sql return a / b;
create function sleep(seconds float8) returns void volatile language sql as 'select pg_sleep(seconds)';
create function only_admin() returns int language sql return 1;
revoke execute on function only_admin from public;
create function gone() returns int language sql return 1;
create function twice(x int) returns int volatile language plpgsql as $$
  begin insert into journal (what) values ('twice ' || x); return x * 2; end $$;
grant insert, select on journal to app;
comment on function note_down is 'Writes a line';
`
