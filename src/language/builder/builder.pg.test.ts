/**
 * docs/guides/builder.md: a JavaScript value arrives in PostgreSQL as that value, as a parameter and as a
 * literal.
 */
import { beforeAll, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import {
  add,
  and,
  type Built,
  compute,
  del,
  desc,
  eq,
  excluded,
  fn,
  get,
  gt,
  isIn,
  json,
  param,
  set,
} from './builder.ts'

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() =>
  client.query(`
    create table kinds (
      id int primary key, i int8, n numeric, f float8, s text, b boolean, d jsonb, a int[], t timestamptz);
    create table users (id int primary key, name text unique, age int);
    create table posts (id int primary key, user_id int, title text);
    insert into users values (1, 'Ann', 30), (2, 'Bob', 17);
    insert into posts values (1, 1, 'one'), (2, 1, 'two');
  `),
)

/** The result; values are bound, or are literals in the text. */
async function run(
  built: Built,
  parameters: 'all' | 'keep' = 'all',
  given: Record<string, string> = {},
): Promise<unknown[]> {
  const sql = built.toSql({ parameters })
  const values = sql.parameters.map(one =>
    one.kind === 'literal' ? one.value : one.kind === 'name' ? given[one.name] : null,
  )
  return (await client.query({ text: sql.text, values })).rows
}

test('values arrive exactly', async () => {
  const row = {
    i: -(2n ** 63n),
    n: 123456789012345678901234567890n,
    f: 5e-324,
    s: `o'x "\\ \n$1 :a --`,
    b: false,
    d: { a: [1, 'x', { "o'": null }] },
    a: [1, -2, null],
    t: new Date('2024-02-29T12:00:00.5Z'),
  }
  const stored = {
    i: '-9223372036854775808',
    n: '123456789012345678901234567890',
    f: 5e-324,
    s: row.s,
    b: false,
    d: row.d,
    a: row.a,
    t: row.t,
  }
  expect(await run(add('kinds').values({ id: 1, ...row }))).toEqual([{ id: 1, ...stored }])
  expect(await run(add('kinds').values({ id: 2, ...row }), 'keep')).toEqual([{ id: 2, ...stored }])
  for (const [column, value] of Object.entries(row)) {
    for (const parameters of ['all', 'keep'] as const) {
      expect(await run(get('kinds').fields('id').where(eq(column, value)).orderBy('id'), parameters), column).toEqual([
        { id: 1 },
        { id: 2 },
      ])
    }
  }
  expect(
    await run(
      add('kinds')
        .values({ id: 3, d: json([1, 'x']), f: -0 })
        .returning('d', 'f'),
    ),
  ).toEqual([{ d: [1, 'x'], f: 0 }])
})

test('built queries and writes return the expected rows', async () => {
  const adults = get('users')
    .fields('name')
    .where(and(gt('age', 18), isIn('id', param('ids'))))
    .nestMany('posts', posts => posts.fields('title').orderBy(desc('id')).limit(1))
  expect(await run(adults, 'all', { ids: '{1,2,3}' })).toEqual([{ name: 'Ann', posts: [{ title: 'two' }] }])
  const merged = add('users')
    .values({ id: 3, name: 'Ann', age: 1 }, { id: 4, name: 'Eve', age: 2 })
    .conflict(['name'], { age: compute('users.age', '+', excluded('age')) })
    .returning('id', 'age')
  expect(await run(merged)).toEqual([
    { id: 1, age: 31 },
    { id: 4, age: 2 },
  ])
  expect(
    await run(
      set('users')
        .values({ name: fn('upper', 'name') })
        .where(eq('id', 4))
        .returning('name'),
    ),
  ).toEqual([{ name: 'EVE' }])
  expect(await run(del('users').where(gt('id', 1)).returning('id'))).toEqual([{ id: 2 }, { id: 4 }])
})
