/**
 * docs/reference/reading.md#names: names of tables, columns, relations and aliases are matched exactly,
 * whatever characters they contain.
 */
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

const NAMES = [
  ...[
    '__proto__',
    'constructor',
    'valueOf',
    'hasOwnProperty',
    'toString',
    'Server Today',
    'do$llar$s',
    'تست',
    'select',
    'order',
    'user',
  ],
  ...[
    'a"b',
    "a'b",
    'a.b',
    'a,b',
    'a:b',
    'a!b',
    'a->b',
    'a/b',
    'a%b',
    'a?b',
    'a#b',
    'a&b=c',
    'a+b',
    '-a',
    '*',
    '1',
    ' ',
    'limit',
    'r',
    't',
    't1',
    'j1',
    'n',
  ],
  ...['eq', 'x.eq', 'nested', '(', 'ÄÖÜ', '😀', 'x'.repeat(63), 'é'.repeat(31)],
]

const sqlName = (name: string) => `"${name.replaceAll('"', '""')}"`
/** A name as written in the notations of parameters. */
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const url = encodeURIComponent

const database = databaseFixture()
beforeAll(async () => {
  const tables = NAMES.map(name => {
    const own = sqlName(name)
    return `create table ${own} (${own} int primary key, up int references ${own}, meta jsonb);
      insert into ${own} values (1, null, '{"k": 1}'), (2, 1, '{}')`
  })
  await execute(database.adminUrl, `${tables.join(';')}; grant select on all tables in schema public to app`)
})
const gateway = gatewayFixture(database)

test.each(NAMES)('a name is matched exactly: %j', async name => {
  const ok = async (path: string) => {
    const reply = await gateway.get(path)
    expect(reply.status, `${path}: ${reply.text}`).toBe(200)
    // JSON.parse creates an own property for __proto__, and a Map of entries keeps it.
    return reply.json.data
  }
  const value = (row: object) => Object.entries(row).find(([key]) => key === name)?.[1]
  const path = `/api/${url(name)}`
  expect((await ok(path)).map(value)).toEqual([1, 2])
  expect(value(await ok(`${path}/2`))).toBe(2)
  expect((await ok(`${path}?${url(`${quoted(name)}`)}=2`)).map(value)).toEqual([2])
  expect((await ok(`${path}?${url(quoted(name))}.gt=1`)).map(value)).toEqual([2])
  expect((await ok(`${path}?or=${url(`(${quoted(name)}.eq.1,${quoted(name)}.in.(2))`)}`)).map(value)).toEqual([1, 2])
  expect((await ok(`${path}?select=${url(quoted(name))}&sort=-${url(quoted(name))}`)).map(value)).toEqual([2, 1])
  expect((await ok(`${path}?select=${url(quoted(name))}:up&limit=1`)).map(value)).toEqual([null])
  expect((await ok(`${path}?distinct=${url(quoted(name))}`)).map(value)).toEqual([1, 2])
  expect(await ok(`${path}/aggregate?fn=max&column=${url(quoted(name))}`)).toEqual({ max: 2 })
  expect(await ok(`${path}/aggregate?fn=count&group_by=${url(quoted(name))}&sort=-${url(quoted(name))}`)).toHaveLength(
    2,
  )
  const [, second] = await ok(`${path}?select=up&expand=${url(quoted(name))}`)
  expect(value(value(second) as object)).toBe(1)
  const [first] = await ok(`${path}?select=up&expand=down:nested:${url(quoted(name))}`)
  expect(first.down.map(value)).toEqual([2])
  expect((await ok(`${path}/1/${url(name)}`)).map(value)).toEqual([2])
  expect(await ok(`${path}?select=${url(`meta->${quoted(name)}`)}&limit=1`)).toHaveLength(1)
})

test('all names are in the schema document as separate keys', async () => {
  const { tables } = (await gateway.get('/api/_schema')).json
  expect(Object.keys(tables).sort()).toEqual([...NAMES].sort())
})
