/** A column as a schema: its type, its comment, and what a schema has no word for. */
import type { Column, Table } from '../../catalog/model.ts'
import { exampleOf } from './examples.ts'
import type { Schema } from './model.ts'
import { nullable, valueSchema } from './types.ts'

/** A column with its schema. */
export interface SeenColumn {
  readonly column: Column
  readonly schema: Schema
  /** Of `properties`: `"name":{…}`. */
  readonly member: string
}

export function seenColumn(table: Table, column: Column): SeenColumn {
  const schema = columnSchema(table, column)
  return { column, schema, member: `${JSON.stringify(column.name)}:${JSON.stringify(schema)}` }
}

/** Also for the columns of a function's rows, which belong to no table. */
export function columnSchema(table: Table | null, column: Column): Schema {
  const value = valueSchema(column.type, column.typeText)
  const example = exampleOf(column, value)
  return {
    ...(column.nullable ? nullable(value) : value),
    description: describeColumn(table, column),
    ...(isReadOnly(column) ? { readOnly: true } : {}),
    ...(example === undefined ? {} : { example }),
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

/** Columns that PostgreSQL fills in itself are no part of any body. */
export function isReadOnly({ generated, identity }: Column): boolean {
  return generated !== null || identity === 'always'
}
