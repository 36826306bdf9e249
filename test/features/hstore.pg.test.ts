/**
 * docs/reference/writing.md#bodies: an `hstore` is returned as a JSON object that can be written back; values
 * it cannot store are answered with 400.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'
import { sender } from '../support/send.ts'

const database = databaseFixture(`create extension hstore;
     create table things (id int primary key, attributes hstore, history hstore[]);
     create function size_of(h hstore) returns int immutable language sql as 'select cardinality(akeys(h))';
     insert into things values (1, 'a=>1, b=>NULL', array['x=>1'::hstore, null]);
     grant all on things to app`)
const post = sender(() => gateway, 'POST')
const patch = sender(() => gateway, 'PATCH')

const gateway = gatewayFixture(database)

test('the result of a GET can be written back in every kind of write', async () => {
  const { id: _, ...columns } = (await gateway.get('/api/things/1')).json.data
  expect(columns).toEqual({ attributes: { a: '1', b: null }, history: [{ x: '1' }, null] })
  await written(columns)
  await written({ attributes: { 'a"\\': "'\n\t", '': '=>', é: 'NULL' }, history: [{ 'a"\\': '"{\\,}' }, {}] })
})

async function written(columns: Readonly<Record<'attributes' | 'history', unknown>>): Promise<void> {
  await gateway.get('/api/things?id=gt.1', { method: 'DELETE' })
  expect((await post('/api/things', { id: 2, ...columns })).json.data).toEqual({ id: 2, ...columns })
  const batch = await post('/api/things', [
    { id: 3, ...columns },
    { id: 4, attributes: 'k=>v', history: [] },
  ])
  expect(batch.json.data).toEqual([
    { id: 3, ...columns },
    { id: 4, attributes: { k: 'v' }, history: [] },
  ])
  expect((await patch('/api/things/4', columns)).json.data).toEqual({ id: 4, ...columns })
  const query = 'set things values attributes = :a, history = :h where id = 4 returning attributes, history'
  const set = await post('/api/_query', { query, parameters: { a: columns.attributes, h: columns.history } })
  expect(set.json.data).toEqual([columns])
  const keys = Object.keys(columns.attributes as object)
  expect((await post('/api/rpc/size_of', { h: columns.attributes })).json.data).toBe(keys.length)
}

test('values other than strings become strings, because hstore has no other type', async () => {
  const { json } = await patch('/api/things/1', { attributes: { n: 1.5, t: true, o: { deep: ['x'] }, line: 'a\nb' } })
  expect(json.data.attributes).toEqual({ n: '1.5', t: 'true', o: '{"deep":["x"]}', line: 'a\nb' })
})

describe('inside of composite values, at any depth', () => {
  const LABEL = { at: 1, pairs: { 'a"\\,(': '{"x"}', é: null }, docs: [[1], 2], words: ['a b', null, ''] }
  const VALUES: Readonly<Record<string, unknown>> = {
    label: LABEL,
    labels: [LABEL, null, { at: null, pairs: {}, docs: [], words: null }],
    grid: [[LABEL], [{ at: 2, pairs: null, docs: null, words: [] }]],
    boxed: { label: LABEL, labels: [LABEL] },
    lists: [[LABEL, LABEL], [], null],
    boxes: [[{ label: LABEL, labels: [LABEL, null] }]],
  }
  beforeAll(async () => {
    await execute(
      database.adminUrl,
      `create type label as (at int, pairs hstore, docs jsonb[], words text[]);
       create domain label_list as label[];
       create domain labelled as label;
       create type crate as (label labelled, labels label[]);
       create domain box_list as crate[];
       create table labels (
         id int primary key, label label, labels label[], grid label[], boxed crate,
         lists label_list[], boxes box_list[]
       );
       create function same_label(l label) returns label immutable language sql as 'select l';
       create function same_lists(l label_list[]) returns label_list[] immutable language sql as 'select l';
       create function size_of_boxes(variadic b crate[]) returns int immutable language sql as 'select cardinality(b)';
       grant all on labels to app`,
    )
    await gateway.gateway.reload()
  })

  test.each(Object.entries(VALUES))('%s: what GET answers can be written again', async (column, value) => {
    await gateway.get('/api/labels?id=gt.0', { method: 'DELETE' })
    const row = (id: number) => ({ id, [column]: value })
    const shown = (id: number) => expect.objectContaining(row(id))
    expect((await post('/api/labels', row(1))).json.data).toEqual(shown(1))
    const { data } = (await gateway.get('/api/labels/1')).json
    expect(data).toEqual(shown(1))
    expect((await post('/api/labels', [{ ...data, id: 2 }, { id: 3 }])).json.data).toEqual([
      shown(2),
      expect.anything(),
    ])
    expect((await patch('/api/labels/3', { [column]: data[column] })).json.data).toEqual(shown(3))
    const query = `set labels values ${column} = :v where id = 2 returning ${column}`
    const set = await post('/api/_query', { query, parameters: { v: data[column] } })
    expect([set.status, set.json.data]).toEqual([200, [{ [column]: value }]])
    const found = await post('/api/_query', {
      query: `get labels fields id where ${column} = :v`,
      parameters: { v: value },
    })
    expect([found.status, found.json.data.length]).toEqual([200, 3])
  })

  test('arguments of functions', async () => {
    const { label, lists, boxed } = VALUES
    expect((await post('/api/rpc/same_label', { l: label })).json.data).toEqual(label)
    expect((await post('/api/rpc/same_label', [label])).json.data).toEqual(label)
    expect((await post('/api/rpc/same_lists', { l: lists })).json.data).toEqual(lists)
    expect((await post('/api/rpc/size_of_boxes', [boxed, boxed])).json.data).toBe(2)
    expect((await post('/api/rpc/size_of_boxes', { b: [boxed, boxed] })).json.data).toBe(2)
  })
})

test.each([['a'], ['a=>'], [5]])('a value %j is answered with 400', async value => {
  expect((await patch('/api/things/1', { attributes: value })).status).toBe(400)
  expect((await post('/api/things', { id: 9, attributes: value })).status).toBe(400)
  const set = await post('/api/_query', {
    query: 'set things values attributes = :a where id = 1',
    parameters: { a: value },
  })
  expect(set.status).toBe(400)
  expect((await gateway.get(`/api/things?attributes=${encodeURIComponent(value)}`)).status).toBe(400)
})
