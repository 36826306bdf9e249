/** The rows of a table as schemas: one for what is read, others for what is written. */
import { allows, type Columns } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import { isReadOnly, type SeenColumn } from './columns.ts'
import { constantDefault } from './defaults.ts'
import { distinctBy } from './keys.ts'
import type { RowSchema } from './model.ts'

/** A row with these columns; all of `required` are always there. */
export function rowSchema(table: Table, columns: readonly SeenColumn[], required: Columns): RowSchema {
  const named = nameable(columns)
  return {
    type: 'object',
    ...(table.comment === null ? {} : { description: table.comment }),
    members: named.map(({ member }) => member),
    ...requiring(named.filter(({ column }) => allows(required, column.name))),
    ...(named.length < columns.length ? othersOf(columns, named, table.comment) : {}),
  }
}

/** The columns that can be properties: of `Name` and `name` a generated class has room for one. */
function nameable(columns: readonly SeenColumn[]): readonly SeenColumn[] {
  return columns.some(({ mayBeAlike }) => mayBeAlike) ? distinctBy(columns, ({ column }) => column.name) : columns
}

/** The columns that are no properties are `additionalProperties`; the description names them. */
function othersOf(
  columns: readonly SeenColumn[],
  named: readonly SeenColumn[],
  about: string | null = null,
): Pick<RowSchema, 'additionalProperties' | 'description'> {
  const others = columns.filter(one => !named.includes(one)).map(({ column }) => `\`${column.name}\``)
  return {
    additionalProperties: true,
    description: `${about === null ? '' : `${about}\n\n`}Also ${others.join(', ')}, which generated code could not tell from the properties.`,
  }
}

/** The body of a creation: what the caller may write. What has neither a default nor may be NULL has to be there. */
export function createSchema(columns: readonly SeenColumn[], rights: Columns): RowSchema {
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

function withDefault({ column, schema, createMember: member }: SeenColumn): string {
  // A schema without a type is JSON: generated Java has no initialiser for such a default.
  const value = schema.type === undefined ? undefined : constantDefault(column, schema)
  return value === undefined ? member : `${member.slice(0, -1)},"default":${JSON.stringify(value)}}`
}

/** The body of a change. Without defaults: a column that is left out stays as it is. */
export function updateSchema(table: Table, columns: readonly SeenColumn[], rights: Columns): RowSchema {
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

function writable(columns: readonly SeenColumn[], rights: Columns): readonly SeenColumn[] {
  return columns.filter(({ column }) => !isReadOnly(column) && allows(rights, column.name))
}

/** An empty list is not allowed. */
function requiring(columns: readonly SeenColumn[]): Pick<RowSchema, 'required'> {
  return columns.length === 0 ? {} : { required: columns.map(({ column }) => column.name) }
}

// ---- examples ----------------------------------------------------------------------------------------------
// Valid by their schemas. Whether the database takes them is another matter: it may have no row 1 to refer to, or one that is there already.

/** A row with what it cannot be without, or else with something. */
function exampleOfCreation(columns: readonly SeenColumn[], required: readonly SeenColumn[]): Example {
  return exampleOfRow(required.length > 0 ? required : columns.slice(0, 1))
}

/** A change of one column: of one that ties the row to no other, if there is such a one. */
function exampleOfChange(table: Table, columns: readonly SeenColumn[]): Example {
  const keys = new Set([...table.primaryKey, ...table.foreignKeys.flatMap(key => key.columns)])
  const free = columns.filter(({ column }) => !keys.has(column.name))
  return exampleOfRow((free.length > 0 ? free : columns).slice(0, 1))
}

/**
 * A row as it is answered. Null where nobody has chosen an example for any of its columns: what is made from types, tools make of the schema
 * themselves, and of a large schema it would be megabytes.
 */
export function exampleOfAnswer(columns: readonly SeenColumn[]): Example | null {
  return columns.some(({ declared }) => declared) ? exampleOfRow(columns) : null
}

export type Example = Readonly<Record<string, unknown>>

/** What has no example may be anything, null as well. */
function exampleOfRow(columns: readonly SeenColumn[]): Example {
  return Object.fromEntries(columns.map(({ column, schema }) => [column.name, schema.example ?? null]))
}
