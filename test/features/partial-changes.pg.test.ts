/** docs/reference/writing.md#partial-changes: increments, JSON Merge Patch and JSON Patch. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import type { AskOptions } from '../support/gateway.ts'

const database = databaseFixture(`
  create table things (
    id int primary key, name text, stock int check (stock >= 0), price numeric(8, 2), data jsonb, plain json,
    day date, list int[]);
  grant select, insert, update, delete on all tables in schema public to app;
`)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database)
const folder = folderFixture()
const limited = gatewayFixture(database, async () => {
  const path = join(folder, 'policy.toml')
  await writeFile(
    path,
    `default_decision = "allow"
     [tables.things]
     read_columns = { except = ["stock"] }
     write_columns = { only = ["stock", "data"] }`,
  )
  return { toml: `[access]\nenabled = true\npath = ${JSON.stringify(path)}` }
})

beforeEach(() =>
  executeOn(
    admin,
    `delete from things;
     insert into things values (1, 'cup', 5, 1.50, '{"a": {"b": 1, "c": 2}, "l": [1, 2, 3], "n": null}', '{"x": 1}',
       '2026-01-02', '{1}'), (2, null, null, null, null, null, null, null)`,
  ),
)

interface Sent extends Pick<AskOptions, 'headers'> {
  readonly by?: typeof gateway
  readonly path?: string
}

function patch(type: string, body: unknown, { headers, by = gateway, path = '/api/things/1' }: Sent = {}) {
  return by.get(path, {
    ...{ method: 'PATCH', headers: { 'Content-Type': `application/${type}`, ...headers } },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}
const merge = (body: unknown, sent?: Sent) => patch('merge-patch+json', body, sent)
const operate = (body: unknown, sent?: Sent) => patch('json-patch+json', body, sent)
const increase = (body: unknown, sent?: Sent) => patch('json', body, sent)

describe('an increment', () => {
  test('adds to the current value, beside ordinary values', async () => {
    const { status, json } = await increase({ stock: { $inc: -2 }, price: { $inc: 0.25 }, name: 'mug' })
    expect([status, json.data ?? json.error]).toEqual([
      200,
      expect.objectContaining({ stock: 3, price: 1.75, name: 'mug' }),
    ])
  })

  test('is atomic', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => increase({ price: { $inc: 1 } })))
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect((await admin.query('select price from things where id = 1')).rows).toEqual([{ price: '21.50' }])
  })

  test('obeys constraints, leaves NULL, and works with filters', async () => {
    const refused = await increase({ stock: { $inc: -6 } })
    expect([refused.status, refused.json.error.details.sqlstate]).toEqual([400, '23514'])
    expect((await increase({ stock: { $inc: 1 } }, { path: '/api/things/2' })).json.data.stock).toBeNull()
    expect((await increase({ stock: { $inc: 1 } }, { path: '/api/things?id.lt=9' })).json.count).toBe(2)
  })

  test('needs the right to update, not to read', async () => {
    const sent = { by: limited, headers: { Prefer: 'return=minimal' } }
    expect((await increase({ stock: { $inc: 1 } }, sent)).status).toBe(204)
    expect((await increase({ price: { $inc: 1 } }, sent)).status).toBe(403)
  })

  test.each([
    [{ stock: { $inc: 'a' } }, '$inc of column "stock" takes a number, not string'],
    [{ name: { $inc: 1 } }, 'column "name" is not a number'],
  ])('%o is rejected', async (body, message) => {
    const { status, json } = await increase(body)
    expect([status, json.error.message]).toEqual([400, expect.stringContaining(message)])
  })

  test('is ordinary data in a JSON column, and is rejected when a row is created', async () => {
    expect((await increase({ data: { $inc: 1 } })).json.data.data).toEqual({ $inc: 1 })
    const created = await gateway.get('/api/things', {
      ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ id: 3, stock: { $inc: 1 } }),
    })
    expect(created.status).toBe(400)
  })
})

describe('a JSON Merge Patch', () => {
  // The examples of RFC 7396, appendix A, as members of the column.
  test.each([
    ['{"a":"b"}', '{"a":"c"}', { a: 'c' }],
    ['{"a":"b"}', '{"b":"c"}', { a: 'b', b: 'c' }],
    ['{"a":"b"}', '{"a":null}', {}],
    ['{"a":"b","b":"c"}', '{"a":null}', { b: 'c' }],
    ['{"a":["b"]}', '{"a":"c"}', { a: 'c' }],
    ['{"a":"c"}', '{"a":["b"]}', { a: ['b'] }],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', { a: { b: 'd' } }],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', { a: [1] }],
    ['["a","b"]', '["c","d"]', ['c', 'd']],
    ['{"a":"b"}', '["c"]', ['c']],
    ['{"a":"foo"}', 'null', null],
    ['{"a":"foo"}', '"bar"', 'bar'],
    ['{"e":null}', '{"a":1}', { e: null, a: 1 }],
    ['[1,2]', '{"a":"b","c":null}', { a: 'b' }],
    ['{}', '{"a":{"bb":{"ccc":null}}}', { a: { bb: {} } }],
    ['[[1],[2]]', '{"0":{"0":7}}', { 0: { 0: 7 } }],
  ])('applied to %s, the patch %s returns %o', async (before, body, after) => {
    await admin.query('update things set data = $1 where id = 1', [before])
    const { status, json } = await merge(`{"data": ${body}}`)
    expect([status, json.data.data]).toEqual([200, after])
  })

  test('sets other columns, and merges into NULL and json as well', async () => {
    const { json } = await merge({ name: null, plain: { y: 2 } })
    expect(json.data).toMatchObject({ name: null, plain: { x: 1, y: 2 } })
    expect((await merge({ data: { a: { b: 1 } } }, { path: '/api/things/2' })).json.data.data).toEqual({ a: { b: 1 } })
  })

  test('compares If-Match', async () => {
    expect((await merge({ name: 'a' }, { headers: { 'If-Match': '"x"' } })).status).toBe(412)
    const tag = (await gateway.get('/api/things/1')).headers.get('etag') ?? ''
    const changed = await merge({ data: { z: 1 } }, { headers: { 'If-Match': tag } })
    expect([changed.status, changed.headers.get('etag') === tag]).toEqual([200, false])
  })
})

describe('a JSON Patch', () => {
  test.each([
    [[{ op: 'add', path: '/data/a/d', value: 3 }], { data: { a: { b: 1, c: 2, d: 3 } } }],
    [[{ op: 'add', path: '/data/l/1', value: 9 }], { data: { l: [1, 9, 2, 3] } }],
    [[{ op: 'add', path: '/data/l/3', value: 9 }], { data: { l: [1, 2, 3, 9] } }],
    [[{ op: 'add', path: '/data/l/-', value: [4] }], { data: { l: [1, 2, 3, [4]] } }],
    [[{ op: 'remove', path: '/data/l/0' }], { data: { l: [2, 3] } }],
    [[{ op: 'replace', path: '/data/n', value: 'x' }], { data: { n: 'x' } }],
    [[{ op: 'move', from: '/data/a/b', path: '/data/l/0' }], { data: { a: { c: 2 }, l: [1, 1, 2, 3] } }],
    [[{ op: 'move', from: '/data/l/0', path: '/data/l/2' }], { data: { l: [2, 3, 1] } }],
    [[{ op: 'copy', from: '/name', path: '/data/m' }], { name: 'cup', data: { m: 'cup' } }],
    [
      [
        { op: 'replace', path: '/price', value: 2.5 },
        { op: 'remove', path: '/name' },
      ],
      { price: 2.5, name: null },
    ],
    [
      [
        { op: 'test', path: '/stock', value: 5 },
        { op: 'replace', path: '/day', value: '2026-02-03' },
      ],
      { stock: 5 },
    ],
    [[{ op: 'add', path: '/data/x~1y~0', value: 1 }], { data: { 'x/y~': 1 } }],
    [
      [
        { op: 'replace', path: '/data', value: [] },
        { op: 'add', path: '/data/-', value: 1 },
      ],
      { data: [1] },
    ],
    [[{ op: 'add', path: '/plain/y', value: 2 }], { plain: { x: 1, y: 2 } }],
  ])('%j is applied', async (body, row) => {
    const { status, json } = await operate(body)
    expect([status, json.data ?? json.error]).toEqual([200, expect.objectContaining({ id: 1 })])
    expect(json.data).toMatchObject(row)
  })

  test.each([
    [{ op: 'test', path: '/data/a/b', value: 2 }, 409, 'TEST_FAILED'],
    [{ op: 'test', path: '/data/none', value: 2 }, 409, 'TEST_FAILED'],
    [{ op: 'remove', path: '/data/none' }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'add', path: '/data/none/x', value: 1 }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'replace', path: '/data/l/3', value: 1 }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'replace', path: '/data/l/-1', value: 1 }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'add', path: '/data/l/4', value: 1 }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'add', path: '/data/l/01', value: 1 }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'copy', from: '/data/none', path: '/data/x' }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'add', path: '/name/x', value: 1 }, 422, 'PATH_NOT_FOUND'],
    [{ op: 'add', path: '/nmae', value: 1 }, 400, 'PARSE_ERROR'],
    [{ op: 'add', path: '', value: 1 }, 400, 'PARSE_ERROR'],
    [{ op: 'add', path: '/name' }, 400, 'PARSE_ERROR'],
    [{ op: 'swap', path: '/name' }, 400, 'PARSE_ERROR'],
    [{ op: 'move', from: '/data', path: '/data/a' }, 400, 'PARSE_ERROR'],
    [{ op: 'add', path: '/list/0', value: 1 }, 400, 'PARSE_ERROR'],
    ['x', 400, 'PARSE_ERROR'],
  ])('%j is rejected with %i, and nothing changes', async (operation, status, code) => {
    const reply = await operate([{ op: 'replace', path: '/name', value: 'new' }, operation])
    expect([reply.status, reply.json.error.code]).toEqual([status, code])
    if (status !== 400) expect(reply.json.error.details).toEqual({ operation: 1 })
    expect((await gateway.get('/api/things/1')).json.data.name).toBe('cup')
  })

  test('of tests alone changes no value', async () => {
    const passed = await operate([{ op: 'test', path: '/stock', value: 5 }])
    expect([passed.status, passed.json.data]).toEqual([200, expect.objectContaining({ id: 1, stock: 5 })])
    const failed = await operate([{ op: 'test', path: '/stock', value: 6 }])
    expect([failed.status, failed.json.error.code]).toEqual([409, 'TEST_FAILED'])
  })

  test('without operations, or with more than 1 000, is rejected', async () => {
    expect((await operate([])).status).toBe(400)
    const many = Array.from({ length: 1_001 }, () => ({ op: 'add', path: '/name', value: 'a' }))
    expect((await operate(many)).status).toBe(413)
    expect((await operate(many.slice(1))).status).toBe(200)
  })

  test('needs the rights to update and to read its columns', async () => {
    expect((await operate([{ op: 'replace', path: '/name', value: 'a' }], { by: limited })).status).toBe(403)
    expect((await operate([{ op: 'copy', from: '/stock', path: '/data/s' }], { by: limited })).status).toBe(403)
    expect((await operate([{ op: 'remove', path: '/data/a' }], { by: limited })).status).toBe(200)
  })

  test('of a missing row is answered with 404', async () => {
    const sent = { path: '/api/things/7' }
    expect((await operate([{ op: 'remove', path: '/data' }], sent)).status).toBe(404)
  })
})

test('the OpenAPI document describes increments, patches and imports', async () => {
  const { info } = (await gateway.get('/api/_openapi')).json
  for (const form of ['{"$inc": -1}', 'merge-patch+json', 'json-patch+json', 'text/csv', 'x-ndjson']) {
    expect(info.description).toContain(form)
  }
})
