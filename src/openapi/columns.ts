/** A column as a schema: its type, its comment, and what a schema has no word for. */
import type { Column, Table } from '../catalog/model.ts'
import { declaredValue } from './declared.ts'
import { constantDefault } from './defaults.ts'
import { exampleValue } from './examples.ts'
import type { Schema } from './model.ts'
import type { SeenTable } from './seen.ts'
import { nullable, valueSchema } from './types.ts'

/** A column with its schema. */
export interface SeenColumn {
  readonly column: Column
  /** Whether generators could take it for another of its table. */
  readonly mayBeAlike: boolean
  readonly schema: Schema
  /** Whether its example is one that somebody chose. */
  readonly declared: boolean
  /** Of `properties`: `"name":{…}`. */
  readonly member: string
  /** The same in the body of a creation, where a column without a comment has no description. */
  readonly createMember: string
  /** The same in the body of a change, with neither description nor example: the row's schema has both. */
  readonly updateMember: string
}

export function seenColumn({ table, hasAlike }: Pick<SeenTable, 'table' | 'hasAlike'>, column: Column): SeenColumn {
  const value = valueSchema(column.type, column.typeText)
  const declared = declaredValue(column, value)
  const schema = schemaWith(table, column, value, declared)
  // Printed in parts, as each is in several members.
  const type = JSON.stringify(column.nullable ? nullable(value) : value).slice(1, -1)
  const plain = type === '' ? '' : `${type},`
  const example = schema.example === undefined ? '' : `,"example":${JSON.stringify(schema.example)}`
  const described = `"description":${JSON.stringify(schema.description)}${schema.readOnly === true ? ',"readOnly":true' : ''}`
  const name = JSON.stringify(column.name)
  const member = `${name}:{${plain}${described}${example}}`
  return {
    ...{ column, mayBeAlike: hasAlike, schema, declared: declared !== undefined, member },
    createMember: column.comment === null ? `${name}:{${`${type}${example}`.replace(/^,/, '')}}` : member,
    updateMember: `${name}:{${type}}`,
  }
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
