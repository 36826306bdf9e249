/** A table as a caller sees it: what its part of the document is made from. */
import { followable, relatedTable } from '../access/relations.ts'
import { allows, type Columns, isKnown, readableColumns, type TableRights, type View } from '../access/rights.ts'
import type { Column, Table } from '../catalog/model.ts'
import { parsePath, type Route } from '../rest/path.ts'
import { nameOfRelation } from '../rest/read/relation.ts'
import type { SharedFilters } from './filters.ts'
import { distinctBy, distinctKeys, hashOf, identifierOf, keyOf, quoted } from './keys.ts'
import { FUNCTION_TAG, GATEWAY_TAG } from './model.ts'
import { type SharedReferences, sharedReferences } from './references.ts'
import { SHARED_SCHEMAS } from './shared-schemas.ts'

export interface SeenTable {
  readonly table: Table
  /** Of components and operations. */
  readonly key: string
  readonly tag: string
  readonly path: string
  readonly rights: TableRights
  /** None where it may not be read. */
  readonly columns: readonly Column[]
  /** Those of `columns` that generators can tell apart. */
  readonly distinct: readonly Column[]
  /** Whether generators would take two columns of the table for one. */
  readonly hasAlike: boolean
  readonly relations: readonly SeenRelation[]
  readonly parameters: SharedReferences
  /** Whether a route of this kind leads to it: another may have the path. */
  has(kind: Route['kind']): boolean
}

export interface SeenRelation {
  /** As `expand` takes it: `customer`, `nested:items`, `users!approved_by`. */
  readonly expand: string
  /** The name that the rows have in the answer. */
  readonly output: string
  readonly cardinality: 'one' | 'many'
  readonly target: Table
  /** The segment of the path to the children of a row; null where there is one row alone. */
  readonly child: string | null
}

/** What a caller sees, and the tables of it. */
export interface SeenView {
  readonly view: View
  readonly tables: SeenTables
}

/** By resource name. */
export type SeenTables = ReadonlyMap<string, SeenTable>

export function seenTables(view: View, filters: SharedFilters): SeenTables {
  const known = [...view.catalog.tables.values()].filter(table => isKnown(table, view.rights))
  const names = known.map(({ resource }) => resource)
  const keys = distinctKeys(names, SCHEMA_ROLES, SHARED_KEYS)
  return new Map(
    known.map(table => {
      const key = keys.get(table.resource) ?? keyOf(table.resource)
      return [table.resource, seenTable(table, key, view, filters)]
    }),
  )
}

const SHARED_KEYS = SHARED_SCHEMAS.map(([key]) => key)
const OUR_TAGS: readonly string[] = [FUNCTION_TAG, GATEWAY_TAG]

/** What the schemas of a table have in front of its key. */
const SCHEMA_ROLES = [
  ...['', 'expanded', 'create', 'update', 'written', 'columns'],
  ...['page', 'one', 'written_one', 'written_maybe', 'written_many', 'created'],
]

function seenTable(table: Table, key: string, view: View, filters: SharedFilters): SeenTable {
  const path = `/api/${encodeURIComponent(table.resource)}`
  const below = ['', '/1', '/aggregate', '/_aggregate', '/_explain', '/1/children']
  const kinds = new Set(below.map(rest => parsePath(`${path}${rest}`)?.kind))
  // No path with `.` or `..` arrives: whoever sends it resolves them (RFC 3986, 5.2.4).
  const arrives = table.resource !== '.' && table.resource !== '..'
  const columns = readableColumns(table, view.rights)
  const relations = seenRelations(table, view)
  const hasAlike = distinctBy(table.columns, ({ name }) => name) !== table.columns
  const distinct = hasAlike ? distinctBy(columns, ({ name }) => name) : columns
  return {
    ...{ table, key, path, columns, distinct, hasAlike, relations },
    tag: tagOf(table.resource, key),
    rights: view.rights.of(table),
    parameters: sharedReferences(key, distinct, relations.length > 0, filters),
    has: kind => arrives && kinds.has(kind),
  }
}

/** The name, unless another tag differs from it in case or punctuation only. */
function tagOf(name: string, key: string): string {
  const isOurs = OUR_TAGS.some(tag => tag !== name && tag === identifierOf(name))
  return isOurs || key !== keyOf(name) ? `${keyOf(name)}-${hashOf(name)}` : name
}

function seenRelations(table: Table, view: View): readonly SeenRelation[] {
  return followable(table, view).flatMap(relation => {
    const name = nameOfRelation(table, relation)
    // A row has each name once.
    if (name === null || table.columnByName.has(name.relation)) return []
    const hint = name.hint === null ? '' : `!${quoted(name.hint)}`
    const isChild = name.nested && !name.relation.includes('!') && name.hint?.includes('!') !== true
    return {
      expand: `${name.nested ? 'nested:' : ''}${quoted(name.relation)}${hint}`,
      output: name.relation,
      cardinality: relation.cardinality,
      target: relatedTable(view.catalog, relation.table),
      child: isChild ? `${name.relation}${name.hint === null ? '' : `!${name.hint}`}` : null,
    }
  })
}

export function canRead({ rights, columns }: SeenTable): boolean {
  return rights.refused.read === null && columns.length > 0
}

/** The columns that a write may answer, and those of them that it always does. */
export function answered({ table, rights }: SeenTable): {
  readonly columns: readonly Column[]
  readonly always: Columns
} {
  const { returning, read, create, update } = rights
  if (returning !== null) return { columns: only(table, returning), always: 'any' }
  const columns = table.columns.filter(({ name }) => allows(read, name) || allows(create, name) || allows(update, name))
  return { columns, always: read }
}

function only(table: Table, names: Columns): readonly Column[] {
  return table.columns.filter(({ name }) => allows(names, name))
}

export function canCreate({ table, rights }: SeenTable): boolean {
  return rights.refused.create === null && table.writable.insert
}

export function canUpdate({ table, rights }: SeenTable): boolean {
  return rights.refused.update === null && table.writable.update
}

export function canDelete({ table, rights }: SeenTable): boolean {
  return rights.refused.delete === null && table.writable.delete
}
