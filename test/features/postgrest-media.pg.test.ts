/** docs/guides/coming-from-postgrest.md: media types that the database defines. */
import { describe, expect, test } from 'vitest'
import { type AskOptions, postgrestFixture } from '../support/postgrest.ts'

const { ask, run, gateway } = postgrestFixture(
  `create domain "text/html" as text; create domain "text/plain" as text; create domain "image/png" as bytea;
   create domain "text/xml" as xml; create domain "*/*" as bytea; create domain "text/csv" as text;
   create domain "application/octet-stream" as bytea; create domain "text/tab-separated-values" as text;
   create domain "application/vnd.list" as text; create domain "application/json" as json;
   create table items (id int primary key, name text);
   insert into items values (1, 'one'), (2, 'two'), (3, 'three');
   create table others (id int primary key, item int references items);
   insert into others values (10, 1), (11, 1);
   create table r (r int primary key, svc text);
   insert into r values (1, 'a');
   create view shown as select id, name from items where id < 3;

   create function page() returns "text/html" language sql stable as $$select '<h1>Hi</h1>'$$;
   create function "page.xml"() returns "text/xml" language sql stable as $$select xmlparse(content '<a/>')$$;
   create function image() returns "image/png" language sql stable as $$select '\\x89504e47'::bytea$$;
   create function bytes(bytea) returns "application/octet-stream" language sql immutable as 'select $1';
   create function pages() returns setof "text/html" language sql stable as $$values ('a'), ('b')$$;
   create function anything() returns "*/*" language plpgsql as $$
   declare wanted text := current_setting('request.headers', true)::json ->> 'accept';
   begin
     if wanted = 'app/one' then
       perform set_config('response.headers', json_build_array(json_build_object('Content-Type', wanted))::text, true);
     elsif wanted = 'app/none' then
       raise sqlstate 'PT406' using message = 'Not Acceptable';
     end if;
     return convert_to('any', 'UTF8');
   end$$;

   create function tsv_step(state text, row_of anyelement) returns "text/tab-separated-values" language sql immutable
     as $$select state || (select string_agg(value, e'\\t') from json_each_text(row_to_json(row_of))) || e'\\n'$$;
   create aggregate tsv(anyelement) (
     sfunc = tsv_step, stype = "text/tab-separated-values", initcond = ''
   );
   create function list_step(state text, item items) returns "application/vnd.list" language sql immutable
     as $$select state || item.id || ':' || item.name || ';'$$;
   create aggregate list(items) (sfunc = list_step, stype = "application/vnd.list", initcond = '');
   create function csv_step(state text, row_of shown) returns text language sql immutable
     as $$select state || row_of.name || ','$$;
   create function csv_end(state text) returns "text/csv" language plpgsql as $$
   begin
     perform set_config('response.headers', '[{"Content-Disposition": "attachment"}]', true);
     return 'own:' || state;
   end$$;
   create aggregate csv(shown) (sfunc = csv_step, stype = text, finalfunc = csv_end, initcond = '');
   create function raw_step(state bytea, row_of others) returns bytea language sql immutable
     as $$select state || decode(lpad(to_hex(row_of.id), 2, '0'), 'hex')$$;
   create function raw_end(state bytea) returns "*/*" language sql immutable as 'select state';
   create aggregate raw(others) (sfunc = raw_step, stype = bytea, finalfunc = raw_end, initcond = '');
   create function items_of(max int) returns setof items language sql stable as
     'select * from items where id <= max order by id';
   create function no_item() returns items language sql stable as 'select * from items where false';
   create function st_asgeojson(
     r record, geom_column text default '', maxdecimaldigits int default 9, pretty_bool boolean default false
   ) returns text language plpgsql stable as $$
   begin
     return json_build_object('type', 'Feature', 'geometry', null, 'properties', row_to_json(r));
   end$$;
   grant usage on schema public to :anon;
   grant select, insert, update, delete on items, others, shown, r to :anon`,
  'tx_end = "rollback"',
)

const as = async (path: string, accept: string, more: Record<string, string> = {}) => {
  const { status, headers, text } = await ask(path, { headers: { Accept: accept, ...more } })
  return [status, headers.get('content-type'), text]
}

describe('a function that returns a domain', () => {
  test.each([
    ['/rpc/page', 'text/html', 'text/html', '<h1>Hi</h1>'],
    ['/rpc/page', 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8', 'text/html', '<h1>Hi</h1>'],
    ['/rpc/page', 'application/json', 'application/json; charset=utf-8', '"<h1>Hi</h1>"'],
    ['/rpc/page.xml', 'text/xml', 'text/xml; charset=utf-8', '<a/>'],
  ])('%s as %s', async (path, accept, type, text) => {
    expect(await as(path, accept)).toEqual([200, type, text])
  })

  test.each([
    ['/rpc/page', 'text/plain'],
    ['/rpc/pages', 'text/html'],
    ['/rpc/items_of?max=1', 'text/html'],
    ['/items', 'undefined'],
  ])('%s as %s is not acceptable', async (path, accept) => {
    const { status, json } = await ask(path, { headers: { Accept: accept } })
    expect([status, json.code, json.message]).toEqual([
      ...[406, 'PGRST107'],
      `None of these media types are available: ${accept}`,
    ])
  })

  test('bytes are sent as they are, in both directions', async () => {
    const { url } = gateway
    const image = await fetch(`${url}/rest/v1/rpc/image`, { headers: { Accept: 'image/png, */*' } })
    expect(Buffer.from(await image.arrayBuffer()).toString('hex')).toBe('89504e47')
    const sent = Buffer.from([0, 255, 92, 120, 10])
    const echo = await fetch(`${url}/rest/v1/rpc/bytes`, {
      method: 'POST',
      headers: { Accept: 'application/octet-stream', 'Content-Type': 'application/octet-stream' },
      body: sent,
    })
    expect(echo.headers.get('content-type')).toBe('application/octet-stream')
    expect(Buffer.from(await echo.arrayBuffer())).toEqual(sent)
  })

  test('*/* answers every type, and response.headers names it', async () => {
    expect(await as('/rpc/anything', '*/*')).toEqual([200, 'application/octet-stream', 'any'])
    expect(await as('/rpc/anything', 'text/bango')).toEqual([200, 'application/octet-stream', 'any'])
    expect(await as('/rpc/anything', 'app/one')).toEqual([200, 'app/one', 'any'])
    expect((await as('/rpc/anything', 'app/none'))[0]).toBe(406)
  })
})

describe('an aggregate', () => {
  test('over anyelement serves every relation, with any columns', async () => {
    const tsv = 'text/tab-separated-values'
    expect(await as('/items?order=id', tsv)).toEqual([200, tsv, '1\tone\n2\ttwo\n3\tthree\n'])
    expect(await as('/items?select=name&id=lt.3&order=id.desc', tsv)).toEqual([200, tsv, 'two\none\n'])
    expect(await as('/others?select=id,items(name)&limit=1', tsv)).toEqual([200, tsv, '10\t{"name": "one"}\n'])
    expect(await as('/rpc/items_of?max=2&select=id', tsv)).toEqual([200, tsv, '1\n2\n'])
    expect(await as('/items?id=eq.0', tsv)).toEqual([200, tsv, ''])
    expect(await as('/r', tsv)).toEqual([200, tsv, '1\ta\n'])
  })

  test('over the rows of a table serves whole rows of it', async () => {
    const list = 'application/vnd.list'
    expect(await as('/items?order=id&limit=2', list)).toEqual([200, list, '1:one;2:two;'])
    expect(await as('/rpc/items_of?max=1', list)).toEqual([200, list, '1:one;'])
    expect(await as('/rpc/no_item', list)).toEqual([200, list, ''])
    for (const path of ['/items?select=id', '/items?select=id,name', '/shown'])
      expect([path, (await as(path, list))[0]]).toEqual([path, 406])
  })

  test('replaces a common media type, for views too, and can set headers', async () => {
    const { status, headers, text } = await ask('/shown?order=id', { headers: { Accept: 'text/csv' } })
    expect([status, headers.get('content-type'), text]).toEqual([200, 'text/csv; charset=utf-8', 'own:one,two,'])
    expect(headers.get('content-disposition')).toBe('attachment')
    expect(headers.get('content-range')).toBe('0-1/*')
  })

  test('over */* answers every type as bytes', async () => {
    expect(await as('/others?order=id', 'x/y')).toEqual([200, 'application/octet-stream', '\n\v'])
    expect(await as('/others?order=id', '*/*')).toEqual([200, 'application/octet-stream', '\n\v'])
    expect((await as('/others', 'application/vnd.pgrst.object+json'))[0]).toBe(406)
    expect((await as('/others?select=id', 'application/json'))[1]).toBe('application/json; charset=utf-8')
  })

  test('counts the rows for Prefer: count', async () => {
    const headers = { Accept: 'application/vnd.list', Prefer: 'count=exact' }
    const reply = await ask('/items?limit=2', { headers })
    expect([reply.status, reply.headers.get('content-range')]).toEqual([206, '0-1/3'])
  })

  test('is called with the rights of the caller', async () => {
    await run('revoke execute on function list(items) from public')
    const { status, json } = await ask('/items', { headers: { Accept: 'application/vnd.list' } })
    expect([status, json.code]).toEqual([401, '42501'])
    await run('grant execute on function list(items) to public')
  })
})

describe('the rows that a write returns', () => {
  const list = 'application/vnd.list'
  const tsv = 'text/tab-separated-values'
  const write = async (method: string, path: string, accept: string, body?: string, prefer = '') => {
    const reply = await ask(path, {
      method,
      headers: { Accept: accept, 'Content-Type': 'application/json', Prefer: `return=representation, ${prefer}` },
      ...(body === undefined ? {} : { body }),
    })
    return [reply.status, reply.headers.get('content-type'), reply.text]
  }

  test('are made into one value', async () => {
    const two = '[{"id": 8, "name": "eight"}, {"id": 9, "name": "nine"}]'
    expect(await write('POST', '/items', list, two)).toEqual([201, list, '8:eight;9:nine;'])
    expect(await write('POST', '/items', list, '{"id": 8, "name": "eight"}')).toEqual([201, list, '8:eight;'])
    expect(await write('PATCH', '/items?id=lt.3&order=id.desc', list, '{"name": "x"}')).toEqual([
      ...[200, list, '2:x;1:x;'],
    ])
    expect(await write('PUT', '/items?id=eq.1', list, '{"id": 1, "name": "y"}')).toEqual([200, list, '1:y;'])
    expect(await write('DELETE', '/others?order=id', '*/*')).toEqual([200, 'application/octet-stream', '\n\v'])
  })

  test('can have any columns for an aggregate over anyelement', async () => {
    const body = '[{"id": 1, "name": "x"}, {"id": 9, "name": "y"}]'
    const merge = 'resolution=merge-duplicates'
    expect(await write('POST', '/items?select=name', tsv, body, merge)).toEqual([201, tsv, 'x\ny\n'])
    expect(await write('DELETE', '/others?select=id,items(name)&id=eq.10', tsv)).toEqual([
      ...[200, tsv, '10\t{"name": "one"}\n'],
    ])
  })

  test('have no value if there are none', async () => {
    expect(await write('PATCH', '/items?id=eq.0', list, '{"name": "x"}')).toEqual([200, list, ''])
    expect(await write('POST', '/items', list, '[]')).toEqual([201, list, ''])
  })

  test('must be whole rows for an aggregate over the rows of a table', async () => {
    expect((await write('DELETE', '/items?select=id&id=eq.3', list))[0]).toBe(406)
  })

  test('cannot be a part of those that are written', async () => {
    const { status, json } = await ask('/items?limit=1', {
      method: 'PATCH',
      headers: { Accept: list, 'Content-Type': 'application/json', Prefer: 'return=representation' },
      body: '{"name": "x"}',
    })
    expect([status, json.code]).toEqual([400, 'PGRST127'])
  })
})

describe('GeoJSON, with a function that makes a feature of a row', () => {
  const geo = 'application/geo+json'
  const collection = (...rows: readonly object[]) => ({
    type: 'FeatureCollection',
    features: rows.map(properties => ({ type: 'Feature', geometry: null, properties })),
  })
  const collected = async (path: string, options: AskOptions = {}) => {
    const { status, headers, json } = await ask(path, {
      ...options,
      headers: { Accept: geo, 'Content-Type': 'application/json', ...options.headers },
    })
    expect(headers.get('content-type')).toBe('application/geo+json; charset=utf-8')
    return [status, json]
  }

  test('is a collection of the rows of a relation or a function', async () => {
    expect(await collected('/items?select=id&order=id&limit=2')).toEqual([200, collection({ id: 1 }, { id: 2 })])
    expect(await collected('/others?select=id,items(name)&id=eq.10')).toEqual([
      ...[200, collection({ id: 10, items: { name: 'one' } })],
    ])
    expect(await collected('/rpc/items_of?max=1')).toEqual([200, collection({ id: 1, name: 'one' })])
    expect(await collected('/items?id=eq.0')).toEqual([200, collection()])
  })

  test('is a collection of the rows of a write', async () => {
    const headers = { Prefer: 'return=representation' }
    expect(await collected('/items', { method: 'POST', headers, body: '{"id": 8}' })).toEqual([
      ...[201, collection({ id: 8, name: null })],
    ])
    expect(await collected('/items?id=eq.0', { method: 'DELETE', headers })).toEqual([200, collection()])
  })
})
