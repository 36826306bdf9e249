/**
 * The document of `GET /api/_schema` (docs/reference/rest-api.md#the-schema): what the caller may see of the
 * catalog, as plain JSON data.
 */
import type { Catalog, Column, DataType, ForeignKey, Relation, Table, TableKind } from './model.ts'

/** True if the caller may see a table (`column` null), or a column of a visible table. */
export type CanSee = (table: Table, column: Column | null) => boolean

/** True if the caller may change a column of existing rows. */
export type CanUpdate = (table: Table, column: Column) => boolean

export interface SchemaDescription {
  /** By resource name. Has no prototype: `__proto__` and `constructor` are tables like any other. */
  readonly tables: Readonly<Record<string, TableDocument>>
}

export interface TableDocument {
  readonly schema: string
  readonly name: string
  readonly kind: TableKind
  readonly comment: string | null
  readonly primary_key: readonly string[]
  readonly columns: readonly ColumnDocument[]
  readonly foreign_keys: readonly ForeignKeyDocument[]
  readonly referenced_by: readonly ReferenceDocument[]
  readonly unique: readonly (readonly string[])[]
  readonly relations: readonly RelationDocument[]
}

export interface ColumnDocument {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
  readonly default: string | null
  readonly generated: 'stored' | 'virtual' | null
  readonly identity: 'always' | 'by default' | null
  /** Present if the caller cannot change the column, and neither `generated` nor `identity` prevents it. */
  readonly read_only?: true
  /** The labels, for an enum and for a domain over one. */
  readonly enum?: readonly string[]
  readonly comment: string | null
}

export interface ForeignKeyDocument {
  readonly name: string
  readonly columns: readonly string[]
  readonly references: { readonly table: string; readonly columns: readonly string[] }
}

/** A foreign key of another table: `columns` of `table` refer to `references`, columns of this one. */
export interface ReferenceDocument {
  readonly name: string
  readonly table: string
  readonly columns: readonly string[]
  readonly references: readonly string[]
}

export interface RelationDocument {
  readonly name: string
  readonly table: string
  readonly cardinality: 'one' | 'many'
  /** Columns of this table. */
  readonly columns: readonly string[]
  /** The foreign key's name, or the junction's table: either is a hint that `expand` takes. */
  readonly via: string
}

/**
 * Describes the visible part of a catalog. A key, constraint or relation is included only if all of its
 * tables and columns are visible: half a key would be misleading, and the rest of it would reveal a name.
 */
export function describe(
  catalog: Catalog,
  canSee: CanSee = () => true,
  canUpdate: CanUpdate = ({ writable }) => writable.update,
): SchemaDescription {
  const visible = visibleTables(catalog, canSee)
  const references = referencesByTable(visible)
  const tables: Record<string, TableDocument> = Object.create(null)
  for (const one of visible.values()) tables[one.table.resource] = describeTable(one, visible, references, canUpdate)
  return { tables }
}

interface VisibleTable {
  readonly table: Table
  readonly columns: readonly Column[]
  readonly names: ReadonlySet<string>
}

type Visible = ReadonlyMap<string, VisibleTable>

function visibleTables(catalog: Catalog, canSee: CanSee): Visible {
  const visible = new Map<string, VisibleTable>()
  for (const table of catalog.tables.values()) {
    if (!canSee(table, null)) continue
    const columns = table.columns.filter(column => canSee(table, column))
    visible.set(table.resource, { table, columns, names: new Set(columns.map(column => column.name)) })
  }
  return visible
}

function describeTable(
  { table, columns, names }: VisibleTable,
  visible: Visible,
  references: ReadonlyMap<string, readonly ReferenceDocument[]>,
  canUpdate: CanUpdate,
): TableDocument {
  const all = (key: readonly string[]): boolean => key.every(name => names.has(name))
  return {
    schema: table.schema,
    name: table.name,
    kind: table.kind,
    comment: table.comment,
    primary_key: all(table.primaryKey) ? table.primaryKey : [],
    columns: columns.map(column => describeColumn(column, canUpdate(table, column))),
    foreign_keys: visibleKeys(table, visible).map(describeForeignKey),
    referenced_by: references.get(table.resource) ?? [],
    unique: table.unique.filter(all),
    relations: table.relations.filter(relation => isVisible(relation, table, visible)).map(describeRelation),
  }
}

function describeColumn(column: Column, canUpdate: boolean): ColumnDocument {
  const labels = labelsOf(column.type)
  const isReadOnly = !canUpdate && column.generated === null && column.identity !== 'always'
  return {
    name: column.name,
    type: column.typeText,
    nullable: column.nullable,
    default: column.default,
    generated: column.generated,
    identity: column.identity,
    ...(isReadOnly ? { read_only: true } : {}),
    ...(labels === null ? {} : { enum: labels }),
    comment: column.comment,
  }
}

function labelsOf(type: DataType): readonly string[] | null {
  let base: DataType | null = type
  while (base?.kind === 'domain') base = base.of
  return base?.kind === 'enum' ? base.labels : null
}

function describeForeignKey(key: ForeignKey): ForeignKeyDocument {
  return { name: key.name, columns: key.columns, references: { table: key.table, columns: key.referencedColumns } }
}

function describeRelation(relation: Relation): RelationDocument {
  const [constraint] = relation.constraints
  return {
    name: relation.name,
    table: relation.table,
    cardinality: relation.cardinality,
    columns: relation.columns,
    via: relation.junction?.table ?? constraint ?? '',
  }
}

function referencesByTable(visible: Visible): ReadonlyMap<string, readonly ReferenceDocument[]> {
  const references = new Map<string, ReferenceDocument[]>()
  for (const { table } of visible.values()) {
    for (const key of visibleKeys(table, visible)) {
      const reference = {
        name: key.name,
        table: table.resource,
        columns: key.columns,
        references: key.referencedColumns,
      }
      const known = references.get(key.table)
      if (known === undefined) references.set(key.table, [reference])
      else known.push(reference)
    }
  }
  return references
}

/** A table outside the schemas is not in the catalog, so no caller may see it. */
function visibleKeys(table: Table, visible: Visible): readonly ForeignKey[] {
  return table.foreignKeys.filter(
    key => sees(visible, table.resource, key.columns) && sees(visible, key.table, key.referencedColumns),
  )
}

function isVisible(relation: Relation, table: Table, visible: Visible): boolean {
  const { junction } = relation
  return (
    sees(visible, table.resource, relation.columns) &&
    sees(visible, relation.table, relation.targetColumns) &&
    (junction === null || sees(visible, junction.table, [...junction.from, ...junction.to]))
  )
}

function sees(visible: Visible, resource: string, columns: readonly string[]): boolean {
  const names = visible.get(resource)?.names
  return names !== undefined && columns.every(name => names.has(name))
}
