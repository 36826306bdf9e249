/** docs/guides/coming-from-postgrest.md: relations, order and range in the rows that a write returns. */
import { beforeEach, describe, expect, test } from 'vitest'
import { clientFixture } from '../support/fixtures.ts'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask, adminUrl } = postgrestFixture(
  `create table halls (id int primary key, name text, owner text default 'all');
   create table shows (id int primary key, hall_id int references halls, name text, follows int references shows);
   create table seats (show_id int references shows on delete cascade, row text, primary key (show_id, row));
   create table actors (id int primary key, name text);
   create table casts (show_id int references shows on delete cascade, actor_id int references actors,
     primary key (show_id, actor_id));
   alter table halls enable row level security;
   create policy open_halls on halls to :anon using (owner = 'all');
   grant select, insert, update, delete on halls, shows, seats, actors, casts to :anon`,
  'tx_end = "commit-allow-override"\naggregates_enabled = true',
)
const admin = clientFixture(() => adminUrl())

beforeEach(async () => {
  await admin.query(`
    truncate halls, shows, seats, actors, casts;
    insert into halls values (1, 'North', 'all'), (2, 'South', 'nobody');
    insert into shows values (1, 1, 'Hamlet', null), (2, 1, 'Macbeth', 1), (3, 2, 'Othello', 1);
    insert into seats values (1, 'B'), (1, 'A'), (2, 'A');
    insert into actors values (1, 'Ann'), (2, 'Bob');
    insert into casts values (1, 1), (1, 2), (2, 2)`)
})

const write = (method: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(path, {
    method,
    headers: { 'Content-Type': 'application/json', Prefer: 'return=representation', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

describe('relations', () => {
  test('are embedded in inserted rows, many-to-one and spread', async () => {
    const { status, json } = await write('POST', '/shows?select=name,halls(id,name),...halls(hall:name)', {
      ...{ id: 4, hall_id: 1, name: 'Lear' },
    })
    expect([status, json]).toEqual([201, [{ name: 'Lear', halls: { id: 1, name: 'North' }, hall: 'North' }]])
  })

  test('are embedded in updated rows at every level, with filters and order', async () => {
    const path =
      '/shows?id=eq.1&select=name,seats(row),shows(name,before:follows(name)),actors(name)' +
      '&seats.order=row&actors.name=eq.Bob&shows.order=id&shows.limit=1'
    const { status, json, headers } = await write('PATCH', path, { name: 'Hamlet II' })
    expect([status, headers.get('content-range')]).toEqual([200, '0-0/*'])
    expect(json).toEqual([
      {
        name: 'Hamlet II',
        seats: [{ row: 'A' }, { row: 'B' }],
        // Rows of other tables, and other rows of the same one, are those before the write.
        shows: [{ name: 'Macbeth', before: { name: 'Hamlet' } }],
        actors: [{ name: 'Bob' }],
      },
    ])
  })

  test('are embedded in deleted rows as they were', async () => {
    const { json } = await write('DELETE', '/shows?id=eq.2&select=id,seats(row),halls(name)', undefined)
    expect(json).toEqual([{ id: 2, seats: [{ row: 'A' }], halls: { name: 'North' } }])
    expect((await admin.query('select count(*)::int as n from seats where show_id = 2')).rows).toEqual([{ n: 0 }])
  })

  test('are embedded in the rows of upserts and PUT', async () => {
    const rows = [
      { id: 1, hall_id: 1, name: 'one' },
      { id: 5, hall_id: 2, name: 'five' },
    ]
    const merged = await write('POST', '/shows?select=name,halls(name)&order=id.desc', rows, {
      Prefer: 'return=representation, resolution=merge-duplicates',
    })
    expect([merged.status, merged.json]).toEqual([
      201,
      [
        { name: 'five', halls: null },
        { name: 'one', halls: { name: 'North' } },
      ],
    ])
    const put = await write('PUT', '/shows?id=eq.1&select=id,seats(row)&seats.order=row', {
      ...{ id: 1, hall_id: 1, name: 'again', follows: null },
    })
    expect([put.status, put.json]).toEqual([200, [{ id: 1, seats: [{ row: 'A' }, { row: 'B' }] }]])
  })

  test('obey the row-level security of the embedded table', async () => {
    const { json } = await write('PATCH', '/shows?id=in.(1,3)&select=id,halls(name)&order=id', { follows: null })
    expect(json).toEqual([
      { id: 1, halls: { name: 'North' } },
      { id: 3, halls: null },
    ])
  })

  test('with !inner restrict what is returned, not what is written', async () => {
    const { json, headers } = await write('PATCH', '/shows?select=id,halls!inner(name)&order=id.desc', { name: 'x' })
    expect([json.map(({ id }: { id: number }) => id), headers.get('content-range')]).toEqual([[2, 1], '0-1/*'])
    expect((await admin.query(`select count(*)::int as n from shows where name = 'x'`)).rows).toEqual([{ n: 3 }])
  })

  test('that do not exist are refused before anything is written', async () => {
    const { status, json } = await write('PATCH', '/shows?id=eq.1&select=id,actor(name)', { name: 'x' })
    expect([status, json.code]).toEqual([400, 'PGRST200'])
    const missing = await write('DELETE', '/shows?select=id,nowhere', undefined)
    expect([missing.status, missing.json.code]).toEqual([400, '42703'])
    expect((await admin.query(`select name from shows where id = 1`)).rows).toEqual([{ name: 'Hamlet' }])
  })

  test('are embedded in CSV and without nulls', async () => {
    const { json } = await write(
      'PATCH',
      '/shows?id=eq.3&select=id,follows,halls(name)',
      { follows: null },
      {
        Accept: 'application/vnd.pgrst.array+json;nulls=stripped',
      },
    )
    expect(json).toEqual([{ id: 3 }])
    const csv = await write('PATCH', '/shows?id=eq.1&select=id,halls(name)', { follows: null }, { Accept: 'text/csv' })
    expect(csv.text).toBe('id,halls\n1,"{""name"":""North""}"')
  })
})

describe('order and range', () => {
  test('sort and shorten the rows of the response', async () => {
    const sorted = await write('PATCH', '/shows?select=id&order=hall_id.desc,id.desc', { name: 'x' })
    expect(sorted.json).toEqual([{ id: 3 }, { id: 2 }, { id: 1 }])
    const nulls = await write('PATCH', '/shows?select=id&order=follows.desc.nullslast,id', { name: 'y' })
    expect(nulls.json).toEqual([{ id: 2 }, { id: 3 }, { id: 1 }])
    const page = await write('PATCH', '/shows?select=id&order=id&limit=1&offset=1', { name: 'z' })
    expect([page.json, page.headers.get('content-range')]).toEqual([[{ id: 2 }], '0-0/*'])
    expect((await admin.query(`select count(*)::int as n from shows where name = 'z'`)).rows).toEqual([{ n: 3 }])
  })

  test('by a column of a related row', async () => {
    await admin.query(`update halls set owner = 'all'`)
    const { json } = await write('DELETE', '/shows?select=id,halls(name)&order=halls(name).desc,id', undefined)
    expect(json.map(({ id }: { id: number }) => id)).toEqual([3, 1, 2])
  })

  test('apply with a limit on affected rows as well', async () => {
    const { status, json } = await write(
      'PATCH',
      '/shows?select=id,halls(name)&order=id.desc&hall_id=eq.1',
      { name: 'x' },
      {
        Prefer: 'return=representation, handling=strict, max-affected=2',
      },
    )
    expect([status, json.map(({ id }: { id: number }) => id)]).toEqual([200, [2, 1]])
    const refused = await write(
      'PATCH',
      '/shows?select=id&order=id',
      { name: 'y' },
      {
        Prefer: 'return=representation, handling=strict, max-affected=2',
      },
    )
    expect([refused.status, refused.json.code]).toEqual([400, 'PGRST124'])
  })
})
