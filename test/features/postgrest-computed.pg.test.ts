/** docs/guides/coming-from-postgrest.md: columns and relationships that functions of a row compute. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create schema apart;
   create table bands (id int primary key, name text not null, founded int, members jsonb);
   create table albums (id int primary key, title text not null, band int references bands, sold int);
   insert into bands values (1, 'Low', 1990, '["a","b"]'), (2, 'High', 2001, '[]');
   insert into albums values (1, 'One', 1, 10), (2, 'Two', 1, 30), (3, 'Three', 2, 5);
   create function loud(bands) returns text language sql stable as $$ select upper($1.name) $$;
   create function loud(albums) returns text language sql stable as $$ select upper($1.title) $$;
   create function facts(band bands) returns jsonb language sql stable as
     $$ select jsonb_build_object('age', 2020 - band.founded) $$;
   create function apart.quiet(bands) returns text language sql stable as $$ select lower($1.name) $$;
   create function hits(bands) returns setof albums language sql stable as
     $$ select * from albums where band = $1.id and sold >= 10 $$;
   create function best(bands) returns setof albums rows 1 language sql stable as
     $$ select * from albums where band = $1.id order by sold desc limit 1 $$;
   create function any_album(bands) returns setof albums rows 1 language sql stable as
     $$ select * from albums where band = $1.id order by id $$;
   create function maker(albums) returns bands language sql stable as $$ select * from bands where id = $1.band $$;
   create function albums(bands) returns setof albums language sql stable as
     $$ select * from albums where band = $1.id and title like 'T%' $$;
   create function every_band() returns setof bands language sql stable as 'select * from bands';
   create function secret(bands) returns text language sql stable as $$ select 'x'::text $$;
   revoke execute on function secret(bands) from public;
   create view old_bands as select * from bands where founded < 2000;
   create function old(old_bands) returns boolean language sql immutable as 'select true';
   grant usage on schema public to :anon;
   grant select on all tables in schema public to :anon;
   grant insert, update, delete on albums to :anon`,
  'aggregates_enabled = true\ntx_end = "commit-allow-override"',
)

async function rows(path: string, options = {}): Promise<unknown> {
  const reply = await ask(path, options)
  expect(reply.status, reply.text).toBeLessThan(300)
  return reply.json
}

describe('a computed column', () => {
  test('selects the rows of a write', async () => {
    const options = { headers: { Prefer: 'return=representation, tx=rollback', 'Content-Type': 'application/json' } }
    const changed = await rows('/albums?select=id,sold&loud=eq.TWO', {
      method: 'PATCH',
      body: '{"sold":31}',
      ...options,
    })
    expect(changed).toEqual([{ id: 2, sold: 31 }])
    expect(await rows('/albums?select=id&or=(loud.eq.TWO,id.eq.0)', { method: 'DELETE', ...options })).toEqual([
      { id: 2 },
    ])
  })
  test('is selected by name, and is not part of *', async () => {
    expect(await rows('/bands?select=id,loud&order=id')).toEqual([
      { id: 1, loud: 'LOW' },
      { id: 2, loud: 'HIGH' },
    ])
    expect(await rows('/albums?select=loud,n:loud::text&id=eq.1')).toEqual([{ loud: 'ONE', n: 'ONE' }])
    expect(await rows('/bands?id=eq.2')).toEqual([{ id: 2, name: 'High', founded: 2001, members: [] }])
  })
  test('can be used in filters, order and JSON paths', async () => {
    expect(await rows('/bands?loud=eq.HIGH&select=id')).toEqual([{ id: 2 }])
    expect(await rows('/bands?select=id,facts->age&order=loud.asc')).toEqual([
      { id: 2, age: 19 },
      { id: 1, age: 30 },
    ])
    expect(await rows('/bands?select=id&order=loud.desc&limit=1&offset=1')).toEqual([{ id: 2 }])
  })
  test('belongs to embedded relations, views, functions, and aggregates', async () => {
    expect(await rows('/albums?select=id,bands(loud)&bands.loud=eq.LOW&order=id&limit=1')).toEqual([
      { id: 1, bands: { loud: 'LOW' } },
    ])
    expect(await rows('/old_bands?select=id,old')).toEqual([{ id: 1, old: true }])
    expect(await rows('/rpc/every_band?select=loud&loud=neq.LOW')).toEqual([{ loud: 'HIGH' }])
    expect(await rows('/bands?select=loud,count()&order=loud')).toEqual([
      { loud: 'HIGH', count: 1 },
      { loud: 'LOW', count: 1 },
    ])
  })
  test.each([
    ['/bands?select=quiet', 400, '42703'],
    ['/bands?nothing=eq.1', 400, '42703'],
    ['/bands?select=secret', 401, '42501'],
  ])('of another schema, of another table, or without a privilege is refused: %s', async (path, status, code) => {
    const reply = await ask(path)
    expect([reply.status, reply.json.code]).toEqual([status, code])
  })
})

describe('a computed relationship', () => {
  test('is an array, or an object for one row', async () => {
    expect(await rows('/bands?select=name,hits(title)&order=id&hits.order=sold.desc')).toEqual([
      { name: 'Low', hits: [{ title: 'Two' }, { title: 'One' }] },
      { name: 'High', hits: [] },
    ])
    expect(await rows('/bands?select=name,top:best(title)&order=id')).toEqual([
      { name: 'Low', top: { title: 'Two' } },
      { name: 'High', top: { title: 'Three' } },
    ])
    expect(await rows('/albums?select=id,maker(name,best(title))&id=eq.1')).toEqual([
      { id: 1, maker: { name: 'Low', best: { title: 'Two' } } },
    ])
  })
  test('can be filtered, joined, spread, sorted by and counted', async () => {
    expect(await rows('/bands?select=name,hits!inner(title)&hits.sold=gt.10')).toEqual([
      { name: 'Low', hits: [{ title: 'Two' }] },
    ])
    expect(await rows('/bands?select=name,hits()&hits=is.null')).toEqual([{ name: 'High' }])
    expect(await rows('/albums?select=id,...maker(by:name)&order=maker(name).asc,id')).toEqual([
      { id: 3, by: 'High' },
      { id: 1, by: 'Low' },
      { id: 2, by: 'Low' },
    ])
    const counted = await ask('/bands?select=name,hits!inner(title)', { headers: { Prefer: 'count=exact' } })
    expect(counted.headers.get('content-range')).toBe('0-0/1')
    expect(await rows('/bands?select=name,hits(title)&order=id&limit=1&offset=1')).toEqual([{ name: 'High', hits: [] }])
  })
  test('replaces one of a key, and belongs to rows of functions and to written rows', async () => {
    expect(await rows('/bands?select=id,albums(title)&order=id')).toEqual([
      { id: 1, albums: [{ title: 'Two' }] },
      { id: 2, albums: [{ title: 'Three' }] },
    ])
    expect(await rows('/rpc/every_band?select=best(title)&id=eq.2')).toEqual([{ best: { title: 'Three' } }])
    const written = {
      method: 'PATCH',
      body: '{"sold": 31}',
      headers: { Prefer: 'return=representation', 'Content-Type': 'application/json' },
    }
    expect(await rows('/albums?select=loud,maker(name)&id=eq.2', written)).toEqual([
      { loud: 'TWO', maker: { name: 'Low' } },
    ])
  })
  test('to one row is the first if its function returns more', async () => {
    expect(
      await rows('/bands?select=name,any_album(title),...any_album(first:title)&order=any_album(title),id'),
    ).toEqual([
      { name: 'Low', any_album: { title: 'One' }, first: 'One' },
      { name: 'High', any_album: { title: 'Three' }, first: 'Three' },
    ])
  })
  test('with several rows cannot be used in order', async () => {
    const reply = await ask('/bands?select=id,hits(id)&order=hits(id)')
    expect([reply.status, reply.json.code]).toEqual([400, 'PGRST118'])
  })
})
