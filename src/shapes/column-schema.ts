/** The `electric-schema` header: the types with which a client parses the strings of a shape. */
import type { Column, DataType, Table } from '../catalog/model.ts'

/** Describes columns as JSON in ASCII, as a header needs. */
export function printColumnSchema(table: Table, names: readonly string[]): string {
  const columns = names.flatMap(name => {
    const found = table.columnByName.get(name)
    return found === undefined ? [] : [[name, infoOf(found, table.primaryKey)] as const]
  })
  const text = JSON.stringify(Object.fromEntries(columns))
  return text.replace(/[\u007f-\uffff]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function infoOf(column: Column, primaryKey: readonly string[]): object {
  const [type, dims] = elementOf(column.type)
  const place = primaryKey.indexOf(column.name)
  return {
    type: type.name,
    ...(dims > 0 ? { dims } : {}),
    ...modifiersOf(type.name, column.typeText),
    ...(column.nullable ? {} : { not_null: true }),
    ...(place === -1 ? {} : { pk_index: place }),
  }
}

/** The element of an array and the number of its dimensions, which PostgreSQL does not enforce. */
function elementOf(type: DataType): readonly [DataType, number] {
  return type.kind === 'array' && type.of !== null ? [type.of, 1] : [type, 0]
}

/** The modifiers of a type such as `numeric(8,5)`, under the names that clients know. */
function modifiersOf(name: string, typeText: string): object {
  const [first, second] = (/\(([-\d,]+)\)/.exec(typeText)?.[1] ?? '').split(',').filter(Boolean).map(Number)
  if (name === 'interval') {
    const [, fields] = /^interval ([a-z ]+)/.exec(typeText) ?? []
    return {
      ...(fields === undefined ? {} : { fields: fields.trim().toUpperCase() }),
      ...(first === undefined ? {} : { precision: first }),
    }
  }
  if (first === undefined) return {}
  if (name === 'varchar') return { max_length: first }
  if (name === 'bpchar' || name === 'bit' || name === 'varbit') return { length: first }
  if (name === 'numeric') return { precision: first, scale: second ?? 0 }
  return /^(time|timestamp)(tz)?$/.test(name) ? { precision: first } : {}
}
