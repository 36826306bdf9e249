/** A column as a schema: its type, its comment, and what a schema has no word for. */
import type { Column, Table } from '../../catalog/model.ts'
import { declaredValue } from './declared.ts'
import { constantDefault } from './defaults.ts'
import { exampleValue } from './examples.ts'
import type { Schema } from './model.ts'
import { nullable, valueSchema } from './types.ts'

/** A column with its schema. */
export interface SeenColumn {
  readonly column: Column
  readonly schema: Schema
  /** Whether its example is one that somebody chose. */
  readonly declared: boolean
  /** Of `properties`: `"name":{…}`. */
  readonly member: string
}

export function seenColumn(table: Table, column: Column): SeenColumn {
  const value = valueSchema(column.type, column.typeText)
  const declared = declaredValue(column, value)
  const schema = schemaWith(table, column, value, declared)
  const member = `${JSON.stringify(column.name)}:${JSON.stringify(schema)}`
  return { column, schema, declared: declared !== undefined, member }
}

/** Of a column of a function's result, which belongs to no table. */
export function columnSchema(column: Column): Schema {
  return schemaWith(null, column, valueSchema(column.type, column.typeText), undefined)
}

function schemaWith(table: Table | null, column: Column, value: Schema, declared: unknown): Schema {
  const made = () => constantDefault(column, value) ?? exampleValue(column.type, value)
  const example = declared === undefined ? made() : declared
  return {
    ...(column.nullable ? nullable(value) : value),
    description: describeColumn(table, column),
    ...(isReadOnly(column) ? { readOnly: true } : {}),
    ...(example === undefined ? {} : { example }),
  }
}

/** The comment of the database, and what a schema has no word for. */
function describeColumn(table: Table | null, { comment, name, typeText, default: value }: Column): string {
  let facts = `\`${typeText}\``
  if (table?.primaryKey.includes(name) === true) facts += ', primary key'
  if (value !== null) facts += `, default \`${value}\``
  return comment === null ? facts : `${comment}\n\n${facts}`
}

/** Columns that PostgreSQL fills in itself are no part of any body. */
export function isReadOnly({ generated, identity }: Column): boolean {
  return generated !== null || identity === 'always'
}
