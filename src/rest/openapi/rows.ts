/** The rows of a table as schemas: as they are read, and as they are sent (decisions 3, 4). */
import { allows, type Columns } from '../../access/rights.ts'
import type { Column, Table } from '../../catalog/model.ts'
import { constantDefault } from './defaults.ts'
import type { Schema } from './model.ts'
import { nullable, valueSchema } from './types.ts'

/** A row with these columns; all of `required` are always there. */
export function rowSchema(
  table: Table,
  columns: readonly Column[],
  required: Columns,
  schemaOf: (column: Column) => Schema,
): Schema {
  return {
    type: 'object',
    ...(table.comment === null ? {} : { description: table.comment }),
    properties: byName(columns, schemaOf),
    ...requiring(columns.filter(({ name }) => allows(required, name))),
  }
}

/** The body of a creation: what the caller may write. What has neither a default nor may be NULL has to be there. */
export function createSchema(table: Table, rights: Columns, schemaOf: (column: Column) => Schema): Schema {
  const columns = written(table, rights)
  return {
    type: 'object',
    properties: byName(columns, column => {
      const schema = schemaOf(column)
      const value = constantDefault(column, schema)
      return value === undefined ? schema : { ...schema, default: value }
    }),
    ...requiring(columns.filter(column => !column.nullable && column.default === null && column.identity === null)),
    additionalProperties: false,
  }
}

/** The body of a change. Without defaults: a column that is left out stays as it is. */
export function updateSchema(table: Table, rights: Columns, schemaOf: (column: Column) => Schema): Schema {
  return {
    type: 'object',
    properties: byName(written(table, rights), schemaOf),
    additionalProperties: false,
    minProperties: 1,
  }
}

/** Columns that PostgreSQL fills in itself are no part of any body. */
export function isReadOnly({ generated, identity }: Column): boolean {
  return generated !== null || identity === 'always'
}

function written(table: Table, rights: Columns): readonly Column[] {
  return table.columns.filter(column => !isReadOnly(column) && allows(rights, column.name))
}

/** Also for the columns of a function's rows, which belong to no table. */
export function columnSchema(table: Table | null, column: Column): Schema {
  const value = valueSchema(column.type, column.typeText)
  return {
    ...(column.nullable ? nullable(value) : value),
    description: describeColumn(table, column),
    ...(isReadOnly(column) ? { readOnly: true } : {}),
  }
}

/** The comment of the database, and what a schema has no word for. */
function describeColumn(table: Table | null, { comment, name, typeText, default: value }: Column): string {
  const isKey = table?.primaryKey.includes(name) === true
  const facts = [
    `\`${typeText}\``,
    ...(isKey ? ['primary key'] : []),
    ...(value === null ? [] : [`default \`${value}\``]),
  ]
  return `${comment === null ? '' : `${comment}\n\n`}${facts.join(', ')}`
}

export function byName(
  columns: readonly Column[],
  schemaOf: (column: Column) => Schema,
): Readonly<Record<string, Schema>> {
  // Defines, and so never calls a setter: `__proto__` is a column like any other.
  return Object.fromEntries(columns.map(column => [column.name, schemaOf(column)]))
}

/** An empty list is not allowed. */
function requiring(columns: readonly Column[]): Pick<Schema, 'required'> {
  return columns.length === 0 ? {} : { required: columns.map(({ name }) => name) }
}
