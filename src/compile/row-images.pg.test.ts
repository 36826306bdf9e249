/**
 * Row images before and after a write are exact on every version of PostgreSQL. Statements for older versions
 * run here on the newest one, where they have the same meaning.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { watchActivity } from '../../test/support/activity.ts'
import { openSession } from '../../test/support/catalog.ts'
import { compileWrite } from '../../test/support/compiled.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { EVERYTHING } from '../access/rights.ts'
import { introspect } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import { position } from '../language/tree/build.ts'
import { parseFilters } from '../rest/parameters/filters.ts'
import { parseParameters } from '../rest/parameters/request-parameters.ts'
import { Values } from '../rest/values.ts'
import { buildSet } from '../rest/write/tree.ts'
import { compile } from './compile.ts'
import { printCaptured } from './print-write.ts'
import type { WriteStatement } from './statement.ts'

const database = databaseFixture()
let catalog: Catalog
const session = fixture(() => openSession(database.adminUrl))
const other = fixture(() => openSession(database.adminUrl))

beforeAll(async () => {
  await session.run(`create table r (a int, b int, r text, t text, page text, primary key (a, b));
    create table n (r text); create table f (a int, x text)`)
  catalog = await introspect(session.query, { schemas: ['public'], exposedViews: [] })
})

beforeEach(() =>
  session.run(`insert into r values (1, 1, 'one', 'x', 'p'), (1, 2, 'two', 'y', null), (2, 1, 'three', 'z', null);
    insert into n values ('n'); insert into f values (1, 'f')`),
)
afterEach(() => session.run('truncate r, n, f'))

/** The row images that the statement returns. */
async function images(write: WriteStatement, on = session): Promise<readonly (readonly unknown[])[]> {
  const statement = printCaptured(write)
  const values = statement.parameters.map(parameter =>
    'literal' in parameter ? parameter.literal : (VALUES[Number(parameter.key) - 1] ?? null),
  )
  const rows = await on.query(statement.text, values)
  const shown = rows.map(row => row.slice(-3).map((cell, at) => (at === 0 || cell == null ? cell : JSON.parse(cell))))
  return shown.sort((one, two) => JSON.stringify(one).localeCompare(JSON.stringify(two)))
}

/** The values of an update with a body: the number in the condition, and the body. */
const VALUES = ['2', '{"t": "body"}']

const ROW_11 = { a: 1, b: 1, r: 'one', t: 'x', page: 'p' }
const ROW_12 = { a: 1, b: 2, r: 'two', t: 'y', page: null }

const VERSIONS = POSTGRES_MAJOR < 18 ? [170_000] : [170_000, 180_000]

describe.each(VERSIONS)('version %i', serverVersion => {
  const context = () => ({ catalog: { ...catalog, serverVersion }, rights: EVERYTHING, searchLanguage: 'english' })
  const written = (text: string, on = session) => images(compileWrite(text, context()), on)

  test('an update has both images', async () => {
    expect(await written(`set r values t = 'new' where a = 1 and b < 2 + 1`)).toEqual([
      ['UPDATE', { ...ROW_11, t: 'new' }, ROW_11],
      ['UPDATE', { ...ROW_12, t: 'new' }, ROW_12],
    ])
  })

  test('an update of all rows with an alias equal to a column name has both images', async () => {
    expect(await written(`set r t values t = t.r where all`)).toHaveLength(3)
  })

  test('an update with a JSON body has both images', async () => {
    const table = catalog.tables.get('r')
    if (table === undefined) throw new Error('there is r')
    const filter = parseFilters(parseParameters([{ name: 'b', value: '2' }], []), new Values(), {
      ...{ maxFilters: 1, maxInValues: 1 },
    })
    const tree = buildSet({
      ...{ kind: 'set', key: [], table, columns: ['t'], value: position(2), returning: [] },
      target: { kind: 'rows', filter, rowsMax: position(3) },
    })
    const answer = { key: [], created: false, rowsMax: null }
    expect(await images(compile(tree, context(), { kind: 'write', answer }))).toEqual([
      ['UPDATE', { ...ROW_12, t: 'body' }, ROW_12],
    ])
  })

  test('updates with a join or a common table expression have both images', async () => {
    const expected = [['UPDATE', { ...ROW_12, t: 'f' }, ROW_12]]
    expect(await written(`set r inner join f on f.a = r.a values t = f.x where r.b = 2`)).toEqual(expected)
    const second = [['UPDATE', { ...ROW_12, t: '1' }, { ...ROW_12, t: 'f' }]]
    expect(
      await written(`with page as (get f fields a) set r values t = '1' where b in (get page fields a + 1)`),
    ).toEqual(second)
  })

  test('an upsert has the images of created and updated rows', async () => {
    const text = `add r fields a, b, t values (1, 1, 'new'), (7, 7, 'x') conflict (a, b) update t = excluded.t`
    expect(await written(text)).toEqual([
      ['INSERT', { a: 7, b: 7, r: null, t: 'x', page: null }, null],
      ['UPDATE', { ...ROW_11, t: 'new' }, ROW_11],
    ])
  })

  test('inserts have the new image and deletes the old one', async () => {
    expect(await written(`add n fields r values 'new'`)).toEqual([['INSERT', { r: 'new' }, null]])
    expect(await written(`del n where r = 'n'`)).toEqual([['DELETE', null, { r: 'n' }]])
    expect(await written(`add r fields a, b values 1, 1 conflict (a, b) nothing`)).toEqual([])
  })

  test('an update that changes the key has both images', async () => {
    const before = serverVersion >= 180_000 ? ROW_12 : null
    expect(await written(`set r values b = 9 where b = 2`)).toEqual([['UPDATE', { ...ROW_12, b: 9 }, before]])
  })

  test('the old image includes a concurrent change that was committed first', async () => {
    await other.run(`begin; update r set r = 'theirs' where a = 1 and b = 1`)
    const ours = written(`set r values t = 'ours' where a = 1 and b = 1`)
    const watch = watchActivity(database.adminUrl)
    await watch.until(
      `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      count => count === '1',
    )
    await watch.close()
    await other.run('commit')
    expect(await ours).toEqual([['UPDATE', { ...ROW_11, r: 'theirs', t: 'ours' }, { ...ROW_11, r: 'theirs' }]])
  })
})
