/** Resolves the names of a document: tables, types, the key of a table. */

import type {
  DomainDefinition,
  EnumDefinition,
  SchemaColumn,
  SchemaDocument,
  SchemaType,
  TableDefinition,
  TableName,
  ViewDefinition,
} from './model.ts'
import { isOwnType } from './type-name.ts'

export type Found = TableDefinition | ViewDefinition | 'outside' | 'missing'

export interface SchemaLookup {
  /** `outside`: in a schema without objects in the document, so that nothing is known about it. */
  relation(name: Pick<TableName, 'schema' | 'name'>): Found
  declared(type: Pick<SchemaType, 'schema' | 'name'>): EnumDefinition | DomainDefinition | null
  /**
   * True if the type is known from the document: built in, declared, a row of a table or view, or qualified
   * with a schema.
   */
  isKnown(type: Pick<SchemaType, 'schema' | 'name'>): boolean
  /** Columns by name; of two with the same name, the first. */
  columns(table: TableDefinition): ReadonlyMap<string, SchemaColumn>
  /** True if the column can be null; a key, an identity, a serial and a domain with NOT NULL cannot. */
  isNullable(column: SchemaColumn, table: TableDefinition): boolean
}

export function lookupOf(document: SchemaDocument): SchemaLookup {
  const relations = new Map(
    [...document.tables, ...document.views].toReversed().map(one => [lookupKeyOf(one.name), one]),
  )
  const types = new Map([...document.enums, ...document.domains].toReversed().map(one => [lookupKeyOf(one.name), one]))
  const schemas = new Set([...document.tables, ...document.views].map(one => one.name.schema))
  const columns = new Map(document.tables.map(table => [table, columnsByName(table)]))
  // A second primary key is an error, but its columns are not null all the same.
  const keyed = new Map(
    document.tables.map(table => [
      table,
      new Set(table.keys.filter(key => key.kind === 'primary key').flatMap(key => key.columns.map(one => one.text))),
    ]),
  )
  const isOwn = (type: Pick<SchemaType, 'schema' | 'name'>): boolean => type.schema === null && isOwnType(type.name)
  const declared: SchemaLookup['declared'] = type => (isOwn(type) ? null : resolved(types, type))
  return {
    declared,
    columns: table => columns.get(table) ?? columnsByName(table),
    isNullable: (column, table) =>
      !(
        column.notNull ||
        column.primaryKey ||
        column.identity !== null ||
        isSerial(column.type) ||
        keyed.get(table)?.has(column.name.text) ||
        isNotNullDomain(column.type, declared(column.type))
      ),
    relation: name =>
      resolved(relations, name) ?? (name.schema === null || schemas.has(name.schema) ? 'missing' : 'outside'),
    isKnown: type =>
      isOwn(type) || type.schema !== null || resolved(types, type) !== null || resolved(relations, type) !== null,
  }
}

/** The lookup key of a name; equal for equal names. */
export function lookupKeyOf({ schema, name }: Pick<TableName, 'schema' | 'name'>): string {
  return JSON.stringify([schema, name])
}

/** The name for messages. */
export function shownName({ schema, name }: Pick<TableName, 'schema' | 'name'>): string {
  return schema === null ? name : `${schema}.${name}`
}

/** An unqualified name that does not exist may belong to `public`, as in PostgreSQL's default search_path. */
function resolved<T>(map: ReadonlyMap<string, T>, { schema, name }: Pick<TableName, 'schema' | 'name'>): T | null {
  const exact = map.get(lookupKeyOf({ schema, name }))
  if (exact !== undefined || schema !== null) return exact ?? null
  return map.get(lookupKeyOf({ schema: 'public', name })) ?? null
}

/** The columns of the primary key, wherever it is written; empty for none. */
export function primaryKeyOf(table: TableDefinition): readonly string[] {
  const inline = table.columns.filter(column => column.primaryKey).map(column => column.name.text)
  const key = table.keys.find(one => one.kind === 'primary key')
  return inline.length > 0 ? inline : (key?.columns.map(column => column.text) ?? [])
}

function columnsByName(table: TableDefinition): ReadonlyMap<string, SchemaColumn> {
  return new Map(table.columns.toReversed().map(column => [column.name.text, column]))
}

function isSerial({ schema, name }: SchemaType): boolean {
  return schema === null && /^(?:small|big)?serial$/.test(name)
}

function isNotNullDomain(type: SchemaType, declared: EnumDefinition | DomainDefinition | null): boolean {
  return declared?.kind === 'domain' && declared.notNull && type.dimensions === 0
}
