/** PostgreSQL's choice between custom and generic plans, as it counts them. */
import { beforeEach, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { compileRead } from '../../test/support/compiled.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { EVERYTHING } from '../access/rights.ts'
import { introspect } from '../catalog/introspect.ts'
import { createPool } from '../postgres/pool.ts'
import type { Command } from '../postgres/types.ts'
import { parseUrl } from '../postgres/url.ts'
import { toCommand } from './key-lists.ts'

const database = databaseFixture()
const session = fixture(() => openSession(database.adminUrl))

beforeEach(async () => {
  await execute(
    database.adminUrl,
    `drop table if exists parts; create table parts (id int primary key, code text unique, kind text);
     insert into parts select i, 'a,"' || i || '\\', 'k' || i % 7 from generate_series(1, 5000) as i;
     grant all on parts to public; analyze parts`,
  )
})

async function withPool<T>(use: (run: (command: Command) => Promise<readonly string[]>) => Promise<T>): Promise<T> {
  const pool = createPool({ target: parseUrl(database.url), maxConnections: 1 })
  try {
    return await use(async command => {
      const [result] = await pool.run([command]).result
      return (result?.rows ?? []).map(row => row.map(String).join(' '))
    })
  } finally {
    await pool.close({ deadlineMs: 1_000 })
  }
}

/** The custom and the generic plans of each statement of `parts` on the connection. */
const PLANS: Command = {
  text: `select custom_plans, generic_plans, statement like '/* many keys */%' from pg_prepared_statements
    where statement ~ 'FROM public[.]parts' order by statement desc`,
  parameters: [],
}

async function compiled(text: string) {
  const catalog = await introspect(session.query, { schemas: ['public'], exposedViews: [] })
  return compileRead(text, { catalog, rights: EVERYTHING, searchLanguage: 'english' })
}

const listOf = (length: number, from = 1) => `{${Array.from({ length }, (_, index) => from + index).join()}}`
const byKey = 'get parts fields id where id in :ids order by id'

test('reads by a few keys are planned five times, whatever their number', async () => {
  const statement = await compiled(byKey)
  await withPool(async run => {
    for (let turn = 0; turn < 20; turn++) {
      const length = 1 + (turn % 9)
      expect(await run(toCommand({ statement, values: [listOf(length, 1 + turn * 10)] }))).toHaveLength(length)
    }
    expect(await run(PLANS)).toEqual(['5 15 f'])
  })
})

test.each([
  'get lines fields line where part = :part and line in :lines',
  'get parts as p join kinds as k on k.name = p.kind fields p.id, k.title where p.id in :lines',
])('so are reads by keys of several columns, and of tables joined by keys: %s', async text => {
  await execute(
    database.adminUrl,
    `drop table if exists lines, kinds;
     create table lines (part int, line int, primary key (part, line));
     insert into lines select i, n from generate_series(1, 500) as i, generate_series(1, 40) as n;
     create table kinds (name text primary key, title text);
     insert into kinds select 'k' || i, 'kind ' || i from generate_series(0, 6) as i;
     grant all on lines, kinds to public; analyze lines, kinds`,
  )
  const statement = await compiled(text)
  await withPool(async run => {
    for (let turn = 0; turn < 20; turn++) {
      const length = 1 + (turn % 5)
      const values = statement.parameters.map(one => ('key' in one && one.key === 'part' ? '7' : listOf(length)))
      expect(await run(toCommand({ statement, values }))).toHaveLength(length)
    }
    expect(await run({ ...PLANS, text: PLANS.text.replace('parts', '(lines|parts)') })).toEqual(['5 15 f'])
  })
})

test('without the repeated keys, they are planned every time', async () => {
  const statement = await compiled(byKey)
  await withPool(async run => {
    for (let turn = 0; turn < 20; turn++) await run({ text: statement.text, parameters: [listOf(3)] })
    expect(await run(PLANS)).toEqual(['20 0 f'])
  })
})

test('a list of very many keys is planned for itself, after any number of short ones', async () => {
  const statement = await compiled(byKey)
  await withPool(async run => {
    for (let turn = 0; turn < 10; turn++) await run(toCommand({ statement, values: [listOf(2)] }))
    expect(await run(toCommand({ statement, values: [listOf(1_000)] }))).toHaveLength(1_000)
    expect(await run(PLANS)).toEqual(['5 5 f', '1 0 t'])
  })
})

test('a condition whose best plan depends on its value is still planned for it', async () => {
  await execute(
    database.adminUrl,
    `update parts set kind = case when id = 1 then 'rare' else 'common' end;
     create index on parts (kind); analyze parts`,
  )
  const statement = await compiled('get parts fields id where kind = :kind')
  await withPool(async run => {
    for (let turn = 0; turn < 10; turn++) await run(toCommand({ statement, values: ['rare'] }))
    expect(await run(PLANS)).toEqual(['10 0 f'])
  })
})

test('values with quotation marks, commas and backslashes find the same rows', async () => {
  const statement = await compiled('get parts fields id where code in :codes order by id')
  await withPool(async run => {
    const values = [String.raw`{"a,\"7\\","a,\"8\\"}`]
    expect(await run(toCommand({ statement, values }))).toEqual(await run({ text: statement.text, parameters: values }))
    expect(await run(toCommand({ statement, values }))).toHaveLength(2)
  })
})
