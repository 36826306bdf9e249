/**
 * Well-known public schemas are read completely. The numbers can be counted in the files (`create table`,
 * `foreign key`).
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { testDatabase } from '../../test/support/postgres.ts'
import { introspect, readFingerprint } from './introspect.ts'
import type { Catalog, Table } from './model.ts'

const FOLDER = new URL('../../../shared/data/', import.meta.url)
const SKIPPED = existsSync(FOLDER) ? null : `the databases of ${FOLDER.pathname} are not here`
if (SKIPPED !== null) console.info(`skipped: ${SKIPPED}`)

describe.skipIf(SKIPPED !== null)('public example databases', () => {
  test('chinook: a self-reference, a composite key, a junction', async () => {
    const catalog = await load('chinook.sql')
    expect(catalog.tables.size).toBe(11)
    expect(counts(catalog)).toEqual({ columns: 64, foreignKeys: 11, forward: 11, reverse: 11, through: 2 })
    expect(relations(catalog, 'employee')).toEqual(['one employee', 'many customer', 'many employee'])
    expect(relations(catalog, 'playlist')).toEqual(['many playlist_track', 'many track via playlist_track'])
    expect(table(catalog, 'playlist_track').primaryKey).toEqual(['playlist_id', 'track_id'])
    expect(table(catalog, 'employee').relations[0]).toMatchObject({ columns: ['reports_to'], shortName: null })
  })

  test('northwind: three composite keys, each a junction; keys of text', async () => {
    const catalog = await load('northwind.sql')
    expect(catalog.tables.size).toBe(14)
    expect(counts(catalog)).toEqual({ columns: 92, foreignKeys: 13, forward: 13, reverse: 13, through: 6 })
    expect(relations(catalog, 'products')).toEqual([
      'one categories',
      'one suppliers',
      'many order_details',
      'many orders via order_details',
    ])
    expect(table(catalog, 'customer_demographics').columnByName.get('customer_type_id')?.type.name).toBe('varchar')
  })

  test('pagila: partitions, an enum, a domain, arrays, tsvector, two keys from film to language', async () => {
    const catalog = await load('pagila.sql')
    expect(catalog.tables.size).toBe(15)
    expect(table(catalog, 'payment')).toMatchObject({ kind: 'partitioned', relations: [] })
    expect(counts(catalog)).toEqual({ columns: 87, foreignKeys: 18, forward: 18, reverse: 18, through: 4 })
    const film = table(catalog, 'film')
    expect(relations(catalog, 'film')).toEqual([
      'one language',
      'one language',
      'many film_actor',
      'many film_category',
      'many inventory',
      'many actor via film_actor',
      'many category via film_category',
    ])
    const type = (name: string) => film.columnByName.get(name)?.type
    expect(type('rating')).toMatchObject({ kind: 'enum', labels: ['G', 'PG', 'PG-13', 'R', 'NC-17'] })
    expect(type('release_year')).toMatchObject({ kind: 'domain', name: 'year', of: { name: 'int4' } })
    expect(type('special_features')).toMatchObject({ kind: 'array', of: { name: 'text' } })
    expect(type('fulltext')).toMatchObject({ kind: 'base', name: 'tsvector' })
  })

  test('pagila: views are resources if they are listed', async () => {
    const names = ['actor_info', 'customer_list', 'film_list', 'rental_by_category']
    const catalog = await load('pagila.sql', names)
    expect(names.map(name => table(catalog, name).kind)).toEqual(['view', 'view', 'view', 'materialized view'])
    expect(catalog.tables.size).toBe(19)
  })
})

/** Creates a database with the definitions in the file and reads it. */
async function load(file: string, exposedViews: readonly string[] = []): Promise<Catalog> {
  const database = await testDatabase()
  const admin = await openSession(database.adminUrl)
  try {
    await admin.run(definitions(await readFile(new URL(file, FOLDER), 'utf8')))
    await admin.run('reset all')
    const options = { schemas: ['public'], exposedViews }
    const catalog = await introspect(admin.query, options)
    expect(await readFingerprint(admin.query, options)).toBe(catalog.fingerprint)
    return catalog
  } finally {
    await admin.close()
    await database.drop()
  }
}

/** The file without its rows, psql commands and database-level statements. */
function definitions(sql: string): string {
  return sql
    .replaceAll(/^COPY .* FROM stdin;\n[\s\S]*?^\\\.$/gm, '')
    .replaceAll(/^INSERT INTO [\s\S]*?\);$/gm, '')
    .replaceAll(/^(DROP DATABASE|CREATE DATABASE|\\).*$/gm, '')
}

function table(catalog: Catalog, name: string): Table {
  const found = catalog.tables.get(name)
  if (found === undefined) throw new Error(`no ${name} among ${[...catalog.tables.keys()].join(', ')}`)
  return found
}

function relations(catalog: Catalog, name: string): string[] {
  return table(catalog, name).relations.map(
    ({ cardinality, table: to, junction }) =>
      `${cardinality} ${to}${junction === null ? '' : ` via ${junction.table}`}`,
  )
}

function counts(catalog: Catalog): Record<string, number> {
  const tables = [...catalog.tables.values()]
  const ways = tables.flatMap(one => one.relations)
  return {
    columns: tables.flatMap(one => one.columns).length,
    foreignKeys: tables.flatMap(one => one.foreignKeys).length,
    forward: ways.filter(way => way.cardinality === 'one').length,
    reverse: ways.filter(way => way.cardinality === 'many' && way.junction === null).length,
    through: ways.filter(way => way.junction !== null).length,
  }
}
