/**
 * The relationships that embedding follows: foreign keys in both directions, and pairs of keys of a junction
 * table whose primary key contains both. The keys of views are those of the tables that they show.
 */
import { isKnown, type View } from '../access/rights.ts'
import type { Catalog, ForeignKey, Table } from '../catalog/model.ts'
import type { Computed } from './computed.ts'
import { ambiguousRelationship, noRelationship } from './errors.ts'
import type { Cardinality, Relationship } from './relationship.ts'
import { similarName } from './similar-name.ts'

const known = new WeakMap<Catalog, ReadonlyMap<Table, readonly Relationship[]>>()

/** All relationships from a table. */
export function relationshipsOf(table: Table, catalog: Catalog): readonly Relationship[] {
  const all = known.get(catalog) ?? discover(catalog)
  known.set(catalog, all)
  return all.get(table) ?? []
}

function discover(catalog: Catalog): ReadonlyMap<Table, readonly Relationship[]> {
  const found = new Map<Table, Relationship[]>()
  const add = (relationship: Relationship): void => {
    const of = found.get(relationship.from)
    if (of === undefined) found.set(relationship.from, [relationship])
    else of.push(relationship)
  }
  const forward = forwardOf(catalog)
  for (const relationship of forward) {
    add(relationship)
    add(reversed(relationship))
  }
  const byTable = new Map<Table, Relationship[]>()
  for (const way of forward) {
    // Only keys within the primary key can make a junction.
    if (way.columns.every(isIn(way.from.primaryKey))) byTable.set(way.from, [...(byTable.get(way.from) ?? []), way])
  }
  for (const ways of byTable.values()) {
    for (const back of ways) {
      for (const on of ways) if (back.constraint !== on.constraint) add(through(back, on))
    }
  }
  return found
}

/** The relationships of foreign keys, in their direction: of tables, then of views. */
function forwardOf({ tables, viewKeys }: Catalog): readonly Relationship[] {
  const way = (from: Table, to: Table | undefined, key: Omit<ForeignKey, 'table'>, unique: boolean): Relationship[] => {
    if (to === undefined) return []
    return [
      {
        ...{ cardinality: unique ? 'one-to-one' : 'many-to-one', from, to },
        ...{ columns: key.columns, toColumns: key.referencedColumns, constraint: key.name, junction: null },
      },
    ]
  }
  return [
    ...Array.from(tables.values(), from =>
      from.foreignKeys.flatMap(key => way(from, tables.get(key.table), key, isUnique(from, key.columns))),
    ).flat(),
    ...viewKeys.flatMap(key => {
      const from = tables.get(key.from)
      return from === undefined ? [] : way(from, tables.get(key.to), key, key.unique)
    }),
  ]
}

function isUnique({ primaryKey, unique }: Table, columns: readonly string[]): boolean {
  return [primaryKey, ...unique].some(key => key.length === columns.length && key.every(isIn(columns)))
}

function reversed({ cardinality, from, to, columns, toColumns, constraint }: Relationship): Relationship {
  return {
    cardinality: cardinality === 'one-to-one' ? cardinality : 'one-to-many',
    ...{ from: to, to: from, columns: toColumns, toColumns: columns, constraint, junction: null },
  }
}

function through(back: Relationship, on: Relationship): Relationship {
  return {
    ...{ cardinality: 'many-to-many', from: back.to, to: on.to, columns: back.toColumns, toColumns: on.toColumns },
    constraint: back.constraint,
    junction: { table: back.from, from: back.columns, to: on.columns, constraint: on.constraint },
  }
}

function isIn(names: readonly string[]): (name: string) => boolean {
  return name => names.includes(name)
}

// ---- names ------------------------------------------------------------------------------------------------

/**
 * The relationship from `table` that a request means by a name and a hint.
 * @throws {PostgrestError} `PGRST200` if there is none, `PGRST201` that lists several.
 */
export function findRelationship(
  table: Table,
  { name, hint }: { readonly name: string; readonly hint: string | null },
  { catalog, rights }: View,
  computed: Computed,
): Relationship {
  // A computed relationship replaces those of keys.
  const own = computed.relationship(table, name)
  if (own !== null) return own
  // A table that the caller cannot learn of is like one that does not exist.
  const all = relationshipsOf(table, catalog).filter(
    ({ to, junction }) =>
      to.schema === table.schema && isKnown(to, rights) && (junction === null || isKnown(junction.table, rights)),
  )
  const fitting = all.filter(relationship => fits(relationship, name, hint))
  const [only] = fitting
  if (only === undefined) {
    const names = all.map(({ to }) => to.name)
    const near = names.includes(name) ? null : similarName(name, names, RELATION_SCORE_MIN)
    throw noRelationship(table, name, hint, near)
  }
  if (fitting.length > 1) throw ambiguousRelationship(table.name, name, fitting.toSorted(byListing))
  return only
}

/** Suggestions need less similarity than those for tables: only relations of the table are suggested. */
const RELATION_SCORE_MIN = 0.33

function fits(relationship: Relationship, name: string, hint: string | null): boolean {
  const { cardinality, from, to, columns, toColumns, constraint, junction } = relationship
  const isTable = to.name === name
  // A key of a table to itself makes two relationships: the table's name means its children, and the name of
  // the key's column the parent.
  if (from === to) {
    if (hint !== null) return isTable && cardinality === 'one-to-many' && isOnly(toColumns, hint)
    return (isTable && cardinality === 'one-to-many') || (cardinality === 'many-to-one' && isOnly(columns, name))
  }
  if (hint === null) {
    return isTable || (junction === null && !isView(to) && (constraint === name || isOnly(columns, name)))
  }
  if (!isTable) return false
  if (junction !== null) return junction.table.name === hint
  return constraint === hint || isOnly(columns, hint) || isOnly(toColumns, hint)
}

/** The order in which an error lists relationships: by cardinality, then by name. */
function byListing(a: Relationship, b: Relationship): number {
  return LISTED.indexOf(a.cardinality) - LISTED.indexOf(b.cardinality) || (listedName(a) < listedName(b) ? -1 : 1)
}

const LISTED: readonly Cardinality[] = ['one-to-many', 'many-to-one', 'one-to-one', 'many-to-many']

function listedName({ constraint, columns, junction }: Relationship): string {
  return [junction?.table.name ?? '', constraint, junction?.constraint ?? '', ...columns].join('\0')
}

function isOnly(columns: readonly string[], name: string): boolean {
  return columns.length === 1 && columns[0] === name
}

function isView({ kind }: Table): boolean {
  return kind === 'view' || kind === 'materialized view'
}
