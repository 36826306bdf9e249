/** A column as a schema: its type, its comment, and facts that schemas cannot express. */
import { isManaged } from '../access/managed.ts'
import { allows } from '../access/rights.ts'
import { isNumber } from '../access/types.ts'
import type { Column, Table } from '../catalog/model.ts'
import { declaredValue } from './declared-examples.ts'
import { constantDefault } from './defaults.ts'
import { exampleValue } from './examples.ts'
import { distinctBy } from './keys.ts'
import type { SchemaObject } from './model.ts'
import { nullable, valueSchema } from './types.ts'
import type { VisibleTable } from './visible-tables.ts'

/** A column with its schema. */
export interface VisibleColumn {
  readonly column: Column
  /** True if client generators could confuse it with another column of its table. */
  readonly isAmbiguous: boolean
  readonly schema: SchemaObject
  /** True if its example was declared in a comment. */
  readonly declared: boolean
  /** A member of `properties`: `"name":{…}`. */
  readonly member: string
  /** The member in the body of a creation, where a column without a comment has no description. */
  readonly createMember: string
  /**
   * The member in the body of an update. It has no description and no example, because the row's schema has
   * them.
   */
  readonly updateMember: string
}

/** Describes a column for the schemas that contain it. */
export function visibleColumn(
  { table, hasAlike }: Pick<VisibleTable, 'table' | 'hasAlike'>,
  column: Column,
): VisibleColumn {
  const value = valueSchema(column.type, column.typeText)
  const declared = declaredValue(column, value)
  const schema = schemaWith(table, column, value, declared)
  // Printed in parts, because each is part of several members.
  const type = JSON.stringify(column.nullable ? nullable(value) : value).slice(1, -1)
  const plain = type === '' ? '' : `${type},`
  const example = schema.example === undefined ? '' : `,"example":${JSON.stringify(schema.example)}`
  const readOnly = schema.readOnly === true ? ',"readOnly":true' : ''
  const described = `"description":${JSON.stringify(schema.description)}${readOnly}`
  const name = JSON.stringify(column.name)
  const updateMember = `${name}:{${type}}`
  const member = `${name}:{${plain}${described}${example}}`
  return {
    ...{ column, isAmbiguous: hasAlike, schema, declared: declared !== undefined, member },
    createMember: column.comment === null && declared === undefined ? updateMember : member,
    updateMember,
  }
}

/** The columns that the caller can add to: numbers that are not part of a key. */
export function incrementable({ table, rights }: VisibleTable): readonly Column[] {
  const keys = new Set([...table.primaryKey, ...table.foreignKeys.flatMap(({ columns }) => columns)])
  const found = table.columns.filter(
    column =>
      isNumber(column.type) &&
      !keys.has(column.name) &&
      allows(rights.update, column.name) &&
      !isReadOnly(column, table),
  )
  return distinctBy(found, ({ name }) => name)
}

/** The schema of a column of a function's result, which belongs to no table. */
export function columnSchema(column: Column): SchemaObject {
  return schemaWith(null, column, valueSchema(column.type, column.typeText), undefined)
}

function schemaWith(table: Table | null, column: Column, value: SchemaObject, declared: unknown): SchemaObject {
  const made = () => constantDefault(column, value) ?? exampleValue(column.type, value)
  const example = declared === undefined ? made() : declared
  return {
    ...(column.nullable ? nullable(value) : value),
    description: describeColumn(table, column),
    ...(isReadOnly(column, table) ? { readOnly: true } : {}),
    ...(example === undefined ? {} : { example }),
  }
}

/** The database comment, and facts that schemas cannot express. */
function describeColumn(table: Table | null, { comment, name, typeText, default: value }: Column): string {
  let facts = `\`${typeText}\``
  if (table?.primaryKey.includes(name) === true) facts += ', primary key'
  if (value !== null) facts += `, default \`${value}\``
  return comment === null ? facts : `${comment}\n\n${facts}`
}

/** Reports whether PostgreSQL or the gateway sets the column, so that no body may contain it. */
function isReadOnly({ name, generated, identity }: Column, table: Table | null): boolean {
  return generated !== null || identity === 'always' || (table !== null && isManaged(name, table))
}
