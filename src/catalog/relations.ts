/**
 * Finds the relations that foreign keys create between tables: forward, reverse, and through pure junction
 * tables.
 * A pure junction is a table with two foreign keys whose columns together are exactly its primary key or one
 * of its unique keys, while neither key's columns contain the other's. So a pair of rows is joined at most
 * once and no row appears twice in a response; further columns (a quantity, a date) do not matter. The two
 * keys may share columns: with `(tenant_id, post_id)` and `(tenant_id, tag_id)`, the unique key is
 * `(tenant_id, post_id, tag_id)`.
 */
import type { ForeignKey, Relation, Table } from './model.ts'

/** The tables and keys that relations are built from. */
export type KeyedTable = Pick<Table, 'name' | 'resource' | 'primaryKey' | 'unique' | 'foreignKeys'>

/**
 * The relations by resource name; for each table forward relations first, then reverse ones, then those
 * through junctions, each in the order of the tables and keys given. A key to a table outside the list is
 * ignored.
 */
export function relate(tables: readonly KeyedTable[]): ReadonlyMap<string, readonly Relation[]> {
  const byResource = new Map(tables.map(table => [table.resource, table]))
  const relations = new Map<KeyedTable, Relation[]>(tables.map(table => [table, []]))
  const waysByTable = tables.map(table => waysFrom(table, byResource))

  for (const way of waysByTable.flat()) relations.get(way.from)?.push(forward(way))
  for (const way of waysByTable.flat()) relations.get(way.to)?.push(reverse(way))
  for (const ways of waysByTable) {
    for (const [back, on] of junctionPairs(ways)) relations.get(back.to)?.push(through(back, on))
  }
  return new Map(tables.map(table => [table.resource, Object.freeze(relations.get(table) ?? [])]))
}

/** A foreign key with both tables. */
interface Way {
  readonly from: KeyedTable
  readonly to: KeyedTable
  readonly key: ForeignKey
  /** The key's name, and the names of identical keys. */
  readonly constraints: string[]
}

/** Two constraints can connect the same columns. They are one relation, and either name is a hint. */
function waysFrom(table: KeyedTable, byResource: ReadonlyMap<string, KeyedTable>): readonly Way[] {
  const ways = new Map<string, Way>()
  for (const key of table.foreignKeys) {
    const to = byResource.get(key.table)
    if (to === undefined) continue
    const meaning = JSON.stringify([key.table, key.columns, key.referencedColumns])
    const same = ways.get(meaning)
    if (same === undefined) ways.set(meaning, { from: table, to, key, constraints: [key.name] })
    else same.constraints.push(key.name)
  }
  return [...ways.values()]
}

function forward(way: Way): Relation {
  return Object.freeze({
    name: way.to.name,
    shortName: shortNameOf(way.key),
    cardinality: 'one',
    table: way.to.resource,
    columns: way.key.columns,
    targetColumns: way.key.referencedColumns,
    junction: null,
    constraints: Object.freeze(way.constraints),
  })
}

function reverse(way: Way): Relation {
  return Object.freeze({
    name: way.from.name,
    shortName: null,
    cardinality: 'many',
    table: way.from.resource,
    columns: way.key.referencedColumns,
    targetColumns: way.key.columns,
    junction: null,
    constraints: Object.freeze(way.constraints),
  })
}

/**
 * The relation from the table that `back` refers to, through the junction with both keys, to the table that
 * `on` refers to.
 */
function through(back: Way, on: Way): Relation {
  return Object.freeze({
    name: on.to.name,
    shortName: null,
    cardinality: 'many',
    table: on.to.resource,
    columns: back.key.referencedColumns,
    targetColumns: on.key.referencedColumns,
    junction: Object.freeze({ table: back.from.resource, from: back.key.columns, to: on.key.columns }),
    constraints: Object.freeze([back.key.name, on.key.name]),
  })
}

/**
 * Every ordered pair of keys: a junction connects its tables in both directions, even if both keys refer to
 * one table.
 */
function junctionPairs(ways: readonly Way[]): readonly (readonly [Way, Way])[] {
  return ways.flatMap(back => ways.filter(on => isJunction(back, on)).map(on => [back, on] as const))
}

function isJunction(back: Way, on: Way): boolean {
  const from = new Set(back.key.columns)
  const to = new Set(on.key.columns)
  if (isSubset(from, to) || isSubset(to, from)) return false
  const both = new Set([...from, ...to])
  return [back.from.primaryKey, ...back.from.unique].some(
    key => key.length === both.size && isSubset(new Set(key), both),
  )
}

function isSubset(part: ReadonlySet<string>, whole: ReadonlySet<string>): boolean {
  for (const name of part) if (!whole.has(name)) return false
  return true
}

/** `customer_id` → `customer`: a foreign key can be expanded by its column's name without `_id`. */
function shortNameOf(key: ForeignKey): string | null {
  const [column] = key.columns
  if (key.columns.length !== 1 || column === undefined || !column.endsWith('_id') || column === '_id') return null
  return column.slice(0, -'_id'.length)
}
