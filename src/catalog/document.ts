/** The relations between the tables of a schema document, found in the same way as those of a database. */
import { lookupKeyOf, lookupOf, primaryKeyOf, shownName } from '../schema/lookup.ts'
import type {
  Name,
  ReferenceDefinition,
  SchemaDocument,
  TableDefinition,
  TableName,
  ViewDefinition,
} from '../schema/model.ts'
import type { ForeignKey, Relation } from './model.ts'
import { type KeyedTable, relate } from './relations.ts'

export interface DocumentTable extends Pick<TableName, 'schema' | 'name'> {
  readonly resource: string
  readonly relations: readonly Relation[]
}

export interface DocumentTables {
  /** By resource name. */
  readonly tables: ReadonlyMap<string, DocumentTable>
  /** The table that a name in a query refers to; null if the document does not contain it. */
  find(name: TableName): DocumentTable | null
}

/** `first`: the schema whose tables the document may name without it. */
export function relateDocument(document: SchemaDocument, first: string): DocumentTables {
  const lookup = lookupOf(document)
  const definitionOf = ({ schema, name }: Pick<TableName, 'schema' | 'name'>) => {
    const exact = lookup.relation({ schema, name })
    const found = typeof exact === 'string' && schema === first ? lookup.relation({ schema: null, name }) : exact
    return typeof found === 'string' ? null : found
  }
  const keyed = document.tables.map((table): KeyedTable => {
    const keys = document.indexes.filter(
      ({ table: of, unique, where }) => unique && where === null && definitionOf(of) === table,
    )
    return {
      name: table.name.name,
      resource: shownName(table.name),
      primaryKey: primaryKeyOf(table),
      unique: [
        ...table.columns.filter(({ unique }) => unique).map(({ name }) => [name.text]),
        ...table.keys.filter(({ kind }) => kind === 'unique').map(({ columns }) => textsOf(columns)),
        ...keys.map(({ elements }) => elements.map(unquoted)),
      ],
      foreignKeys: foreignKeysOf(table, definitionOf),
    }
  })
  const relations = relate(keyed)
  const described = [...document.tables, ...document.views].toReversed().map(({ name: { schema, name } }) => {
    const resource = shownName({ schema, name })
    return { schema, name, resource, relations: relations.get(resource) ?? [] }
  })
  const byKey = new Map(described.map(table => [lookupKeyOf(table), table]))
  return {
    tables: new Map(described.map(table => [table.resource, table])),
    find(name) {
      const definition = definitionOf(name)
      return definition === null ? null : (byKey.get(lookupKeyOf(definition.name)) ?? null)
    },
  }
}

function foreignKeysOf(
  table: TableDefinition,
  definitionOf: (name: TableName) => TableDefinition | ViewDefinition | null,
): readonly ForeignKey[] {
  const written: readonly (readonly [readonly string[], ReferenceDefinition])[] = [
    ...table.columns.flatMap(({ name, references }) =>
      references === null ? [] : [[[name.text], references] as const],
    ),
    ...table.foreignKeys.map(({ columns, references }) => [textsOf(columns), references] as const),
  ]
  return written.flatMap(([columns, { table: target, columns: named }]) => {
    const found = definitionOf(target)
    if (found?.kind !== 'table definition') return []
    return { name: columns.join('_'), columns, table: shownName(found.name), referencedColumns: textsOf(named) }
  })
}

function textsOf(names: readonly Name[]): readonly string[] {
  return names.map(({ text }) => text)
}

/** The column of an index element; an expression is returned unchanged and matches no column. */
function unquoted(element: string): string {
  return /^"(?:[^"]|"")+"$/.test(element) ? element.slice(1, -1).replaceAll('""', '"') : element
}
