/** The rows of a table as schemas: one for reading, others for writing. */
import { allows, type ColumnSet } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import type { VisibleColumn } from './columns.ts'
import { constantDefault } from './defaults.ts'
import { distinctBy } from './keys.ts'
import type { RowSchema } from './model.ts'

/** The schema of a row with these columns; `required` ones are always present. */
export function rowSchema(table: Table, columns: readonly VisibleColumn[], required: ColumnSet): RowSchema {
  const named = nameable(columns)
  return {
    type: 'object',
    ...(table.comment === null ? {} : { description: table.comment }),
    members: named.map(({ member }) => member),
    ...requiring(named.filter(({ column }) => allows(required, column.name))),
    ...(named.length < columns.length ? othersOf(columns, named, table.comment) : {}),
  }
}

/** The columns that can be properties: a generated class cannot have both `Name` and `name`. */
function nameable(columns: readonly VisibleColumn[]): readonly VisibleColumn[] {
  return columns.some(({ isAmbiguous: mayBeAlike }) => mayBeAlike)
    ? distinctBy(columns, ({ column }) => column.name)
    : columns
}

/** Columns that are not properties are covered by `additionalProperties`; the description names them. */
function othersOf(
  columns: readonly VisibleColumn[],
  named: readonly VisibleColumn[],
  about: string | null = null,
): Pick<RowSchema, 'additionalProperties' | 'description'> {
  const others = columns.filter(one => !named.includes(one)).map(({ column }) => `\`${column.name}\``)
  return {
    additionalProperties: true,
    description:
      `${about === null ? '' : `${about}\n\n`}Also ${others.join(', ')}, which generated ` +
      'code could not distinguish from the properties.',
  }
}

/**
 * The body of a creation: the columns that the caller may write. Columns without default that are not
 * nullable are required.
 */
export function createSchema(columns: readonly VisibleColumn[], rights: ColumnSet): RowSchema {
  const written = writable(columns, rights)
  const named = nameable(written)
  const required = written.filter(
    ({ column }) => !column.nullable && column.default === null && column.identity === null,
  )
  return {
    type: 'object',
    members: named.map(withDefault),
    ...requiring(required.filter(one => named.includes(one))),
    ...(named.length < written.length ? othersOf(written, named) : { additionalProperties: false }),
    example: exampleOfCreation(written, required),
  }
}

function withDefault({ column, schema, createMember: member }: VisibleColumn): string {
  // A schema without a type is JSON, for whose default generated Java has no initializer.
  const value = schema.type === undefined ? undefined : constantDefault(column, schema)
  return value === undefined ? member : `${member.slice(0, -1)},"default":${JSON.stringify(value)}}`
}

/** The body of an update. Without defaults, because an omitted column stays unchanged. */
export function updateSchema(table: Table, columns: readonly VisibleColumn[], rights: ColumnSet): RowSchema {
  const written = writable(columns, rights)
  const named = nameable(written)
  return {
    type: 'object',
    members: named.map(({ updateMember }) => updateMember),
    ...(named.length < written.length ? othersOf(written, named) : { additionalProperties: false }),
    minProperties: 1,
    ...(written.length === 0 ? {} : { example: exampleOfChange(table, written) }),
  }
}

function writable(columns: readonly VisibleColumn[], rights: ColumnSet): readonly VisibleColumn[] {
  return columns.filter(({ column, schema }) => schema.readOnly !== true && allows(rights, column.name))
}

/** An empty list is not allowed. */
function requiring(columns: readonly VisibleColumn[]): Pick<RowSchema, 'required'> {
  return columns.length === 0 ? {} : { required: columns.map(({ column }) => column.name) }
}

// // --- examples ---

/** A row with its required columns, or else with one. */
function exampleOfCreation(columns: readonly VisibleColumn[], required: readonly VisibleColumn[]): RowExample {
  return exampleOfRow(required.length > 0 ? required : columns.slice(0, 1))
}

/** An update of one column, preferably one that is not a foreign key. */
function exampleOfChange(table: Table, columns: readonly VisibleColumn[]): RowExample {
  const keys = new Set([...table.primaryKey, ...table.foreignKeys.flatMap(key => key.columns)])
  const free = columns.filter(({ column }) => !keys.has(column.name))
  return exampleOfRow((free.length > 0 ? free : columns).slice(0, 1))
}

/**
 * A row as it is returned. Null if no column has a declared example: tools generate values from types
 * themselves, and for a large schema they would be megabytes.
 */
export function exampleOfAnswer(columns: readonly VisibleColumn[]): RowExample | null {
  return columns.some(({ declared }) => declared) ? exampleOfRow(columns) : null
}

/** An example of a row, by column name. */
export type RowExample = Readonly<Record<string, unknown>>

/** Without an example, any value is possible, including null. */
function exampleOfRow(columns: readonly VisibleColumn[]): RowExample {
  return Object.fromEntries(columns.map(({ column, schema }) => [column.name, schema.example ?? null]))
}
