/**
 * docs/reference/limits.md#plans: the plan of one request serves the next one, and is never used after the
 * schema it was made from has changed.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { parseExposition } from '../support/exposition.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

let functions: string
const database = databaseFixture(`
  create table notes (id int primary key, body text); insert into notes values (1, 'one'), (2, 'two');
  create function twice(n int) returns int immutable language sql as 'select 2 * n';
  grant select, insert on notes to app
`)
const folder = folderFixture()
beforeAll(async () => {
  functions = join(folder, 'functions')
  await writeFile(functions, 'twice\n')
})
const gateway = gatewayFixture(database, () => ({
  toml: `schema_poll_secs = 3600\nrpc_allowlist_path = ${JSON.stringify(functions)}`,
}))

function ask(query: string, parameters: unknown = [], tenant = 't1'): Promise<Reply> {
  return gateway.get('/api/_query', {
    method: 'POST',
    as: { tenantId: tenant },
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, parameters }),
  })
}

/** The number of texts whose plan was cached, and of those whose plan was not. */
async function counts(): Promise<readonly [hits: number, misses: number]> {
  const metrics = parseExposition((await gateway.get('/metrics')).text)
  const of = (name: string) =>
    metrics.get(`svc_plan_cache_${name}_total`)?.samples.find(({ labels }) => labels.kind === 'text')?.value ?? -1
  return [of('hits'), of('misses')]
}

test('a text with other values reuses the plan of another caller’s text', async () => {
  const [hits, misses] = await counts()
  expect((await ask('get notes fields body where id = $1', [1])).json.data).toEqual([{ body: 'one' }])
  expect((await ask('get notes fields body where id = $1', [2])).json.data).toEqual([{ body: 'two' }])
  expect((await ask('get notes fields body where id = $1', [2], 't2')).json.data).toEqual([{ body: 'two' }])
  expect(await counts()).toEqual([hits + 2, misses + 1])
})

test('writes reuse plans as well, and a rejected value does not affect the next request', async () => {
  const [hits] = await counts()
  const text = 'add notes fields id, body values $1, $2'
  expect((await ask(text, [3, 'three'])).status).toBe(200)
  expect((await ask(text, ['x', 'four'])).status).toBe(400)
  expect((await ask(text, [4, 'four'])).status).toBe(200)
  expect((await ask(text, [5])).json.error.message).toContain('parameter $2 has no value')
  expect((await ask(text, [5, 'five', 'six'])).json.error.message).toContain('the query has no $3')
  expect((await counts())[0]).toBe(hits + 1)
})

test('a function removed from the list is no longer called, and a dropped column is no longer read', async () => {
  for (let times = 0; times < 2; times++) {
    expect((await ask('get notes fields twice(id) as n where id = 1')).json.data).toEqual([{ n: 2 }])
  }
  await writeFile(functions, 'other\n')
  await gateway.gateway.reload()
  expect((await ask('get notes fields twice(id) as n where id = 1')).status).toBe(403)
  expect((await ask('get notes fields body where id = $1', [1])).status).toBe(200)
  await execute(database.adminUrl, 'alter table notes drop column body')
  await gateway.gateway.reload()
  const gone = await ask('get notes fields body where id = $1', [1])
  expect(gone.status).toBe(400)
  expect(gone.json.error.message).toContain('body')
})
