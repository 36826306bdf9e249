/** docs/reference/reading.md#filters: `match` finds label paths (`ltree`) by an `lquery`. */
import { expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'

const database = databaseFixture(`create extension ltree;
     create domain topic as ltree;
     create table topics (id int primary key, path ltree, topic topic generated always as (path) stored);
     insert into topics values (1, 'Top'), (2, 'Top.Science'), (3, 'Top.Science.Astronomy'), (4, 'Top.Hobbies');
     grant all on topics to app`)

const gateway = gatewayFixture(database)

const ids = async (query: string): Promise<unknown> => {
  const { status, json } = await gateway.get(`/api/topics?select=id&sort=id&${query}`)
  return status === 200 ? json.data.map((row: { id: number }) => row.id) : json.error
}

test.each<[query: string, expected: number[]]>([
  ['path=match.*.Science', [2]],
  ['path=match.*.Science.*', [2, 3]],
  ['path=match.Top.*{1}', [2, 4]],
  ['path=not.match.*.Science.*', [1, 4]],
  ['topic=match.*.sc*@.*', [2, 3]],
])('%s finds label paths', async (query, expected) => {
  expect(await ids(query)).toEqual(expected)
})

test('an lquery that does not parse is refused with its own words', async () => {
  const { status, json } = await gateway.get('/api/topics?path=match.*{2,1}')
  expect([status, json.error.message]).toEqual([400, expect.stringContaining('lquery')])
})
