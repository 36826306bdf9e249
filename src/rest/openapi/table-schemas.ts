/** The schemas of a table's rows and of the bodies that write them. */
import type { Column } from '../../catalog/model.ts'
import { type SeenColumn, seenColumn } from './columns.ts'
import { type Reference, type RowSchema, type Schema, type SchemaOrReference, schemaRef } from './model.ts'
import type { AnsweredRow } from './responses.ts'
import { createSchema, exampleOfAnswer, rowSchema, updateSchema } from './rows.ts'
import { answered, canCreate, canRead, canUpdate, type SeenRelation, type SeenTable, type SeenTables } from './seen.ts'

export interface TableSchemas {
  readonly schemas: readonly (readonly [string, Schema | RowSchema])[]
  /** What a read answers; null where nothing may be read. */
  readonly read: AnsweredRow | null
  /** What a write answers; null where that is nothing. */
  readonly written: AnsweredRow | null
}

export function tableSchemas(seen: SeenTable, tables: SeenTables): TableSchemas {
  const { table, key, rights, columns, relations } = seen
  const seenColumns = new Map(table.columns.map(column => [column, seenColumn(table, column)]))
  const all = [...seenColumns.values()]
  const only = (some: readonly Column[]): readonly SeenColumn[] => some.flatMap(column => seenColumns.get(column) ?? [])
  const schemas: (readonly [string, Schema | RowSchema])[] = []
  const read = canRead(seen) ? { row: readReference(seen), example: exampleOfAnswer(only(columns)) } : null
  if (read !== null) {
    schemas.push([key, rowSchema(table, only(columns), 'any')])
    if (relations.length > 0) schemas.push([`expanded-${key}`, expandedSchema(seen, tables)])
  }
  if (canCreate(seen)) schemas.push([`create-${key}`, createSchema(all, rights.create)])
  if (canUpdate(seen)) schemas.push([`update-${key}`, updateSchema(table, all, rights.update)])
  const returned = answered(seen)
  const isRead =
    read !== null &&
    returned.columns.length === columns.length &&
    columns.every((column, index) => column === returned.columns[index])
  if (isRead) return { schemas, read, written: { ...read, row: schemaRef(key) } }
  if (returned.columns.length === 0) return { schemas, read, written: null }
  const name = `written-${key}`
  const row = only(returned.columns)
  return {
    schemas: [...schemas, [name, rowSchema(table, row, returned.always)]],
    read,
    written: { row: schemaRef(name), example: exampleOfAnswer(row) },
  }
}

/** A row as reads answer it: with the related rows that `expand` asks for. */
function readReference({ key, relations }: SeenTable): Reference {
  return schemaRef(relations.length > 0 ? `expanded-${key}` : key)
}

function expandedSchema({ key, relations }: SeenTable, tables: SeenTables): Schema {
  const outputs = new Map<string, SeenRelation[]>()
  for (const relation of relations) {
    const known = outputs.get(relation.output)
    if (known === undefined) outputs.set(relation.output, [relation])
    else known.push(relation)
  }
  const properties = Object.fromEntries(Array.from(outputs, ([output, ways]) => [output, relatedSchema(ways, tables)]))
  return { allOf: [schemaRef(key), { type: 'object', properties }] }
}

/** The same name may stand for several ways, of which a request takes one: forward and back between the rows of one table. */
function relatedSchema(ways: readonly SeenRelation[], tables: SeenTables): Schema {
  const forms = new Map<string, readonly SchemaOrReference[]>()
  for (const { cardinality, target } of ways) {
    const seen = tables.get(target.resource)
    if (seen === undefined) throw new Error(`"${target.resource}" can be followed to, and so may be seen`)
    const row = readReference(seen)
    const form = cardinality === 'one' ? [row, schemaRef('svc-null')] : [{ type: 'array', items: row } as const]
    forms.set(`${cardinality} ${target.resource}`, form)
  }
  const all = [...forms.values()].flat()
  const [only] = all
  return all.length === 1 && only !== undefined && !('$ref' in only) ? only : { anyOf: all }
}
