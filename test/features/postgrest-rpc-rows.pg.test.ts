/** docs/guides/coming-from-postgrest.md: records, limits on affected rows, and the bodies of calls. */
import { beforeEach, describe, expect, test } from 'vitest'
import { clientFixture } from '../support/fixtures.ts'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask, adminUrl } = postgrestFixture(
  `create table jars (id int primary key, label text);
   create function one_record() returns record language sql stable as $$select 1 as id, 'a'::text as label$$;
   create function records(first int, name text default 'b') returns setof record language sql stable
     as $$select n, name from generate_series(first, first + 1) n$$;
   create function empty_all() returns setof jars language sql as 'delete from jars returning *';
   create function empty_ids() returns table (jar int) language sql as 'delete from jars returning id';
   create function empty_quietly() returns void language sql as 'delete from jars';
   create function relabel(text) returns setof jars language sql as 'update jars set label = $1 returning *';
   create function total(a int, b int) returns int immutable language sql as 'select a + b';
   create function items_of(json) returns int immutable language sql as 'select json_array_length($1)';
   grant select, update, delete on jars to :anon`,
  'tx_end = "commit-allow-override"',
)
const admin = clientFixture(() => adminUrl())

beforeEach(async () => {
  await admin.query(`truncate jars; insert into jars select n, 'jar' from generate_series(1, 3) n`)
})

const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  ask(`/rpc/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const count = async (where = 'true') =>
  (await admin.query(`select count(*)::int as n from jars where ${where}`)).rows[0]?.n

describe('records without declared columns', () => {
  test('are objects with the columns that the function returned', async () => {
    expect((await ask('/rpc/one_record')).json).toEqual({ id: 1, label: 'a' })
    const rows = await post('records', { first: 5 })
    expect([rows.status, rows.json]).toEqual([
      200,
      [
        { n: 5, name: 'b' },
        { n: 6, name: 'b' },
      ],
    ])
    expect(rows.headers.get('content-range')).toBe('0-1/*')
    expect((await ask('/rpc/records?first=1&name=x&limit=1')).json).toHaveLength(1)
  })
})

describe('max-affected with handling=strict', () => {
  const limited = (max: number) => ({ Prefer: `handling=strict, max-affected=${max}` })

  test.each(['empty_all', 'empty_ids'])('rolls %s back if it returns more rows', async name => {
    const { status, json } = await post(name, {}, limited(2))
    expect([status, json.code, json.details]).toEqual([400, 'PGRST124', 'The query affects 3 rows'])
    expect(await count()).toBe(3)
  })

  test.each(['empty_all', 'empty_ids'])('lets %s return as many rows', async name => {
    const { status, json, headers } = await post(name, {}, limited(3))
    expect([status, json.length, headers.get('preference-applied')]).toEqual([
      ...[200, 3, 'handling=strict, max-affected=3'],
    ])
    expect(await count()).toBe(0)
  })

  test('refuses a function that does not return a set', async () => {
    const { status, json } = await post('empty_quietly', {}, limited(20))
    expect([status, json.code]).toEqual([400, 'PGRST128'])
    expect(await count()).toBe(3)
  })

  test('does not apply with handling=lenient', async () => {
    expect((await post('empty_all', {}, { Prefer: 'handling=lenient, max-affected=1' })).status).toBe(200)
  })
})

test('a call for one object is rolled back if it returns several', async () => {
  const { status, json } = await post('relabel', '"x"', { Accept: 'application/vnd.pgrst.object+json' })
  // A text in JSON is the argument of a function that takes JSON.
  expect(status).toBe(404)
  expect(json.code).toBe('PGRST202')
  const text = await post('relabel', 'x', {
    ...{ 'Content-Type': 'text/plain', Accept: 'application/vnd.pgrst.object+json' },
  })
  expect([text.status, text.json.code, text.json.details]).toEqual([406, 'PGRST116', 'The result contains 3 rows'])
  expect(await count(`label = 'x'`)).toBe(0)
})

describe('bodies', () => {
  test('the first object of an array or of a CSV has the arguments', async () => {
    expect(
      (
        await post('total', [
          { a: 1, b: 2 },
          { a: 5, b: 5 },
        ])
      ).json,
    ).toBe(3)
    expect((await post('total', 'a,b\n3,4\n5,6', { 'Content-Type': 'text/csv' })).json).toBe(7)
  })

  test('an array is one argument of a function that takes JSON', async () => {
    expect(
      (
        await post('items_of', [
          { a: 1, b: 2 },
          { a: 5, b: 5 },
        ])
      ).json,
    ).toBe(2)
    expect((await post('items_of', [1, 2, 3])).json).toBe(3)
  })

  test('an error names the columns of a CSV that no function has', async () => {
    const { status, json } = await post('total', 'a,c\n1,2', { 'Content-Type': 'text/csv' })
    expect([status, json]).toEqual([
      404,
      {
        code: 'PGRST202',
        message: 'Could not find the function public.total(a, c) in the schema cache',
        details:
          'Searched for the function public.total with parameters a, c, but no matches were found in the schema cache.',
        hint: 'Perhaps you meant to call the function public.total(a, b)',
      },
    ])
  })

  test('of another type are refused', async () => {
    const { status, json } = await post('total', 'x', { 'Content-Type': 'audio/mpeg' })
    expect([status, json.code]).toEqual([400, 'PGRST102'])
  })
})
