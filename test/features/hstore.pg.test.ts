/**
 * docs/reference/writing.md#bodies: an `hstore` is returned as a JSON object that can be written back; values
 * it cannot store are answered 400.
 */
import { expect, test } from 'vitest'
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

test('in a composite value it is written in its text form; an object is answered 400', async () => {
  await execute(
    database.adminUrl,
    `create type label as (at int, pairs hstore);
     create table labels (id int primary key, label label);
     grant all on labels to app`,
  )
  await gateway.gateway.reload()
  const created = await post('/api/labels', { id: 1, label: { at: 1, pairs: 'a=>1, b=>NULL' } })
  expect(created.json.data.label).toEqual({ at: 1, pairs: { a: '1', b: null } })
  const refused = await post('/api/labels', { id: 2, label: created.json.data.label })
  expect([refused.status, refused.json.error.code]).toEqual([400, 'QUERY_ERROR'])
})

test.each([['a'], ['a=>'], [5]])('a value %j is answered 400', async value => {
  expect((await patch('/api/things/1', { attributes: value })).status).toBe(400)
  expect((await post('/api/things', { id: 9, attributes: value })).status).toBe(400)
  const set = await post('/api/_query', {
    query: 'set things values attributes = :a where id = 1',
    parameters: { a: value },
  })
  expect(set.status).toBe(400)
  expect((await gateway.get(`/api/things?attributes=${encodeURIComponent(value)}`)).status).toBe(400)
})
