/** The tables that a caller can see: the basis of its document. */
import { followable, relatedTable } from '../access/relations.ts'
import { allows, type ColumnSet, isKnown, readableColumns, type TableRights, type View } from '../access/rights.ts'
import type { Column, Table } from '../catalog/model.ts'
import { parsePath, type ResourceRoute } from '../rest/path.ts'
import { nameOfRelation } from '../rest/read/relation.ts'
import type { SharedFilters } from './filters.ts'
import { componentKey, distinctBy, distinctKeys, hashOf, identifierOf, quoteIfNeeded } from './keys.ts'
import { FUNCTION_TAG, GATEWAY_TAG } from './model.ts'
import { type SharedReferences, sharedReferences } from './references.ts'
import { SHARED_SCHEMAS } from './shared-schemas.ts'

/** A table as a caller sees it. */
export interface VisibleTable {
  readonly table: Table
  /** The key of components and operations. */
  readonly key: string
  readonly tag: string
  readonly path: string
  readonly rights: TableRights
  /** The readable columns; empty if the table cannot be read. */
  readonly columns: readonly Column[]
  /** Those of `columns` that generators can distinguish. */
  readonly distinct: readonly Column[]
  /** True if generators would confuse two columns of the table. */
  readonly hasAlike: boolean
  readonly relations: readonly VisibleRelation[]
  readonly parameters: SharedReferences
  /** Reports whether a route of this kind leads to it; another route may have the path. */
  has(kind: ResourceRoute['kind']): boolean
}

/** A relation whose target the caller can read. */
export interface VisibleRelation {
  /** As in `expand`: `customer`, `nested:items`, `users!approved_by`. */
  readonly expand: string
  /** The name of the related rows in the response. */
  readonly output: string
  readonly cardinality: 'one' | 'many'
  readonly target: Table
  /** The path segment of the related rows of a row; null if there is only one related row. */
  readonly child: string | null
  /** True if the name without a hint leads to it, and to no junction: bodies can contain its rows. */
  readonly isWritable: boolean
}

/** The view of a caller, and the tables visible to it. */
export interface DocumentView {
  readonly view: View
  readonly tables: VisibleTables
}

/** Tables by resource name. */
export type VisibleTables = ReadonlyMap<string, VisibleTable>

/** Returns the tables that a caller's view of the catalog contains. */
export function visibleTables(view: View, filters: SharedFilters): VisibleTables {
  const known = [...view.catalog.tables.values()].filter(table => isKnown(table, view.rights))
  const names = known.map(({ resource }) => resource)
  const keys = distinctKeys(names, SCHEMA_ROLES, SHARED_KEYS)
  return new Map(
    known.map(table => {
      const key = keys.get(table.resource) ?? componentKey(table.resource)
      return [table.resource, visibleTable(table, key, view, filters)]
    }),
  )
}

const SHARED_KEYS = SHARED_SCHEMAS.map(([key]) => key)
const GATEWAY_TAGS: readonly string[] = [FUNCTION_TAG, GATEWAY_TAG]

/** The roles that precede a table's key in keys of schemas. */
const SCHEMA_ROLES = [
  ...['', 'expanded', 'create', 'update', 'written', 'columns', 'changes', 'increments'],
  ...['related', 'page', 'one', 'written_one', 'written_many', 'created'],
]

function visibleTable(table: Table, key: string, view: View, filters: SharedFilters): VisibleTable {
  const path = `/api/${encodeURIComponent(table.resource)}`
  const below = ['', '/1', '/aggregate', '/_aggregate', '/_explain', '/1/children']
  const kinds = new Set(below.map(rest => parsePath(`${path}${rest}`)?.kind))
  // A path with `.` or `..` never arrives, because clients resolve it (RFC 3986, 5.2.4).
  const isReachable = table.resource !== '.' && table.resource !== '..'
  const columns = readableColumns(table, view.rights)
  const relations = visibleRelations(table, view)
  const hasAlike = distinctBy(table.columns, ({ name }) => name) !== table.columns
  const distinct = hasAlike ? distinctBy(columns, ({ name }) => name) : columns
  return {
    ...{ table, key, path, columns, distinct, hasAlike, relations },
    tag: tagOf(table.resource, key),
    rights: view.rights.of(table),
    parameters: sharedReferences(key, distinct, relations.length > 0, filters),
    has: kind => isReachable && kinds.has(kind),
  }
}

/** The name, unless another tag differs only in case or punctuation. */
function tagOf(name: string, key: string): string {
  const isOurs = GATEWAY_TAGS.some(tag => tag !== name && tag === identifierOf(name))
  return isOurs || key !== componentKey(name) ? `${componentKey(name)}-${hashOf(name)}` : name
}

function visibleRelations(table: Table, view: View): readonly VisibleRelation[] {
  return followable(table, view).flatMap(relation => {
    const name = nameOfRelation(table, relation)
    // Each name occurs once in a row.
    if (name === null || table.columnByName.has(name.relation)) return []
    const hint = name.hint === null ? '' : `!${quoteIfNeeded(name.hint)}`
    const isChild = name.nested && !name.relation.includes('!') && name.hint?.includes('!') !== true
    return {
      expand: `${name.nested ? 'nested:' : ''}${quoteIfNeeded(name.relation)}${hint}`,
      output: name.relation,
      cardinality: relation.cardinality,
      target: relatedTable(view.catalog, relation.table),
      isWritable: name.hint === null && relation.junction === null,
      child: isChild ? `${name.relation}${name.hint === null ? '' : `!${name.hint}`}` : null,
    }
  })
}

/** A relation whose rows a body of its table can contain. */
export interface CreatableRelation extends VisibleRelation {
  readonly seen: VisibleTable
}

/** The relations whose rows a creation can contain. Each name occurs once. */
export function creatableRelations({ relations }: VisibleTable, tables: VisibleTables): readonly CreatableRelation[] {
  const found = relations.flatMap(relation => {
    const seen = relation.isWritable ? tables.get(relation.target.resource) : undefined
    return seen !== undefined && canCreate(seen) ? [{ ...relation, seen }] : []
  })
  return distinctBy(found, ({ output }) => output)
}

/** The relations whose rows a change can contain. Each name occurs once. */
export function changeableRelations({ relations }: VisibleTable): readonly VisibleRelation[] {
  return distinctBy(
    relations.filter(({ isWritable }) => isWritable),
    ({ output }) => output,
  )
}

/** Reports whether the caller can read the table. */
export function canRead({ rights, columns }: VisibleTable): boolean {
  return rights.refused.read === null && columns.length > 0
}

/** The columns that a write may return, and those that it always returns. */
export function returnedColumns({ table, rights }: VisibleTable): {
  readonly columns: readonly Column[]
  readonly always: ColumnSet
} {
  const { returning, read, create, update } = rights
  if (returning !== null) return { columns: only(table, returning), always: 'any' }
  const columns = table.columns.filter(({ name }) => allows(read, name) || allows(create, name) || allows(update, name))
  return { columns, always: read }
}

function only(table: Table, names: ColumnSet): readonly Column[] {
  return table.columns.filter(({ name }) => allows(names, name))
}

/** Reports whether the caller can insert rows. */
export function canCreate({ table, rights }: VisibleTable): boolean {
  return rights.refused.create === null && table.writable.insert
}

/** Reports whether the caller can update rows. */
export function canUpdate({ table, rights }: VisibleTable): boolean {
  return rights.refused.update === null && table.writable.update
}

/** Reports whether the caller can delete rows. */
export function canDelete({ table, rights }: VisibleTable): boolean {
  return rights.refused.delete === null && table.writable.delete
}
