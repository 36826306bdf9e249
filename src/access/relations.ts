/** The condition that joins the rows of a relation's two tables. */
import type { Relation, Table } from '../catalog/model.ts'
import type { Expression, TableName } from '../language/tree/ast.ts'
import { and, column, compare, exists, get } from '../language/tree/build.ts'
import { allowsAll, EVERYTHING, type View } from './rights.ts'

/**
 * The table that a relation leads to. Relations name only tables of the same catalog; anything else is a
 * bug in introspection and throws.
 */
export function relatedTable<T>(catalog: { readonly tables: ReadonlyMap<string, T> }, name: string): T {
  const table = catalog.tables.get(name)
  if (table === undefined) throw new Error(`relation names "${name}", which is not in the catalog`)
  return table
}

/**
 * The relations that the caller can follow and is therefore shown: every table and column on the path is
 * readable.
 */
export function followable(table: Table, { catalog, rights }: View): readonly Relation[] {
  if (rights === EVERYTHING) return table.relations
  const reads = (name: string, columns: readonly string[]): boolean => {
    const { read } = rights.of(relatedTable(catalog, name))
    return allowsAll(read, columns)
  }
  return table.relations.filter(
    ({ table: target, columns, targetColumns, junction }) =>
      reads(table.resource, columns) &&
      reads(target, targetColumns) &&
      (junction === null || reads(junction.table, [...junction.from, ...junction.to])),
  )
}

/** The tables that a relation can lead through, by resource name. */
export interface JunctionTables {
  readonly tables: ReadonlyMap<string, Pick<TableName, 'schema' | 'name'>>
}

/**
 * The rows of `child` that belong to `parent`: its key equals the parent's, or a row of the junction table
 * links the two. The junction is tested with `exists`, so a pair that is linked twice is still one row, and
 * row-level security of the junction applies.
 */
export function childJoin(
  relation: Relation,
  parent: string,
  child: string,
  catalog: JunctionTables,
  junctionAlias: string,
): Expression {
  const { junction } = relation
  if (junction === null) return columnsEqual(child, relation.targetColumns, parent, relation.columns)
  const via = relatedTable(catalog, junction.table)
  return exists(
    get({
      table: { schema: via.schema, name: via.name },
      alias: junctionAlias,
      where: and(
        columnsEqual(junctionAlias, junction.from, parent, relation.columns),
        columnsEqual(junctionAlias, junction.to, child, relation.targetColumns),
      ),
    }),
  )
}

/** `left.a = right.x and left.b = right.y`: column by column. */
export function columnsEqual(
  left: string,
  leftColumns: readonly string[],
  right: string,
  rightColumns: readonly string[],
): Expression {
  return and(
    ...leftColumns.map((name, index) => compare('=', column(left, name), column(right, rightColumns[index] ?? name))),
  )
}
