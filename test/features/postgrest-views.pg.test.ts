/** docs/guides/coming-from-postgrest.md: relations of views, through the keys of their tables. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create schema hidden;
   create table hidden.writers (id int primary key, name text not null);
   create table hidden.novels (
     id int primary key, title text not null, "Writer{1}" int references hidden.writers, year int
   );
   create table shops (id int primary key, town text not null);
   create table stock (shop int references shops, novel int references hidden.novels, primary key (shop, novel));
   create table legs (race int, stage int, km int, primary key (race, stage));
   create table times (id int primary key, race int, stage int, seconds int,
     constraint times_leg foreign key (race, stage) references legs);
   insert into hidden.writers values (1, 'Ada'), (2, 'Ben');
   insert into hidden.novels values (1, 'Dawn', 1, 1941), (2, 'Noon', 1, 1955), (3, 'Dusk', 2, 1942);
   insert into shops values (1, 'Hull'), (2, 'York');
   insert into stock values (1, 1), (1, 3), (2, 3);
   insert into legs values (1, 1, 10), (1, 2, 20);
   insert into times values (1, 1, 1, 900), (2, 1, 2, 2000);

   create view writers as select name, id from hidden.writers;
   create view novels as select id as number, title, "Writer{1}" as "the writer", year from hidden.novels;
   create view forties as
     with early as (select * from novels where year < 1950)
     select e.number, e.title, w.id as author, upper(w.name) as shouted
     from (select * from early) e join hidden.writers w on w.id = e."the writer";
   create view counted as select n."the writer" as writer, count(*) as novels from novels n group by 1;
   create materialized view kept as select * from novels;
   create view stocked as select shop, novel from stock;
   create view leg_list as select stage as part, race, km, race as race_again from legs;
   create view no_key as select title, year from hidden.novels;
   grant usage on schema public to :anon;
   grant select on all tables in schema public to :anon`,
)

async function rows(path: string): Promise<unknown> {
  const reply = await ask(path)
  expect(reply.status, reply.text).toBe(200)
  return reply.json
}

describe('a view', () => {
  test('has the keys of tables in other schemas, also under other names', async () => {
    expect(await rows('/novels?select=title,writers(name)&order=number&limit=2')).toEqual([
      { title: 'Dawn', writers: { name: 'Ada' } },
      { title: 'Noon', writers: { name: 'Ada' } },
    ])
    expect(await rows('/writers?select=name,novels(title)&order=id&novels.order=title')).toEqual([
      { name: 'Ada', novels: [{ title: 'Dawn' }, { title: 'Noon' }] },
      { name: 'Ben', novels: [{ title: 'Dusk' }] },
    ])
  })
  test('has them through views, subqueries, joins, common tables and groups', async () => {
    expect(await rows('/forties?select=shouted,shops!stock(town)&order=number&shops.order=id')).toEqual([
      { shouted: 'ADA', shops: [{ town: 'Hull' }] },
      { shouted: 'BEN', shops: [{ town: 'Hull' }, { town: 'York' }] },
    ])
    expect(await rows('/counted?select=novels,writers(name)&order=writer')).toEqual([
      { novels: 2, writers: { name: 'Ada' } },
      { novels: 1, writers: { name: 'Ben' } },
    ])
    expect(await rows('/kept?select=title,writers!inner(name)&writers.name=eq.Ben')).toEqual([
      { title: 'Dusk', writers: { name: 'Ben' } },
    ])
  })
  test('can be related to tables, and be a junction', async () => {
    expect(await rows('/shops?select=town,novels!stock(title)&order=id&novels.order=title')).toEqual([
      { town: 'Hull', novels: [{ title: 'Dawn' }, { title: 'Dusk' }] },
      { town: 'York', novels: [{ title: 'Dusk' }] },
    ])
    expect(await rows('/shops?select=town,novels!stocked(number)&id=eq.2')).toEqual([
      { town: 'York', novels: [{ number: 3 }] },
    ])
  })
  test('that shows a part of a key has no relationship', async () => {
    const reply = await ask('/no_key?select=title,writers(name)')
    expect([reply.status, reply.json.code]).toEqual([400, 'PGRST200'])
  })
  test('that shows a column twice has a relationship for each, which the error lists', async () => {
    const reply = await ask('/times?select=id,leg_list(km)')
    expect([reply.status, reply.json.details]).toEqual([
      300,
      [
        {
          cardinality: 'many-to-one',
          embedding: 'times with leg_list',
          relationship: 'times_leg using times(race, stage) and leg_list(race, part)',
        },
        {
          cardinality: 'many-to-one',
          embedding: 'times with leg_list',
          relationship: 'times_leg using times(race, stage) and leg_list(race_again, part)',
        },
      ],
    ])
  })
})
