/** docs/guides/coming-from-postgrest.md: what the gateway adds applies to requests in PostgREST's dialect. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create table items (id int primary key, name text, deleted_at timestamptz);
   insert into items values (1, 'one'), (2, 'two');
   create table grown (id int primary key) with (autovacuum_enabled = false);
   insert into grown values (1);
   analyze grown;
   insert into grown select generate_series(2, 6);
   grant usage on schema public to :anon;
   grant select on grown to :anon;
   grant select, insert, update, delete on items to :anon`,
  'max_rows = 3\n[gateway.tables.items]\nsoft_delete = "deleted_at"',
)

describe('managed columns', () => {
  test('a deletion marks a row, which reads no longer find', async () => {
    const { status } = await ask('/items?id=eq.1', { method: 'DELETE' })
    expect(status).toBe(204)
    expect((await ask('/items?select=id')).json).toEqual([{ id: 2 }])
  })
})

describe('limits', () => {
  test('max_rows shortens a response, and the count is of all rows', async () => {
    const rows = Array.from({ length: 6 }, (_, n) => ({ id: 10 + n, name: 'x' }))
    await ask('/items', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(rows),
    })
    const { json, headers } = await ask('/items?name=eq.x', { headers: { Prefer: 'count=exact' } })
    expect([json.length, headers.get('content-range')]).toEqual([3, '0-2/6'])
  })

  test('count=estimated counts one row more than max_rows, unless the estimate is larger', async () => {
    const counted = async (count: string, query = '') =>
      (await ask(`/grown?${query}`, { headers: { Prefer: `count=${count}` } })).headers.get('content-range')
    expect(await counted('exact')).toBe('0-2/6')
    expect(await counted('estimated')).toBe('0-2/4')
    expect(await counted('estimated', 'id=lte.3')).toBe('0-2/3')
    expect(await counted('estimated', 'offset=4')).toBe('4-5/6')
  })

  test('a list of too many values is refused in the form of PostgREST', async () => {
    const list = Array.from({ length: 1_001 }, (_, n) => n).join(',')
    const { status, json } = await ask(`/items?id=in.(${list})`)
    expect([status, json.code, json.message]).toEqual([
      400,
      'PGRST100',
      'a list has more than 1000 values (max_in_values)',
    ])
  })

  test('a body above the limit is refused in the form of PostgREST', async () => {
    const { status, json } = await ask('/items', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: 99, name: 'x'.repeat(3 * 1_024 * 1_024) }),
    })
    expect([status, json.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
  })

  test('a large body is written', async () => {
    const { status } = await ask('/items', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: 98, name: 'x'.repeat(1_024 * 1_024) }),
    })
    expect(status).toBe(201)
  })
})
