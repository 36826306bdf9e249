/**
 * docs/reference/reading.md on databases from other projects: every table, row, relation and column. The
 * expected results come directly from PostgreSQL.
 */
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { RelationDocument, SchemaDescription, TableDocument } from '../../src/catalog/describe.ts'
import { printId } from '../../src/rest/path.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { REAL_DATA_MISSING, REAL_DATABASES, realDatabase } from '../support/real-data.ts'

if (REAL_DATA_MISSING !== null) console.info(`skipped: ${REAL_DATA_MISSING}`)

type Json = Record<string, unknown>

/** Number of concurrent requests. */
const WORKERS = 4

// skipped: where the files are not beside the project, see above
describe.skipIf(REAL_DATA_MISSING !== null).each(REAL_DATABASES)('%s', name => {
  let schema: SchemaDescription
  let tables: readonly (readonly [name: string, table: TableDocument])[]
  const database = databaseFixture(() => realDatabase(name))
  const admin = fixture(
    () => {
      const pool = new pg.Pool({ connectionString: database.adminUrl, max: WORKERS })
      // `end` does not wait until the connections are closed, so dropping the database can end them first.
      return pool.on('error', () => {})
    },
    pool => pool.end(),
  )
  const gateway = gatewayFixture(database, async () => {
    const views = await values(
      `select relname from pg_class where relkind in ('v', 'm') and relnamespace = 'public'::regnamespace`,
    )
    // A view of pagila, and some joins of all its tables, exceed the cost guard's limits.
    return {
      toml: `max_result_rows = 0\nexplain_max_cost = 0\nexposed_views = [${views.map(view => `"${view}"`).join(', ')}]`,
    }
  })

  beforeAll(async () => {
    schema = (await gateway.get('/api/_schema')).json
    tables = Object.entries(schema.tables)
  })

  /** The only column of a statement's rows, parsed like JSON. */
  async function values(sql: string, parameters: readonly unknown[] = []): Promise<unknown[]> {
    const result = await admin.query<{ all: unknown[] | null }>(`select json_agg(v) as all from (${sql}) t(v)`, [
      ...parameters,
    ])
    return result.rows[0]?.all ?? []
  }

  async function count(table: string): Promise<number> {
    return Number((await values(`select count(*) from ${quote(table)}`))[0])
  }

  /** The body of a response that must succeed. */
  async function get(path: string): Promise<Json & { readonly data: Json[] }> {
    const reply = await gateway.get(path)
    expect([path, reply.status, reply.status === 200 ? '' : reply.text]).toEqual([path, 200, ''])
    return reply.json
  }

  const api = (table: string, query = ''): string => `/api/${encodeURIComponent(table)}${query}`

  test('the database has rows', async () => {
    expect(tables.length).toBeGreaterThanOrEqual(11)
    const counts = await Promise.all(tables.map(([table]) => count(table)))
    expect(counts.reduce((sum, n) => sum + n, 0)).toBeGreaterThan(3_000)
  })

  test('every table has each row exactly once, from the first page to the last', async () => {
    await forEach(tables, async ([table, { primary_key }]) => {
      const first = await get(api(table))
      expect(first).toMatchObject({ limit: 50, offset: 0, count: first.data.length })
      const expected = await count(table)
      let seen = 0
      const keys = new Set<string>()
      let cursor: unknown = ''
      while (cursor !== null) {
        const page = await get(api(table, `?limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`))
        seen += page.data.length
        for (const row of page.data) keys.add(JSON.stringify(primary_key.map(column => row[column])))
        cursor = page.next_cursor
      }
      expect([table, seen]).toEqual([table, expected])
      if (primary_key.length > 0) expect([table, keys.size]).toEqual([table, expected])
    })
  })

  test('every table as a stream has as many lines as rows', async () => {
    await forEach(tables, async ([table]) => {
      const { status, text } = await gateway.get(api(table, '?stream=true'))
      expect([table, status, text.split('\n').length - 1]).toEqual([table, 200, await count(table)])
    })
  })

  test('the first and last row of every table with a primary key can be read by id', async () => {
    await forEach(tables, async ([table, { primary_key }]) => {
      if (primary_key.length === 0) {
        expect((await gateway.get(api(table, '/1'))).status).toBe(404)
        return
      }
      const last = `?limit=1&sort=${primary_key.map(column => `-${column}`).join(',')}`
      for (const query of ['?limit=1', last]) {
        const { data } = await get(api(table, query))
        const [row] = data
        if (row === undefined) continue
        // The value as PostgreSQL prints it, also if it is not a JSON string.
        const id = printId(primary_key.map(column => String(row[column])))
        expect((await get(api(table, `/${id}`))).data).toEqual(row)
      }
    })
  })

  test('every column sorts as in PostgreSQL, in both directions', async () => {
    await forEach(columns(), async ([table, column, type]) => {
      for (const direction of ['asc', 'desc']) {
        const reply = await gateway.get(api(table, `?sort=${encodeURIComponent(column)}:${direction}&limit=60`))
        const where = `${table}.${column} (${type}) ${direction}`
        expect([where, reply.status]).toEqual([where, 200])
        const expected = await values(`select ${quote(column)} from ${quote(table)} order by 1 ${direction} limit 60`)
        expect([where, reply.json.data.map((row: Json) => row[column])]).toEqual([where, expected])
      }
    })
  })

  test('every column returns each distinct value once', async () => {
    await forEach(columns(), async ([table, column, type]) => {
      const where = `${table}.${column} (${type})`
      const { data } = await get(api(table, `?distinct=${encodeURIComponent(column)}&limit=100`))
      const expected = await values(`select distinct ${quote(column)} from ${quote(table)} order by 1 limit 100`)
      expect([where, data.map(row => row[column])]).toEqual([where, expected])
    })
  })

  test('every table with text columns can be searched', async () => {
    let hits = 0
    const isText = (type: string): boolean => /^(?:text|character|bpchar|citext)/.test(type)
    await forEach(
      tables.filter(([, document]) => !isView(document)),
      async ([table, { columns: all }]) => {
        const text = all.filter(({ type }) => isText(type) && !type.endsWith('[]')).map(({ name: column }) => column)
        const reply = await gateway.get(api(table, '?search=the&limit=0'))
        if (text.length === 0) expect([table, reply.status]).toEqual([table, 400])
        else expect([table, reply.status]).toEqual([table, 200])
        for (const column of text) {
          const [word] = await values(
            `select (regexp_match(${quote(column)}, '[[:alpha:]]{5,}'))[1] from ${quote(table)}
              where ${quote(column)} ~ '[[:alpha:]]{5}' limit 1`,
          )
          if (word === undefined) continue
          const [expected] = await values(
            `select count(*) from ${quote(table)} where to_tsvector('english', ${quote(column)}) @@
              websearch_to_tsquery('english', $1)`,
            [word],
          )
          const search = `search=${encodeURIComponent(String(word))}&search_columns=${encodeURIComponent(column)}`
          const { count: found } = await get(api(table, `?${search}&limit=100000&select=${encodeURIComponent(column)}`))
          expect([table, column, word, found]).toEqual([table, column, word, expected])
          hits += Number(found)
        }
      },
    )
    expect(hits).toBeGreaterThan(50)
  })

  test('every forward relation returns the referenced row, or null', async () => {
    let joined = 0
    await forEach(relations('one'), async ([table, relation, document]) => {
      const key = document.foreign_keys.find(foreign => foreign.name === relation.via)
      const { data } = await get(api(table, `?expand=${way(relation)}&limit=100`))
      for (const row of data) {
        const embedded = row[relation.name] as Json | null
        if (key === undefined || key.columns.some(column => row[column] === null)) {
          expect(embedded).toBeNull()
          continue
        }
        joined++
        expect(key.references.columns.map(column => embedded?.[column])).toEqual(key.columns.map(column => row[column]))
      }
    })
    expect(joined).toBeGreaterThan(100)
  })

  test('every reverse relation returns all referencing rows', async () => {
    let joined = 0
    await forEach(relations('many'), async ([table, relation, document]) => {
      const { data } = await get(api(table, `?expand=nested:${way(relation)}&limit=5`))
      const key = document.referenced_by.find(reference => reference.name === relation.via)
      for (const row of data) {
        const embedded = row[relation.name] as Json[]
        joined += embedded.length
        if (key !== undefined) {
          for (const child of embedded) {
            expect(key.columns.map(column => child[column])).toEqual(key.references.map(column => row[column]))
          }
          const [total] = await values(
            `select count(*) from ${quote(key.table)}
              where ${key.columns.map((column, i) => `${quote(column)}::text = $${i + 1}`).join(' and ')}`,
            key.references.map(column => String(row[column])),
          )
          expect([table, relation.name, embedded.length]).toEqual([table, relation.name, Number(total)])
        }
        const id = printId(document.primary_key.map(column => String(row[column])))
        const reply = await gateway.get(api(table, `/${id}/${way(relation)}?limit=1`), {
          headers: { Prefer: 'count=exact' },
        })
        expect([table, relation.name, reply.status, reply.json.total]).toEqual([
          table,
          relation.name,
          200,
          embedded.length,
        ])
      }
    })
    expect(joined).toBeGreaterThan(100)
  })

  test('every relation of every relation can be expanded', async () => {
    const two = relations().flatMap(([table, first]) =>
      relations()
        .filter(([from]) => from === first.table)
        .map(([, second]) => [table, `${path(first)}.${path(second)}`] as const),
    )
    expect(two.length).toBeGreaterThan(20)
    await forEach(two, async ([table, expand]) => {
      await get(api(table, `?expand=${expand}&limit=1`))
    })
  })

  /** Every column of every table. Views are computed for every query, so only two of them. */
  function columns(): (readonly [table: string, column: string, type: string])[] {
    return tables.flatMap(([table, document]) =>
      document.columns
        .slice(0, isView(document) ? 2 : undefined)
        .map(column => [table, column.name, column.type] as const),
    )
  }

  function relations(cardinality?: 'one' | 'many'): (readonly [table: string, RelationDocument, TableDocument])[] {
    return tables.flatMap(([table, document]) =>
      document.relations
        .filter(relation => cardinality === undefined || relation.cardinality === cardinality)
        .map(relation => [table, relation, document] as const),
    )
  }
})

function isView({ kind }: TableDocument): boolean {
  return kind === 'view' || kind === 'materialized view'
}

/** A relation with the hint that makes it unambiguous. */
function way(relation: RelationDocument): string {
  return encodeURIComponent(`${relation.name}!${relation.via}`)
}

function path(relation: RelationDocument): string {
  return `${relation.cardinality === 'many' ? 'nested:' : ''}${way(relation)}`
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Runs all tasks, a few at a time. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  expect(items.length).toBeGreaterThan(0)
  const rest = [...items]
  await Promise.all(
    Array.from({ length: WORKERS }, async () => {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item)
    }),
  )
}
