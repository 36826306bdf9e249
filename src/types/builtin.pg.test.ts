/** The table of types against the catalog of a real PostgreSQL. */
import { expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../test/support/fixtures.ts'
import { CASTABLE, DOCUMENTED, SQL_NAMES } from './builtin.ts'
import { INCOMPARABLE, SEVERAL_WORDS, UNORDERED } from './traits.ts'

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

async function names(sql: string, parameters: readonly unknown[] = []): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(sql, [...parameters])
  return rows.map(({ name }) => name)
}

const isSerial = (name: string): boolean => name.endsWith('serial')

test('every type exists in PostgreSQL', async () => {
  const known = await names(`select typname as name from pg_type where typnamespace = 'pg_catalog'::regnamespace`)
  expect([...DOCUMENTED].filter(name => !known.includes(name) && !isSerial(name))).toEqual([])
})

test('every alias is an alias of its type', async () => {
  for (const [other, name] of [...SQL_NAMES, ...SEVERAL_WORDS].filter(([, name]) => !isSerial(name))) {
    const [own] = await names(`select typname as name from pg_type where oid = $1::regtype`, [other])
    // SQL's char is PostgreSQL's bpchar; "char" is another type.
    expect(own, other).toBe(name === 'char' ? 'bpchar' : name)
  }
})

test('types without an order have no default B-tree operator class, and types without equality have no =', async () => {
  const values = [...CASTABLE].filter(name => DOCUMENTED.has(name))
  const unordered = await names(
    `select typname as name from pg_type t where typnamespace = 'pg_catalog'::regnamespace and typname = any($1)
       and not exists (select from pg_opclass c join pg_am a on a.oid = c.opcmethod
                       where a.amname = 'btree' and c.opcdefault and (c.opcintype = t.oid
                         or c.opcintype in (select casttarget from pg_cast where castsource = t.oid
                         and castmethod = 'b' and castcontext = 'i')
                         or (t.typtype = 'r' and c.opcintype = 'anyrange'::regtype)
                         or (t.typtype = 'm' and c.opcintype = 'anymultirange'::regtype)))`,
    [values],
  )
  expect([...unordered].sort()).toEqual(values.filter(name => UNORDERED.has(name)).sort())
  for (const name of values.filter(name => name !== 'char')) {
    const compare = client.query(`select null::${name} = null::${name}`)
    if (INCOMPARABLE.has(name)) await expect(compare, name).rejects.toThrow('operator does not exist')
    else await compare
  }
})
