/** Builds one table of the model from its rows. */
import { readComment } from './comment.ts'
import type { Column, ForeignKey, Table, TableKind } from './model.ts'
import type { KeyedTable } from './relations.ts'
import type {
  ColumnItem,
  ConstraintItem,
  ForeignKeyItem,
  KeyItem,
  OutsideColumnItem,
  RelationItem,
} from './statement.ts'
import type { ColumnType } from './types.ts'

/** The lookups needed to build a table. */
export interface CatalogLookup {
  /** The resource name; `schema.table` for a table that is not a resource. */
  readonly nameByOid: ReadonlyMap<number, string>
  readonly resourceOids: ReadonlySet<number>
  readonly columnsByOid: ReadonlyMap<number, readonly ColumnItem[]>
  readonly outsideColumnsByOid: ReadonlyMap<number, readonly OutsideColumnItem[]>
  readonly keysByOid: ReadonlyMap<number, readonly KeyItem[]>
  readonly constraintsByOid: ReadonlyMap<number, readonly ConstraintItem[]>
  readonly foreignKeysByOid: ReadonlyMap<number, readonly ForeignKeyItem[]>
  readonly types: ReadonlyMap<number, ColumnType>
  /** The same few names and type texts occur in thousands of columns, so each is stored once. */
  readonly intern: (text: string) => string
}

/** A table without its relations, and its keys that refer to resources, for `relate`. */
export interface Draft {
  readonly table: Omit<Table, 'relations'>
  readonly keyed: KeyedTable
}

export function buildTable(resource: string, relation: RelationItem, lookup: CatalogLookup): Draft {
  const columns = (lookup.columnsByOid.get(relation.oid) ?? [])
    .toSorted((a, b) => a.number - b.number)
    .map(item => buildColumn(item, relation, lookup))
  const foreignKeys = (lookup.foreignKeysByOid.get(relation.oid) ?? [])
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(item => ({ key: buildForeignKey(item, lookup), leads: lookup.resourceOids.has(item.target) }))
  const table = {
    oid: relation.oid,
    schema: lookup.intern(relation.schema),
    name: lookup.intern(relation.name),
    resource: lookup.intern(resource),
    kind: KIND_OF[relation.kind],
    comment: relation.comment,
    columns: Object.freeze(columns),
    columnByName: new Map(columns.map(column => [column.name, column])),
    ...buildKeys(relation.oid, lookup),
    constraints: buildConstraints(relation.oid, lookup),
    foreignKeys: Object.freeze(foreignKeys.map(({ key }) => key)),
    rowSecurity: Object.freeze({ enabled: relation.rowSecurity, forced: relation.forced }),
    writable: Object.freeze({
      insert: (relation.writable & INSERT) !== 0,
      update: (relation.writable & UPDATE) !== 0,
      delete: (relation.writable & DELETE) !== 0,
    }),
  }
  return { table, keyed: { ...table, foreignKeys: foreignKeys.filter(({ leads }) => leads).map(({ key }) => key) } }
}

const KIND_OF: Readonly<Record<RelationItem['kind'], TableKind>> = {
  r: 'table',
  p: 'partitioned',
  f: 'foreign',
  v: 'view',
  m: 'materialized view',
}

// Bits of pg_relation_is_updatable: 1 << CmdType (PostgreSQL, src/include/nodes/nodes.h).
const UPDATE = 4
const INSERT = 8
const DELETE = 16

function buildColumn(item: ColumnItem, relation: RelationItem, { types, intern }: CatalogLookup): Column {
  const type = types.get(item.type)
  if (type === undefined)
    throw new Error(`column ${item.name} of ${relation.name} has type ${item.type}, which is missing`)
  // A domain's constraint applies to stored values; a view may return anything.
  const stored = relation.kind !== 'v' && relation.kind !== 'm'
  const given = item.default ?? (stored && item.generated === '' && item.identity === '' ? type.default : null)
  return Object.freeze({
    name: intern(item.name),
    type: type.type,
    typeText: intern(item.typeText),
    nullable: !item.notNull && !(stored && type.notNull),
    default: given === null ? null : intern(given),
    generated: GENERATED_OF[item.generated],
    identity: IDENTITY_OF[item.identity],
    ...readComment(item.comment),
  })
}

const GENERATED_OF: Readonly<Record<ColumnItem['generated'], Column['generated']>> = {
  '': null,
  s: 'stored',
  v: 'virtual',
}

const IDENTITY_OF: Readonly<Record<ColumnItem['identity'], Column['identity']>> = {
  '': null,
  a: 'always',
  d: 'by default',
}

/**
 * Several indexes can have the same columns. Each list of columns is included once, except that of the
 * primary key.
 */
function buildKeys(oid: number, lookup: CatalogLookup): Pick<Table, 'primaryKey' | 'unique'> {
  const keys = (lookup.keysByOid.get(oid) ?? []).map(item => ({
    primary: item.primary,
    columns: namesOf(oid, item.columns.split(' ').slice(0, item.width).map(Number), lookup),
  }))
  const primaryKey = keys.find(key => key.primary)?.columns ?? NONE
  const unique = new Map(keys.map(({ columns }) => [columns.join('\0'), columns]))
  unique.delete(primaryKey.join('\0'))
  const sorted = [...unique].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, columns]) => columns)
  return { primaryKey, unique: Object.freeze(sorted) }
}

const NONE: readonly string[] = Object.freeze([])

function buildConstraints(oid: number, lookup: CatalogLookup): ReadonlyMap<string, readonly string[]> {
  const items = lookup.constraintsByOid.get(oid) ?? []
  return new Map(
    items.map(({ name, columns }) => {
      const plain = columns.filter(number => number > 0)
      return [lookup.intern(name), namesOf(oid, plain, lookup)]
    }),
  )
}

function buildForeignKey(item: ForeignKeyItem, lookup: CatalogLookup): ForeignKey {
  const table = lookup.nameByOid.get(item.target)
  if (table === undefined)
    throw new Error(`foreign key ${item.name} refers to relation ${item.target}, which is missing`)
  return Object.freeze({
    name: lookup.intern(item.name),
    columns: namesOf(item.relation, item.columns, lookup),
    table: lookup.intern(table),
    referencedColumns: namesOf(item.target, item.targetColumns, lookup),
  })
}

function namesOf(oid: number, numbers: readonly number[], lookup: CatalogLookup): readonly string[] {
  const columns = lookup.columnsByOid.get(oid) ?? lookup.outsideColumnsByOid.get(oid) ?? []
  const names = numbers.map(number => {
    const column = columns.find(item => item.number === number)
    if (column === undefined) throw new Error(`a key names column ${number} of relation ${oid}, which is missing`)
    return lookup.intern(column.name)
  })
  return Object.freeze(names)
}
