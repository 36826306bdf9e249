/** The schemas of a table's rows, of the envelopes around them and of the bodies that write them. */
import type { Column } from '../catalog/model.ts'
import { incrementable, type VisibleColumn, visibleColumn } from './columns.ts'
import { distinctBy, identifierOf } from './keys.ts'
import {
  NULL,
  type ReferenceObject,
  type RowSchema,
  type SchemaObject,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import { listParameterOf, writtenColumnNames } from './parameters.ts'
import {
  COUNT,
  envelope,
  pageSchema,
  type ResponseRow,
  rowEnvelope,
  rowsEnvelope,
  type WrittenRow,
} from './responses.ts'
import { createSchema, exampleOfAnswer, rowSchema, updateSchema } from './rows.ts'
import {
  canCreate,
  canDelete,
  canRead,
  canUpdate,
  changeableRelations,
  creatableRelations,
  returnedColumns,
  type VisibleRelation,
  type VisibleTable,
  type VisibleTables,
} from './visible-tables.ts'

/** The schemas of one table. */
export interface TableSchemas {
  readonly schemas: readonly (readonly [string, SchemaObject | RowSchema])[]
  /** The schema of rows that a read returns, or null if no column is readable. */
  readonly read: ReadRow | null
  /** The schema of rows that a write returns, or null if it returns none. */
  readonly written: WrittenRow | null
}

/** The schema of rows that reads return. */
export interface ReadRow extends ResponseRow {
  /** Of a list. */
  readonly page: ReferenceObject
}

type Entry = TableSchemas['schemas'][number]

/** The columns of a table that are among these. */
type Choose = (columns: readonly Column[]) => readonly VisibleColumn[]

/** The schemas of a table as a caller sees it. */
export function tableSchemas(seen: VisibleTable, tables: VisibleTables): TableSchemas {
  const { table, rights } = seen
  const seenColumns = new Map(table.columns.map(column => [column, visibleColumn(seen, column)]))
  const choose: Choose = columns => columns.flatMap(column => seenColumns.get(column) ?? [])
  const all = [...seenColumns.values()]
  const schemas: Entry[] = []
  const read = canRead(seen) ? readRow(seen, choose, tables, schemas) : null
  if (canCreate(seen)) {
    schemas.push([`create-${seen.key}`, createSchema(all, rights.create)], ...creationWithRelated(seen, tables))
  }
  if (canUpdate(seen)) {
    schemas.push([`update-${seen.key}`, updateSchema(table, all, rights.update)])
    schemas.push(...changeWithIncrements(seen), ...changeWithRelated(seen))
  }
  const writes = canCreate(seen) || canUpdate(seen) || canDelete(seen)
  return { schemas, read, written: writes ? writtenRow(seen, choose, schemas) : null }
}

/** Adds its schemas to `schemas`. */
function readRow(seen: VisibleTable, choose: Choose, tables: VisibleTables, schemas: Entry[]): ReadRow {
  const { table, key, columns, relations } = seen
  const row = readReference(seen)
  schemas.push([key, rowSchema(table, choose(columns), 'any')])
  if (relations.length > 0) schemas.push([`expanded-${key}`, expandedSchema(seen, tables)])
  schemas.push(
    [`columns-${key}`, listParameterOf(writtenColumnNames(seen.distinct))],
    [`one-${key}`, rowEnvelope(row)],
    [`page-${key}`, pageSchema(row)],
  )
  const example = exampleOfAnswer(choose(columns))
  return { row, one: schemaRef(`one-${key}`), page: schemaRef(`page-${key}`), example }
}

/** Adds its schemas to `schemas`. Null where a write answers nothing. */
function writtenRow(seen: VisibleTable, choose: Choose, schemas: Entry[]): WrittenRow | null {
  const { table, key, columns: read } = seen
  const { columns, always } = returnedColumns(seen)
  if (columns.length === 0) return null
  const chosen = choose(columns)
  const isRead = canRead(seen) && columns.length === read.length && columns.every((one, index) => one === read[index])
  const row = isRead ? readReference(seen) : schemaRef(`written-${key}`)
  if (!isRead) schemas.push([`written-${key}`, rowSchema(table, chosen, always)])
  const one = isRead ? `one-${key}` : `written_one-${key}`
  if (!isRead) schemas.push([one, rowEnvelope(row)])
  schemas.push([`written_many-${key}`, rowsEnvelope(row)])
  const many = schemaRef(`written_many-${key}`)
  if (canCreate(seen)) {
    const data = { anyOf: [row, NULL, { type: 'array', items: row } as const] }
    schemas.push([`created-${key}`, envelope({ data, count: COUNT }, ['data'])])
  }
  return { row, one: schemaRef(one), many, created: schemaRef(`created-${key}`), example: exampleOfAnswer(chosen) }
}

/** The body of a creation with rows of related tables (docs/reference/writing.md#related-rows). */
function creationWithRelated(seen: VisibleTable, tables: VisibleTables): readonly Entry[] {
  const relations = creatableRelations(seen, tables)
  if (relations.length === 0) return []
  const properties = relations.map(({ output, cardinality, seen: target }) => {
    const row = schemaRef(creatableRelations(target, tables).length > 0 ? `related-${target.key}` : 'svc-row')
    return [output, cardinality === 'one' ? row : ({ type: 'array', items: row } as const)] as const
  })
  return [[`related-${seen.key}`, { type: 'object', properties: Object.fromEntries(properties) }]]
}

/** The body of a change that adds to numbers, beside new values of other columns. */
function changeWithIncrements(seen: VisibleTable): readonly Entry[] {
  const columns = incrementable(seen)
  const [first] = columns
  if (first === undefined) return []
  const properties = Object.fromEntries(columns.map(({ name }) => [name, schemaRef('svc-increment')] as const))
  return [[`increments-${seen.key}`, { type: 'object', properties, example: { [first.name]: { $inc: 1 } } }]]
}

/**
 * The body of a change of one row with changes of related rows, beside its columns. The forms of each change
 * are in docs/reference/writing.md#related-rows; with all of them, the document would be too large.
 */
function changeWithRelated(seen: VisibleTable): readonly Entry[] {
  const relations = changeableRelations(seen)
  if (relations.length === 0) return []
  const properties = Object.fromEntries(relations.map(({ output }) => [output, { type: 'object' } as const]))
  return [[`changes-${seen.key}`, { type: 'object', properties }]]
}

/** A row as reads answer it: with the related rows that `expand` asks for. */
function readReference({ key, relations }: VisibleTable): ReferenceObject {
  return schemaRef(relations.length > 0 ? `expanded-${key}` : key)
}

function expandedSchema({ key, columns, relations }: VisibleTable, tables: VisibleTables): SchemaObject {
  const outputs = new Map<string, VisibleRelation[]>()
  for (const relation of relations) {
    const known = outputs.get(relation.output)
    if (known === undefined) outputs.set(relation.output, [relation])
    else known.push(relation)
  }
  const taken = new Set(columns.map(({ name }) => identifierOf(name)))
  const distinct = distinctBy([...outputs], ([output]) => output, taken)
  const properties = Object.fromEntries(distinct.map(([output, ways]) => [output, relatedSchema(ways, tables)]))
  return { allOf: [schemaRef(key), { type: 'object', properties }] }
}

/**
 * The same name may refer to several relations, of which a request uses one: forward and reverse between the
 * rows of one table.
 */
function relatedSchema(ways: readonly VisibleRelation[], tables: VisibleTables): SchemaObject {
  const forms = new Map<string, readonly SchemaOrReference[]>()
  for (const { cardinality, target } of ways) {
    const seen = tables.get(target.resource)
    if (seen === undefined)
      throw new Error(`"${target.resource}" is the target of a visible relation, so it must be visible`)
    const row = readReference(seen)
    const form = cardinality === 'one' ? [row, NULL] : [{ type: 'array', items: row } as const]
    forms.set(`${cardinality} ${target.resource}`, form)
  }
  const all = [...forms.values()].flat()
  const [only] = all
  return all.length === 1 && only !== undefined && !('$ref' in only) ? only : { anyOf: all }
}
